/* See connection.h: the sessions for exceptions and for the counter of them (exception_watch.h). */
#include "recording/connection.h"

#include <string.h>

#include "base/clocks.h"
#include "base/cursor.h"
#include "dotnet/ipc.h"
#include "dotnet/stack_events.h"
#include "pipeline/relay.h"
#include "recording/dotnet_client.h"
#include "recording/managed.h"
#include "trace/clr.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/trace.h"

/* A session that could not be opened is tried again after this time. */
#define SWITCH_NS UINT64_C(1000000000)
/* More than this is no number of exceptions, nor an interval of counters. */
#define COUNT_MAX      1e12
#define INTERVAL_MAX_S 3600.0f

/* A stack takes the program some 10 us: half a percent of a CPU. */
#define ALLOCATION_RATE 500u

#define COUNTERS_PROVIDER "System.Runtime"
/* What diagnose requests: then the values are in the live session. */
#define COUNTERS_ARGUMENT "EventCounterIntervalSec=1"

static const struct ipc_provider *provider_of(const struct managed *managed, const char *name)
{
	for (uint32_t i = 0; i < managed->provider_count; i++)
		if (strcmp(managed->providers[i].name, name) == 0)
			return &managed->providers[i];
	return NULL;
}

void managed_bound(struct managed *managed, uint32_t rate)
{
	const struct ipc_provider *runtime = provider_of(managed, PROVIDER_CLR_NAME);
	const struct ipc_provider *counters = provider_of(managed, COUNTERS_PROVIDER);
	bool stacks = managed->stack_kinds & STACKS_OF_EXCEPTIONS;

	if (rate && managed->stack_kinds & STACKS_OF_ALLOCATIONS)
		managed->allocation_rate = ALLOCATION_RATE;
	if (!runtime || (runtime->keywords & CLR_KEYWORD_EXCEPTION) || runtime->only_event_ids)
		return;
	for (uint32_t i = 0; i < runtime->event_id_count; i++)
		if (runtime->event_ids[i] == CLR_ID_ExceptionThrown_V1)
			return;
	if (!stacks && (!(runtime->keywords & CLR_KEYWORD_MONITORING) || runtime->level < 2))
		return;
	managed->exception_rate = rate;
	managed->live_counts = counters && counters->arguments &&
			       strcmp(counters->arguments, COUNTERS_ARGUMENT) == 0;
}

void managed_limit(struct managed *managed, uint64_t end_ns)
{
	managed->end_ns = end_ns;
	for (uint32_t i = 0; i < managed->list.count; i++)
		exception_watch_limit(&managed->list.items[i]->watch, end_ns);
}

void connection_begin_exceptions(struct connection *connection)
{
	exception_watch_begin(&connection->watch);
	connection->watch.rate = connection->names_only ? 0 : connection->managed->exception_rate;
	connection->switch_ns = connection->reopen_ns = 0;
	connection->unsettled = false;
	connection->allocations.rate =
		connection->names_only ? 0 : connection->managed->allocation_rate;
	if (connection->watch.rate)
		dotnet_client_wishes(connection->client)->exceptions = true;
	if (connection->allocations.rate) {
		event_windows_begin(&connection->allocations, clock_monotonic_ns());
		dotnet_client_wishes(connection->client)->allocations = true;
	}
}

void connection_end_exceptions(struct connection *connection, uint64_t now_ns)
{
	uint64_t end_ns = connection->managed->end_ns;

	exception_watch_end(&connection->watch, now_ns);
	event_windows_end(&connection->allocations, end_ns && end_ns < now_ns ? end_ns : now_ns);
}

/* The time of an event on this machine's clock. */
static uint64_t time_of(const struct connection *connection, enum dotnet_stream stream,
	const struct event *event)
{
	return event->time_ns + (uint64_t)relay_clock_offset_ns(connection->managed->relay,
					connection->relayed[stream]);
}

