/*
 * See eventpipe.h. One exchange is under way at a time: ProcessInfo, CollectTracing, and StopTracing
 * once it is due. The connection of CollectTracing becomes the stream, which is read meanwhile.
 *
 * Invariant: before the descriptor of a session with a known id is closed, StopTracing was sent or
 * the stream has ended.
 */
#include "dotnet/eventpipe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "dotnet/eventpipe_state.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"

#define READ_SIZE    (64u << 10)
#define READ_MAX     (1u << 20) /* in one turn, so that one peer does not starve the others */
#define STEPS_MAX    64u        /* of one turn */
#define FREE_WAIT_MS 100

struct eventpipe {
	struct dotnet_endpoint endpoint;
	struct eventpipe_options options;
	struct eventpipe_handler handler;
	struct exchange exchange;
	enum eventpipe_step step;
	enum eventpipe_phase phase;
	enum session_state session;
	enum stream_state stream;
	enum ipc_command info_command;
	enum ipc_command collect_command;
	int fd; /* the stream; -1: none, or ended */
	uint32_t guard_key;
	uint32_t guard_rounds; /* that were over when this began */
	uint64_t session_id;
	uint64_t now_ns;         /* of the last turn */
	uint64_t asked_ns;       /* when the present or last CollectTracing was begun */
	uint64_t opened_ns;      /* when its answer had come */
	uint64_t read_ns;        /* when bytes of the stream, or its end, were last read */
	uint64_t rest_ns;        /* until then the stream is not waited for */
	uint64_t progress_ns;    /* of the last EVENTPIPE_PROGRESS_BYTES after the end began */
	uint64_t progress_bytes; /* of the stream at that time */
	uint64_t end_ns;         /* of the stop or the handler's refusal; 0: not yet */
	uint64_t end_bytes;      /* of the stream at that time */
	uint64_t bytes;
	bool is_refused;
	bool behind;
	bool counts; /* counters are requested, whose first values have not come */
	bool hung;   /* the peer does not answer; it may in every phase */
	bool has_info;
	struct ipc_process_info info;
	struct reason_note reason;
};

static void phase_enter(struct eventpipe *pipe, enum eventpipe_phase phase)
{
	assert(phase > pipe->phase);
	pipe->phase = phase;
}

static void session_enter(struct eventpipe *pipe, enum session_state next)
{
	assert(session_state_may_follow(pipe->session, next));
	pipe->session = next;
}

static bool session_is_over(const struct eventpipe *pipe)
{
	return session_state_is_over(pipe->session);
}

static void want_stop(struct eventpipe *pipe)
{
	if (pipe->session == SESSION_OPEN)
		session_enter(pipe, SESSION_STOP_DUE);
}

/* No StopTracing follows. */
static void give_session_up(struct eventpipe *pipe)
{
	if (pipe->session != SESSION_NONE && !session_is_over(pipe))
		session_enter(pipe, SESSION_OVER);
}

static bool is_stop(const struct eventpipe *pipe)
{
	return pipe->exchange.state != EXCHANGE_NONE && pipe->exchange.command == IPC_STOP_TRACING;
}

/* Once a byte is sent the session may exist; only the reply has the id to stop it by. */
static bool may_have_session(const struct eventpipe *pipe)
{
	return !exchange_is_over(&pipe->exchange) && ipc_is_collect(pipe->exchange.command) &&
	       exchange_is_sent(&pipe->exchange);
}

/* The arguments that set the interval of EventCounters, and of Meters. */
static bool asks_for_values(const struct ipc_provider *provider)
{
	return provider->arguments && (strstr(provider->arguments, "EventCounterIntervalSec=") ||
					      strstr(provider->arguments, "RefreshInterval="));
}

