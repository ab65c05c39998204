/* See saved.h. */
#include "pipeline/saved.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/input.h"
#include "formats/ctf_read.h"
#include "formats/xctrace_read.h"
#include "nettrace/nettrace_read.h"
#include "trace/absorb.h"
#include "trace/event.h"
#include "trace/flow.h"
#include "trace/trace.h"

/*
 * Whether the event says something of processes, names or the recording. Most do not, and are not
 * looked at again. Only the reader of nettrace sets the kinds of all schemas.
 */
static bool is_absorbed(const struct saved_reading *reading, const struct event *event)
{
	return reading->ops != &nettrace_source ||
	       (event->kind != EVENT_OTHER && event->kind != EVENT_SAMPLE &&
		       event->kind != EVENT_SWITCH);
}

static void note_loss(struct saved_reading *reading, uint64_t time_ns)
{
	if (!reading->lost_first_ns)
		reading->lost_first_ns = time_ns;
	reading->lost_last_ns = time_ns;
}

/* The loop over a source, which it closes. */
static int read_all(const char *name, struct saved_reading *reading, struct diag *diag)
{
	struct event event;
	int r;

	while ((r = reading->ops->next(reading->source, &event, diag)) > 0) {
		if (event.lost_before)
			note_loss(reading, event.time_ns);
		/* A payload that cannot be decoded is ignored: the rest of the file is valid. */
		if (reading->clock_only)
			r = absorb_clock(reading->trace, &event);
		else if (is_absorbed(reading, &event))
			r = absorb_event(reading->trace, &event, NULL);
		if (r != -ENOMEM)
			r = reading->on_event ? reading->on_event(reading->context, &event) : 0;
		if (r == -ENOMEM)
			diag_set(diag, r, "cannot read '%s': %m", name);
		if (r < 0)
			break;
	}
	reading->lost = reading->ops->lost(reading->source);
	reading->ops->close(reading->source);
	return r;
}

int saved_read_input(struct input *in, struct saved_reading *reading, struct diag *diag)
{
	const char *name = in->name ? in->name : "memory";
	int r = input_unpack(in, diag);

	reading->ops = &nettrace_source;

	if (r == 0)
		r = reading->ops->open(in, reading->trace, !reading->clock_only, &reading->source,
			diag);
	if (r < 0) {
		input_close(in);
		return r;
	}
	return read_all(name, reading, diag);
}

/* ---- A folder of a recording on macOS ---- */

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

/* The names of methods, from the file of a runtime's rundown: the tables only. */
static int read_methods(const char *path, struct trace *trace, struct diag *diag)
{
	struct saved_reading reading = { .trace = trace };
	struct input in;
	int r = input_open_regular(&in, path, diag);

	return r < 0 ? r : saved_read_input(&in, &reading, diag);
}

/*
 * The samples of xctrace in the file of this folder. The methods of the folder's other files come
 * first, because their times are of another clock, and count for the whole recording.
 */
static int read_xctrace(const char *folder, const char *file, struct saved_reading *reading,
	struct diag *diag)
{
	struct trace *trace = reading->trace;
	char path[PATH_MAX];
	struct input in;
	int r = 0;
	DIR *d = opendir(folder);

	if (!d)
		return diag_set(diag, -errno, "cannot read '%s': %m", folder);
	for (struct dirent *entry; r == 0 && !reading->clock_only && (entry = readdir(d));) {
		if (!has_suffix(entry->d_name, ".nettrace"))
			continue;
		int n = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (n > 0 && (size_t)n < sizeof(path))
			r = read_methods(path, trace, diag);
	}
	(void)closedir(d);
	trace->recording.sync_ns = trace->recording.utc_ns = trace->recording.end_ns = 0;
	vec_each(process, &trace->processes)
		process->begin_ns = process->end_ns = 0;
	reading->ops = &xctrace_source;
	if (r == 0)
		r = input_open_regular(&in, file, diag);
	if (r < 0)
		return r;
	r = xctrace_source_open(&in, trace, &reading->source, diag);
	if (r < 0)
		input_close(&in);
	return r < 0 ? r : read_all(file, reading, diag);
}

int saved_read_path(const char *path, struct saved_reading *reading, struct diag *diag)
{
	struct stat status;
	struct input in;
	int r;

	if (strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		char file[PATH_MAX];
		int n = snprintf(file, sizeof(file), "%s/" XCTRACE_FILE_NAME, path);
		if (n > 0 && (size_t)n < sizeof(file) && access(file, F_OK) == 0)
			return read_xctrace(path, file, reading, diag);
		reading->ops = &ctf_source;
		r = ctf_source_open(path, reading->trace, &reading->source, diag);
		return r < 0 ? r : read_all(path, reading, diag);
	}
	r = input_open(&in, path, diag);
	return r < 0 ? r : saved_read_input(&in, reading, diag);
}

int saved_read(const char *path, struct trace *trace,
	int (*on_event)(void *context, const struct event *event), void *context, struct diag *diag)
{
	struct saved_reading reading = {
		.trace = trace,
		.on_event = on_event,
		.context = context,
	};
	int r = saved_read_path(path, &reading, diag);

	if (!reading.source)
		return r;
	int end = absorb_end(trace, reading.lost, reading.lost_first_ns, reading.lost_last_ns);

	if (r == 0 && end < 0)
		return diag_set(diag, end, "cannot read '%s': %m", path);
	return r;
}

static bool is_recording(const char *name)
{
	return has_suffix(name, ".nettrace") || has_suffix(name, ".nettrace.zst");
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
