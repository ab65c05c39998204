/* See connection.h. */
#include "recording/connection.h"

#include <errno.h>
#include <string.h>

#include "base/clocks.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/relay.h"
#include "recording/dotnet_client.h"
#include "symbolize/symbolizer.h"
#include "trace/activity_event.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/trace.h"

enum stream_wish { WISH_UNKNOWN, WISH_KEEP, WISH_PASS };

/*
 * True for method events, which spoor enables for names at a level that the user did not choose. A
 * user who enables the provider at level 5 gets them too.
 */
static bool is_for_names(const struct schema *schema)
{
	switch (schema->event_id) {
	case CLR_ID_MethodLoad:
	case CLR_ID_MethodUnload:
	case CLR_ID_MethodLoadVerbose:
	case CLR_ID_MethodUnloadVerbose:
	case CLR_ID_MethodJittingStarted:
	case CLR_ID_MethodJitMemoryAllocatedForCode:
	case CLR_ID_MethodILToNativeMap:
		return schema->provider_kind == PROVIDER_CLR;
	default:
		return false;
	}
}

static bool is_left_out(const struct ipc_provider *provider, uint32_t event_id)
{
	for (uint32_t i = 0; !provider->only_event_ids && i < provider->event_id_count; i++)
		if (provider->event_ids[i] == event_id)
			return true;
	return false;
}

/*
 * True if the user enabled events of this kind, by the runtime's own rule. Excluded ids are also
 * checked here, because runtimes before .NET 10 do not support them.
 */
static bool is_asked_for(const struct managed *managed, const struct schema *schema)
{
	const char *name = trace_text(managed->trace, schema->provider);

	for (uint32_t i = 0; i < managed->provider_count; i++) {
		const struct ipc_provider *provider = &managed->providers[i];
		if (strcmp(provider->name, name) == 0 && schema->level <= provider->level &&
			(!schema->keywords || schema->keywords & provider->keywords))
			return !is_left_out(provider, schema->event_id) &&
			       (provider->level >= IPC_LEVEL_MAX || !is_for_names(schema));
	}
	return false;
}

static bool is_kept(struct managed *managed, uint32_t schema)
{
	while (managed->wanted.count <= schema)
		if (!vec_push(&managed->wanted))
			return false;
	uint8_t *wish = &managed->wanted.items[schema];

	if (*wish == WISH_UNKNOWN)
		*wish = is_asked_for(managed, &managed->trace->schemas.items[schema]) ? WISH_KEEP
										      : WISH_PASS;
	return *wish == WISH_KEEP;
}

/*
 * True for the four events with which a runtime reports the suspension of its threads for a sample.
 * They are caused by spoor and are not recorded. A suspension with the reason "other" is taken as
 * one for a sample; those of a garbage collection or a debugger have other reasons.
 */
static bool is_stop_to_sample(struct connection *connection, const struct schema *schema,
	const struct event *event)
{
	enum { RESTART_END = 3, RESTART = 7, SUSPEND_END = 8, SUSPEND = 9, REASON_OTHER = 0 };
	struct cursor payload = cursor_of(event->payload, event->payload_size);
	bool stopping = connection->stopper && connection->stopper == event->thread_index;

	if (!connection->managed->sampled || schema->provider_kind != PROVIDER_CLR)
		return false;
	switch (schema->event_id) {
	case SUSPEND:
		stopping = cursor_u32(&payload) == REASON_OTHER && !payload.short_read;
		connection->stopper = stopping ? event->thread_index : 0;
		return stopping;
	case SUSPEND_END:
	case RESTART:
		return stopping;
	case RESTART_END:
		if (stopping)
			connection->stopper = 0;
		return stopping;
	default:
		return false;
	}
}

/* Adds a runtime event's method to the codemap; checks if new methods must be reported. */
static void absorb(struct connection *connection, bool rundown, const struct schema *schema,
	const struct event *event)
{
	struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	if (!process || connection->managed->symbolizer->full)
		return;
	/* A method that cannot be added loses only its own name: the codemap counts it. */
	(void)clr_absorb_method(&process->codemap, rundown, schema->event_id, schema->version,
		event->time_ns, event->payload, event->payload_size);
	if (!process->unloads_code)
		process->unloads_code = clr_is_collectible(rundown, schema->event_id,
			event->payload, event->payload_size);
	if (connection->methods == METHODS_QUIET && process->unloads_code)
		connection_enter_methods(connection, METHODS_WANTED);
}

/* True if the session with stacks has this event. */
static bool is_with_stack(const struct connection *connection, const struct schema *schema)
{
	return schema->provider_kind == PROVIDER_CLR &&
	       dotnet_client_takes_stacks(connection->client, schema->event_id);
}

