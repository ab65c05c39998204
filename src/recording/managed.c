/* See managed.h. */
#include "recording/managed.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "dotnet/runtime_client.h"
#include "machine/rights.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/relay.h"
#include "pipeline/session_writer.h"
#include "symbolize/symbolizer.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/trace.h"

/*
 * A runtime creates its socket about 20 ms after exec; a slow machine takes longer. The retries end
 * after 5 s.
 */
#define RETRY_NS    UINT64_C(50000000)
#define RETRY_COUNT 100u

/* The age at which most of a program's code is compiled. */
#define GROWN_UP_NS UINT64_C(10000000000)

/*
 * A rundown uses tens of milliseconds of one CPU in the runtime: the first other rundown is made
 * after 5 s, later ones after 30 s.
 */
#define FIRST_AGAIN_NS UINT64_C(5000000000)
#define NEXT_AGAIN_NS  UINT64_C(30000000000)

#define TEXTS_BYTES_MAX (4u << 20)
#define RUNDOWNS_A_TRIM 16u

/*
 * Method names shared by several processes. A table larger than TEXTS_BYTES_MAX accepts no new
 * processes, and is freed with its last one.
 */
struct texts {
	struct strtab table;
	uint32_t users;
};

/* How far the names of one process are. */
enum connection_state {
	CONNECTION_WAITING, /* no client: the next try is at retry_ns */
	CONNECTION_ASKING,  /* the first rundown since the start of this client is under way */
	CONNECTION_NAMED,   /* that rundown is over, and so is each later one */
	CONNECTION_AGAIN,   /* another rundown is under way */
	CONNECTION_OVER,    /* no client, and none will follow */
};

/* Whether the runtime announces the methods that it compiles from now on. */
enum methods_state {
	METHODS_ANNOUNCED, /* its live session does */
	METHODS_QUIET,     /* it does not: rundowns name them */
	METHODS_WANTED,    /* it does not, but it should: code of its assemblies can be removed */
	METHODS_ASKED,     /* a session of their own was asked for */
	METHODS_REPORTED,  /* that session is open, and managed_report was called for it */
	METHODS_REFUSED,   /* that session could not be opened: rundowns name them */
};

struct conversation {
	struct managed *managed;
	struct texts *texts;          /* shared by its code map */
	struct dotnet_client *client; /* NULL: waiting to connect, or over */
	struct nettrace_decoder *decoders[DOTNET_STREAM_COUNT];
	struct trace streams[DOTNET_STREAM_COUNT]; /* the schemas of each stream only */
	uint64_t retry_ns;                         /* when to connect (again); UINT64_MAX: never */
	uint64_t lost;                             /* by decoders that were freed */
	uint64_t lost_told;
	uint64_t dropped; /* by relayed streams that were closed */
	uint64_t dropped_told;
	/*
	 * all events up to this time have been read; UINT64_MAX: the stream has ended, or was not
	 * requested
	 */
	uint64_t reported_ns[DOTNET_STREAM_COUNT];
	/* the stream's number in the relay; -1: not relayed */
	int relayed[DOTNET_STREAM_COUNT];
	uint32_t process;
	uint32_t pid;
	uint32_t inner_pid; /* its pid in its own namespace */
	int64_t clock_offset_ns;
	uint64_t clock_error_ns; /* 0: not measured */
	uint64_t rundown_ns;     /* begin of the current or last rundown */
	uint64_t again_ns;       /* earliest time of the next rundown */
	unsigned retries;
	/* the thread that suspends the others for a sample, until it has resumed them; 0: none */
	uint32_t stopper;
	enum connection_state state;
	enum methods_state methods;
	/* once-flag: the rundown before the end of the recording was begun */
	bool rested;
	bool was_named; /* once-flag: its names were known */
	bool reported;  /* once-flag: managed_report was called */
	bool process_ended;
	/* the caller has no rights over the process: names only, with borrowed rights */
	bool names_only;
	struct held_runtime held;
	uint64_t held_ns; /* since when it waits */
};

struct managed {
	struct trace *trace;
	struct symbolizer *symbolizer;
	managed_report *report;
	managed_told *told;
	void *context;
	struct relay *relay; /* NULL: names only */
	const struct ipc_provider *providers;
	uint32_t provider_count;
	size_t pending_max;
	unsigned stack_kinds;     /* enum stacks_of */
	managed_sampled *sampled; /* NULL: no samples */
	void *sampled_context;
	VEC(uint8_t) wanted;             /* by schema: enum wish */
	struct guard *guard;             /* NULL: not started yet, or not available */
	uint32_t guard_rounds;           /* number of the guard's interventions already handled */
	uint64_t pause_ns;               /* since when; 0: not paused */
	VEC(struct conversation *) list; /* entries are not moved: clients point to them */
	struct map by_process;           /* process -> list index + 1 */
	VEC(struct texts *) texts;       /* the last table is used for new processes */
	uint64_t past_lost;              /* of connections that were freed */
	uint32_t past_asked;
	uint32_t past_known;
	uint32_t rundowns; /* rundowns read to their end */
	uint32_t withheld; /* connections that became names_only */
	bool unguarded;    /* this was reported */
	bool stopping;
};

