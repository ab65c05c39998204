/*
 * See dotnet_client.h. dotnet/runtime_client.h has the sessions; this file decides which session is
 * opened when, session_requests.c with which providers. A session is opened only when no other has a
 * request: due stops come first.
 *
 * Invariants:
 * - `step` is the next session, which is being opened if sessions[step] has a pipe;
 * - streams are read during requests;
 * - `reason` is about missing names: empty if the target ends after its names are known.
 */
#include "recording/dotnet_client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "dotnet/eventpipe.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "dotnet/runtime_client.h"
#include "dotnet/stack_events.h"
#include "recording/session_requests.h"

/* A new process gets its socket after some 20 to 50 ms, later on a slow machine. */
#define APPEAR_NS UINT64_C(5000000000)

/* A runtime sends some 80 times a second: waking for each costs more than its data. */
#define REST_NS UINT64_C(50000000)
/* A short program waits at its end until its methods were read. */
#define BRIEF_NS UINT64_C(2000000000)
/* A stream with more bytes in a turn is not delayed: the socket holds some 200 KB. */
#define REST_BYTES (64u << 10)

/* Which session is opened: the values below STEP_DONE are those of enum dotnet_stream. */
enum client_step {
	STEP_LIVE = DOTNET_STREAM_LIVE,
	STEP_STACKS = DOTNET_STREAM_STACKS,
	STEP_ACTIVITIES = DOTNET_STREAM_ACTIVITIES,
	STEP_EXCEPTIONS = DOTNET_STREAM_EXCEPTIONS,
	STEP_ALLOCATIONS = DOTNET_STREAM_ALLOCATIONS,
	STEP_COUNTS = DOTNET_STREAM_COUNTS,
	STEP_SAMPLES = DOTNET_STREAM_SAMPLES,
	STEP_RUNDOWN = DOTNET_STREAM_RUNDOWN,
	STEP_METHODS = DOTNET_STREAM_METHODS,
	STEP_SETTLE = DOTNET_STREAM_SETTLE,
	STEP_DONE = DOTNET_STREAM_COUNT,
};

struct client_session {
	struct dotnet_client *client;
	enum dotnet_stream stream;
	struct eventpipe *pipe; /* of the client's runtime; NULL: not begun */
	char text[512];         /* the opened session; "": none */
};

struct dotnet_client {
	struct dotnet_target target;
	struct dotnet_handler handler;
	struct runtime_client runtime;
	enum dotnet_state state;
	enum client_step step;
	struct client_session sessions[DOTNET_STREAM_COUNT];
	struct session_requests requests;
	bool alone;         /* the step is no part of the start: none follows */
	bool named;         /* all methods that existed have been reported */
	bool behind;        /* the last turn left bytes unread */
	bool connected;     /* its socket has existed */
	int refused;        /* errno of the last try to connect; 0: connected */
	uint64_t begin_ns;  /* of the client */
	uint64_t appear_ns; /* until when its socket may still appear */
	uint64_t stop_ns;   /* when dotnet_client_stop() was called */
	uint64_t now_ns;    /* of the last turn */
	struct reason_note reason;
};

/* The one place where the state changes. */
static void enter(struct dotnet_client *client, enum dotnet_state state)
{
	static const unsigned next[] = {
		[DOTNET_ASKING] = 1u << DOTNET_HUNG | 1u << DOTNET_LIVE | 1u << DOTNET_STOPPING |
				  1u << DOTNET_ENDED,
		[DOTNET_HUNG] = 1u << DOTNET_ASKING | 1u << DOTNET_LIVE | 1u << DOTNET_STOPPING |
				1u << DOTNET_ENDED,
		[DOTNET_LIVE] = 1u << DOTNET_ASKING | 1u << DOTNET_HUNG | 1u << DOTNET_STOPPING |
				1u << DOTNET_ENDED,
		[DOTNET_STOPPING] = 1u << DOTNET_ENDED,
		[DOTNET_ENDED] = 0,
	};

	(void)next; /* without assertions */
	assert(state == client->state || next[client->state] & 1u << state);
	client->state = state;
}

static bool is_opened(const struct dotnet_client *client, enum dotnet_stream stream)
{
	const struct eventpipe *pipe = client->sessions[stream].pipe;

	return pipe && eventpipe_opened_ns(pipe);
}

/* ---- connecting ---- */