/* Until the first counter values the session must not be stopped; of most recordings it has none. */
static void note_values(struct connection *connection, const struct schema *schema)
{
	if (connection->valued || schema->provider_kind == PROVIDER_CLR ||
		strcmp(trace_text(connection->managed->trace, schema->name), EVENT_COUNTERS_NAME) !=
			0)
		return;
	connection->valued = true;
	dotnet_client_valued(connection->client, DOTNET_STREAM_LIVE);
}

/* Called by the relay for an event of the session for the runtime's counters, which is not recorded. */
static bool on_count(void *context, const struct event *event)
{
	struct connection *connection = context;

	dotnet_client_valued(connection->client, DOTNET_STREAM_COUNTS);
	connection_take_count(connection, DOTNET_STREAM_COUNTS, event, clock_monotonic_ns());
	return false;
}

/*
 * Handles an event of the live stream, called by the relay: adds its method to the codemap. Returns
 * true if the user enabled the event.
 */
static bool on_event(void *context, const struct event *event)
{
	struct connection *connection = context;
	struct managed *managed = connection->managed;
	const struct schema *schema = &managed->trace->schemas.items[event->schema_index];

	note_values(connection, schema);
	if (managed->live_counts && connection->watch.state != EXCEPTIONS_ALL &&
		schema->provider_kind != PROVIDER_CLR)
		connection_take_count(connection, DOTNET_STREAM_LIVE, event, clock_monotonic_ns());
	if (schema->provider_kind == PROVIDER_CLR || schema->provider_kind == PROVIDER_CLR_RUNDOWN)
		absorb(connection, schema->provider_kind == PROVIDER_CLR_RUNDOWN, schema, event);
	return !connection->names_only && is_kept(managed, event->schema_index) &&
	       !is_with_stack(connection, schema) && !is_stop_to_sample(connection, schema, event);
}

/* Called by the relay for an event of the session with stacks. Runtimes before .NET 10 send more. */
static bool on_stack_event(void *context, const struct event *event)
{
	struct connection *connection = context;

	return is_with_stack(connection,
		&connection->managed->trace->schemas.items[event->schema_index]);
}

/*
 * Called by the relay for an event of the session for activities. Runtimes before .NET 10 send more,
 * which cost the process as much.
 */
static bool on_activity(void *context, const struct event *event)
{
	struct connection *connection = context;
	const struct trace *trace = connection->managed->trace;
	const struct schema *schema = &trace->schemas.items[event->schema_index];

	connection->activity_count++;
	return activity_event_of(trace_text(trace, schema->provider), schema->event_id).kind !=
	       ACTIVITY_NONE;
}

/* Adds the methods of one stream's events to the codemap. */
static int take_events(struct connection *connection, enum dotnet_stream stream)
{
	struct nettrace_decoder *decoder = connection->decoders[stream];
	struct event event;
	int result;

	if (!symbolizer_process(connection->managed->symbolizer, connection->process))
		return -ENOMEM;
	while ((result = nettrace_decoder_next(decoder, &event, NULL)) > 0) {
		const struct schema *schema =
			&connection->streams[stream].schemas.items[event.schema_index];
		bool rundown = schema->provider_kind == PROVIDER_CLR_RUNDOWN;
		if (rundown || schema->provider_kind == PROVIDER_CLR)
			absorb(connection, rundown, schema, &event);
	}
	nettrace_decoder_rest(decoder);
	return result;
}

/*
 * The runtime read its clock for the stream header after the session was requested and before these
 * bytes arrived. The middle of that interval gives the offset, half of it the error.
 */
static void connection_measure_clock(struct connection *connection, enum dotnet_stream stream,
	const struct nettrace_head *head)
{
	uint64_t asked_ns = dotnet_client_asked_ns(connection->client, stream);
	uint64_t now_ns = clock_monotonic_ns();

	if (!head->version || !head->sync_ns || !asked_ns || now_ns < asked_ns)
		return;
	uint64_t error_ns = (now_ns - asked_ns + 1) / 2;

	if (connection->clock_error_ns && connection->clock_error_ns <= error_ns)
		return; /* the earlier measurement is more precise */
	connection->clock_error_ns = error_ns;
	connection->clock_offset_ns =
		(int64_t)(head->sync_ns - (asked_ns + (now_ns - asked_ns) / 2));
}

static void connection_close_relayed(struct connection *connection, enum dotnet_stream stream)
{
	struct relay *relay = connection->managed->relay;
	int number = connection->relayed[stream];

	if (number < 0)
		return;
	connection->lost += relay_stream_lost(relay, number);
	connection->dropped += relay_stream_dropped(relay, number);
	relay_close(relay, number);
	connection->relayed[stream] = -1;
}