int eventpipe_new(const struct dotnet_endpoint *endpoint, const struct eventpipe_options *options,
	const struct eventpipe_handler *handler, uint64_t now_ns, struct eventpipe **ret_pipe)
{
	struct eventpipe *pipe = calloc(1, sizeof(*pipe));
	const struct ipc_request request = {
		.rundown_keywords = options->rundown_keywords,
		.stacks = !options->no_stacks,
		.providers = options->providers,
		.provider_count = options->provider_count,
	};

	if (!pipe)
		return -ENOMEM;
	pipe->endpoint = *endpoint;
	pipe->options = *options;
	pipe->handler = *handler;
	pipe->step = options->no_info ? STEP_COLLECT : STEP_INFO;
	pipe->info_command = IPC_PROCESS_INFO_3;
	pipe->collect_command =
		options->collect_command ? options->collect_command : ipc_collect_command(&request);
	pipe->fd = -1;
	for (uint32_t i = 0; i < options->provider_count; i++)
		pipe->counts |= asks_for_values(&options->providers[i]);
	pipe->now_ns = pipe->read_ns = now_ns;
	pipe->guard_rounds = guard_rounds(options->guard);
	*ret_pipe = pipe;
	return 0;
}

/* ---- requests ---- */

static bool may_begin(const struct eventpipe *pipe)
{
	const struct eventpipe_queue *queue = pipe->options.queue;

	return pipe->exchange.state == EXCHANGE_NONE && (!queue || !queue->holder);
}

/* Frees the exchange, and the queue for the next session. */
static void end_exchange(struct eventpipe *pipe)
{
	struct eventpipe_queue *queue = pipe->options.queue;

	exchange_done(&pipe->exchange);
	if (queue && queue->holder == pipe)
		queue->holder = NULL;
}

/* A stop that is due has to wait for the first values of counters. */
static bool is_stop_held(const struct eventpipe *pipe)
{
	return pipe->session == SESSION_STOP_DUE && pipe->counts &&
	       pipe->now_ns < pipe->opened_ns + EVENTPIPE_VALUES_NS;
}

/* A request is due. */
static bool has_next(const struct eventpipe *pipe)
{
	return pipe->session == SESSION_STOP_DUE ||
	       (pipe->phase == PHASE_RUN && pipe->step != STEP_DONE);
}

static void begin(struct eventpipe *pipe, const struct ipc_request *request, uint64_t now_ns)
{
	struct diag diag = { 0 };

	if (exchange_begin(&pipe->exchange, &pipe->endpoint, request, now_ns,
		    pipe->options.appear_ns, &diag) < 0) {
		/* No memory, or invalid providers: nothing was sent. */
		reason_note_set(&pipe->reason, REASON_KIND_ERROR, diag.text);
		pipe->step = STEP_DONE;
		if (request->command == IPC_STOP_TRACING)
			give_session_up(pipe);
		return;
	}
	pipe->exchange.guard = pipe->options.guard;
	pipe->exchange.guard_target = pipe->options.target;
	if (pipe->options.queue)
		pipe->options.queue->holder = pipe;
}

static void begin_stop(struct eventpipe *pipe, uint64_t now_ns)
{
	const struct ipc_request request = {
		.command = IPC_STOP_TRACING,
		.session_id = pipe->session_id,
	};

	begin(pipe, &request, now_ns);
}

/* The providers without lists of excluded events. NULL: no memory. */
static struct ipc_provider *without_filters(const struct eventpipe_options *options)
{
	struct ipc_provider *providers = calloc(options->provider_count, sizeof(*providers));

	for (uint32_t i = 0; providers && i < options->provider_count; i++) {
		providers[i] = options->providers[i];
		if (!providers[i].only_event_ids)
			providers[i].event_id_count = 0;
	}
	return providers;
}

static void begin_collect(struct eventpipe *pipe, uint64_t now_ns)
{
	bool filters =
		pipe->collect_command == IPC_COLLECT_TRACING_5 || !pipe->options.filters_optional;
	struct ipc_provider *plain = filters ? NULL : without_filters(&pipe->options);
	const struct ipc_request request = {
		.command = pipe->collect_command,
		.buffer_mb = pipe->options.buffer_mb,
		.rundown_keywords = pipe->options.rundown_keywords,
		.stacks = !pipe->options.no_stacks,
		/* without memory the request cannot be encoded either */
		.providers = plain ? plain : pipe->options.providers,
		.provider_count = pipe->options.provider_count,
	};

	pipe->asked_ns = now_ns;
	begin(pipe, &request, now_ns);
	free(plain);
}

