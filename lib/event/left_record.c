/* See left_record.h. */
#include "lib/event/left_record.h"

#include "lib/event/record_entry.h"
#include "lib/platform/platform.h"

/* addresses at this distance may be of two stacks */
#define STACKS_APART ((uintptr_t)1 << 20)

void record_lose(struct thread_state *state, struct thread_ring *ring, uint64_t sessions)
{
	uint64_t now = record_stamp();

	if (!sessions)
		return;
	if (!ring->loss_sessions)
		ring->loss_first_stamp = now;
	ring->loss_last_stamp = now;
	ring->loss_sessions |= sessions;
	ring->limit = 0;
	for (uint64_t left = sessions; left; left &= left - 1)
		__atomic_fetch_add(&state->root->lost[__builtin_ctzll(left)], 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&state->root->losses, 1, __ATOMIC_RELEASE);
}

void record_lose_noted(struct thread_state *state, struct thread_ring *ring, uint64_t sessions)
{
	uint64_t noted = __atomic_load_n(&ring->noted, __ATOMIC_RELAXED);

	/* One by one: a handler that leaves this in turn loses the count of one session at most. */
	for (uint64_t left = sessions & noted; left; left &= left - 1)
		record_lose(state, ring,
			record_note_take(ring, ring->front->front.published, left & -left));
}

/*
 * The record that the ring's thread is inside will never be published, and counts as lost. If it
 * has a header, it becomes a record for no session.
 */
static void record_abandon(struct thread_state *state, struct thread_ring *ring)
{
	struct spoor_ring_front *front = &ring->front->front;
	uint64_t at = front->published;

	if (front->next == at) {
		/* No header was written, or a part of it; or it was published. */
		ring->before = 0;
		__atomic_store_n(&ring->stale_slots, 0, __ATOMIC_RELAXED);
		record_lose_noted(state, ring, UINT64_MAX);
	} else {
		struct record *record = (struct record *)(void *)(ring->base + (at & ring->mask));
		if (record->event == RECORD_LOSS) /* another record will report these */
			ring->loss_sessions |= record->sessions;
		__atomic_store_n(&record->sessions, 0, __ATOMIC_RELAXED);
		ring->before = record->sizes & RECORD_UNITS_MAX;
		ring->limit = 0;
		record_lose_noted(state, ring, UINT64_MAX);
		__atomic_store_n(&front->published, front->next, __ATOMIC_RELEASE);
	}
	record_leave(ring->front);
}

/*
 * Was a function with the frame `entered` left, when one with the frame `frame` runs in its thread?
 * Then the first frame does not exist any more. A handler that interrupts it runs below that frame,
 * or on the signal stack. The system call is made only if the addresses alone do not prove the
 * latter.
 */
static bool is_left(uintptr_t entered, uintptr_t frame)
{
	uintptr_t low;
	uintptr_t high;

	if (frame < entered && entered - frame < STACKS_APART)
		return false;
	if (!platform_signal_stack(&low, &high))
		return frame >= entered;
	bool was_inside = entered >= low && entered < high;
	bool is_inside = frame >= low && frame < high;
	return was_inside == is_inside ? frame >= entered : was_inside;
}

/* False: the thread is not inside a record of this ring that was left. */
static bool ring_settle(struct thread_state *state, struct thread_ring *ring, uintptr_t frame)
{
	struct ring_front *front = ring->front;
	uint64_t turn = __atomic_load_n(&front->front.turn, __ATOMIC_RELAXED);

	if (!(turn & 1) || !is_left(turn_frame(turn), turn_frame(turn_of(frame, 0))))
		return false;
	/*
	 * A handler that interrupts the next lines sees this frame above its own. One that came
	 * before has finished the record, so the turn is another one.
	 */
	if (!__atomic_compare_exchange_n(&front->front.turn, &turn, turn_of(frame, turn), false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return (turn & 1) == 0;
	record_abandon(state, ring);
	return true;
}

/* The thread has left a record: it may have done so while it moved from one state to another. */
static void others_settle(struct thread_state *state, uintptr_t frame)
{
	for (struct thread_state *other = state->others; other != state; other = other->others) {
		uint32_t status = THREAD_LIVE;
		if (!thread_state_has_rings(other) ||
			other == __atomic_load_n(&current_thread, __ATOMIC_RELAXED))
			continue;
		(void)ring_settle(other, &other->main, frame);
		(void)ring_settle(other, &other->nested, frame);
		(void)__atomic_compare_exchange_n(&other->status, &status, THREAD_LEFT, false,
			__ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

bool left_record_inside(struct thread_state *state, struct thread_ring *ring, uintptr_t frame)
{
	if (!(__atomic_load_n(&ring->front->front.turn, __ATOMIC_RELAXED) & 1))
		return false;
	if (!ring_settle(state, ring, frame))
		return true;
	if (ring == &state->main)
		others_settle(state, frame);
	return false;
}

int left_wait_begin(struct thread_state *state, uintptr_t frame, uint64_t sessions)
{
	struct thread_state *root = state->root;
	uint32_t number = root->wait_count;

	if (number == WAITS_MAX)
		return -1;
	root->wait_count = number + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	root->waits[number].frame = frame;
	__atomic_store_n(&root->waits[number].sessions, sessions, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return (int)number;
}

void left_wait_end(struct thread_state *state, int number)
{
	struct thread_state *root = state->root;

	__atomic_store_n(&root->waits[number].sessions, 0, __ATOMIC_RELAXED);
	root->waits[number].frame = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	root->wait_count = (uint32_t)number;
}

void left_wait_settle(struct thread_state *state, struct thread_ring *ring, uintptr_t frame)
{
	struct thread_state *root = state->root;

	for (uint32_t count = root->wait_count; count; count = root->wait_count) {
		struct left_wait *wait = &root->waits[count - 1];
		if (wait->frame && !is_left(wait->frame, frame))
			return;
		uint64_t sessions = __atomic_exchange_n(&wait->sessions, 0, __ATOMIC_RELAXED);
		left_wait_end(state, (int)count - 1);
		record_lose(state, ring, sessions);
	}
}

void left_settle(void)
{
	const uintptr_t frame = UINTPTR_MAX; /* above all others */
	struct thread_state *state = __atomic_load_n(&current_thread, __ATOMIC_RELAXED);

	if (!state || !state->main.front)
		return;
	bool is_inside = left_record_inside(state, &state->main, frame);
	(void)left_record_inside(state, &state->nested, frame);
	if (is_inside || !left_wait_any(state))
		return;
	(void)record_enter(state->main.front, frame);
	left_wait_settle(state, &state->main, frame);
	record_leave(state->main.front);
}

void thread_state_finish(struct thread_state *state)
{
	struct thread_ring *both[] = { &state->main, &state->nested };

	for (int i = 0; i < 2; i++)
		if (both[i]->front->front.turn & 1)
			record_abandon(state, both[i]);
	if (__atomic_load_n(&state->root, __ATOMIC_RELAXED) == state)
		left_wait_settle(state, &state->main, UINTPTR_MAX);
}