bool connection_on_exception(void *context, const struct event *event)
{
	struct connection *connection = context;
	const struct schema *schema =
		&connection->managed->trace->schemas.items[event->schema_index];

	if (schema->provider_kind != PROVIDER_CLR || schema->event_id != CLR_ID_ExceptionThrown_V1)
		return false;
	exception_watch_event(&connection->watch,
		time_of(connection, DOTNET_STREAM_EXCEPTIONS, event));
	return true;
}

bool connection_on_allocation(void *context, const struct event *event)
{
	struct connection *connection = context;
	const struct schema *schema =
		&connection->managed->trace->schemas.items[event->schema_index];

	if (schema->provider_kind != PROVIDER_CLR ||
		(schema->event_id != CLR_ID_AllocationSampled &&
			schema->event_id != CLR_ID_GCAllocationTick))
		return false;
	event_windows_event(&connection->allocations,
		time_of(connection, DOTNET_STREAM_ALLOCATIONS, event));
	return true;
}

/* Whether the schema has the fields of a counter that is a rate; those of a level have no Increment. */
static bool is_rate(const struct trace *trace, const struct schema *schema)
{
	static const char *const fields[] = { "Name", "DisplayName", "DisplayRateTimeScale",
		"Increment", "IntervalSec" };
	uint32_t count = sizeof(fields) / sizeof(fields[0]);

	if (schema->fields.count < count ||
		strcmp(trace_text(trace, schema->provider), COUNTERS_PROVIDER) != 0 ||
		strcmp(trace_text(trace, schema->name), EVENT_COUNTERS_NAME) != 0)
		return false;
	uint32_t at = 0;
	while (at < schema->fields.count &&
		strcmp(trace_text(trace, schema->fields.items[at].name), fields[0]) != 0)
		at++;
	for (uint32_t i = 0; i < count; i++)
		if (at + i >= schema->fields.count ||
			strcmp(trace_text(trace, schema->fields.items[at + i].name), fields[i]) !=
				0)
			return false;
	return true;
}

static bool is_exception_count(struct cursor *c)
{
	static const char name[] = "exception-count";
	size_t unit_count;
	const uint8_t *units = cursor_utf16z(c, &unit_count);

	if (!units || unit_count != sizeof(name) - 1)
		return false;
	for (size_t i = 0; i < unit_count; i++)
		if (units[2 * i] != (uint8_t)name[i] || units[2 * i + 1])
			return false;
	return true;
}

void connection_take_count(struct connection *connection, enum dotnet_stream stream,
	const struct event *event, uint64_t now_ns)
{
	const struct trace *trace = connection->managed->trace;
	struct cursor c = cursor_of(event->payload, event->payload_size);
	size_t unit_count;

	if (!is_rate(trace, &trace->schemas.items[event->schema_index]) || !is_exception_count(&c))
		return;
	(void)cursor_utf16z(&c, &unit_count); /* a cut payload shows below */
	(void)cursor_utf16z(&c, &unit_count);
	uint64_t count_bits = cursor_u64(&c);
	uint32_t interval_bits = cursor_u32(&c);
	double count;
	float interval_s;

	memcpy(&count, &count_bits, sizeof(count));
	memcpy(&interval_s, &interval_bits, sizeof(interval_s));
	if (c.short_read || !(count >= 0 && count <= COUNT_MAX) ||
		!(interval_s > 0 && interval_s <= INTERVAL_MAX_S))
		return;
	exception_watch_value(&connection->watch, time_of(connection, stream, event),
		(uint64_t)((double)interval_s * 1e9), (uint64_t)(count + 0.5), now_ns);
}

static void close_stream(struct connection *connection, enum dotnet_stream stream, uint64_t now_ns)
{
	if (!dotnet_client_streams(connection->client, stream))
		return;
	dotnet_client_end(connection->client, stream, now_ns);
	connection->unsettled = true;
}