/* True when an exchange was begun. */
static bool start_next(struct eventpipe *pipe, uint64_t now_ns)
{
	const struct ipc_request info = { .command = pipe->info_command };

	if (!may_begin(pipe) || !has_next(pipe) || is_stop_held(pipe))
		return false;
	if (pipe->session == SESSION_STOP_DUE)
		begin_stop(pipe, now_ns);
	else if (pipe->step == STEP_INFO)
		begin(pipe, &info, now_ns);
	else
		begin_collect(pipe, now_ns);
	return pipe->exchange.state != EXCHANGE_NONE;
}

/* ---- replies ---- */

static void take_failure(struct eventpipe *pipe)
{
	const struct exchange *exchange = &pipe->exchange;

	if (exchange->command == IPC_STOP_TRACING) {
		/* The request was sent, or the peer cannot be reached. */
		give_session_up(pipe);
		return;
	}
	pipe->step = STEP_DONE;
	if (!dotnet_endpoint_is_alive(&pipe->endpoint))
		reason_note_set_known(&pipe->reason, REASON_ENDED_UNTRACED);
	else
		reason_note_set(&pipe->reason, reason_kind_of_error(exchange->failure),
			exchange->text);
}

static void take_info(struct eventpipe *pipe)
{
	const struct exchange *exchange = &pipe->exchange;
	struct diag diag = { 0 };

	if (!exchange->ok && exchange->error == IPC_ERROR_UNKNOWN_COMMAND &&
		pipe->info_command != IPC_PROCESS_INFO) {
		pipe->info_command = pipe->info_command == IPC_PROCESS_INFO_3 ? IPC_PROCESS_INFO_2
									      : IPC_PROCESS_INFO;
		return;
	}
	/* Process info is optional: a command line above 64 KiB has no reply. */
	pipe->step = STEP_COLLECT;
	if (!exchange->ok)
		return;
	int result = ipc_decode_process_info(exchange->command, exchange->payload,
		exchange->payload_size, &pipe->info, &diag);

	pipe->has_info = result == 0;
	if (result < 0 && pipe->options.strict_info) {
		pipe->step = STEP_DONE;
		reason_note_set(&pipe->reason, reason_kind_of_error(result), diag.text);
	}
}

static void refuse(struct eventpipe *pipe, uint32_t error)
{
	char text[128];

	pipe->step = STEP_DONE;
	pipe->is_refused = true;
	if (error == IPC_ERROR_UNKNOWN_COMMAND && pipe->collect_command == IPC_COLLECT_TRACING_5) {
		reason_note_set_known(&pipe->reason, REASON_NO_EVENT_IDS);
		return;
	}
	text_set(text, "%s (0x%08x)", ipc_error_words(error), error);
	reason_note_set(&pipe->reason,
		error == IPC_ERROR_FAIL ? REASON_KIND_SLOTS : REASON_KIND_ERROR, text);
}

/* The command to try if the runtime does not know the present one; 0: none. */
static enum ipc_command older_command(const struct eventpipe *pipe)
{
	if (pipe->collect_command == IPC_COLLECT_TRACING_5)
		return pipe->options.filters_optional ? IPC_COLLECT_TRACING_4 : (enum ipc_command)0;
	return ipc_collect_fallback(pipe->collect_command);
}

static void take_collect(struct eventpipe *pipe, uint64_t now_ns)
{
	struct exchange *exchange = &pipe->exchange;
	struct diag diag = { 0 };

	if (!exchange->ok) {
		enum ipc_command older = older_command(pipe);
		if (exchange->error == IPC_ERROR_UNKNOWN_COMMAND && older)
			pipe->collect_command = older;
		else
			refuse(pipe, exchange->error);
		return;
	}
	pipe->step = STEP_DONE;
	if (ipc_decode_session(exchange->payload, exchange->payload_size, &pipe->session_id,
		    &diag) < 0) {
		reason_note_set(&pipe->reason, REASON_KIND_LIED, diag.text);
		return;
	}
	pipe->fd = exchange->fd;
	exchange->fd = -1;
	session_enter(pipe, SESSION_OPEN);
	if (pipe->stream == STREAM_NONE)
		pipe->stream = STREAM_READ;
	pipe->opened_ns = now_ns;
	pipe->read_ns = now_ns;
	if (pipe->options.stop_at_once || pipe->phase != PHASE_RUN)
		want_stop(pipe);
	pipe->guard_key = exchange->guard_key;
	exchange->guard_key = 0;
	guard_session(pipe->options.guard, pipe->guard_key, pipe->session_id);
}

