/* What the stream of a runtime's sampler says of its threads: their managed frames, and locks. */
#ifndef SPOOR_STACKS_SEEN_THREADS_H
#define SPOOR_STACKS_SEEN_THREADS_H

#include <stdint.h>

struct diag;
struct event;
struct schema;
struct seen;
struct stacks_taking;

/* A thread's entry, which is made if it has none; NULL: there are too many, or no memory. */
struct seen *seen_of(struct stacks_taking *t, uint64_t inner_tid);

/*
 * The runtime's samples of a thread, for the time when /proc was read; NULL: it has no managed
 * frames, or has left them.
 */
const struct seen *seen_now(const struct stacks_taking *t, uint64_t inner_tid);

/* event_reading.take of the session; `user` is the struct stacks_taking. */
void seen_take_event(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken);

#endif
