/* See saved.h. */
#include "pipeline/saved.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/input.h"
#include "formats/ctf_read.h"
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

/* The loop over a source, which it closes. */
static int read_all(const char *name, struct saved_reading *reading, struct diag *diag)
{
	struct event event;
	int r;

	while ((r = reading->ops->next(reading->source, &event, diag)) > 0) {
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

int saved_read_path(const char *path, struct saved_reading *reading, struct diag *diag)
{
	struct stat status;
	struct input in;
	int r;

	if (strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		reading->ops = &ctf_source;
		r = ctf_source_open(path, reading->trace, &reading->source, diag);
		return r < 0 ? r : read_all(path, reading, diag);
	}
	r = input_open(&in, path, diag);
	return r < 0 ? r : saved_read_input(&in, reading, diag);
}

/* The times of the first and the last event that carries a loss. */
struct losses {
	uint64_t first_ns;
	uint64_t last_ns;
	int (*on_event)(void *context, const struct event *event);
	void *context;
};

static int note_losses(void *context, const struct event *event)
{
	struct losses *losses = context;

	if (event->lost_before && !losses->first_ns)
		losses->first_ns = event->time_ns;
	if (event->lost_before)
		losses->last_ns = event->time_ns;
	return losses->on_event ? losses->on_event(losses->context, event) : 0;
}

int saved_read(const char *path, struct trace *trace,
	int (*on_event)(void *context, const struct event *event), void *context, struct diag *diag)
{
	struct losses losses = { .on_event = on_event, .context = context };
	struct saved_reading reading = {
		.trace = trace,
		.on_event = note_losses,
		.context = &losses,
	};
	int r = saved_read_path(path, &reading, diag);

	if (!reading.source)
		return r;
	int end = absorb_end(trace, reading.lost, losses.first_ns, losses.last_ns);

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