int managed_new(struct trace *trace, struct symbolizer *symbolizer, managed_report *report,
	managed_told *told, void *context, struct managed **ret_managed)
{
	struct managed *managed = calloc(1, sizeof(*managed));

	if (!managed)
		return -ENOMEM;
	managed->trace = trace;
	managed->symbolizer = symbolizer;
	managed->report = report;
	managed->told = told;
	managed->context = context;
	*ret_managed = managed;
	return 0;
}

void managed_relay(struct managed *managed, struct relay *relay,
	const struct ipc_provider *providers, uint32_t count, size_t pending_max)
{
	managed->relay = relay;
	managed->providers = providers;
	managed->provider_count = count;
	managed->pending_max = pending_max;
}

void managed_stacks(struct managed *managed, unsigned kinds)
{
	managed->stack_kinds = kinds;
}

void managed_sample(struct managed *managed, managed_sampled *sampled, void *context)
{
	managed->sampled_context = context;
	managed->sampled = sampled;
}

/* The one place where the state changes. */
static void enter(struct conversation *talk, enum connection_state state)
{
	static const unsigned next[] = {
		[CONNECTION_WAITING] = 1u << CONNECTION_ASKING | 1u << CONNECTION_OVER,
		[CONNECTION_ASKING] =
			1u << CONNECTION_NAMED | 1u << CONNECTION_WAITING | 1u << CONNECTION_OVER,
		[CONNECTION_NAMED] =
			1u << CONNECTION_AGAIN | 1u << CONNECTION_WAITING | 1u << CONNECTION_OVER,
		[CONNECTION_AGAIN] =
			1u << CONNECTION_NAMED | 1u << CONNECTION_WAITING | 1u << CONNECTION_OVER,
		[CONNECTION_OVER] = 0,
	};
	bool has_client = state != CONNECTION_WAITING && state != CONNECTION_OVER;

	(void)next; /* without assertions */
	(void)has_client;
	assert(next[talk->state] & 1u << state);
	assert(has_client == (talk->client != NULL));
	talk->state = state;
}

static void set_state(struct conversation *talk, enum managed_state state)
{
	struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	if (process)
		process->managed = (uint8_t)state;
}

/*
 * Lets the process's code map, which must be empty, share a table of names. Without memory the code
 * map keeps its own names.
 */
static void share_texts(struct conversation *talk)
{
	struct managed *managed = talk->managed;
	struct symbolizer_process *process = symbolizer_process(managed->symbolizer, talk->process);
	struct texts *texts = managed->texts.count ? *vec_last(&managed->texts) : NULL;

	if (!process || process->codemap.codes.count || process->codemap.modules.count)
		return;
	if (!texts || strtab_size_bytes(&texts->table) > TEXTS_BYTES_MAX) {
		texts = calloc(1, sizeof(*texts));
		if (!texts || !vec_add(&managed->texts, texts)) {
			free(texts);
			return;
		}
	}
	texts->users++;
	talk->texts = texts;
	process->codemap.shared = &texts->table;
}

/*
 * Called when the process's code map is no longer read. Frees the shared table with its last
 * process.
 */
static void give_up_texts(struct conversation *talk)
{
	struct managed *managed = talk->managed;
	struct symbolizer_process *process = symbolizer_process(managed->symbolizer, talk->process);
	struct texts *texts = talk->texts;

	if (!texts)
		return;
	if (process && process->codemap.shared == &texts->table) {
		codemap_done(&process->codemap);
		process->codemap = (struct codemap){ 0 };
	}
	if (--texts->users || texts == *vec_last(&managed->texts))
		return;
	for (uint32_t i = 0; i < managed->texts.count; i++) {
		if (managed->texts.items[i] != texts)
			continue;
		/* Only the position of the last table matters. */
		memmove(&managed->texts.items[i], &managed->texts.items[i + 1],
			(managed->texts.count - i - 1) * sizeof(managed->texts.items[0]));
		managed->texts.count--;
		break;
	}
	strtab_done(&texts->table);
	free(texts);
}

/* The runtime connection of a process, created if there is none. NULL without memory. */
static struct conversation *conversation_of(struct managed *managed, uint32_t process,
	uint64_t from_ns)
{
	uint32_t at = map_get(&managed->by_process, process);
	struct conversation *talk = at ? managed->list.items[at - 1] : calloc(1, sizeof(*talk));

	if (at)
		return talk;
	if (!talk || !vec_add(&managed->list, talk)) {
		free(talk);
		return NULL;
	}
	if (!map_add(&managed->by_process, process, managed->list.count)) {
		managed->list.count--;
		free(talk);
		return NULL;
	}
	talk->managed = managed;
	for (int i = 0; i < DOTNET_STREAM_COUNT; i++)
		talk->relayed[i] = -1;
	talk->process = process;
	talk->pid = managed->trace->processes.items[process].pid;
	talk->retry_ns = from_ns;
	share_texts(talk);
	set_state(talk, MANAGED_ASKING);
	return talk;
}

void managed_watch(struct managed *managed, uint32_t process, uint64_t from_ns)
{
	if (!managed->stopping)
		/* without memory its methods stay unnamed and are counted */
		(void)conversation_of(managed, process, from_ns);
}

