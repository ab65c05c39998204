/*
 * Reads a recording from a file, or a CTF trace or a recording of macOS from a folder: decodes its events and absorbs them
 * into a trace.
 */
#ifndef SPOOR_PIPELINE_SAVED_H
#define SPOOR_PIPELINE_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct event;
struct input;
struct source;
struct source_ops;
struct trace;

/* How saved_read_input() reads. */
struct saved_reading {
	struct trace *trace;
	/*
	 * Events have no stacks, and only the data that turns times into dates is absorbed, not what
	 * the events state about processes and code.
	 */
	bool clock_only;
	/* Of every event, in file order, after it was absorbed; may be NULL. Negative: the end. */
	int (*on_event)(void *context, const struct event *event);
	void *context;
	/* set by the reading, for on_event(): the format, and the file; NULL: it was not opened */
	const struct source_ops *ops;
	struct source *source;
	uint64_t lost; /* results: events lost by the part that was read, */
	uint64_t
		lost_first_ns; /* and the times of the first and the last event before which some were */
	uint64_t lost_last_ns;
};

/*
 * The loop over a saved file: every reader of recordings runs it. Takes the input over, also after a
 * failure. Results as saved_read().
 */
int saved_read_input(struct input *in, struct saved_reading *reading, struct diag *diag);

/* The same for `path`: a file, "-" for standard input, or a folder: of a CTF trace, or of macos/collect. */
int saved_read_path(const char *path, struct saved_reading *reading, struct diag *diag);

/*
 * Reads `path` ("-": standard input) into `trace`, which must be initialized, and calls back for
 * every event, in file order, after it was absorbed. A negative code from the callback ends the
 * reading and is returned.
 *
 * Returns 0, or a negative code with `diag` describing where the file is truncated or broken. The
 * events before that place have been delivered (trace.recording.end_ns is not 0 if there was any
 * event); the caller decides whether to use them.
 */
int saved_read(const char *path, struct trace *trace,
	int (*on_event)(void *context, const struct event *event), void *context,
	struct diag *diag);

/*
 * The newest regular file *.nettrace or *.nettrace.zst in `folder`, with the folder as prefix.
 * Returns -ENOENT if there is none.
 */
int saved_newest(const char *folder, char *path, size_t room, struct diag *diag);

#endif
