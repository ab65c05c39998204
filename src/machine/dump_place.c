/* See dump_place.h. */
#include "machine/dump_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/text.h"
#include "machine/target_root.h"

static const char report_suffix[] = ".crashreport.json"; /* createdump's own */

/* The folder and a slash, with "%" doubled: to createdump "%p" is the pid, "%%" the sign itself. */
static int name_for_runtime(const char *folder, size_t len, const char *name,
	char out[DUMP_PATH_ROOM])
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		if (used + 2 >= DUMP_PATH_ROOM)
			return -ENAMETOOLONG;
		if (folder[i] == '%')
			out[used++] = '%';
		out[used++] = folder[i];
	}
	int n = snprintf(out + used, DUMP_PATH_ROOM - used, "/%s", name);
	return n < 0 || (size_t)n >= DUMP_PATH_ROOM - used ? -ENAMETOOLONG : 0;
}

static int reserve_report(struct dump_place *place, const char *path, uint32_t uid,
	struct diag *diag)
{
	char report[DUMP_PATH_ROOM + sizeof(report_suffix)];
	int folder = fcntl(place->core.folder, F_DUPFD_CLOEXEC, 0);

	if (folder < 0)
		return diag_set(diag, -errno, "cannot open the folder of the dump: %m");
	text_set(report, "%s%s", path, report_suffix);
	int result = output_file_reserve(&place->report, folder, report, uid, diag);

	if (result == 0)
		text_set(place->report.temporary, "%.40s%s", place->core.temporary, report_suffix);
	return result;
}

int dump_place_open(const struct dump_place_question *question, struct dump_place *ret_place,
	struct diag *diag)
{
	const char *slash = strrchr(question->path, '/');
	size_t len = slash ? (size_t)(slash - question->path) : 0;
	char folder[DUMP_PATH_ROOM];
	struct target_root root;
	int fd = -1;

	*ret_place = (struct dump_place){ .core = { .fd = -1, .folder = -1 },
		.report = { .fd = -1, .folder = -1 } };
	if (!slash || len + 1 >= sizeof(folder))
		return diag_set(diag, -ENAMETOOLONG, "the name of the file is too long");
	memcpy(folder, question->path, len);
	memcpy(folder + len, "/", 2);
	int result = target_root_open(&root, question->pid, diag);

	if (result < 0)
		return result;
	result = target_root_open_folder(&root, folder, &fd, diag);
	target_root_close(&root);
	if (result == 0)
		result = output_file_reserve(&ret_place->core, fd, question->path, question->uid,
			diag);
	if (result == 0 && question->crash_report)
		result = reserve_report(ret_place, question->path, question->uid, diag);
	if (result == 0 &&
		name_for_runtime(folder, len, ret_place->core.temporary, ret_place->path) < 0)
		result = diag_set(diag, -ENAMETOOLONG, "the name of the file is too long");
	if (result < 0)
		dump_place_close(ret_place);
	return result;
}

static bool is_written(const struct output_file *file, struct stat *ret_status)
{
	return file->folder >= 0 && file->temporary[0] &&
	       fstatat(file->folder, file->temporary, ret_status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(ret_status->st_mode);
}

bool dump_place_is_written(const struct dump_place *place)
{
	struct stat status;

	return is_written(&place->core, &status);
}

int dump_place_keep(struct dump_place *place, uint64_t *ret_size_bytes, struct diag *diag)
{
	struct stat status;

	if (!is_written(&place->core, &status))
		return diag_set(diag, -ENOENT, "there is no dump in its folder");
	*ret_size_bytes = (uint64_t)status.st_size;
	int result = output_file_keep(&place->core, diag);

	if (result < 0 || place->report.folder < 0)
		return result;
	if (!is_written(&place->report, &status))
		return diag_set(diag, -ENOENT, "the dump is written, but there is no crash report");
	return output_file_keep(&place->report, diag);
}

void dump_place_close(struct dump_place *place)
{
	output_file_close(&place->core);
	output_file_close(&place->report);
}
