/* See live_events.h. */
#include "recording/live_events.h"

#include "base/clocks.h"
#include "dotnet/ipc.h"
#include "pipeline/relay.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/event_windows.h"
#include "recording/exception_watch.h"
#include "recording/live_options.h"
#include "recording/managed.h"
#include "recording/process_table.h"
#include "symbolize/symbolizer.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/event_count.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/*
 * Limit of the bytes of events that wait: 12 MiB hold about a third of a second at 150,000 events a
 * second. Samples and names have limits of their own.
 */
#define WAITING_MAX  ((size_t)12 << 20)
#define WAITING_MUCH ((size_t)2 << 20)
/* samples wait at most this long for a stream that lags */
#define BEHIND_MAX_NS UINT64_C(500000000)
#define GIVE_OUT_NS   UINT64_C(50000000)

int live_events_open(struct live_events *events, struct process_table *table)
{
	const struct live_options *options = table->options;

	bool sampled = options->instead && !options->no_dotnet && !options->no_names;

	events->table = table;
	events->bound.rate = options->event_rate;
	if (!options->provider_count && !sampled)
		return 0;
	int result = relay_new(table->trace, table->writer->window, &events->relay);

	if (result == 0)
		managed_relay(table->managed, events->relay, options->providers,
			options->provider_count, WAITING_MAX);
	if (result == 0) {
		managed_stacks(table->managed, options->stack_kinds);
		managed_activities(table->managed, options->activity_max);
		managed_bound(table->managed, options->event_rate);
	}
	return result;
}

/*
 * The row of the thread that produced an event. The stream's thread id is not trusted: a thread of
 * another process is not taken over. If the event is so late that its thread's exit has already
 * left the window, no row is created, because no later exit would free it. In both cases the main
 * thread's row is returned.
 */
static uint32_t thread_row(struct process_table *table, uint32_t process, uint32_t tid, bool late)
{
	const struct trace *trace = table->trace;
	uint32_t pid = trace->processes.items[process].pid;
	uint32_t known = map_get(&trace->by_tid, tid);
	uint32_t owner = known ? trace->threads.items[known].process : 0;
	struct proc_thread facts;

	if (owner != process && (owner || late) &&
		proc_read_thread(&table->proc, pid, tid, &facts) < 0)
		return trace->processes.items[process].main_thread;
	return process_table_thread(table, process, pid, tid);
}

void live_events_hand_over(struct live_events *events, struct pending *item, uint64_t late_ns)
{
	uint32_t process = item->pid;
	struct event event;

	/* produced while the session was being stopped */
	if (events->table->writer->end_ns &&
		item->time_ns - late_ns > events->table->writer->end_ns) {
		relay_give_back(events->relay, item);
		return;
	}
	if (session_writer_is_full(events->table->writer)) {
		events->table->rows.items[process].events_cut++;
		relay_give_back(events->relay, item);
		return;
	}
	relay_take(events->relay, item, late_ns, &event);
	process_table_announce(events->table, process);
	if (event.stack_index)
		/* without memory the names are missing, and counted */
		(void)symbolizer_hit_walked(events->table->symbolizer, process, event.stack_index,
			event.time_ns);
	if (event_bound_applies(&events->bound,
		    &events->table->trace->schemas.items[event.schema_index]) &&
		!event_bound_keeps(&events->bound, process, &event) &&
		event_bound_count(&events->bound, process, &event) == 0) {
		relay_give_back(events->relay, item);
		return;
	}
	event.thread_index = thread_row(events->table, process, item->tid, late_ns != 0);
	session_writer_event(events->table->writer, &event);
	events->count++;
	events->late += late_ns != 0;
	session_writer_relieve(events->table->writer); /* the next flush resolves the names */
	relay_give_back(events->relay, item);
}

uint64_t live_events_limit_ns(const struct live_events *events, uint64_t settled_ns,
	uint64_t now_ns)
{
	uint64_t limit_ns =
		events->relay ? relay_limit_ns(events->relay, now_ns) : now_ns - REORDER_WINDOW_NS;

	if (settled_ns < limit_ns)
		limit_ns = settled_ns;
	return limit_ns < now_ns - BEHIND_MAX_NS ? now_ns - BEHIND_MAX_NS : limit_ns;
}