/* During its exec a process has no environment: a missing TMPDIR is read again. */
static void read_target_again(struct dotnet_client *client)
{
	struct dotnet_target target;

	if (client->target.tmpdir[0] || dotnet_target_read(client->target.pid, &target, NULL) < 0 ||
		target.start_ticks != client->target.start_ticks)
		return;
	target.borrows = client->target.borrows;
	client->target = target;
}

static int endpoint_connect_announced(void *context, dotnet_socket_fn *made, void *made_context,
	struct diag *diag)
{
	struct dotnet_client *client = context;
	int fd = dotnet_port_connect_announced(&client->target, made, made_context, diag);

	client->refused = fd < 0 ? fd : 0;
	client->connected |= fd >= 0;
	bool young = (fd == -ENOENT || fd == -ECONNREFUSED) && !client->connected &&
		     client->state != DOTNET_STOPPING && client->now_ns < client->appear_ns &&
		     !dotnet_is_switched_off(client->target.pid) &&
		     dotnet_endpoint_is_alive(&client->runtime.endpoint);

	if (!young)
		return fd;
	read_target_again(client);
	return -EAGAIN; /* it is tried again */
}

static int endpoint_connect(void *context, struct diag *diag)
{
	return endpoint_connect_announced(context, NULL, NULL, diag);
}

static char endpoint_state(void *context)
{
	return dotnet_target_state(&((const struct dotnet_client *)context)->target);
}

/* ---- requests ---- */

/* Describes the session as it was requested. */
static void describe_session(struct dotnet_client *client, struct client_session *session)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	session_requests_describe(&client->requests, session->stream,
		eventpipe_collect_command(session->pipe), &text);
	text_set(session->text, "%s", bytes_z(&text));
}

static int on_bytes(void *user, const uint8_t *data, size_t size)
{
	struct client_session *session = user;
	struct dotnet_client *client = session->client;
	int result = client->handler.bytes(client->handler.user, session->stream, data, size);

	if (result < 0 && client->reason.kind == REASON_KIND_NONE)
		reason_note_set_known(&client->reason, REASON_BAD_STREAM);
	return result;
}

/* The next session can be opened: no request is under way or due. */
static bool may_open(const struct dotnet_client *client)
{
	if (client->state >= DOTNET_STOPPING || client->step == STEP_DONE ||
		client->sessions[client->step].pipe)
		return false;
	return !runtime_client_is_asking(&client->runtime);
}

static void open_next(struct dotnet_client *client, uint64_t now_ns)
{
	struct client_session *session = &client->sessions[client->step];
	if (!client->requests.collect_command)
		client->requests.collect_command = client->requests.wishes.provider_count
							   ? IPC_COLLECT_TRACING_5
							   : IPC_COLLECT_TRACING_4;
	struct eventpipe_options options =
		session_requests_options(&client->requests, session->stream);
	const struct eventpipe_handler handler = { .bytes = on_bytes, .user = session };

	options.end_limit_ns = DOTNET_STOP_NS;
	if (runtime_client_open(&client->runtime, &options, &handler, now_ns, &session->pipe) < 0) {
		reason_note_set_known(&client->reason, REASON_NO_MEMORY);
		client->step = STEP_DONE;
		return;
	}
	(void)eventpipe_advance(session->pipe, now_ns); /* take_step() checks the state */
}

/* ---- replies ---- */

/* Whether the session of a step is opened at the start. */
static bool is_wanted(const struct dotnet_client *client, enum client_step step)
{
	const struct dotnet_wishes *wishes = &client->requests.wishes;

	switch (step) {
	case STEP_STACKS:
		return session_requests_stacked(&client->requests).kinds != 0;
	case STEP_ACTIVITIES:
		return wishes->activities;
	case STEP_EXCEPTIONS:
		return wishes->exceptions;
	case STEP_ALLOCATIONS:
		return wishes->allocations;
	case STEP_SAMPLES:
		return wishes->samples;
	case STEP_RUNDOWN:
		return !wishes->from_start;
	default:
		return false;
	}
}

static enum client_step step_behind(const struct dotnet_client *client)
{
	for (unsigned step = client->step + 1u; !client->alone && step < STEP_DONE; step++)
		if (is_wanted(client, (enum client_step)step))
			return (enum client_step)step;
	return STEP_DONE;
}

