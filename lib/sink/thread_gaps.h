/*
 * How many events of a thread a reader lacks before the one it reads, by the numbers of the events
 * (pipe_event.sequence): for a queue whose oldest chunks are dropped, where the writing side does not
 * know which event will be the next one. No function locks: one thread uses the object.
 */
#ifndef SPOOR_LIB_SINK_THREAD_GAPS_H
#define SPOOR_LIB_SINK_THREAD_GAPS_H

#include <stdint.h>

#include "lib/pipe/sink.h"

struct thread_gap {
	uint64_t thread_id; /* 0: the row is free */
	uint32_t sequence;  /* of the thread's last event that was read */
};

/* All zero: no event was read. */
struct thread_gaps {
	struct thread_gap *rows; /* open addressing by thread id; owned */
	uint32_t room;           /* a power of two, or 0 */
	uint32_t count;
	struct thread_gap *latest; /* of the last event; NULL: none */
};

/*
 * The number of events of its thread between this one and the last that was read. Without memory for
 * the thread: event->lost_before.
 */
uint64_t thread_gaps_before(struct thread_gaps *gaps, const struct pipe_event *event);
void thread_gaps_done(struct thread_gaps *gaps);

#endif
