/* See target_options.h. */
#include "cli/target_options.h"

#include <string.h>

#include "base/text.h"
#include "cli/message.h"
#include "cli/verbs.h"
#include "machine/rights.h"

/* The next of "12,34". False at the end; *at is elsewhere after a malformed id. */
static bool next_pid(const char **at, uint32_t *ret_pid)
{
	char number[24];
	size_t len = strcspn(*at, ",");
	uint64_t pid = 0;

	if (!len || len >= sizeof(number))
		return false;
	memcpy(number, *at, len);
	number[len] = '\0';
	if (!text_parse_u64(number, &pid) || !pid || pid > INT32_MAX)
		return false;
	*at += len;
	*at += **at == ',';
	*ret_pid = (uint32_t)pid;
	return true;
}

/* All lists of one option; the exit code. */
int target_options_ids(const struct texts *texts, const char *option, const char *what,
	const struct verb *verb, void *vec_of_u32)
{
	VEC(uint32_t) *pids = vec_of_u32;

	for (uint32_t i = 0; i < texts->list.count; i++) {
		const char *at = texts->list.items[i];
		bool any = false;
		uint32_t pid;

		while (next_pid(&at, &pid)) {
			any = true;
			if (!vec_add(pids, pid)) {
				message_print("out of memory");
				return EXIT_FAILED;
			}
		}
		if (!any || *at)
			return options_misused(verb, "%s takes %s ids, not '%s'%s", option, what,
				texts->list.items[i],
				strcmp(option, "-p") == 0 ? "; use -n NAME for a name" : "");
	}
	return EXIT_DONE;
}

int target_options_query(const struct target_values *values, const struct verb *verb,
	struct target_choice *ret_choice)
{
	struct target_choice *choice = ret_choice;

	*choice = (struct target_choice){ 0 };
	int code = target_options_ids(&values->pids, "-p", "process", verb, &choice->pids);

	if (code == EXIT_DONE)
		code = target_options_ids(&values->trees, "--tree", "process", verb,
			&choice->trees);
	choice->query = (struct target_query){
		.pids = choice->pids.items,
		.pid_count = choice->pids.count,
		.trees = choice->trees.items,
		.tree_count = choice->trees.count,
		.names = values->names.list.items,
		.name_count = values->names.list.count,
		.containers = values->containers.list.items,
		.container_count = values->containers.list.count,
		.pods = values->pods.list.items,
		.pod_count = values->pods.list.count,
		.cgroups = values->cgroups.list.items,
		.cgroup_count = values->cgroups.list.count,
		.all = values->all,
	};
	return code;
}

int target_options_dotnet(const struct target_values *values, const struct verb *verb,
	struct target_choice *ret_choice)
{
	int code = target_options_query(values, verb, ret_choice);

	if (code != EXIT_DONE)
		return code;
	ret_choice->query.single = true;
	ret_choice->query.dotnet_only = true;
	if (!values->all && !target_options_given(values) && !targets_in_container())
		return options_misused(verb,
			"which process? -p PID or -n NAME; spoor ps lists them");
	return EXIT_DONE;
}

int target_options_choose_own(const struct target_query *query, struct targets *ret_targets,
	struct diag *diag)
{
	rights_raise();
	int result = targets_choose(query, ret_targets, diag);

	rights_return();
	return result;
}

void target_options_done(struct target_choice *choice)
{
	vec_done(&choice->pids);
	vec_done(&choice->trees);
}

bool target_options_given(const struct target_values *values)
{
	return values->pids.list.count || values->trees.list.count || values->names.list.count ||
	       values->containers.list.count || values->pods.list.count ||
	       values->cgroups.list.count;
}
