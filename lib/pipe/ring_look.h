/*
 * What the loop thread sees of a thread's ring before it takes records: is a record being written,
 * which is the next one, and how early can the one be that is not published yet.
 */
#ifndef SPOOR_LIB_PIPE_RING_LOOK_H
#define SPOOR_LIB_PIPE_RING_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/event/record_entry.h"
#include "lib/event/thread_ring.h"

#define SPINS 200

static inline void spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static inline uint64_t ring_turn(const struct thread_ring *ring)
{
	return __atomic_load_n(&ring->front->front.turn, __ATOMIC_ACQUIRE);
}

/*
 * 0: the thread is outside of a record, or inside one that it began after the barrier. Else the turn
 * of its record. A record takes some 10 ns, so this spins until the record ends, SPINS times at most.
 */
static inline uint64_t ring_held(const struct thread_ring *ring)
{
	uint64_t turn = ring_turn(ring);

	for (int i = 0; i < SPINS && (turn & 1); i++) {
		if (!turn_is_same(ring_turn(ring), turn))
			return 0;
		spin_pause();
	}
	return turn & 1 ? turn : 0;
}

/* Takes what the ring holds now into this pass. `held`: what ring_held() has returned. */
static inline void ring_see(struct thread_ring *ring, uint64_t held)
{
	ring->seen_published = __atomic_load_n(&ring->front->front.published, __ATOMIC_ACQUIRE);
	ring->held_turn = held && turn_is_same(ring_turn(ring), held) ? held : 0;
}

static inline const struct record *ring_record(const struct thread_ring *ring)
{
	return (const struct record *)(const void *)(ring->base + (ring->tail & ring->mask));
}

static inline bool ring_pending(const struct thread_ring *ring)
{
	return ring->tail != ring->seen_published;
}

static inline uint32_t record_size(const struct record *record)
{
	return (record->sizes & RECORD_UNITS_MAX) * RECORD_UNIT;
}

/*
 * A lower bound for the stamp of the record that the thread is writing. It is at least that of the
 * last published record, which may be much later than the last time the thread was seen outside: a
 * thread that fires without pause is often descheduled inside a record.
 */
static inline uint64_t stamp_at_least(const struct thread_ring *ring, uint64_t quiescent_ticks)
{
	uint64_t stamp = ring->tail_stamp;
	uint64_t at = ring->tail;

	while (at != ring->seen_published) {
		const struct record *record =
			(const struct record *)(const void *)(ring->base + (at & ring->mask));
		uint32_t size = record_size(record);
		if (size < RECORD_HEADER || size > ring->seen_published - at)
			break; /* overwritten by an error of the program */
		stamp = record->stamp;
		at += size;
	}
	return stamp > quiescent_ticks ? stamp : quiescent_ticks;
}

#endif