static bool advance_exchange(struct eventpipe *pipe, uint64_t now_ns)
{
	struct exchange *exchange = &pipe->exchange;

	if (exchange->state == EXCHANGE_NONE)
		return false;
	switch (exchange_advance(exchange, now_ns)) {
	case EXCHANGE_FAILED:
		take_failure(pipe);
		break;
	case EXCHANGE_ANSWERED:
		if (ipc_is_collect(exchange->command)) {
			take_collect(pipe, now_ns);
		} else if (exchange->command == IPC_STOP_TRACING) {
			/* A success is sent after the whole stream was written. */
			if (exchange->ok && !session_is_over(pipe))
				session_enter(pipe, SESSION_ACKNOWLEDGED);
			give_session_up(pipe);
		} else {
			take_info(pipe);
		}
		break;
	default:
		if (is_stop(pipe) && exchange->sent == exchange->out.len &&
			pipe->session == SESSION_STOP_DUE) {
			guard_session(pipe->options.guard, pipe->guard_key, 0);
			session_enter(pipe, SESSION_STOP_SENT);
			/* until now the program sent as before */
			pipe->end_bytes = pipe->bytes;
		}
		return false;
	}
	end_exchange(pipe);
	return true;
}

/* ---- the stream ---- */

static void begin_end(struct eventpipe *pipe, uint64_t now_ns)
{
	if (pipe->end_ns)
		return;
	pipe->end_ns = now_ns;
	pipe->end_bytes = pipe->progress_bytes = pipe->bytes;
	pipe->progress_ns = now_ns;
}

static void tell(struct eventpipe *pipe, const uint8_t *data, size_t size)
{
	if (pipe->handler.bytes(pipe->handler.user, data, size) >= 0)
		return;
	if (pipe->stream == STREAM_READ)
		pipe->stream = STREAM_REFUSED;
	want_stop(pipe);
	begin_end(pipe, pipe->now_ns);
	if (!*pipe->reason.text)
		reason_note_set_known(&pipe->reason, REASON_BAD_STREAM);
}

/* `end`: what it is if the handler took it up to here. */
static void end_stream(struct eventpipe *pipe, enum stream_state end)
{
	guard_remove(pipe->options.guard, pipe->guard_key);
	pipe->guard_key = 0;
	if (pipe->fd < 0)
		return;
	close(pipe->fd);
	pipe->fd = -1;
	if (pipe->stream == STREAM_REFUSED)
		return;
	pipe->stream = end;
	tell(pipe, NULL, 0);
}

/* True if the guard ended the session. Bytes after its round may have a gap, so none are read. */
static bool is_guarded_off(struct eventpipe *pipe)
{
	if (pipe->phase == PHASE_ENDED || guard_rounds(pipe->options.guard) == pipe->guard_rounds)
		return pipe->phase == PHASE_ENDED;
	end_exchange(pipe);
	phase_enter(pipe, PHASE_ENDED);
	give_session_up(pipe);
	reason_note_set_known(&pipe->reason, REASON_READER_STOPPED);
	end_stream(pipe, STREAM_CUT);
	return true;
}

