/* See live_port.h. */
#include "recording/live_port.h"

#include "base/poll_set.h"
#include "dotnet/reverse.h"
#include "recording/process_table.h"
#include "recording/live_events.h"
#include "recording/live_state.h"
#include "recording/managed.h"

/* After this delay, records of other CPUs are in their rings as well. */
#define RING_SKEW_NS UINT64_C(10000000)

/*
 * The delay after which a connected runtime's process is in the tables. Events of a stream may be
 * older than records that have left the rings.
 */
static uint64_t settling_ns(const struct live *live)
{
	return managed_is_streaming(live->managed) ? REORDER_WINDOW_NS : RING_SKEW_NS;
}

void live_port_await(const struct live *live, struct poll_set *set)
{
	if (live->reverse)
		reverse_await(live->reverse, set);
	for (uint32_t i = 0; i < live->newcomers.count; i++) {
		const struct live_newcomer *newcomer = &live->newcomers.items[i];
		held_runtime_await(&newcomer->held, set);
		if (!newcomer->judged)
			poll_set_wake(set, newcomer->came_ns + settling_ns(live));
	}
}

static void take_newcomers(struct live *live, uint64_t now_ns)
{
	uint32_t peer;

	reverse_advance(live->reverse);
	while (reverse_next(live->reverse, &peer)) {
		const struct live_newcomer newcomer = { .came_ns = now_ns,
			.held = held_runtime_of(live->reverse, peer) };
		/* without memory: live_port_leave() resumes the runtime */
		(void)vec_add(&live->newcomers, newcomer);
	}
}

/* Releases the reorder window up to `until_ns` if a runtime waits whose connection is not newer. */
static void reach(struct live *live, uint64_t until_ns)
{
	for (uint32_t i = 0; i < live->newcomers.count; i++) {
		const struct live_newcomer *newcomer = &live->newcomers.items[i];
		if (newcomer->judged || newcomer->came_ns > until_ns)
			continue;
		live_give_out(live, until_ns);
		return;
	}
}

/*
 * Returns true if managed_hold() took the runtime over, to open its session before resuming it.
 * Without perf events the process table lags, so the runtime is resumed; it is found by its
 * mappings, as any other.
 */
static bool is_held_for_session(struct live *live, const struct live_newcomer *newcomer,
	uint64_t now_ns)
{
	uint32_t pid = reverse_peer(live->reverse, newcomer->held.peer)->pid;
	uint32_t process = pid && !live->cpu_clocks ? process_table_find(live, pid) : 0;

	if (pid && !process && !live->cpu_clocks)
		process = process_table_look(live, pid); /* its fork record was lost */
	if (!process || !live->processes.items[process].wanted ||
		live->trace.processes.items[process].ended)
		return false;
	return managed_hold(live->managed, process, &newcomer->held, now_ns);
}

void live_port_advance(struct live *live, uint64_t now_ns)
{
	uint64_t until_ns = now_ns - RING_SKEW_NS;
	uint32_t kept = 0;

	if (!live->reverse)
		return;
	take_newcomers(live, now_ns);
	if (!live->newcomers.count)
		return;
	if (managed_is_streaming(live->managed))
		until_ns = live_events_limit_ns(live, now_ns);
	reach(live, until_ns);
	for (uint32_t i = 0; i < live->newcomers.count; i++) {
		struct live_newcomer *newcomer = &live->newcomers.items[i];
		bool waits = !newcomer->judged && newcomer->came_ns > until_ns;
		if (!waits && !newcomer->judged && is_held_for_session(live, newcomer, now_ns))
			continue;
		newcomer->judged = !waits;
		if (newcomer->judged) {
			held_runtime_resume(&newcomer->held, now_ns);
			held_runtime_advance(&newcomer->held, now_ns);
		}
		if (newcomer->held.waits)
			live->newcomers.items[kept++] = *newcomer;
		else
			held_runtime_done(&newcomer->held);
	}
	live->newcomers.count = kept;
}

static void forget_newcomers(struct live *live)
{
	for (uint32_t i = 0; i < live->newcomers.count; i++)
		held_runtime_done(&live->newcomers.items[i].held);
	vec_reset(&live->newcomers);
}

void live_port_leave(struct live *live)
{
	if (!live->reverse)
		return;
	forget_newcomers(live);
	reverse_leave(live->reverse);
}

void live_port_close(struct live *live)
{
	forget_newcomers(live);
	vec_done(&live->newcomers);
}