bool managed_hold(struct managed *managed, uint32_t process, const struct held_runtime *held,
	uint64_t now_ns)
{
	struct conversation *talk =
		managed->stopping ? NULL : conversation_of(managed, process, now_ns);

	if (!talk || talk->held.waits)
		return false;
	talk->held = *held;
	talk->held_ns = now_ns;
	if (talk->state == CONNECTION_WAITING)
		talk->retry_ns = now_ns;
	return true;
}

void managed_process_ended(struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (at)
		managed->list.items[at - 1]->process_ended = true;
}

bool managed_is_busy(const struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return false;
	return managed->list.items[at - 1]->state != CONNECTION_OVER ||
	       managed->list.items[at - 1]->held.waits ||
	       (managed->relay && relay_waits(managed->relay, process));
}

void managed_forget(struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return;
	struct conversation *talk = managed->list.items[at - 1];
	struct conversation *last = managed->list.items[managed->list.count - 1];

	give_up_texts(talk);
	managed->past_asked++;
	managed->past_known += talk->was_named;
	managed->past_lost += talk->lost - talk->lost_told;
	held_runtime_done(&talk->held);
	managed->list.items[at - 1] = last;
	managed->list.count--;
	map_remove(&managed->by_process, process, at);
	if (last != talk) {
		map_remove(&managed->by_process, last->process, managed->list.count + 1);
		/* there is room: two entries were removed */
		(void)map_add(&managed->by_process, last->process, at);
	}
	free(talk);
}

enum wish { WISH_UNKNOWN, WISH_KEEP, WISH_PASS };

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
static bool is_stop_to_sample(struct conversation *talk, const struct schema *schema,
	const struct event *event)
{
	enum { RESTART_END = 3, RESTART = 7, SUSPEND_END = 8, SUSPEND = 9, REASON_OTHER = 0 };
	struct cursor payload = cursor_of(event->payload, event->payload_size);
	bool stopping = talk->stopper && talk->stopper == event->thread_index;

	if (!talk->managed->sampled || schema->provider_kind != PROVIDER_CLR)
		return false;
	switch (schema->event_id) {
	case SUSPEND:
		stopping = cursor_u32(&payload) == REASON_OTHER && !payload.short_read;
		talk->stopper = stopping ? event->thread_index : 0;
		return stopping;
	case SUSPEND_END:
	case RESTART:
		return stopping;
	case RESTART_END:
		if (stopping)
			talk->stopper = 0;
		return stopping;
	default:
		return false;
	}
}

/*
 * Adds the method of a runtime event to the codemap, and checks whether new methods must be
 * reported.
 */
static void absorb(struct conversation *talk, bool rundown, const struct schema *schema,
	const struct event *event)
{
	struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	if (!process || talk->managed->symbolizer->full)
		return;
	/*
	 * A method that cannot be added (no memory, malformed) only loses its own name: codemap
	 * counts it.
	 */
	(void)clr_absorb_method(&process->codemap, rundown, schema->event_id, schema->version,
		event->time_ns, event->payload, event->payload_size);
	if (!process->unloads_code)
		process->unloads_code = clr_is_collectible(rundown, schema->event_id,
			event->payload, event->payload_size);
	if (talk->methods == METHODS_QUIET && process->unloads_code)
		talk->methods = METHODS_WANTED;
}

/* True if the session with stacks has this event. */
static bool is_with_stack(const struct conversation *talk, const struct schema *schema)
{
	return schema->provider_kind == PROVIDER_CLR &&
	       dotnet_client_takes_stacks(talk->client, schema->event_id);
}

/*
 * Handles an event of the live stream, called by the relay: adds its method to the codemap. Returns
 * true if the user enabled the event.
 */
static bool on_event(void *context, const struct event *event)
{
	struct conversation *talk = context;
	struct managed *managed = talk->managed;
	const struct schema *schema = &managed->trace->schemas.items[event->schema_index];

	if (schema->provider_kind == PROVIDER_CLR || schema->provider_kind == PROVIDER_CLR_RUNDOWN)
		absorb(talk, schema->provider_kind == PROVIDER_CLR_RUNDOWN, schema, event);
	return !talk->names_only && is_kept(managed, event->schema_index) &&
	       !is_with_stack(talk, schema) && !is_stop_to_sample(talk, schema, event);
}

/* Called by the relay for an event of the session with stacks. Runtimes before .NET 10 send more. */
static bool on_stack_event(void *context, const struct event *event)
{
	struct conversation *talk = context;

	return is_with_stack(talk, &talk->managed->trace->schemas.items[event->schema_index]);
}

/* Adds the methods of one stream's events to the codemap. */
static int take_events(struct conversation *talk, enum dotnet_stream stream)
{
	struct nettrace_decoder *decoder = talk->decoders[stream];
	struct event event;
	int result;

	if (!symbolizer_process(talk->managed->symbolizer, talk->process))
		return -ENOMEM;
	while ((result = nettrace_decoder_next(decoder, &event, NULL)) > 0) {
		const struct schema *schema =
			&talk->streams[stream].schemas.items[event.schema_index];
		bool rundown = schema->provider_kind == PROVIDER_CLR_RUNDOWN;
		if (rundown || schema->provider_kind == PROVIDER_CLR)
			absorb(talk, rundown, schema, &event);
	}
	nettrace_decoder_rest(decoder);
	return result;
}

/*
 * The runtime read its clock for the stream header after the session was requested and before these
 * bytes arrived. The middle of that interval gives the offset, half of it the error.
 */
