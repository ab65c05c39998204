/*
 * Entering and leaving a record of a ring. Called by the ring's thread, but for what the loop thread
 * reads in `turn` and `noted`.
 *
 * `turn` of a ring's front: the low 16 bits count the entries and leaves (odd: inside a record). The
 * bits above are the frame address of the function that has entered the record, or of the one that
 * has since found it abandoned (left_record.h). One store sets both, so a handler that interrupts
 * the thread at any instruction knows which frame is inside.
 *
 * `noted`: the sessions that the event is for, from the moment at which the thread has read them, and
 * `noted_at`: the position of its record, until that is published. An event that is left before its
 * record is published counts as lost for them; an event that is left before that moment was never
 * fired. The thread or the loop thread clears a bit, and then counts the loss. So a thread that leaves
 * a position without a record has no noted session there.
 */
#ifndef SPOOR_LIB_EVENT_RECORD_ENTRY_H
#define SPOOR_LIB_EVENT_RECORD_ENTRY_H

#include "lib/event/thread_ring.h"
#include "lib/platform/platform.h"
#include "lib/platform/ticks.h"

#define TURN_COUNT       UINT64_C(0xffff)
#define TURN_FRAME_SHIFT 16

/* Is this the same entry, or the same state between two? Frames do not count. */
static inline bool turn_is_same(uint64_t a, uint64_t b)
{
	return !((a ^ b) & TURN_COUNT);
}

/* A frame address as `turn` holds it: 48 bits. */
static inline uintptr_t turn_frame(uint64_t turn)
{
	return (uintptr_t)(turn >> TURN_FRAME_SHIFT);
}

static inline uint64_t turn_of(uintptr_t frame, uint64_t count)
{
	return (uint64_t)frame << TURN_FRAME_SHIFT | (count & TURN_COUNT);
}

static inline uint64_t record_stamp(void)
{
	return pipe_hot.counter ? ticks_read() : platform_now_ns();
}

/* `frame` is the frame address of the function that the event's declaration calls. */
static inline void record_enter(struct ring_front *front, uintptr_t frame)
{
	__atomic_store_n(&front->front.turn, turn_of(frame, front->front.turn + 1),
		__ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void record_leave(struct ring_front *front)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&front->front.turn, front->front.turn + 1, __ATOMIC_RELEASE);
}

/*
 * From here on the event counts as lost for these sessions if its record, which will be at
 * `published`, is abandoned.
 */
static inline void record_note(struct thread_ring *ring, uint64_t published, uint64_t sessions)
{
	__atomic_store_n(&ring->noted_at, published, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->noted, sessions, __ATOMIC_RELAXED);
}

/*
 * Takes the noted sessions among `sessions` of the record at `published`, which the thread is inside:
 * the caller counts the event as lost for them.
 */
static inline uint64_t record_note_take(struct thread_ring *ring, uint64_t published,
	uint64_t sessions)
{
	if (__atomic_load_n(&ring->noted_at, __ATOMIC_RELAXED) != published)
		return 0;
	return __atomic_fetch_and(&ring->noted, ~sessions, __ATOMIC_ACQ_REL) & sessions;
}

#endif