/* True when there is more to read now. */
static bool read_stream(struct eventpipe *pipe, size_t *budget, uint64_t now_ns)
{
	uint8_t buffer[READ_SIZE];

	if (pipe->fd < 0)
		return false;
	pipe->behind = !*budget;
	if (pipe->behind)
		return false;
	uint8_t *to = pipe->handler.room && pipe->stream == STREAM_READ
			      ? pipe->handler.room(pipe->handler.user, READ_SIZE)
			      : buffer;
	if (!to)
		to = buffer; /* the handler deals with the lack of memory */
	ssize_t n = recv(pipe->fd, to, READ_SIZE, 0);
	int error = errno;
	if (is_guarded_off(pipe))
		return false;
	if (n < 0 && (error == EAGAIN || error == EINTR))
		return false;
	if (n > 0)
		pipe->bytes += (uint64_t)n;
	pipe->read_ns = now_ns;
	if (pipe->end_ns && pipe->bytes >= pipe->progress_bytes + EVENTPIPE_PROGRESS_BYTES) {
		pipe->progress_ns = now_ns;
		pipe->progress_bytes = pipe->bytes;
	}
	if (n > 0) {
		*budget = *budget > (size_t)n ? *budget - (size_t)n : 0;
		if (pipe->stream == STREAM_READ)
			tell(pipe, to, (size_t)n);
		return n == READ_SIZE; /* less: the socket is empty */
	}
	/* After the stream's end the id, an address, may be another session's: no StopTracing. */
	if (n < 0) {
		want_stop(pipe);
		reason_note_set_known(&pipe->reason, REASON_BROKE_OFF);
	} else if (!is_stop(pipe)) {
		give_session_up(
			pipe); /* it ended by its exit, or by another program's StopTracing */
	}
	end_stream(pipe, n == 0 ? STREAM_WHOLE : STREAM_CUT);
	return true;
}

/* ---- state ---- */

static void judge_silence(struct eventpipe *pipe, uint64_t now_ns)
{
	const struct exchange *exchange = &pipe->exchange;
	bool silent = !exchange_is_over(exchange) && !is_stop(pipe) &&
		      now_ns >= exchange->progress_ns + EVENTPIPE_ANSWER_NS;

	if (silent && !pipe->hung) {
		pipe->hung = true;
		reason_note_set_silence(&pipe->reason, dotnet_endpoint_is_stopped(&pipe->endpoint));
	} else if (!silent && pipe->hung) {
		pipe->hung = false;
		reason_note_end_silence(&pipe->reason);
	}
}

/* Deadline of an ending session. A stream that cannot be decoded has no rundown to wait for. */
static uint64_t patience_end_ns(const struct eventpipe *pipe)
{
	uint64_t silence_ns = pipe->progress_ns + EVENTPIPE_SILENCE_NS;
	uint64_t whole_ns =
		pipe->end_ns + (pipe->stream == STREAM_REFUSED          ? EVENTPIPE_SILENCE_NS
				       : pipe->options.end_limit_ns     ? pipe->options.end_limit_ns
				       : pipe->options.rundown_keywords ? EVENTPIPE_RUNDOWN_NS
									: EVENTPIPE_END_NS);

	return silence_ns < whole_ns ? silence_ns : whole_ns;
}

/* More than buffer and rundown can hold; x 2, as blocks in the buffer may be half full. */
static bool sends_too_much(const struct eventpipe *pipe)
{
	uint64_t buffered = (uint64_t)pipe->options.buffer_mb << 21;

	return pipe->end_ns &&
	       (pipe->session >= SESSION_STOP_SENT || pipe->stream == STREAM_REFUSED) &&
	       pipe->bytes - pipe->end_bytes >
		       buffered + (pipe->options.rundown_keywords ? EVENTPIPE_RUNDOWN_BYTES
								  : EVENTPIPE_PROGRESS_BYTES);
}

static bool is_ending(const struct eventpipe *pipe)
{
	return pipe->end_ns != 0;
}

/* Sends StopTracing without waiting. A new connection takes its 28 bytes immediately. */
static void send_stop(struct eventpipe *pipe)
{
	const struct ipc_request request = {
		.command = IPC_STOP_TRACING,
		.session_id = pipe->session_id,
	};
	struct bytes out = { 0 };

	if (ipc_encode(&request, &out, NULL) == 0) {
		int fd = pipe->endpoint.connect(pipe->endpoint.context, NULL);
		if (fd >= 0) {
			/* If it fails, the next event that cannot be written ends the session. */
			(void)send(fd, out.data, out.len, MSG_NOSIGNAL);
			close(fd);
		}
	}
	bytes_done(&out);
	give_session_up(pipe);
}