static void measure_clock(struct conversation *talk, enum dotnet_stream stream,
	const struct nettrace_head *head)
{
	uint64_t asked_ns = dotnet_client_asked_ns(talk->client, stream);
	uint64_t now_ns = clock_monotonic_ns();

	if (!head->version || !head->sync_ns || !asked_ns || now_ns < asked_ns)
		return;
	uint64_t error_ns = (now_ns - asked_ns + 1) / 2;

	if (talk->clock_error_ns && talk->clock_error_ns <= error_ns)
		return; /* the earlier measurement is more precise */
	talk->clock_error_ns = error_ns;
	talk->clock_offset_ns = (int64_t)(head->sync_ns - (asked_ns + (now_ns - asked_ns) / 2));
}

static void close_relayed(struct conversation *talk, enum dotnet_stream stream)
{
	struct relay *relay = talk->managed->relay;
	int number = talk->relayed[stream];

	if (number < 0)
		return;
	talk->lost += relay_stream_lost(relay, number);
	talk->dropped += relay_stream_dropped(relay, number);
	relay_close(relay, number);
	talk->relayed[stream] = -1;
}

/*
 * Passes a sample of a thread to the session. Returns false: the event itself does not enter the
 * reorder window.
 */
static bool on_sample(void *context, const struct event *event)
{
	struct conversation *talk = context;
	struct managed *managed = talk->managed;
	const struct schema *schema = &managed->trace->schemas.items[event->schema_index];
	struct cursor payload = cursor_of(event->payload, event->payload_size);

	if (schema->provider_kind != PROVIDER_SAMPLE || schema->event_id != CLR_THREAD_SAMPLE ||
		!event->stack_index)
		return false;
	int64_t offset_ns =
		relay_clock_offset_ns(managed->relay, talk->relayed[DOTNET_STREAM_SAMPLES]);
	uint32_t type = cursor_u32(&payload);

	managed->sampled(managed->sampled_context, talk->process, event->thread_index,
		event->time_ns + (uint64_t)offset_ns, event->stack_index,
		type == CLR_SAMPLE_MANAGED);
	return false;
}

static int relay_through(struct conversation *talk, enum dotnet_stream stream, const uint8_t *data,
	size_t size)
{
	static bool (*const takers[])(void *context, const struct event *event) = {
		[DOTNET_STREAM_LIVE] = on_event,
		[DOTNET_STREAM_STACKS] = on_stack_event,
		[DOTNET_STREAM_SAMPLES] = on_sample,
	};
	struct managed *managed = talk->managed;
	int result = 0;

	if (!size) {
		close_relayed(talk, stream);
		return 0;
	}
	if (talk->relayed[stream] < 0) {
		const struct relay_picking picking = { .wants = takers[stream],
			.context = talk,
			.pending_max = managed->pending_max,
			.stacks = stream != DOTNET_STREAM_LIVE };
		struct process *process = &managed->trace->processes.items[talk->process];
		if (!process->inner_pid)
			process->inner_pid = talk->inner_pid;
		talk->relayed[stream] = relay_open_picked(managed->relay, talk->process,
			"diagnostics stream", &picking);
		if (talk->relayed[stream] < 0)
			return -ENOMEM;
	}
	result = relay_bytes(managed->relay, talk->relayed[stream], data, size, NULL);
	if (result == 0 && stream == DOTNET_STREAM_LIVE)
		measure_clock(talk, stream, relay_head(managed->relay, talk->relayed[stream]));
	return result;
}

/*
 * Updates symbolizer_process.reported_ns: the time up to which the streams that report method loads and
 * unloads have been read.
 */
static void note_reported(struct conversation *talk, enum dotnet_stream stream,
	uint64_t reported_ns)
{
	struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	talk->reported_ns[stream] = reported_ns;
	if (!process)
		return;
	process->reported_ns = talk->reported_ns[DOTNET_STREAM_LIVE];
	if (talk->reported_ns[DOTNET_STREAM_METHODS] < process->reported_ns)
		process->reported_ns = talk->reported_ns[DOTNET_STREAM_METHODS];
}

static int decode_bytes(struct conversation *talk, enum dotnet_stream stream, const uint8_t *data,
	size_t size)
{
	bool events = stream <= DOTNET_STREAM_SAMPLES;

	if (events && talk->managed->relay)
		return relay_through(talk, stream, data, size);
	if (!size) {
		if (talk->decoders[stream])
			talk->lost += nettrace_decoder_lost(talk->decoders[stream]);
		nettrace_decoder_free(talk->decoders[stream]);
		talk->decoders[stream] = NULL;
		trace_done(&talk->streams[stream]);
		return 0;
	}
	if (!talk->decoders[stream]) {
		if (trace_init(&talk->streams[stream]) < 0)
			return -ENOMEM;
		talk->decoders[stream] = nettrace_decoder_new(&talk->streams[stream],
			"diagnostics stream", NETTRACE_NAMES_ONLY);
		if (!talk->decoders[stream]) {
			trace_done(&talk->streams[stream]);
			return -ENOMEM;
		}
	}
	int result = nettrace_decoder_push(talk->decoders[stream], data, size);

	if (result == 0)
		result = take_events(talk, stream);
	if (result == 0)
		measure_clock(talk, stream, nettrace_decoder_head(talk->decoders[stream]));
	return result;
}

