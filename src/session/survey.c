/* See survey.h. */
#include "session/survey.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "dotnet/port.h"
#include "machine/proc.h"

static int on_mapping(void *user, const struct proc_mapping *mapping)
{
	unsigned *signs = user;

	*signs |= dotnet_signs_of_path(mapping->path);
	return dotnet_signs_worth_asking(*signs);
}

static void look_at(struct survey *survey, struct proc_reader *proc, uint32_t pid)
{
	struct dotnet_target target;
	struct diag diag = { 0 };
	unsigned signs = 0;
	int result = proc_read_maps(proc, pid, on_mapping, &signs);

	if (result == -EACCES || result == -EPERM) {
		survey->hidden++;
		return;
	}
	if (!dotnet_signs_worth_asking(signs) || dotnet_target_read(pid, &target, &diag) < 0)
		return;
	survey->found++;
	cleanup(closep) int fd = dotnet_port_connect(&target, &diag);

	if (fd >= 0) {
		survey->reachable++;
	} else if (!survey->refused_pid) {
		survey->refused_pid = pid;
		(void)text_make_safe(diag.text, strlen(diag.text), survey->reason, sizeof(survey->reason)); /* a cut end is fine */
	}
}

int survey_dotnet(struct survey *ret_survey, struct diag *diag)
{
	struct proc_reader proc;
	struct id_list list = { 0 };
	int result = proc_open(&proc, diag);

	*ret_survey = (struct survey){ 0 };
	if (result < 0)
		return result;
	result = proc_list(&proc, &list, diag);
	for (uint32_t i = 0; result == 0 && i < list.ids.count; i++)
		look_at(ret_survey, &proc, list.ids.items[i]);
	vec_done(&list.ids);
	proc_close(&proc);
	return result;
}