bool live_events_press(const struct live_events *events, uint64_t released_ns, uint64_t now_ns)
{
	return events->relay && relay_pending_bytes(events->relay) > WAITING_MUCH &&
	       now_ns >= released_ns + GIVE_OUT_NS;
}

static void tell_loss(struct live_events *events, uint32_t process, enum loss_source source,
	uint64_t count)
{
	if (!count)
		return;
	process_table_announce(events->table, process);
	session_writer_loss(events->table->writer, process, source, LOSS_EVENTS,
		&(struct payload_loss){ .count = count,
			.pid = events->table->trace->processes.items[process].pid,
			.cpu = EVENT_CPU_UNKNOWN,
			.first_ns = events->losses_reported_ns ? events->losses_reported_ns
							       : events->table->writer->begin_ns,
			.last_ns = events->table->writer->window->watermark_ns },
		false);
	events->lost += count;
}

static void write_count(void *context, const struct event_bound_row *row, const char *type)
{
	struct live_events *events = context;
	const struct trace *trace = events->table->trace;
	const struct schema *schema = &trace->schemas.items[row->schema_index];

	payload_event_count(&events->table->writer->payload,
		&(struct payload_event_count){ .type = type,
			.provider = trace_text(trace, schema->provider),
			.event_id = schema->event_id,
			.count = row->count,
			.source = "",
			.first_ns = row->first_ns,
			.last_ns = row->last_ns });
	session_writer_emit(events->table->writer, SPOOR_EVENT_COUNT,
		(struct event){ .thread_index = trace->processes.items[row->process].main_thread,
			.stack_index = row->stack_index,
			.cpu = EVENT_CPU_UNKNOWN });
}

/* Exceptions that were not observed, because there are too many (exception_watch.h). */
static void write_gap(struct live_events *events, uint32_t process, const struct exception_gap *gap)
{
	process_table_announce(events->table, process);
	payload_event_count(&events->table->writer->payload,
		&(struct payload_event_count){ .type = "",
			.provider = PROVIDER_CLR_NAME,
			.event_id = CLR_ID_ExceptionThrown_V1,
			.count = gap->count,
			.source = gap->estimated ? EVENT_COUNT_ESTIMATE : EVENT_COUNT_COUNTER,
			.first_ns = gap->from_ns,
			.last_ns = gap->to_ns });
	session_writer_emit(events->table->writer, SPOOR_EVENT_COUNT,
		(struct event){
			.thread_index = events->table->trace->processes.items[process].main_thread,
			.cpu = EVENT_CPU_UNKNOWN });
	events->bound.counted += gap->count;
}

static void write_windows_gap(struct live_events *events, uint32_t process,
	const struct windows_gap *gap)
{
	process_table_announce(events->table, process);
	payload_event_gap(&events->table->writer->payload,
		&(struct payload_event_gap){ .provider = PROVIDER_CLR_NAME,
			.event_id = CLR_ID_AllocationSampled,
			.from_ns = gap->from_ns,
			.to_ns = gap->to_ns });
	session_writer_emit_about(events->table->writer, SPOOR_EVENT_GAP, process);
}

void live_events_tell_losses(struct live_events *events)
{
	struct windows_gap windows_gap;

	uint64_t now_ns = clock_monotonic_ns();
	struct exception_gap gap;

	event_bound_write(&events->bound, write_count, events);
	for (uint32_t i = 1; events->relay && i < events->table->rows.count; i++) {
		uint64_t lost;
		uint64_t dropped;
		tell_loss(events, i, LOSS_LIMIT, events->table->rows.items[i].events_cut);
		events->table->rows.items[i].events_cut = 0;
		while (managed_take_gap(events->table->managed, i, now_ns, &gap))
			write_gap(events, i, &gap);
		while (managed_take_windows_gap(events->table->managed, i, &windows_gap))
			write_windows_gap(events, i, &windows_gap);
		if (!managed_take_losses(events->table->managed, i, &lost, &dropped))
			continue;
		tell_loss(events, i, LOSS_EVENTPIPE, lost);
		tell_loss(events, i, LOSS_MEMORY, dropped);
	}
	events->losses_reported_ns = events->table->writer->window->watermark_ns;
}

void live_events_close(struct live_events *events)
{
	event_bound_done(&events->bound);
	relay_free(events->relay);
	events->relay = NULL;
}
