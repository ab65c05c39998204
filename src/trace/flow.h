/*
 * Sources and sinks: the two ends of every flow of events.
 *
 * A source yields events and keeps the tables of `trace` ahead of them; a sink takes events and
 * reads the tables. The loop over a source is saved_read_input() (pipeline/saved.c).
 */
#ifndef SPOOR_TRACE_FLOW_H
#define SPOOR_TRACE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct event;
struct input;
struct trace;
struct source;
struct sink;

struct source_ops {
	const char *name;                               /* "nettrace" */
	bool (*probe)(const uint8_t *head, size_t len); /* is it yours? takes nothing */
	/* Takes the input over on success. `trace` outlives the source. `stacks`: events have theirs. */
	int (*open)(struct input *in, struct trace *trace, bool stacks, struct source **ret_source,
		struct diag *diag);
	/*
	 * 1 event, 0 end, negative errno: the events before remain valid, and the diagnosis gives
	 * the place of the damage.
	 */
	int (*next)(struct source *source, struct event *ret_event, struct diag *diag);
	/* No later event is older; 0: not known. */
	uint64_t (*sorted_ns)(const struct source *source);
	/* Events lost so far, whether or not an event has carried them. */
	uint64_t (*lost)(const struct source *source);
	void (*close)(struct source *source);
};

struct sink_ops {
	const char *name;
	/* One event, in time order; its payload is copied if it is kept. */
	int (*event)(struct sink *sink, const struct event *event, struct diag *diag);
	/* All taken so far becomes durable and readable. */
	int (*flush)(struct sink *sink, struct diag *diag);
	/*
	 * The trace's stack table is about to be emptied; called right after a flush. May be NULL.
	 */
	int (*forget_stacks)(struct sink *sink, struct diag *diag);
	/*
	 * The thread's row in the trace is about to be given to another thread; called right after
	 * a flush. May be NULL.
	 */
	void (*forget_thread)(struct sink *sink, uint32_t thread_index);
	/* Flushes and ends cleanly. close() is still due. */
	int (*end)(struct sink *sink, struct diag *diag);
	void (*close)(struct sink *sink);
};

#endif
