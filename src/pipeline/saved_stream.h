/*
 * The events of a file as they are, in the order of their times, however long it is: facts about processes and code are not gathered, and stacks are passed over, unless both are wanted.
 *
 * Runtimes write what a thread has in hand at once, then the next thread's, so that a file of theirs is in order per thread only. A window puts the events in
 * order: an event leaves it once the file marks that none after it is older (a sorted event, a sequence point), or, without such a mark, when the window is full. An
 * event older than those released before it follows them directly.
 */
#ifndef SPOOR_PIPELINE_SAVED_STREAM_H
#define SPOOR_PIPELINE_SAVED_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct diag;
struct event;
struct input;
struct trace;

/* Bytes of events that wait at most. A file that marks no order, or marks it more rarely than that, is put in order within this window only. */
#define SAVED_STREAM_WINDOW_MAX (64u << 20)

enum saved_stream_stacks {
	SAVED_STREAM_NO_STACKS,
	SAVED_STREAM_STACKS, /* stacks, and the facts that events state about processes and code, are gathered as saved_read() does, with the same indexes */
};

/* `code_epoch` is the one that the event's process had where the event is in the file: trace/symbolmap.h. */
typedef int saved_stream_fn(void *context, const struct event *event, uint32_t code_epoch);

/*
 * Reads `path` ("-": standard input) and calls back for every event; `trace`, which is initialised, has its schemas and threads. A callback's negative code
 * ends the reading and is returned. *ret_lost is what the sequence numbers say was lost in all of what was read.
 *
 * 0, or a negative code with `diag` saying where the file is torn or broken: what came before has been delivered.
 */
int saved_stream(const char *path, struct trace *trace, enum saved_stream_stacks stacks, saved_stream_fn *on_event, void *context,
	uint64_t *ret_lost, struct diag *diag);

/* As saved_stream(), from an input, which stays open. */
int saved_stream_input(struct input *in, struct trace *trace, enum saved_stream_stacks stacks, saved_stream_fn *on_event, void *context,
	uint64_t *ret_lost, struct diag *diag);

#endif