static int on_bytes(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size)
{
	struct conversation *talk = user;
	int result = decode_bytes(talk, stream, data, size);

	if (result < 0 || !size)
		note_reported(talk, stream, UINT64_MAX);
	else if (talk->relayed[stream] >= 0)
		note_reported(talk, stream,
			relay_sorted_ns(talk->managed->relay, talk->relayed[stream]));
	else
		note_reported(talk, stream, nettrace_decoder_sorted_ns(talk->decoders[stream]));
	return result;
}

/* "live ...\nrundown ..." */
static const char *sessions_text(const struct conversation *talk, struct bytes *text)
{
	for (int i = 0; talk->client && i < DOTNET_STREAM_COUNT; i++) {
		const char *session = dotnet_client_session(talk->client, (enum dotnet_stream)i);
		if (!session)
			continue;
		if (text->len)
			bytes_text(text, "\n");
		bytes_text(text, session);
	}
	return bytes_z(text);
}

static void report(struct conversation *talk, bool reachable, const char *reason, const char *code)
{
	cleanup(bytes_done) struct bytes sessions = { 0 };
	struct managed_outcome outcome = {
		.process = talk->process,
		.reachable = reachable,
		.reason = reason,
		.reason_code = code,
		.info = talk->client ? dotnet_client_info(talk->client) : NULL,
		.sessions = sessions_text(talk, &sessions),
		.clock_measured = talk->clock_error_ns != 0,
		.clock_offset_ns = talk->clock_offset_ns,
		.clock_error_ns = talk->clock_error_ns,
	};

	talk->reported = true;
	talk->managed->report(talk->managed->context, &outcome);
}

static void drop_client(struct conversation *talk)
{
	dotnet_client_free(talk->client);
	talk->client = NULL;
	for (int i = 0; i < DOTNET_STREAM_COUNT; i++)
		(void)on_bytes(talk, (enum dotnet_stream)i, NULL, 0); /* freeing cannot fail */
}

/* Reports a missing guard, one time; the recording continues without it. */
static void tell_unguarded(struct managed *managed, const char *why)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	if (managed->unguarded)
		return;
	managed->unguarded = true;
	bytes_printf(&text, SESSION_UNGUARDED "%s", why);
	managed->told(managed->context, "unguarded", bytes_z(&text));
}

static void need_guard(struct managed *managed)
{
	struct diag diag = { 0 };

	if (!managed->guard && !managed->unguarded && guard_start(&managed->guard, &diag) < 0)
		tell_unguarded(managed, diag.text);
}

static void start(struct conversation *talk, uint64_t now_ns)
{
	struct dotnet_target target;
	struct dotnet_handler handler = { .bytes = on_bytes, .user = talk };
	struct diag diag = { 0 };

	talk->retry_ns = UINT64_MAX;
	if (dotnet_target_read(talk->pid, &target, &diag) < 0) {
		set_state(talk, MANAGED_REFUSED);
		report(talk, false, "it ended before it could be asked",
			reason_word(REASON_KIND_ENDED));
		enter(talk, CONNECTION_OVER);
		return;
	}
	talk->inner_pid = target.inner_pid;
	target.borrows = talk->names_only || !talk->managed->provider_count;
	need_guard(talk->managed);
	if (dotnet_client_new(&target, &handler, now_ns, &talk->client) < 0) {
		set_state(talk, MANAGED_REFUSED);
		enter(talk, CONNECTION_OVER);
		return;
	}
	enter(talk, CONNECTION_ASKING);
	note_reported(talk, DOTNET_STREAM_METHODS, UINT64_MAX);
	note_reported(talk, DOTNET_STREAM_LIVE, 0);
	dotnet_client_guard(talk->client, talk->managed->guard);
	dotnet_client_ask(talk->client, talk->managed->providers,
		talk->names_only ? 0 : talk->managed->provider_count);
	talk->methods = !talk->held.waits && dotnet_target_age_ns(&target) >= GROWN_UP_NS
				? METHODS_QUIET
				: METHODS_ANNOUNCED;
	if (talk->methods == METHODS_QUIET)
		dotnet_client_untold(talk->client);
	if (talk->held.waits)
		dotnet_client_from_start(talk->client);
	talk->rundown_ns = now_ns;
	talk->again_ns = now_ns + FIRST_AGAIN_NS;
	if (talk->managed->sampled)
		dotnet_client_sample(talk->client);
	if (!talk->names_only)
		dotnet_client_stacks(talk->client, talk->managed->stack_kinds);
}

void managed_miss(struct managed *managed, uint32_t process)
{
	uint32_t before = managed->list.count;
	struct conversation *talk = conversation_of(managed, process, 0);

	if (!talk || managed->list.count == before)
		return;
	set_state(talk, MANAGED_REFUSED);
	report(talk, false, "the recording ended before it could be asked",
		reason_word(REASON_KIND_ENDED));
	enter(talk, CONNECTION_OVER);
}

/*
 * Resumes a held runtime when its session is open, when no session will be opened, or after
 * MANAGED_HOLD_NS.
 */