/* Gives up: sends a due StopTracing, and waits for nothing. */
static void let_go(struct eventpipe *pipe)
{
	bool asked = is_stop(pipe) && pipe->exchange.sent == pipe->exchange.out.len;

	if (pipe->session != SESSION_NONE && !session_is_over(pipe) && !asked)
		send_stop(pipe);
	end_exchange(pipe);
	give_session_up(pipe);
	end_stream(pipe, STREAM_CUT);
}

static void judge_end(struct eventpipe *pipe, uint64_t now_ns)
{
	bool open = pipe->exchange.state != EXCHANGE_NONE || pipe->fd >= 0;
	bool over = pipe->phase != PHASE_RUN || pipe->step == STEP_DONE;

	if (open && is_ending(pipe) && (now_ns >= patience_end_ns(pipe) || sends_too_much(pipe))) {
		if (!*pipe->reason.text && sends_too_much(pipe)) {
			reason_note_set_known(&pipe->reason, REASON_SENDS_TOO_MUCH);
		} else if (!*pipe->reason.text) {
			char text[64];
			text_set(text, "it did not end the session within %llu s",
				(unsigned long long)((patience_end_ns(pipe) - pipe->end_ns) /
						     1000000000u));
			reason_note_set(&pipe->reason, REASON_KIND_CUT_SHORT, text);
		}
		let_go(pipe);
		open = false;
	}
	if (!open && over && (pipe->session == SESSION_NONE || session_is_over(pipe)))
		phase_enter(pipe, PHASE_ENDED);
}

enum eventpipe_state eventpipe_advance(struct eventpipe *pipe, uint64_t now_ns)
{
	size_t budget = READ_MAX;
	pipe->now_ns = now_ns;
	bool again = !is_guarded_off(pipe);

	pipe->behind = false;
	for (unsigned i = 0; again && i < STEPS_MAX; i++) {
		again = advance_exchange(pipe, now_ns);
		again |= read_stream(pipe, &budget, now_ns);
		again = pipe->phase != PHASE_ENDED && (start_next(pipe, now_ns) || again);
	}
	if (pipe->phase != PHASE_ENDED) {
		judge_silence(pipe, now_ns);
		judge_end(pipe, now_ns);
	}
	return eventpipe_state(pipe);
}

void eventpipe_stop(struct eventpipe *pipe, uint64_t now_ns)
{
	if (pipe->phase != PHASE_RUN)
		return;
	phase_enter(pipe, PHASE_STOPPING);
	want_stop(pipe);
	begin_end(pipe, now_ns);
	/* A stop continues, and a session that may exist is awaited; the rest is cancelled. */
	if (!is_stop(pipe) && !may_have_session(pipe)) {
		if (pipe->session == SESSION_NONE && !*pipe->reason.text)
			reason_note_set_known(&pipe->reason, REASON_END_BEFORE_OPEN);
		end_exchange(pipe);
	}
}

void eventpipe_valued(struct eventpipe *pipe)
{
	pipe->counts = false;
}

void eventpipe_rest(struct eventpipe *pipe, uint64_t until_ns)
{
	pipe->rest_ns = until_ns;
}

static bool rests(const struct eventpipe *pipe)
{
	return pipe->phase == PHASE_RUN && pipe->now_ns < pipe->rest_ns;
}

