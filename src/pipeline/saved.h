/*
 * Reading a recording from a file: opened, recognised, read to its end, absorbed.
 */
#ifndef SPOOR_PIPELINE_SAVED_H
#define SPOOR_PIPELINE_SAVED_H

#include <stddef.h>

struct diag;
struct event;
struct trace;

/*
 * Reads `path` ("-": standard input) into `trace`, which is initialised, and calls back for every event, in file order, after it was
 * absorbed. A callback's negative code ends the reading and is returned.
 *
 * 0, or a negative code with `diag` saying where the file is torn or broken: what came before has been delivered (trace.recording.end_ns is
 * not 0 when there was any event), and the caller decides whether to go on with it.
 */
int saved_read(const char *path, struct trace *trace,
	int (*on_event)(void *context, const struct event *event), void *context, struct diag *diag);

/* The newest regular file *.nettrace or *.nettrace.zst in `folder`, with the folder in front. -ENOENT when there is none. */
int saved_newest(const char *folder, char *path, size_t room, struct diag *diag);

#endif
