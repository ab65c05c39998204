/* See ended_slot.h. */
#include "lib/pipe/ended_slot.h"

#include "lib/event/record_entry.h"
#include "lib/pipe/ring_look.h"
#include "lib/pipe/session_state.h"

static bool is_ending(const struct session *session)
{
	return session && __atomic_load_n(&session->status, __ATOMIC_ACQUIRE) == SESSION_CLEARED &&
	       session->cleared_pass;
}

bool ended_slot_any(void)
{
	for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++)
		if (is_ending(session_active[slot]))
			return true;
	return false;
}

bool ended_slot_wants_grace(const struct grace *grace, bool wanted)
{
	bool begins = wanted && !grace->running;

	for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++) {
		const struct session *session = session_active[slot];
		if (!is_ending(session) || grace->complete >= session->cleared_pass)
			continue;
		if (grace->running >= session->cleared_pass)
			return false;
		begins = true;
	}
	return begins;
}

static uint64_t ring_record_end(struct thread_ring *ring, uint64_t bit)
{
	uint64_t at = ring->seen_published;

	if (!ring->held_turn)
		return 0;
	uint64_t lost = record_note_take(ring, at, bit) ? 1 : 0;
	if (ring->stale_at != at)
		__atomic_store_n(&ring->stale_slots, 0, __ATOMIC_RELAXED);
	ring->stale_at = at;
	ring->stale_turn = ring->held_turn;
	__atomic_fetch_or(&ring->stale_slots, bit, __ATOMIC_RELAXED);
	return lost;
}

uint64_t ended_slot_records(struct thread_state *state, uint32_t slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	return ring_record_end(&state->main, bit) + ring_record_end(&state->nested, bit);
}

uint64_t ended_slot_waits(struct thread_state *state, uint32_t slot)
{
	uint64_t bit = UINT64_C(1) << slot;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < WAITS_MAX; i++)
		if ((__atomic_load_n(&state->waits[i].sessions, __ATOMIC_RELAXED) & bit) &&
			(__atomic_fetch_and(&state->waits[i].sessions, ~bit, __ATOMIC_RELAXED) &
				bit))
			lost++;
	return lost;
}

static void ring_forget(struct thread_ring *ring, uint64_t bit)
{
	if ((__atomic_load_n(&ring->stale_slots, __ATOMIC_RELAXED) & bit) &&
		!turn_is_same(ring_turn(ring), ring->stale_turn) &&
		__atomic_load_n(&ring->front->front.published, __ATOMIC_ACQUIRE) == ring->stale_at)
		__atomic_fetch_and(&ring->stale_slots, ~bit, __ATOMIC_RELAXED);
}

void ended_slot_forget(struct thread_state *state, uint32_t slot)
{
	if (!thread_state_has_rings(state))
		return;
	ring_forget(&state->main, UINT64_C(1) << slot);
	ring_forget(&state->nested, UINT64_C(1) << slot);
}
