/*
 * The calling thread's call stack by frame pointers. Reads only memory of the stack it runs on, so code without frame pointers makes a stack short or
 * skips a caller, but never faults. Safe in signal handlers.
 */
#ifndef SPOOR_LIB_EVENT_STACK_WALK_H
#define SPOOR_LIB_EVENT_STACK_WALK_H

#include "lib/event/thread_ring.h"

/* From the frame whose saved frame pointer stands at `frame` on; return addresses, leaf first. How many. */
size_t stack_walk(struct thread_state *state, uintptr_t frame, uint64_t *frames, size_t frames_max);

#endif
