/*
 * The stacks of events that are no samples: each distinct one once, and the functions on it.
 *
 *   event_stacks_add(&stacks, process, event, &index)      for each event
 *   event_stacks_find(&stacks, &names)                     once, before profile_name(), which joins methods
 *   event_stacks_place(&stacks, &names)                    once, after it
 *   ... stacks.items[index] ...
 *   event_stacks_done(&stacks)
 */
#ifndef SPOOR_ANALYSIS_EVENT_STACKS_H
#define SPOOR_ANALYSIS_EVENT_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct event;
struct symbolmap;
struct trace;

struct event_stack {
	uint32_t process;
	uint32_t stack; /* in trace.stacks */
	uint32_t epoch; /* process.code_epoch when it was taken */
	uint32_t at;    /* functions.items[at], leaf first */
	uint32_t frame_count;
	uint32_t leaf; /* function; after event_stacks_place(), as the next */
	/*
	 * the innermost method that is not of the framework, or the mark of a missed caller that may
	 * be it; without managed frames, the innermost function outside of the kernel and of the
	 * libraries of C; else the leaf
	 */
	uint32_t own;
};

struct event_stacks {
	const struct trace *trace;
	VEC(struct event_stack) items; /* item 0: no stack */
	VEC(uint32_t) functions;       /* of the symbolmap: those that represent methods */
	struct map index;
	uint32_t last; /* the item that was found last, and is often wanted again */
};

/* *ret_index is 0 for an event without a stack. 0, or -ENOMEM. */
int event_stacks_add(struct event_stacks *stacks, uint32_t process, const struct event *event,
	uint32_t *ret_index);

/* 0 or -ENOMEM. */
int event_stacks_find(struct event_stacks *stacks, struct symbolmap *names);

void event_stacks_place(struct event_stacks *stacks, const struct symbolmap *names);

/* Whether a frame is in a module that matches one of the patterns, as profile_filter has them. */
bool event_stacks_has_module(const struct event_stacks *stacks, const struct symbolmap *names,
	uint32_t index, const char *const *patterns, uint32_t count);

void event_stacks_done(struct event_stacks *stacks);

#endif
