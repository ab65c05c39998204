/*
 * The times that threads were off the CPU, by stack: what they waited for, where, how long, and
 * which thread ended the wait.
 */
#ifndef SPOOR_ANALYSIS_BLOCKS_H
#define SPOOR_ANALYSIS_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/wait_place.h"
#include "base/map.h"
#include "base/vec.h"

struct event_stacks;
struct runtime_event;
struct symbolmap;
struct trace;

/* The thread that ended a wait. */
struct block_waker {
	uint32_t thread; /* row of trace.threads */
	uint32_t stack;  /* of event_stacks; 0 none */
};

struct blocks {
	const struct trace *trace; /* set by blocks_finish() */
	/*
	 * Key: id = row of the thread, kind = enum block_cause, text = function that waits, detail =
	 * waker + 1, place = function of the program, stack. An amount is ns blocked. The members
	 * kind, text and place are set by blocks_finish(). most 0: every block of the row was too
	 * short for an event.
	 */
	struct tally blocked;
	struct tally runnable;         /* the same, of the time that they waited for a CPU */
	VEC(struct wait_place) places; /* by stack of event_stacks; set by blocks_finish() */
	VEC(struct block_waker) wakers;
	struct map waker_index;
	struct map woken; /* tid -> waker + 1, until the thread's block ends */
	/* processes of `blocked` that do more than idle: they are first, those with most of it before */
	uint32_t busy_count;
	uint64_t without_waker; /* blocks of which no waking was recorded */
};

/* Events cswitch, ShortBlocks and Wakeup. 0, or -ENOMEM. */
int blocks_event(struct blocks *blocks, const struct runtime_event *event);

/* After tally_finish() of `blocked`. 0, or -ENOMEM. */
int blocks_finish(struct blocks *blocks, const struct tally_selection *selection);

/* Whether a row is of a thread without work: it waits for some. */
bool blocks_is_idle(const struct blocks *blocks, const struct tally_key *key);

void blocks_done(struct blocks *blocks);

#endif