/* Checks the session that is being opened. */
static void take_step(struct dotnet_client *client)
{
	struct client_session *session =
		client->step == STEP_DONE ? NULL : &client->sessions[client->step];

	if (!session || !session->pipe)
		return;
	client->requests.collect_command = eventpipe_collect_command(session->pipe);
	if (eventpipe_opened_ns(session->pipe)) {
		describe_session(client, session);
		client->named |=
			client->requests.wishes.from_start && session->stream == DOTNET_STREAM_LIVE;
		client->step = step_behind(client);
		return;
	}
	if (client->state == DOTNET_STOPPING || eventpipe_state(session->pipe) != EVENTPIPE_ENDED)
		return;
	bool refused = eventpipe_is_refused(session->pipe);

	client->step = refused ? step_behind(client) : STEP_DONE;
	client->reason = *eventpipe_reason(session->pipe);
	if (!refused && !dotnet_endpoint_is_alive(&client->runtime.endpoint))
		reason_note_set_known(&client->reason, REASON_ENDED_EARLY);
}

/* The rundown was read whole, and the end of the process did not cut it. */
static void take_rundown(struct dotnet_client *client)
{
	const struct eventpipe *pipe = client->sessions[DOTNET_STREAM_RUNDOWN].pipe;

	if (!client->named && pipe && eventpipe_whole(pipe))
		client->named = eventpipe_is_acknowledged(pipe) ||
				dotnet_endpoint_is_alive(&client->runtime.endpoint);
}

/* ---- state ---- */

/* True if the guard has ended all sessions, because this process did not run. */
static bool take_round(struct dotnet_client *client, uint64_t now_ns)
{
	if (!runtime_client_is_guarded_off(&client->runtime))
		return false;
	runtime_client_advance(&client->runtime, now_ns);
	reason_note_set_known(&client->reason, REASON_READER_STOPPED);
	enter(client, DOTNET_ENDED);
	return true;
}

static bool is_rundown_read(const struct dotnet_client *client)
{
	const struct eventpipe *pipe = client->sessions[DOTNET_STREAM_RUNDOWN].pipe;

	return pipe && eventpipe_is_reading(pipe);
}

/* When the peer last sent something, or the present request was begun. */
static uint64_t heard_ns(const struct dotnet_client *client)
{
	uint64_t latest_ns = runtime_client_heard_ns(&client->runtime);

	return latest_ns > client->begin_ns ? latest_ns : client->begin_ns;
}

/* A reply or a rundown is due, which does not depend on the program's work. */
static bool awaits_peer(const struct dotnet_client *client)
{
	return client->runtime.queue.holder || is_rundown_read(client);
}

static bool is_silent(const struct dotnet_client *client, uint64_t now_ns)
{
	return now_ns >= heard_ns(client) + DOTNET_ANSWER_NS;
}

static void judge_state(struct dotnet_client *client, uint64_t now_ns)
{
	if (client->state == DOTNET_STOPPING)
		return;
	if (awaits_peer(client) && is_silent(client, now_ns)) {
		if (client->state != DOTNET_HUNG)
			reason_note_set_silence(&client->reason,
				dotnet_endpoint_is_stopped(&client->runtime.endpoint));
		enter(client, DOTNET_HUNG);
		return;
	}
	reason_note_end_silence(&client->reason);
	enter(client,
		client->step != STEP_DONE || is_rundown_read(client) ? DOTNET_ASKING : DOTNET_LIVE);
}

static void judge_end(struct dotnet_client *client, uint64_t now_ns)
{
	bool stopping = client->state == DOTNET_STOPPING;

	if (!runtime_client_is_over(&client->runtime) || (!stopping && client->step != STEP_DONE))
		return;
	if (stopping && !client->named && now_ns >= client->stop_ns + DOTNET_STOP_NS &&
		is_silent(client, now_ns))
		reason_note_set_silence(&client->reason,
			dotnet_endpoint_is_stopped(&client->runtime.endpoint));
	if (!stopping && !client->named && client->reason.kind == REASON_KIND_NONE)
		reason_note_set_known(&client->reason, REASON_ENDED_EARLY);
	else if (!stopping && is_opened(client, DOTNET_STREAM_LIVE) &&
		 client->reason.kind == REASON_KIND_NONE &&
		 dotnet_endpoint_is_alive(&client->runtime.endpoint))
		reason_note_set_known(&client->reason, REASON_STREAM_ENDED);
	enter(client, DOTNET_ENDED);
}

/* Time left in which the runtime may still create its socket. */
static uint64_t youth_left(const struct dotnet_target *target)
{
	uint64_t age_ns = dotnet_target_age_ns(target);

	return age_ns < APPEAR_NS ? APPEAR_NS - age_ns : 0;
}

