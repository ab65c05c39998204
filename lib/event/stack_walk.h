/*
 * The calling thread's call stack by frame pointers. Reads only memory of the thread's stack: code
 * without frame pointers shortens the stack or hides a caller, but never causes a fault. Safe in
 * signal handlers; no allocation.
 */
#ifndef SPOOR_LIB_EVENT_STACK_WALK_H
#define SPOOR_LIB_EVENT_STACK_WALK_H

#include <stddef.h>
#include <stdint.h>

/*
 * The readable memory around the stack that a thread was last seen on. All zero: not looked up yet.
 */
struct stack_bounds {
	uintptr_t low;
	uintptr_t high;
};

/*
 * Writes return addresses, leaf first, starting with the frame whose saved frame pointer is at
 * `frame`. `bounds` belongs to the calling thread and is updated when `frame` is outside of it.
 * Returns the number of addresses.
 */
size_t stack_walk(struct stack_bounds *bounds, uintptr_t frame, uint64_t *frames,
	size_t frames_max);

#endif
