/*
 * What each waiting thread of a dump waits for, as its managed frames show it, and which threads of
 * the runtime are idle.
 */
#ifndef SPOOR_STACKS_THREAD_WAITS_H
#define SPOOR_STACKS_THREAD_WAITS_H

struct thread_dump;

/* Fills `waits_for` and `idle` of all threads. -ENOMEM. */
int thread_waits_find(struct thread_dump *dump);

#endif
