/* See saved.h. */
#include "pipeline/saved.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/input.h"
#include "nettrace/nettrace_read.h"
#include "trace/absorb.h"
#include "trace/event.h"
#include "trace/trace.h"

int saved_read(const char *path, struct trace *trace,
	int (*on_event)(void *context, const struct event *event), void *context, struct diag *diag)
{
	struct input in;
	struct source *source;
	struct event event;
	uint64_t first_ns = 0;
	uint64_t last_ns = 0;
	int r = input_open(&in, path, diag);

	if (r < 0)
		return r;
	r = input_unpack(&in, diag);
	if (r == 0)
		r = nettrace_source.open(&in, trace, &source, diag);
	if (r < 0) {
		input_close(&in);
		return r;
	}
	while ((r = nettrace_source.next(source, &event, diag)) > 0) {
		/*
		 * A spoor event that cannot be decoded is ignored: the rest of the file is valid.
		 */
		r = absorb_event(trace, &event, NULL);
		if (r == -ENOMEM) {
			diag_set(diag, r, "cannot read '%s': %m", path);
			break;
		}
		if (event.lost_before) {
			if (!first_ns)
				first_ns = event.time_ns;
			last_ns = event.time_ns;
		}
		r = on_event ? on_event(context, &event) : 0;
		if (r < 0)
			break;
	}
	int end = absorb_end(trace, nettrace_source_lost(source), first_ns, last_ns);
	nettrace_source.close(source);
	if (r == 0 && end < 0)
		return diag_set(diag, end, "cannot read '%s': %m", path);
	return r;
}

static bool is_recording(const char *name)
{
	static const char *const suffixes[] = { ".nettrace", ".nettrace.zst" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix_len = strlen(suffixes[i]);
		if (len > suffix_len && strcmp(name + len - suffix_len, suffixes[i]) == 0)
			return true;
	}
	return false;
}

int saved_newest(const char *folder, char *path, size_t room, struct diag *diag)
{
	DIR *d = opendir(folder);
	struct timespec newest = { 0 };
	bool found = false;

	if (!d)
		return diag_set(diag, -errno, "cannot look for recordings in '%s': %m", folder);
	for (struct dirent *entry; (entry = readdir(d));) {
		struct stat status;
		size_t len = strlen(entry->d_name);
		if (!is_recording(entry->d_name))
			continue;
		if (fstatat(dirfd(d), entry->d_name, &status, 0) < 0 || !S_ISREG(status.st_mode))
			continue;
		struct timespec time = status.st_mtim;
		if (found &&
			(time.tv_sec < newest.tv_sec ||
				(time.tv_sec == newest.tv_sec && time.tv_nsec <= newest.tv_nsec)))
			continue;
		if (strlen(folder) + 1 + len >= room)
			continue;
		int n = strcmp(folder, ".") == 0
				? snprintf(path, room, "%s", entry->d_name)
				: snprintf(path, room, "%s/%s", folder, entry->d_name);
		if (n < 0 || (size_t)n >= room)
			continue;
		newest = time;
		found = true;
	}
	(void)closedir(d);
	if (!found) {
		diag_set(diag, -ENOENT, "no recording (*.nettrace, *.nettrace.zst) in '%s'",
			folder);
		diag_remedy(diag, "make one with 'spoor record', or name a file");
		return -ENOENT;
	}
	return 0;
}