static void advance_hold(struct conversation *talk, uint64_t now_ns)
{
	const struct dotnet_client *client = talk->client;
	bool opening = client ? !dotnet_client_is_prepared(client)
			      : talk->state != CONNECTION_OVER && !talk->reported;

	if (!talk->held.waits)
		return;
	if (!opening || talk->managed->stopping || talk->managed->pause_ns ||
		now_ns >= talk->held_ns + MANAGED_HOLD_NS)
		held_runtime_resume(&talk->held, now_ns);
	held_runtime_advance(&talk->held, now_ns);
}

/*
 * Opens the sessions again after they were ended during the recording. Its rundown reports the
 * methods that were compiled meanwhile.
 */
static void begin_again(struct conversation *talk, uint64_t since_ns, uint64_t now_ns)
{
	struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	drop_client(talk);
	if (talk->process_ended) {
		enter(talk, CONNECTION_OVER);
		return;
	}
	enter(talk, CONNECTION_WAITING);
	talk->retries = 0;
	talk->retry_ns = now_ns;
	set_state(talk, MANAGED_ASKING);
	if (process && talk->was_named)
		process->codemap.since_ns = since_ns;
}

/*
 * A rundown leaves freed blocks between used ones: after every RUNDOWNS_A_TRIM rundowns they are
 * returned to the system.
 */
static void give_back(struct managed *managed)
{
	if (++managed->rundowns % RUNDOWNS_A_TRIM != 0)
		return;
#ifdef __GLIBC__
	(void)malloc_trim(0); /* nothing to release is no failure */
#endif
}

static void begin_another_rundown(struct conversation *talk, uint64_t now_ns)
{
	struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	if (!dotnet_client_rundown(talk->client))
		return; /* managed_advance() tries again in the next step */
	if (process)
		process->codemap.since_ns = talk->rundown_ns; /* begin of the last rundown */
	enter(talk, CONNECTION_AGAIN);
	talk->rundown_ns = now_ns;
	talk->again_ns = now_ns + NEXT_AGAIN_NS;
}

/*
 * Ends a rundown: unknown code that was sampled before its begin and that it did not report is no
 * method.
 */
static void end_rundown(struct conversation *talk)
{
	struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	enter(talk, CONNECTION_NAMED);
	if (!process)
		return;
	process->untold = talk->methods == METHODS_QUIET || talk->methods == METHODS_WANTED ||
			  talk->methods == METHODS_REFUSED;
	process->untold_hit = false;
	process->rundown_ns = talk->rundown_ns;
	codemap_trim(&process->codemap);
	give_back(talk->managed);
}

/* Handles the client's new state: names known, refused, hung or ended. */
static void look(struct conversation *talk, enum dotnet_state state, uint64_t now_ns)
{
	const char *code = dotnet_client_reason_code(talk->client);

	if (dotnet_client_named(talk->client) && talk->state == CONNECTION_ASKING) {
		end_rundown(talk);
		set_state(talk, MANAGED_KNOWN);
		if (!talk->was_named)
			report(talk, true, "", "");
		talk->was_named = true;
	}
	if (talk->methods == METHODS_ASKED &&
		dotnet_client_session(talk->client, DOTNET_STREAM_METHODS)) {
		talk->methods = METHODS_REPORTED;
		report(talk, true, "", "");
	}
	/*
	 * A session that could not be opened reports nothing, so no sampled address waits for it.
	 */
	if (state == DOTNET_LIVE && !dotnet_client_session(talk->client, DOTNET_STREAM_LIVE))
		note_reported(talk, DOTNET_STREAM_LIVE, UINT64_MAX);
	if (state == DOTNET_LIVE && talk->methods == METHODS_ASKED) {
		talk->methods = METHODS_REFUSED;
		note_reported(talk, DOTNET_STREAM_METHODS, UINT64_MAX);
	}
	/* Also when the rundown was refused or cut short. */
	if (talk->state == CONNECTION_AGAIN && (state == DOTNET_LIVE || state == DOTNET_ENDED))
		end_rundown(talk);
	if (state == DOTNET_HUNG && !talk->reported) {
		set_state(talk, MANAGED_REFUSED);
		report(talk, false, dotnet_client_reason(talk->client), code);
	}
	if (state != DOTNET_ENDED || talk->managed->pause_ns)
		return;
	/*
	 * If the guard intervenes between two checks, look_at_guard() opens the session again in
	 * the next step.
	 */
	if (!talk->managed->stopping && reason_word_is(code, REASON_KIND_GUARDED))
		return;
	if (!talk->was_named && !talk->names_only && talk->managed->provider_count &&
		rights_are_borrowed() && reason_word_is(code, REASON_KIND_PERMISSION)) {
		drop_client(talk);
		enter(talk, CONNECTION_WAITING);
		talk->names_only = true;
		talk->managed->withheld++;
		talk->retry_ns = now_ns;
		return;
	}
	bool young = reason_word_is(code, REASON_KIND_NO_SOCKET) ||
		     reason_word_is(code, REASON_KIND_REFUSED);

	if (!talk->was_named && young && talk->retries < RETRY_COUNT && !talk->process_ended &&
		!talk->managed->stopping) {
		drop_client(talk);
		enter(talk, CONNECTION_WAITING);
		talk->retries++;
		talk->retry_ns = now_ns + RETRY_NS;
		return;
	}
	if (!talk->was_named && !talk->reported) {
		set_state(talk, MANAGED_REFUSED);
		report(talk, false, dotnet_client_reason(talk->client), code);
	} else if (talk->was_named) {
		set_state(talk, MANAGED_KNOWN); /* the names known before stay valid */
	}
	drop_client(talk);
	enter(talk, CONNECTION_OVER);
}