void eventpipe_await(const struct eventpipe *pipe, struct poll_set *set)
{
	const struct exchange *exchange = &pipe->exchange;

	if (pipe->phase == PHASE_ENDED)
		return;
	exchange_await(exchange, set);
	if (pipe->fd >= 0 && !rests(pipe))
		(void)poll_set_add(set, pipe->fd, POLLIN);
	else if (pipe->fd >= 0)
		poll_set_wake(set, pipe->rest_ns);
	if (is_stop_held(pipe)) {
		poll_set_wake(set, pipe->opened_ns + EVENTPIPE_VALUES_NS);
	} else if (exchange->state == EXCHANGE_NONE) {
		if (has_next(pipe) ? may_begin(pipe) : pipe->fd < 0)
			/* a request or the end is due */
			poll_set_wake(set, 0);
	} else if (!pipe->hung && !is_stop(pipe)) {
		poll_set_wake(set, exchange->progress_ns + EVENTPIPE_ANSWER_NS);
	}
	if (is_ending(pipe))
		poll_set_wake(set, patience_end_ns(pipe));
}

/* Waits for the id of a session that is being opened, so that it can be stopped. */
static void await_session(struct eventpipe *pipe)
{
	struct poll_set set = { 0 };

	for (int waited_ms = 0; may_have_session(pipe) && waited_ms < FREE_WAIT_MS;
		waited_ms += 10) {
		poll_set_begin(&set, clock_monotonic_ns() + UINT64_C(10000000));
		exchange_await(&pipe->exchange, &set);
		if (!set.fds.count)
			break;
		(void)poll_set_wait(&set);
		(void)advance_exchange(pipe, pipe->exchange.progress_ns);
	}
	poll_set_done(&set);
}

void eventpipe_free(struct eventpipe *pipe)
{
	if (!pipe)
		return;
	/* The handler must not be called any more, not even for a session that opens now. */
	pipe->stream = STREAM_REFUSED;
	if (!is_guarded_off(pipe)) {
		await_session(pipe);
		let_go(pipe);
	}
	end_exchange(pipe);
	end_stream(pipe, STREAM_CUT);
	if (pipe->has_info)
		ipc_process_info_done(&pipe->info);
	free(pipe);
}

enum eventpipe_state eventpipe_state(const struct eventpipe *pipe)
{
	if (pipe->phase == PHASE_ENDED)
		return EVENTPIPE_ENDED;
	if (pipe->phase == PHASE_STOPPING)
		return EVENTPIPE_STOPPING;
	if (pipe->session != SESSION_NONE)
		return EVENTPIPE_STREAMING;
	return pipe->hung ? EVENTPIPE_HUNG : EVENTPIPE_OPENING;
}

bool eventpipe_whole(const struct eventpipe *pipe)
{
	return pipe->stream == STREAM_WHOLE;
}

uint64_t eventpipe_opened_ns(const struct eventpipe *pipe)
{
	return pipe->opened_ns;
}

uint64_t eventpipe_asked_ns(const struct eventpipe *pipe)
{
	return pipe->asked_ns;
}

enum ipc_command eventpipe_collect_command(const struct eventpipe *pipe)
{
	return pipe->collect_command;
}

bool eventpipe_is_refused(const struct eventpipe *pipe)
{
	return pipe->is_refused;
}

bool eventpipe_is_asking(const struct eventpipe *pipe)
{
	return pipe->phase != PHASE_ENDED &&
	       (pipe->exchange.state != EXCHANGE_NONE || has_next(pipe));
}

bool eventpipe_is_reading(const struct eventpipe *pipe)
{
	return pipe->fd >= 0;
}

bool eventpipe_is_acknowledged(const struct eventpipe *pipe)
{
	return pipe->session == SESSION_ACKNOWLEDGED;
}

uint64_t eventpipe_heard_ns(const struct eventpipe *pipe)
{
	bool asking = pipe->exchange.state != EXCHANGE_NONE;

	return asking && pipe->exchange.progress_ns > pipe->read_ns ? pipe->exchange.progress_ns
								    : pipe->read_ns;
}

bool eventpipe_behind(const struct eventpipe *pipe)
{
	return pipe->behind && pipe->fd >= 0;
}

uint64_t eventpipe_bytes(const struct eventpipe *pipe)
{
	return pipe->bytes;
}

const struct reason_note *eventpipe_reason(const struct eventpipe *pipe)
{
	return &pipe->reason;
}

const struct ipc_process_info *eventpipe_info(const struct eventpipe *pipe)
{
	return pipe->has_info ? &pipe->info : NULL;
}
