/*
 * Firing: writes an event into a ring of the calling thread (thread_ring.h). The functions that the
 * declaration of an event calls are in <spoor/spoor.h>; here are those for the library itself.
 */
#ifndef SPOOR_LIB_EVENT_FIRING_H
#define SPOOR_LIB_EVENT_FIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spoor/spoor.h>

#include "lib/event/event_entry.h"

/*
 * Called at the end of an event that loggers enabled, with the slots of these, on the thread that
 * fires it. The payload is borrowed during the call. Must be safe in signal handlers.
 */
typedef void pipe_log_function(const struct event_entry *entry, uint64_t loggers,
	const uint8_t *payload, size_t payload_size);
/* Set before the first logger enables an event. */
void pipe_log_to(pipe_log_function *function);

/*
 * Fires an event for those of `sessions` (a mask of slots) that enable it now. For providers that
 * answer one session (its own filter arguments). `frames` (leaf first) is the event's call stack
 * for sessions that record stacks; NULL: the stack of the calling thread is walked. Safe in signal
 * handlers, also in a thread that has never fired.
 */
void pipe_fire(struct spoor_event *event, uint64_t sessions, const void *payload,
	uint32_t payload_size, const uint64_t *frames, uint32_t frame_count);

/*
 * The calling thread's activity, which every event it fires carries while `set` is true (activity.c
 * writes it; 16 bytes each, zeroes mean none). In thread-local memory, without an allocation.
 */
struct pipe_activity {
	uint8_t current[16];
	uint8_t related[16];
	bool set;
};
struct pipe_activity *pipe_activity(void);

#endif