/*
 * Sends the guard a heartbeat, and opens the sessions again that it ended because this process was
 * not running.
 */
static void look_at_guard(struct managed *managed, uint64_t now_ns)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	uint64_t seen_ns;
	uint32_t ended = 0;
	char state;

	guard_beat(managed->guard, now_ns);
	if (guard_problem(managed->guard))
		tell_unguarded(managed, guard_problem(managed->guard));
	if (guard_rounds(managed->guard) == managed->guard_rounds)
		return;
	managed->guard_rounds = guard_rounds(managed->guard);
	guard_last_round(managed->guard, &seen_ns, &state);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct conversation *talk = managed->list.items[i];
		/*
		 * Bytes from before the guard's intervention are not read any more; the client
		 * checks that.
		 */
		if (!talk->client || dotnet_client_advance(talk->client, now_ns) != DOTNET_ENDED ||
			!reason_word_is(dotnet_client_reason_code(talk->client),
				REASON_KIND_GUARDED))
			continue;
		ended++;
		if (!managed->pause_ns && !managed->stopping)
			begin_again(talk, seen_ns, now_ns);
	}
	if (!ended)
		return;
	bytes_printf(&text,
		"spoor %s for %s: its sessions in %u .NET process%s were ended after 2 s, so that %s not held up",
		state == 'T'   ? "was stopped"
		: state == 't' ? "was held by a debugger"
			       : "stood still",
		TEXT_DURATION((double)(now_ns > seen_ns ? now_ns - seen_ns : 0) / 1e9), ended,
		ended == 1 ? "" : "es", ended == 1 ? "it was" : "they were");
	if (!managed->pause_ns && !managed->stopping)
		bytes_text(&text, ", and are opened again");
	managed->told(managed->context, "guard", bytes_z(&text));
}

/*
 * Requests another rundown, or a session that reports methods, for a process whose session does not
 * report new methods and in which samples fell into unknown code. Returns true if another rundown
 * was started.
 */
static bool ask_again(struct conversation *talk, uint64_t now_ns)
{
	bool quiet = talk->methods != METHODS_ANNOUNCED && talk->state == CONNECTION_NAMED;
	struct symbolizer_process *process =
		quiet ? symbolizer_process(talk->managed->symbolizer, talk->process) : NULL;

	if (!process)
		return false;
	if (talk->methods == METHODS_WANTED) {
		/* One more rundown reports the methods compiled before this session. */
		if (dotnet_client_methods(talk->client)) {
			talk->methods = METHODS_ASKED;
			note_reported(talk, DOTNET_STREAM_METHODS, 0);
			process->untold_hit = true;
		}
		talk->again_ns = now_ns;
	} else if (process->untold_hit && now_ns >= talk->again_ns) {
		begin_another_rundown(talk, now_ns);
	}
	return talk->state == CONNECTION_AGAIN;
}

void managed_advance(struct managed *managed, uint64_t now_ns)
{
	uint32_t asking = 0;

	if (managed->guard)
		look_at_guard(managed, now_ns);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct conversation *talk = managed->list.items[i];
		if (!talk->client) {
			advance_hold(talk, now_ns);
			continue;
		}
		enum dotnet_state state = dotnet_client_advance(talk->client, now_ns);
		advance_hold(talk, now_ns);
		for (int s = 0; s < DOTNET_STREAM_COUNT; s++)
			if (talk->relayed[s] >= 0 && !dotnet_client_behind(talk->client))
				relay_caught_up(managed->relay, talk->relayed[s], now_ns);
		look(talk, state, now_ns);
		if (talk->client && state == DOTNET_ASKING)
			asking++;
	}
	for (uint32_t i = 0; i < managed->list.count && !managed->stopping && !managed->pause_ns;
		i++) {
		struct conversation *talk = managed->list.items[i];
		if (asking >= MANAGED_RUNDOWNS_MAX && !talk->held.waits)
			continue;
		if (talk->client)
			asking += ask_again(talk, now_ns);
		if (talk->state != CONNECTION_WAITING || talk->retry_ns > now_ns)
			continue;
		start(talk, now_ns);
		asking++;
		if (talk->client)
			look(talk, dotnet_client_advance(talk->client, now_ns), now_ns);
		advance_hold(talk, now_ns);
	}
}

static bool is_hit_untold(const struct conversation *talk)
{
	const struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	return process && process->untold_hit;
}

bool managed_names_rest(struct managed *managed, uint64_t now_ns)
{
	uint32_t running = 0;
	bool some = false;

	for (uint32_t i = 0; i < managed->list.count; i++)
		running += managed->list.items[i]->state == CONNECTION_AGAIN;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct conversation *talk = managed->list.items[i];
		some |= talk->state == CONNECTION_AGAIN;
		if (talk->state != CONNECTION_NAMED || talk->rested || !is_hit_untold(talk))
			continue;
		some = true;
		if (running >= MANAGED_RUNDOWNS_MAX)
			continue;
		begin_another_rundown(talk, now_ns);
		talk->rested = talk->state == CONNECTION_AGAIN;
		running += talk->rested;
	}
	return some;
}

