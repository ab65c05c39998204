/*
 * Events with the stack of the event before them, which generated code fires (.NET's CLRStackWalk):
 * for sessions and loggers whose format has no stacks, or whose tools want them as events.
 */
#include <string.h>

#include <spoor/spoor.h>

#include "lib/event/firing.h"
#include "lib/event/stack_walk.h"
#include "lib/event/thread_ring.h"

#define HEAD_MAX 64u

void spoor_fire_stack_walk(struct spoor_event *walk, const struct spoor_event *after,
	const void *head, size_t head_size)
{
	const uint64_t sessions = __atomic_load_n(&after->sessions, __ATOMIC_RELAXED) &
				  __atomic_load_n(&walk->sessions, __ATOMIC_RELAXED);
	uint8_t payload[HEAD_MAX + 4 + 2 + 8 * RECORD_FRAMES_MAX];
	struct thread_state *state = current_thread;
	struct stack_bounds none = { 0, 0 };
	uint64_t frames[RECORD_FRAMES_MAX];
	size_t size = head_size;

	if (!sessions || head_size > HEAD_MAX)
		return;
	const size_t count = stack_walk(state ? &state->stack : &none,
		(uintptr_t)__builtin_frame_address(0), frames, RECORD_FRAMES_MAX);
	memcpy(payload, head, head_size);
	memcpy(payload + size, &(uint32_t){ (uint32_t)count }, 4);
	size += 4;
	/* The array has a count before it where the event describes itself. */
	if (!(walk->flags & SPOOR_EVENT_WELL_KNOWN)) {
		memcpy(payload + size, &(uint16_t){ (uint16_t)count }, 2);
		size += 2;
	}
	memcpy(payload + size, frames, 8 * count);
	size += 8 * count;
	pipe_fire(walk, sessions, payload, (uint32_t)size, frames, (uint32_t)count);
}