int dotnet_client_new(const struct dotnet_target *target, const struct dotnet_handler *handler,
	uint64_t now_ns, struct dotnet_client **ret_client)
{
	struct dotnet_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->target = *target;
	client->handler = *handler;
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++)
		client->sessions[i] = (struct client_session){ .client = client,
			.stream = (enum dotnet_stream)i };
	client->state = DOTNET_ASKING;
	client->step = STEP_LIVE;
	client->begin_ns = client->now_ns = now_ns;
	client->appear_ns = now_ns + youth_left(target);
	const struct dotnet_endpoint endpoint = { .connect = endpoint_connect,
		.connect_announced = endpoint_connect_announced,
		.state = endpoint_state,
		.context = client };

	runtime_client_init(&client->runtime, &endpoint, &client->target, NULL);
	*ret_client = client;
	return 0;
}

void dotnet_client_guard(struct dotnet_client *client, struct guard *guard)
{
	runtime_client_init(&client->runtime, &client->runtime.endpoint, &client->target, guard);
}

struct dotnet_wishes *dotnet_client_wishes(struct dotnet_client *client)
{
	return &client->requests.wishes;
}

void dotnet_client_end(struct dotnet_client *client, enum dotnet_stream stream, uint64_t now_ns)
{
	if (dotnet_client_streams(client, stream))
		eventpipe_stop(client->sessions[stream].pipe, now_ns);
}

bool dotnet_client_streams(const struct dotnet_client *client, enum dotnet_stream stream)
{
	const struct eventpipe *pipe = client->sessions[stream].pipe;

	return pipe && eventpipe_state(pipe) == EVENTPIPE_STREAMING;
}

bool dotnet_client_has_ended(const struct dotnet_client *client, enum dotnet_stream stream)
{
	const struct eventpipe *pipe = client->sessions[stream].pipe;

	return pipe && eventpipe_state(pipe) == EVENTPIPE_ENDED;
}

void dotnet_client_valued(struct dotnet_client *client, enum dotnet_stream stream)
{
	if (client->sessions[stream].pipe)
		eventpipe_valued(client->sessions[stream].pipe);
}

bool dotnet_client_takes_stacks(const struct dotnet_client *client, uint32_t event_id)
{
	const struct stack_events events = session_requests_stacked(&client->requests);

	return is_opened(client, DOTNET_STREAM_STACKS) && stack_events_has(&events, event_id);
}

bool dotnet_client_is_prepared(const struct dotnet_client *client)
{
	return client->state != DOTNET_ASKING || client->step > STEP_ALLOCATIONS;
}

/* Frees the last session of this kind. False: a request or a session is open. */
static bool begin_step(struct dotnet_client *client, enum client_step step)
{
	struct client_session *session = &client->sessions[step];

	if (client->state >= DOTNET_STOPPING || client->step != STEP_DONE ||
		client->runtime.queue.holder ||
		(session->pipe && eventpipe_state(session->pipe) != EVENTPIPE_ENDED))
		return false;
	runtime_client_close(&client->runtime, &session->pipe);
	client->step = step;
	client->alone = true;
	enter(client, DOTNET_ASKING);
	return true;
}

bool dotnet_client_rundown(struct dotnet_client *client)
{
	if (!begin_step(client, STEP_RUNDOWN))
		return false;
	client->named = false;
	return true;
}

bool dotnet_client_methods(struct dotnet_client *client)
{
	return begin_step(client, STEP_METHODS);
}

bool dotnet_client_open(struct dotnet_client *client, enum dotnet_stream stream)
{
	assert(stream == DOTNET_STREAM_EXCEPTIONS || stream == DOTNET_STREAM_ALLOCATIONS ||
		stream == DOTNET_STREAM_COUNTS || stream == DOTNET_STREAM_SETTLE);
	return begin_step(client, (enum client_step)stream);
}

void dotnet_client_await(const struct dotnet_client *client, struct poll_set *set)
{
	if (client->state == DOTNET_ENDED)
		return;
	/* a session is to be opened, or the next step enters DOTNET_ENDED */
	if (may_open(client) ||
		(client->state == DOTNET_STOPPING && runtime_client_is_over(&client->runtime)))
		poll_set_wake(set, 0);
	if (client->state < DOTNET_STOPPING && client->state != DOTNET_HUNG && awaits_peer(client))
		poll_set_wake(set, heard_ns(client) + DOTNET_ANSWER_NS);
	runtime_client_await(&client->runtime, set);
}

