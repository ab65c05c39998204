/* See live_tracers.h. */
#include "recording/live_tracers.h"

#include "base/clocks.h"
#include "machine/rights.h"
#include "perf/recorder.h"
#include "perf/usdt_probe.h"
#include "recording/live_state.h"
#include "recording/managed.h"

int live_tracers_start(struct live *live, struct diag *diag)
{
	int result = live_lttng_start(&live->lttng, &live->table, diag);

	if (result == 0)
		result = live_user_events_start(&live->user_events, &live->table, live->recorder,
			diag);
	if (result == 0)
		result = live_dotnet_events_start(&live->dotnet_events, &live->user_events, diag);
	return result;
}

uint32_t live_tracers_rights(const struct live *live)
{
	const struct usdt_probe *usdt = recorder_usdt(live->recorder);
	uint32_t rights = 0;

	if (usdt) /* probe images that are mapped later */
		rights |= (usdt_probe_needs_admin(usdt) ? RIGHT_SYS_ADMIN : 0u) | RIGHT_BPF |
			  RIGHT_PERFMON | RIGHT_DAC_READ_SEARCH | RIGHT_CHECKPOINT_RESTORE;
	if (live->user_events.table) /* open tracepoints that are registered later */
		rights |= RIGHT_PERFMON | RIGHT_DAC_READ_SEARCH;
	return rights;
}

void live_tracers_note_runtime(struct live *live, uint32_t process)
{
	live_dotnet_events_begin(&live->dotnet_events, process, managed_guard(live->managed),
		clock_monotonic_ns());
}

void live_tracers_done(struct live *live)
{
	live_lttng_done(&live->lttng);
	live_usdt_done(&live->usdt);
	live_user_events_done(&live->user_events);
}

void live_tracers_await(const struct live *live, struct poll_set *set)
{
	live_lttng_await(&live->lttng, set);
	live_usdt_await(&live->usdt, set);
	live_user_events_await(&live->user_events, set);
	live_dotnet_events_await(&live->dotnet_events, set);
}

void live_tracers_look(struct live *live, uint64_t now_ns)
{
	live_lttng_look(&live->lttng, now_ns);
	live_usdt_look(&live->usdt, now_ns);
	live_user_events_look(&live->user_events, now_ns);
	live_dotnet_events_advance(&live->dotnet_events, now_ns);
}
