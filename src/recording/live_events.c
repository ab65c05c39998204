/* See live_events.h. */
#include "recording/live_events.h"

#include <errno.h>

#include "perf/recorder.h"
#include "pipeline/relay.h"
#include "recording/process_table.h"
#include "recording/live_clocks.h"
#include "recording/live_state.h"
#include "recording/managed.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"

/*
 * Limit of the bytes of events that wait: 12 MiB hold about a third of a second at 150,000 events a
 * second. Samples and names have limits of their own.
 */
#define WAITING_MAX  ((size_t)12 << 20)
#define WAITING_MUCH ((size_t)2 << 20)
/* samples wait at most this long for a stream that lags */
#define BEHIND_MAX_NS UINT64_C(500000000)
#define GIVE_OUT_NS   UINT64_C(50000000)

int live_events_open(struct live *live)
{
	const struct live_options *options = &live->options;

	bool sampled = options->instead && !options->no_dotnet && !options->no_names;

	if (!options->provider_count && !sampled)
		return 0;
	int result = relay_new(&live->trace, &live->window, &live->relay);

	if (result == 0)
		managed_relay(live->managed, live->relay, options->providers,
			options->provider_count, WAITING_MAX);
	return result;
}

/*
 * The row of the thread that produced an event. The stream's thread id is not trusted: a thread of
 * another process is not taken over. If the event is so late that its thread's exit has already
 * left the window, no row is created, because no later exit would free it. In both cases the main
 * thread's row is returned.
 */
static uint32_t thread_row(struct live *live, uint32_t process, uint32_t tid, bool late)
{
	const struct trace *trace = &live->trace;
	uint32_t pid = trace->processes.items[process].pid;
	uint32_t known = map_get(&trace->by_tid, tid);
	uint32_t owner = known ? trace->threads.items[known].process : 0;
	struct proc_thread facts;

	if (owner != process && (owner || late) &&
		proc_read_thread(&live->proc, pid, tid, &facts) < 0)
		return live_main_thread(live, process);
	return process_table_thread(live, process, pid, tid);
}

void live_events_hand_over(struct live *live, struct pending *item, uint64_t late_ns)
{
	uint32_t process = item->pid;
	struct event event;

	/* produced while the session was being stopped */
	if (live->writer.end_ns && item->time_ns - late_ns > live->writer.end_ns) {
		relay_give_back(live->relay, item);
		return;
	}
	if (session_writer_is_full(&live->writer)) {
		live->processes.items[process].events_cut++;
		relay_give_back(live->relay, item);
		return;
	}
	relay_take(live->relay, item, late_ns, &event);
	process_table_announce(live, process);
	event.thread_index = thread_row(live, process, item->tid, late_ns != 0);
	session_writer_event(&live->writer, &event);
	live->events++;
	live->late += late_ns != 0;
	session_writer_relieve(&live->writer); /* the next flush resolves the names */
	relay_give_back(live->relay, item);
}

uint64_t live_events_limit_ns(const struct live *live, uint64_t now_ns)
{
	uint64_t limit_ns =
		live->relay ? relay_limit_ns(live->relay, now_ns) : now_ns - REORDER_WINDOW_NS;

	if (live->cpu_clocks && live_clocks_limit_ns(live) < limit_ns)
		limit_ns = live_clocks_limit_ns(live);
	return limit_ns < now_ns - BEHIND_MAX_NS ? now_ns - BEHIND_MAX_NS : limit_ns;
}

bool live_events_press(const struct live *live, uint64_t now_ns)
{
	return live->relay && relay_pending_bytes(live->relay) > WAITING_MUCH &&
	       now_ns >= live->give_out_ns + GIVE_OUT_NS;
}

static void tell_loss(struct live *live, uint32_t process, const char *source, uint64_t count)
{
	if (!count)
		return;
	process_table_announce(live, process);
	session_writer_loss(&live->writer, process,
		&(struct payload_loss){ .source = source,
			.unit = "events",
			.count = count,
			.pid = live->trace.processes.items[process].pid,
			.cpu = EVENT_CPU_UNKNOWN,
			.first_ns =
				live->losses_told_ns ? live->losses_told_ns : live->writer.begin_ns,
			.last_ns = live->window.watermark_ns },
		false);
	live->events_lost += count;
}

void live_events_tell_losses(struct live *live)
{
	for (uint32_t i = 1; live->relay && i < live->processes.count; i++) {
		uint64_t lost;
		uint64_t dropped;
		tell_loss(live, i, "limit", live->processes.items[i].events_cut);
		live->processes.items[i].events_cut = 0;
		if (!managed_take_losses(live->managed, i, &lost, &dropped))
			continue;
		tell_loss(live, i, "eventpipe", lost);
		tell_loss(live, i, "memory", dropped);
	}
	live->losses_told_ns = live->window.watermark_ns;
}

void live_events_close(struct live *live)
{
	relay_free(live->relay);
	live->relay = NULL;
}
