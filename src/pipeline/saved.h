/* Reads a recording from a file: decodes its events and absorbs them into a trace. */
#ifndef SPOOR_PIPELINE_SAVED_H
#define SPOOR_PIPELINE_SAVED_H

#include <stddef.h>

struct diag;
struct event;
struct trace;

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
