/*
 * Streams the events of a file of any length in time order. Stacks, and facts about processes and
 * code, are only collected on request.
 *
 * A runtime writes the buffered events of one thread, then those of the next thread, so that its
 * file is sorted by thread only. A reorder window sorts the events: an event leaves it when the
 * file marks that no later event is older (a sorted event, a sequence point), or, without such a
 * mark, when the window is full. An event older than those released before it follows them
 * directly.
 */
#ifndef SPOOR_PIPELINE_SAVED_STREAM_H
#define SPOOR_PIPELINE_SAVED_STREAM_H

#include <stdint.h>

struct diag;
struct event;
struct input;
struct trace;

/*
 * Limit of the bytes of waiting events. A file without order marks, or with rarer ones, is sorted
 * within this window only.
 */
#define SAVED_STREAM_WINDOW_MAX (64u << 20)

enum saved_stream_stacks {
	SAVED_STREAM_NO_STACKS,
	/*
	 * collects stacks and the facts that events state about processes and code as saved_read()
	 * does, with the same indexes
	 */
	SAVED_STREAM_STACKS,
};

/* `code_epoch` is that of the event's process at its position in the file (trace/symbolmap.h). */
typedef int saved_stream_fn(void *context, const struct event *event, uint32_t code_epoch);

/*
 * Reads `path` ("-": standard input) and calls back for every event; `trace`, which must be
 * initialized, gets its schemas and threads. A negative code from the callback ends the reading and
 * is returned. *ret_lost is the number of lost events according to the sequence numbers of the part
 * that was read.
 *
 * Returns 0, or a negative code with `diag` describing where the file is truncated or broken; the
 * events before that place have been delivered.
 */
int saved_stream(const char *path, struct trace *trace, enum saved_stream_stacks stacks,
	saved_stream_fn *take, void *context, uint64_t *ret_lost, struct diag *diag);

/* As saved_stream(), from an input, which it takes over. */
int saved_stream_input(struct input *in, struct trace *trace, enum saved_stream_stacks stacks,
	saved_stream_fn *take, void *context, uint64_t *ret_lost, struct diag *diag);

#endif
