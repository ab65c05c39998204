/* See grace_period.h. */
#include "lib/pipe/grace_period.h"

#include "lib/event/record_entry.h"

enum grace_ring {
	GRACE_MAIN = 1 << 0,
	GRACE_NESTED = 1 << 1,
	GRACE_BOTH = GRACE_MAIN | GRACE_NESTED,
};

void grace_pass_begin(struct grace *grace, uint64_t pass, bool begin)
{
	grace->begins = begin;
	if (begin)
		grace->running = pass;
	grace->all_passed = true;
}

static bool has_left(const struct thread_ring *ring, uint64_t turn)
{
	return !turn_is_same(__atomic_load_n(&ring->front->front.turn, __ATOMIC_ACQUIRE), turn);
}

void grace_thread(struct grace *grace, struct thread_state *state, bool main_quiescent,
	bool nested_quiescent, bool stuck)
{
	if (!grace->running)
		return;
	if (grace->begins) {
		state->grace_running = grace->running;
		state->grace_left = 0;
		state->grace_turns[0] =
			__atomic_load_n(&state->main.front->front.turn, __ATOMIC_ACQUIRE);
		state->grace_turns[1] =
			__atomic_load_n(&state->nested.front->front.turn, __ATOMIC_ACQUIRE);
	}
	/* A thread that was made since is inside no record that it began before. */
	if (state->grace_running != grace->running)
		state->grace_left = GRACE_BOTH;
	state->grace_running = grace->running;
	if (main_quiescent || has_left(&state->main, state->grace_turns[0]))
		state->grace_left |= GRACE_MAIN;
	if (nested_quiescent || has_left(&state->nested, state->grace_turns[1]))
		state->grace_left |= GRACE_NESTED;
	if (state->grace_left == GRACE_BOTH)
		state->grace_passed = grace->running;
	else if (!stuck)
		grace->all_passed = false;
}

bool grace_pass_end(struct grace *grace)
{
	if (!grace->running || !grace->all_passed)
		return false;
	grace->complete = grace->running;
	grace->running = 0;
	return true;
}