static uint64_t bytes_of(const struct dotnet_client *client, enum dotnet_stream stream)
{
	const struct eventpipe *pipe = client->sessions[stream].pipe;

	return pipe ? eventpipe_bytes(pipe) : 0;
}

/* A stream of events with little to say is read every REST_NS. */
static void rest(const struct dotnet_client *client, enum dotnet_stream stream, uint64_t before,
	uint64_t now_ns)
{
	struct eventpipe *pipe = client->sessions[stream].pipe;
	uint64_t taken = bytes_of(client, stream) - before;
	bool brief = pipe && client->requests.wishes.from_start &&
		     now_ns < eventpipe_asked_ns(pipe) + BRIEF_NS;

	if (taken && taken <= REST_BYTES && !client->behind && !brief)
		eventpipe_rest(pipe, now_ns + REST_NS);
}

static bool is_behind(const struct dotnet_client *client, enum dotnet_stream stream)
{
	return client->sessions[stream].pipe && eventpipe_behind(client->sessions[stream].pipe);
}

enum dotnet_state dotnet_client_advance(struct dotnet_client *client, uint64_t now_ns)
{
	uint64_t before[DOTNET_STREAM_COUNTS]; /* of the streams that carry events for the caller */

	for (unsigned i = 0; i < DOTNET_STREAM_COUNTS; i++)
		before[i] = bytes_of(client, (enum dotnet_stream)i);
	client->now_ns = now_ns;
	if (client->state == DOTNET_ENDED || take_round(client, now_ns))
		return client->state;
	runtime_client_advance(&client->runtime, now_ns);
	take_step(client);
	if (take_round(client, now_ns))
		return client->state;
	if (may_open(client)) {
		open_next(client, now_ns);
		take_step(client);
	}
	if (take_round(client, now_ns))
		return client->state;
	client->behind = is_behind(client, DOTNET_STREAM_SAMPLES);
	for (unsigned i = 0; i < DOTNET_STREAM_COUNTS; i++)
		client->behind |= is_behind(client, (enum dotnet_stream)i);
	for (unsigned i = 0; i < DOTNET_STREAM_COUNTS; i++)
		rest(client, (enum dotnet_stream)i, before[i], now_ns);
	take_rundown(client);
	judge_state(client, now_ns);
	judge_end(client, now_ns);
	return client->state;
}

void dotnet_client_stop(struct dotnet_client *client, uint64_t now_ns)
{
	if (client->state >= DOTNET_STOPPING)
		return;
	enter(client, DOTNET_STOPPING);
	client->stop_ns = now_ns;
	runtime_client_stop(&client->runtime, now_ns);
	if (client->named || client->reason.kind != REASON_KIND_NONE || client->step == STEP_DONE)
		return;
	if (dotnet_endpoint_is_stopped(&client->runtime.endpoint))
		reason_note_set_known(&client->reason, REASON_STOPPED);
	else if (!client->connected && dotnet_endpoint_is_alive(&client->runtime.endpoint) &&
		 (client->refused == -ENOENT || !dotnet_port_exists(&client->target)))
		reason_note_set_known(&client->reason, REASON_NO_SOCKET_YET);
	else
		reason_note_set_known(&client->reason, REASON_END_BEFORE_NAMES);
}

void dotnet_client_free(struct dotnet_client *client)
{
	if (!client)
		return;
	runtime_client_done(&client->runtime);
	free(client);
}

enum dotnet_state dotnet_client_state(const struct dotnet_client *client)
{
	return client->state;
}

uint64_t dotnet_client_asked_ns(const struct dotnet_client *client, enum dotnet_stream stream)
{
	return is_opened(client, stream) ? eventpipe_asked_ns(client->sessions[stream].pipe) : 0;
}

bool dotnet_client_behind(const struct dotnet_client *client)
{
	return client->behind;
}

bool dotnet_client_named(const struct dotnet_client *client)
{
	return client->named;
}

const char *dotnet_client_session(const struct dotnet_client *client, enum dotnet_stream stream)
{
	return *client->sessions[stream].text ? client->sessions[stream].text : NULL;
}

const char *dotnet_client_reason(const struct dotnet_client *client)
{
	return client->reason.text;
}

enum reason_kind dotnet_client_reason_kind(const struct dotnet_client *client)
{
	return client->reason.kind;
}

const struct ipc_process_info *dotnet_client_info(const struct dotnet_client *client)
{
	const struct eventpipe *live = client->sessions[DOTNET_STREAM_LIVE].pipe;

	return live ? eventpipe_info(live) : NULL;
}