static bool is_closing(const struct connection *connection, enum dotnet_stream stream)
{
	return dotnet_client_session(connection->client, stream) &&
	       !dotnet_client_streams(connection->client, stream) &&
	       !dotnet_client_has_ended(connection->client, stream);
}

static void settle(struct connection *connection)
{
	if (connection->unsettled && !is_closing(connection, DOTNET_STREAM_EXCEPTIONS) &&
		!is_closing(connection, DOTNET_STREAM_ALLOCATIONS) &&
		dotnet_client_open(connection->client, DOTNET_STREAM_SETTLE))
		connection->unsettled = false;
}

static void advance_allocations(struct connection *connection, uint64_t now_ns)
{
	struct dotnet_client *client = connection->client;
	bool is_open = dotnet_client_streams(client, DOTNET_STREAM_ALLOCATIONS);
	bool open = event_windows_advance(&connection->allocations, is_open, now_ns);

	if (!open)
		close_stream(connection, DOTNET_STREAM_ALLOCATIONS, now_ns);
	else if (!is_open && connection->allocations.asked_ns && now_ns >= connection->reopen_ns &&
		 dotnet_client_open(client, DOTNET_STREAM_ALLOCATIONS))
		connection->reopen_ns = now_ns + SWITCH_NS;
}

void connection_advance_exceptions(struct connection *connection, uint64_t now_ns)
{
	const struct managed *managed = connection->managed;
	struct dotnet_client *client = connection->client;

	if (!client || managed->pause_ns || managed->stopping)
		return;
	settle(connection);
	if (connection->allocations.rate && !managed->end_ns)
		advance_allocations(connection, now_ns);
	if (!connection->watch.rate)
		return;
	struct exception_sessions sessions = {
		.observes = dotnet_client_streams(client, DOTNET_STREAM_EXCEPTIONS),
		.counts = managed->live_counts
				  ? connection->valued
				  : dotnet_client_streams(client, DOTNET_STREAM_COUNTS),
	};
	const struct exception_sessions before = sessions;

	exception_watch_advance(&connection->watch, &sessions, now_ns);
	if (!sessions.observe)
		close_stream(connection, DOTNET_STREAM_EXCEPTIONS, now_ns);
	if (!sessions.count && !managed->live_counts)
		dotnet_client_end(client, DOTNET_STREAM_COUNTS, now_ns);
	if (now_ns < connection->switch_ns || connection->watch.state == EXCEPTIONS_ALL)
		return;
	bool count = sessions.count && !before.counts && !managed->live_counts;
	bool observe = sessions.observe && !before.observes;
	if ((count && dotnet_client_open(client, DOTNET_STREAM_COUNTS)) ||
		(observe && dotnet_client_open(client, DOTNET_STREAM_EXCEPTIONS)))
		connection->switch_ns = now_ns + SWITCH_NS;
}

/* Up to this time the stream of exceptions was read. */
static uint64_t observed_ns(const struct connection *connection)
{
	int number = connection->relayed[DOTNET_STREAM_EXCEPTIONS];

	if (!connection->client || connection->managed->stopping)
		return UINT64_MAX;
	if (number >= 0)
		return relay_sorted_ns(connection->managed->relay, number) +
		       (uint64_t)relay_clock_offset_ns(connection->managed->relay, number);
	return dotnet_client_streams(connection->client, DOTNET_STREAM_EXCEPTIONS) ? 0 : UINT64_MAX;
}

bool managed_take_windows_gap(struct managed *managed, uint32_t process,
	struct windows_gap *ret_gap)
{
	uint32_t at = map_get(&managed->by_process, process);

	return at && event_windows_take(&managed->list.items[at - 1]->allocations, ret_gap);
}

bool managed_take_gap(struct managed *managed, uint32_t process, uint64_t now_ns,
	struct exception_gap *ret_gap)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return false;
	struct connection *connection = managed->list.items[at - 1];
	return exception_watch_take(&connection->watch, observed_ns(connection), now_ns, ret_gap);
}