/* Passes a thread's sample to the session. False: the event itself does not enter the window. */
static bool on_sample(void *context, const struct event *event)
{
	struct connection *connection = context;
	struct managed *managed = connection->managed;
	const struct schema *schema = &managed->trace->schemas.items[event->schema_index];
	struct cursor payload = cursor_of(event->payload, event->payload_size);

	if (schema->provider_kind != PROVIDER_SAMPLE || schema->event_id != CLR_THREAD_SAMPLE ||
		!event->stack_index)
		return false;
	int64_t offset_ns =
		relay_clock_offset_ns(managed->relay, connection->relayed[DOTNET_STREAM_SAMPLES]);
	uint32_t type = cursor_u32(&payload);

	managed->sampled(managed->sampled_context, connection->process, event->thread_index,
		event->time_ns + (uint64_t)offset_ns, event->stack_index,
		type == CLR_SAMPLE_MANAGED);
	return false;
}

static int relay_through(struct connection *connection, enum dotnet_stream stream,
	const uint8_t *data, size_t size)
{
	static bool (*const takers[])(void *context, const struct event *event) = {
		[DOTNET_STREAM_LIVE] = on_event,
		[DOTNET_STREAM_STACKS] = on_stack_event,
		[DOTNET_STREAM_ACTIVITIES] = on_activity,
		[DOTNET_STREAM_EXCEPTIONS] = connection_on_exception,
		[DOTNET_STREAM_ALLOCATIONS] = connection_on_allocation,
		[DOTNET_STREAM_COUNTS] = on_count,
		[DOTNET_STREAM_SAMPLES] = on_sample,
	};
	struct managed *managed = connection->managed;
	int result = 0;

	if (!size) {
		connection_close_relayed(connection, stream);
		return 0;
	}
	if (connection->relayed[stream] < 0) {
		const struct relay_picking picking = { .wants = takers[stream],
			.context = connection,
			.pending_max = managed->pending_max,
			.stacks = stream != DOTNET_STREAM_LIVE && stream != DOTNET_STREAM_COUNTS };
		struct process *process = &managed->trace->processes.items[connection->process];
		if (!process->inner_pid)
			process->inner_pid = connection->inner_pid;
		connection->relayed[stream] = relay_open_picked(managed->relay, connection->process,
			"diagnostics stream", &picking);
		if (connection->relayed[stream] < 0)
			return -ENOMEM;
	}
	result = relay_bytes(managed->relay, connection->relayed[stream], data, size, NULL);
	if (result == 0 && stream == DOTNET_STREAM_LIVE)
		connection_measure_clock(connection, stream,
			relay_head(managed->relay, connection->relayed[stream]));
	return result;
}

void connection_note_reported(struct connection *connection, enum dotnet_stream stream,
	uint64_t reported_ns)
{
	struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	connection->reported_ns[stream] = reported_ns;
	if (!process)
		return;
	process->reported_ns = connection->reported_ns[DOTNET_STREAM_LIVE];
	if (connection->reported_ns[DOTNET_STREAM_METHODS] < process->reported_ns)
		process->reported_ns = connection->reported_ns[DOTNET_STREAM_METHODS];
}

static int decode_bytes(struct connection *connection, enum dotnet_stream stream,
	const uint8_t *data, size_t size)
{
	bool events = stream <= DOTNET_STREAM_SAMPLES;

	if (events && connection->managed->relay)
		return relay_through(connection, stream, data, size);
	if (!size) {
		if (connection->decoders[stream])
			connection->lost += nettrace_decoder_lost(connection->decoders[stream]);
		nettrace_decoder_free(connection->decoders[stream]);
		connection->decoders[stream] = NULL;
		trace_done(&connection->streams[stream]);
		return 0;
	}
	if (!connection->decoders[stream]) {
		if (trace_init(&connection->streams[stream]) < 0)
			return -ENOMEM;
		connection->decoders[stream] = nettrace_decoder_new(&connection->streams[stream],
			"diagnostics stream", NETTRACE_NAMES_ONLY);
		if (!connection->decoders[stream]) {
			trace_done(&connection->streams[stream]);
			return -ENOMEM;
		}
	}
	int result = nettrace_decoder_push(connection->decoders[stream], data, size);

	if (result == 0)
		result = take_events(connection, stream);
	if (result == 0)
		connection_measure_clock(connection, stream,
			nettrace_decoder_head(connection->decoders[stream]));
	return result;
}

int connection_bytes(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size)
{
	struct connection *connection = user;
	int result = decode_bytes(connection, stream, data, size);

	if (result < 0 || !size)
		connection_note_reported(connection, stream, UINT64_MAX);
	else if (connection->relayed[stream] >= 0)
		connection_note_reported(connection, stream,
			relay_sorted_ns(connection->managed->relay, connection->relayed[stream]));
	else
		connection_note_reported(connection, stream,
			nettrace_decoder_sorted_ns(connection->decoders[stream]));
	return result;
}