void managed_await(const struct managed *managed, struct poll_set *set)
{
	if (guard_rounds(managed->guard) != managed->guard_rounds)
		poll_set_wake(set, 0);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		const struct conversation *talk = managed->list.items[i];
		if (talk->client)
			dotnet_client_await(talk->client, set);
		else if (talk->state != CONNECTION_OVER && !managed->stopping && !managed->pause_ns)
			poll_set_wake(set, talk->retry_ns);
		held_runtime_await(&talk->held, set);
		if (talk->held.waits && !held_runtime_is_resuming(&talk->held))
			poll_set_wake(set, talk->held_ns + MANAGED_HOLD_NS);
	}
}

void managed_pause(struct managed *managed, uint64_t now_ns)
{
	managed->pause_ns = now_ns;
	for (uint32_t i = 0; i < managed->list.count; i++)
		if (managed->list.items[i]->client)
			dotnet_client_stop(managed->list.items[i]->client, now_ns);
}

void managed_resume(struct managed *managed, uint64_t now_ns)
{
	uint64_t since_ns = managed->pause_ns;

	managed->pause_ns = 0;
	if (managed->guard)
		look_at_guard(managed, now_ns);
	for (uint32_t i = 0; i < managed->list.count; i++)
		if (managed->list.items[i]->client)
			begin_again(managed->list.items[i], since_ns, now_ns);
}

void managed_stop(struct managed *managed, uint64_t now_ns)
{
	managed->stopping = true;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct conversation *talk = managed->list.items[i];
		if (talk->client) {
			dotnet_client_stop(talk->client, now_ns);
		} else if (talk->state == CONNECTION_WAITING) {
			if (!talk->reported) {
				set_state(talk, MANAGED_REFUSED);
				report(talk, false,
					talk->retries ? reason_text(REASON_NO_SOCKET_YET)
						      : "there was no time to connect to it",
					reason_word(talk->retries ? REASON_KIND_NO_SOCKET
								  : REASON_KIND_ENDED));
			}
			enter(talk, CONNECTION_OVER);
		}
	}
}

bool managed_is_streaming(const struct managed *managed)
{
	for (uint32_t i = 0; i < managed->list.count; i++)
		if (managed->list.items[i]->client)
			return true;
	return false;
}

bool managed_ended(const struct managed *managed)
{
	for (uint32_t i = 0; i < managed->list.count; i++) {
		const struct dotnet_client *client = managed->list.items[i]->client;
		if (client && dotnet_client_state(client) != DOTNET_ENDED)
			return false;
	}
	return true;
}

static uint64_t lost_of(const struct conversation *talk)
{
	uint64_t lost = talk->lost;

	for (int s = 0; s < DOTNET_STREAM_COUNT; s++) {
		if (talk->decoders[s])
			lost += nettrace_decoder_lost(talk->decoders[s]);
		if (talk->relayed[s] >= 0)
			lost += relay_stream_lost(talk->managed->relay, talk->relayed[s]);
	}
	return lost;
}

bool managed_take_losses(struct managed *managed, uint32_t process, uint64_t *ret_lost,
	uint64_t *ret_dropped)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return false;
	struct conversation *talk = managed->list.items[at - 1];
	uint64_t lost = lost_of(talk);
	uint64_t dropped = talk->dropped;

	for (int s = 0; s < DOTNET_STREAM_COUNT; s++)
		if (talk->relayed[s] >= 0)
			dropped += relay_stream_dropped(managed->relay, talk->relayed[s]);

	if (lost == talk->lost_told && dropped == talk->dropped_told)
		return false;
	*ret_lost = lost - talk->lost_told;
	*ret_dropped = dropped - talk->dropped_told;
	talk->lost_told = lost;
	talk->dropped_told = dropped;
	return true;
}

uint64_t managed_lost(const struct managed *managed)
{
	uint64_t lost = managed->past_lost;

	for (uint32_t i = 0; i < managed->list.count; i++)
		lost += lost_of(managed->list.items[i]) - managed->list.items[i]->lost_told;
	return lost;
}

uint32_t managed_withheld(const struct managed *managed)
{
	return managed->withheld;
}

size_t managed_size_bytes(const struct managed *managed)
{
	size_t size = 0;

	for (uint32_t i = 0; i < managed->texts.count; i++)
		size += strtab_size_bytes(&managed->texts.items[i]->table);
	return size;
}

void managed_counts(const struct managed *managed, uint32_t *ret_asked, uint32_t *ret_known)
{
	*ret_asked = managed->past_asked + managed->list.count;
	*ret_known = managed->past_known;
	for (uint32_t i = 0; i < managed->list.count; i++)
		*ret_known += managed->list.items[i]->was_named;
}

void managed_free(struct managed *managed)
{
	if (!managed)
		return;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		drop_client(managed->list.items[i]);
		held_runtime_done(&managed->list.items[i]->held);
		free(managed->list.items[i]);
	}
	guard_free(managed->guard);
	for (uint32_t i = 0; i < managed->texts.count; i++) {
		/* no code map reads these names any more */
		strtab_done(&managed->texts.items[i]->table);
		free(managed->texts.items[i]);
	}
	vec_done(&managed->texts);
	vec_done(&managed->wanted);
	vec_done(&managed->list);
	map_done(&managed->by_process);
	free(managed);
}
