/*
 * See runtime_client.h.
 *
 * One exchange (a request and its reply, on a connection of its own) is under way at a time: the runtime serves one request at a time anyway.
 * The connection of a successful CollectTracing becomes the stream. What comes next is decided in one place, start_next(): stops that
 * are due go before everything else.
 *
 * Invariants:
 * - a stream whose session id is known has `stop_due` or `stopped` set before its descriptor is closed, unless the peer closed it;
 * - streams are read whatever the exchange is doing;
 * - `reason` is about missing names, so a target that ends after its names are known leaves it empty.
 */
#include "dotnet/runtime_client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/providers.h"
#include "trace/clr.h"

#define MS_NS UINT64_C(1000000)

/* A process that has just started gets its socket some 20 to 50 ms later; a slow machine takes longer. */
#define APPEAR_NS      (5000 * MS_NS)
#define RETRY_NS       (50 * MS_NS)
#define FREE_WAIT_MS   100

#define READ_SIZE      (64u << 10)
#define READ_MAX       (1u << 20)   /* of one stream in one turn: a loud peer does not starve the others */
#define STEPS_MAX      64u          /* of one turn */
#define REST_NS        UINT64_C(50000000) /* a runtime sends what it has some 80 times a second: waking for each costs more than what is in it */
#define BRIEF_NS        UINT64_C(2000000000) /* a program that was just started may end at any time, and waits then until its methods were read */
#define REST_BYTES     (64u << 10)  /* a stream that brings more in one turn is read as it comes: the socket holds some 200 KB */

#define BUFFER_MB      16u          /* in the target, taken on demand */
#define LIVE_KEYWORDS  (CLR_KEYWORD_LOADER | CLR_KEYWORD_JIT | CLR_KEYWORD_NGEN)
#define UNTOLD_LEVEL   4u           /* freed methods, modules */
#define METHODS_LEVEL  5u           /* method loads come at no lower one */
#define RUNDOWN_KEYWORDS (CLR_KEYWORD_LOADER | CLR_KEYWORD_JIT)
#define SAMPLE_LEVEL   4u
#define PROVIDERS_MAX  64u
#define DENIED_MAX     64u

/*
 * What the runtime's own provider tells at level 5 only, and methods need not: allocations, finalized and pinned objects, joins of a server's collector, each
 * work item of the thread pool, the begin of a compilation and its memory, IL maps.
 */
static const uint32_t verbose_ids[] = { 10, 29, 33, 56, 60, 61, 62, 63, 64, 65, 145, 146, 190, 203 };

enum phase {
	PHASE_IDLE,
	PHASE_WAITING,  /* for the next try at retry_ns */
	PHASE_SENDING,
	PHASE_HEADER,
	PHASE_PAYLOAD,
};

/* What to ask for next, apart from stops. */
enum step {
	STEP_INFO,
	STEP_LIVE,
	STEP_SAMPLES,
	STEP_RUNDOWN,
	STEP_METHODS,
	STEP_DONE,
};

struct exchange {
	enum phase phase;
	enum ipc_command command;
	enum dotnet_stream stream; /* of collect and stop */
	int fd;
	uint32_t guard_key;        /* of collect, while no stream has taken it over */
	bool ok;                   /* the reply is a success */
	uint64_t begin_ns;
	uint64_t retry_ns;
	struct bytes out;
	size_t sent;
	uint8_t header[IPC_HEADER_SIZE];
	uint8_t *payload;
	size_t payload_size;
	size_t got;                /* of the header, then of the payload */
};

struct stream {
	int fd;                    /* -1: none, or ended */
	uint32_t guard_key;
	uint64_t session_id;
	uint64_t asked_ns;
	bool opened;
	bool stop_due;
	bool stopped;              /* it was asked to stop, or there is nobody left to ask */
	bool acknowledged;         /* the stop */
	bool whole;                /* the handler was told of its end, which the peer made */
	bool deaf;                 /* the handler wants no more of it */
	uint64_t deaf_ns;          /* since when */
};

struct dotnet_client {
	struct dotnet_target target;
	struct dotnet_handler handler;
	struct guard *guard;       /* NULL: none */
	uint32_t guard_rounds;     /* that were over when this client began */
	struct exchange exchange;
	struct stream streams[DOTNET_STREAM_COUNT];
	const struct ipc_provider *wanted; /* beside methods */
	uint32_t wanted_count;
	bool sampled;              /* the runtime's own sampler is wanted */
	bool untold;               /* methods that come need not be told of */
	bool from_start;           /* the live session is opened before the first method is compiled */
	enum step step;
	enum ipc_command info_command;
	enum ipc_command collect_command;
	uint64_t appear_ns;        /* until when its socket may still come */
	uint64_t progress_ns;      /* when the peer last did something */
	uint64_t stop_ns;          /* when the end was asked for */
	bool stopping;
	bool ended;
	bool hung;
	bool named;
	bool behind;               /* there was more to read than was taken */
	bool has_info;
	struct ipc_process_info info;
	int refused;               /* what the last try to connect came to; 0 a connection */
	uint32_t denied[DENIED_MAX]; /* events of the runtime's own provider */
	uint64_t rest_ns;          /* the live stream is not waited for until then */
	uint64_t now_ns;           /* of the last advance */
	char sessions[DOTNET_STREAM_COUNT][512];
	const char *reason_code;
	char reason[640];          /* as long as a diagnosis */
};

static void set_reason(struct dotnet_client *client, const char *code, const char *text)
{
	client->reason_code = code;
	snprintf(client->reason, sizeof(client->reason), "%s", text);
}

static void close_exchange(struct dotnet_client *client)
{
	struct exchange *exchange = &client->exchange;

	guard_remove(client->guard, exchange->guard_key);
	exchange->guard_key = 0;
	if (exchange->fd >= 0)
		close(exchange->fd);
	exchange->fd = -1;
	exchange->phase = PHASE_IDLE;
	free(exchange->payload);
	exchange->payload = NULL;
	bytes_reset(&exchange->out);
}

static bool is_collect(const struct exchange *exchange)
{
	return exchange->phase != PHASE_IDLE && ipc_is_collect(exchange->command);
}

static bool is_stop(const struct exchange *exchange)
{
	return exchange->phase != PHASE_IDLE && exchange->command == IPC_STOP_TRACING;
}

/* Once a byte of it is out, the runtime may make the session, and only the reply tells which one must be stopped. */
static bool may_have_session(const struct exchange *exchange)
{
	return is_collect(exchange) && exchange->phase != PHASE_WAITING && exchange->sent > 0;
}

static bool target_is_alive(const struct dotnet_client *client)
{
	char state = dotnet_target_state(&client->target);

	return state && state != 'Z' && state != 'X';
}

static bool target_is_stopped(const struct dotnet_client *client)
{
	char state = dotnet_target_state(&client->target);

	return state == 'T' || state == 't';
}

/* --- exchanges ------------------------------------------------------------------------------------------------- */

static void begin_exchange(struct dotnet_client *client, const struct ipc_request *request,
	enum dotnet_stream stream, uint64_t now_ns)
{
	struct exchange *exchange = &client->exchange;
	struct diag diag = { 0 };

	bytes_reset(&exchange->out);
	exchange->command = request->command;
	exchange->stream = stream;
	exchange->begin_ns = now_ns;
	exchange->retry_ns = now_ns;
	exchange->sent = 0;
	exchange->got = 0;
	exchange->phase = PHASE_WAITING;
	client->progress_ns = now_ns;
	if (ipc_encode(request, &exchange->out, &diag) < 0) {
		/* Memory ran out: nothing was sent, and a later try may do. */
		exchange->phase = PHASE_IDLE;
		set_reason(client, "error", diag.text);
		client->step = STEP_DONE;
	}
}

static void begin_stop(struct dotnet_client *client, enum dotnet_stream stream, uint64_t now_ns)
{
	const struct ipc_request request = {
		.command = IPC_STOP_TRACING,
		.session_id = client->streams[stream].session_id,
	};

	begin_exchange(client, &request, stream, now_ns);
}

/* Of the runtime's own provider: what methods need, and at least what was asked for. */
static uint32_t live_level(const struct dotnet_client *client)
{
	uint32_t level = client->untold ? UNTOLD_LEVEL : METHODS_LEVEL;

	for (uint32_t i = 0; i < client->wanted_count; i++)
		if (client->wanted[i].level > level && strcmp(client->wanted[i].name, PROVIDER_CLR_NAME) == 0)
			level = client->wanted[i].level;
	return level;
}

/* Which events of the runtime's own provider are not wanted: those that come at our level only, and what the caller leaves out. Their number. */
static uint32_t denied_ids(struct dotnet_client *client, const struct ipc_provider *wanted)
{
	uint32_t count = 0;

	if (wanted->level < METHODS_LEVEL && live_level(client) >= METHODS_LEVEL)
		for (uint32_t i = 0; i < sizeof(verbose_ids) / sizeof(verbose_ids[0]); i++)
			client->denied[count++] = verbose_ids[i];
	for (uint32_t i = 0; !wanted->only_event_ids && i < wanted->event_id_count && count < DENIED_MAX; i++)
		client->denied[count++] = wanted->event_ids[i];
	return count;
}

/* The providers of the live session: methods, and what else was asked for, in the runtime's one entry for its own provider. Their number. */
static uint32_t live_providers(struct dotnet_client *client, struct ipc_provider providers[PROVIDERS_MAX])
{
	bool filters = client->collect_command == IPC_COLLECT_TRACING_5;
	uint32_t count = 1;

	providers[0] = (struct ipc_provider){ .name = PROVIDER_CLR_NAME, .keywords = LIVE_KEYWORDS, .level = live_level(client) };
	for (uint32_t i = 0; i < client->wanted_count; i++) {
		const struct ipc_provider *wanted = &client->wanted[i];
		if (strcmp(wanted->name, PROVIDER_CLR_NAME) != 0) {
			if (count < PROVIDERS_MAX)
				providers[count++] = *wanted;
			continue;
		}
		providers[0].keywords |= wanted->keywords;
		providers[0].arguments = wanted->arguments;
		if (filters) {
			providers[0].event_ids = client->denied;
			providers[0].event_id_count = denied_ids(client, wanted);
		}
	}
	return count;
}

static void begin_collect(struct dotnet_client *client, enum dotnet_stream stream, uint64_t now_ns)
{
	/* A session needs a provider; this one has next to nothing to say. */
	static const struct ipc_provider quiet = {
		.name = "Microsoft-DotNETCore-EventPipe",
		.level = 1,
	};
	static const struct ipc_provider sampler = {
		.name = PROVIDER_SAMPLE_NAME,
		.level = SAMPLE_LEVEL,
	};
	static const struct ipc_provider methods = {
		.name = PROVIDER_CLR_NAME,
		.keywords = LIVE_KEYWORDS,
		.level = METHODS_LEVEL,
	};
	struct ipc_provider live[PROVIDERS_MAX];
	uint32_t live_count = live_providers(client, live);
	struct ipc_request request = {
		.command = client->collect_command,
		.buffer_mb = BUFFER_MB,
		.providers = live,
		.provider_count = live_count,
	};

	if (stream != DOTNET_STREAM_LIVE) {
		request.providers = stream == DOTNET_STREAM_SAMPLES ? &sampler : stream == DOTNET_STREAM_METHODS ? &methods : &quiet;
		request.provider_count = 1;
		request.stacks = stream == DOTNET_STREAM_SAMPLES;
		request.rundown_keywords = stream == DOTNET_STREAM_RUNDOWN ? RUNDOWN_KEYWORDS : 0;
	} else if (client->from_start) {
		request.rundown_keywords = RUNDOWN_KEYWORDS;
	}
	begin_exchange(client, &request, stream, now_ns);
}

/* As the runtime was asked; what it opened itself by. */
static void describe_session(struct dotnet_client *client, enum dotnet_stream stream)
{
	bool stacked = client->exchange.command == IPC_COLLECT_TRACING_2 || stream == DOTNET_STREAM_SAMPLES;
	const char *stacks = stacked ? "with stacks" : "no stacks";
	struct ipc_provider live[PROVIDERS_MAX];
	uint32_t live_count = live_providers(client, live);
	struct bytes text = { 0 };

	if (stream == DOTNET_STREAM_RUNDOWN)
		bytes_printf(&text, "rundown 0x%x", (unsigned)RUNDOWN_KEYWORDS);
	if (stream == DOTNET_STREAM_SAMPLES)
		bytes_printf(&text, "samples %s:0x0:%u", PROVIDER_SAMPLE_NAME, SAMPLE_LEVEL);
	if (stream == DOTNET_STREAM_METHODS)
		bytes_printf(&text, "methods %s:0x%x:%u", PROVIDER_CLR_NAME, (unsigned)LIVE_KEYWORDS, METHODS_LEVEL);
	for (uint32_t i = 0; stream == DOTNET_STREAM_LIVE && i < live_count; i++)
		bytes_printf(&text, "%s%s:0x%" PRIx64 ":%" PRIu32, i ? ", " : "live ", live[i].name, live[i].keywords,
			live[i].level);
	if (stream == DOTNET_STREAM_LIVE && client->from_start)
		bytes_printf(&text, ", from the start, rundown 0x%x at its end", (unsigned)RUNDOWN_KEYWORDS);
	bytes_printf(&text, ", %u MB, %s", BUFFER_MB, stacks);
	snprintf(client->sessions[stream], sizeof(client->sessions[stream]), "%s", bytes_z(&text)); /* a cut end is fine */
	bytes_done(&text);
}

static const char *code_of_errno(int error)
{
	switch (-error) {
	case ENOENT:
		return "no-socket";
	case ECONNREFUSED:
		return "refused";
	case EACCES:
		return "permission";
	case EPERM:
		return "spoofed";
	case ENAMETOOLONG:
		return "cut-name";
	case ESRCH:
		return "ended";
	case EPROTO:
		return "lied";
	default:
		return "error";
	}
}

/* The exchange came to nothing: no connection, no reply, or a reply that is none. */
static void fail_exchange(struct dotnet_client *client, int error, const char *text)
{
	struct exchange *exchange = &client->exchange;

	if (is_stop(exchange)) {
		/* The request is out, or there is no way to the peer (and most likely no peer). */
		client->streams[exchange->stream].stopped = true;
		close_exchange(client);
		return;
	}
	close_exchange(client);
	client->step = STEP_DONE;
	if (!target_is_alive(client))
		set_reason(client, "ended", "it ended before its methods were known");
	else
		set_reason(client, code_of_errno(error), text);
}

static void take_info(struct dotnet_client *client)
{
	struct exchange *exchange = &client->exchange;
	struct diag diag = { 0 };
	uint32_t error = 0;

	if (exchange->ok) {
		int r = ipc_decode_process_info(exchange->command, exchange->payload,
			exchange->payload_size, &client->info, &diag);
		if (r < 0) {
			fail_exchange(client, r, diag.text);
			return;
		}
		client->has_info = true;
		client->step = STEP_LIVE;
	} else if (ipc_decode_error(exchange->payload, exchange->payload_size, &error, &diag) == 0 &&
		error == IPC_ERROR_UNKNOWN_COMMAND && client->info_command != IPC_PROCESS_INFO) {
		client->info_command = client->info_command == IPC_PROCESS_INFO_3 ? IPC_PROCESS_INFO_2
										    : IPC_PROCESS_INFO;
	} else {
		/* Its names matter more than who it says it is (a command line above 64 KiB cannot be told at all). */
		client->step = STEP_LIVE;
	}
	close_exchange(client);
}

static enum step step_behind(const struct dotnet_client *client, enum dotnet_stream stream)
{
	if (stream == DOTNET_STREAM_RUNDOWN || stream == DOTNET_STREAM_METHODS)
		return STEP_DONE;
	if (stream == DOTNET_STREAM_LIVE && client->sampled)
		return STEP_SAMPLES;
	return client->from_start ? STEP_DONE : STEP_RUNDOWN;
}

static void take_collect(struct dotnet_client *client)
{
	struct exchange *exchange = &client->exchange;
	struct stream *stream = &client->streams[exchange->stream];
	struct diag diag = { 0 };
	uint32_t error = 0;
	char text[128];

	if (exchange->ok) {
		uint64_t session_id;
		int r = ipc_decode_session(exchange->payload, exchange->payload_size, &session_id, &diag);
		if (r < 0) {
			fail_exchange(client, r, diag.text);
			return;
		}
		stream->fd = exchange->fd;
		exchange->fd = -1;
		stream->guard_key = exchange->guard_key;
		exchange->guard_key = 0;
		guard_session(client->guard, stream->guard_key, session_id);
		stream->session_id = session_id;
		stream->asked_ns = exchange->begin_ns;
		describe_session(client, exchange->stream);
		stream->opened = true;
		stream->stop_due = exchange->stream == DOTNET_STREAM_RUNDOWN;
		client->named |= client->from_start && exchange->stream == DOTNET_STREAM_LIVE;
		client->step = step_behind(client, exchange->stream);
		close_exchange(client);
		return;
	}
	int r = ipc_decode_error(exchange->payload, exchange->payload_size, &error, &diag);
	if (r < 0) {
		fail_exchange(client, r, diag.text);
		return;
	}
	if (error == IPC_ERROR_UNKNOWN_COMMAND && client->collect_command != IPC_COLLECT_TRACING_2) {
		client->collect_command = client->collect_command == IPC_COLLECT_TRACING_5
			? IPC_COLLECT_TRACING_4
			: ipc_collect_fallback(client->collect_command);
		close_exchange(client);
		return;
	}
	snprintf(text, sizeof(text), "%s (0x%08x)", ipc_error_words(error), error);
	set_reason(client, error == IPC_ERROR_FAIL ? "slots" : "error", text);
	client->step = step_behind(client, exchange->stream);
	close_exchange(client);
}

static void take_reply(struct dotnet_client *client)
{
	struct exchange *exchange = &client->exchange;

	if (is_collect(exchange)) {
		take_collect(client);
	} else if (is_stop(exchange)) {
		/* Success or not, the runtime has dealt with it. A success comes after the whole stream was written. */
		struct stream *stream = &client->streams[exchange->stream];
		stream->stopped = true;
		if (exchange->stream == DOTNET_STREAM_RUNDOWN && exchange->ok && stream->whole)
			client->named = true;
		stream->acknowledged = exchange->ok;
		close_exchange(client);
	} else {
		take_info(client);
	}
}

/* In the middle of its exec a process has no environment: no TMPDIR may mean that it was looked for too early. */
static void read_target_again(struct dotnet_client *client)
{
	struct dotnet_target target;

	if (!client->target.tmpdir[0] && dotnet_target_read(client->target.pid, &target, NULL) == 0 &&
		target.start_ticks == client->target.start_ticks)
		client->target = target;
}

static bool connect_exchange(struct dotnet_client *client, uint64_t now_ns)
{
	struct exchange *exchange = &client->exchange;
	struct diag diag = { 0 };

	if (now_ns < exchange->retry_ns)
		return false;
	/* What is sent to a stopped process is done when it goes on, perhaps long after we have gone: a session nobody stops. */
	if (!is_stop(exchange) && target_is_stopped(client)) {
		exchange->retry_ns = now_ns + RETRY_NS;
		return false;
	}
	int fd = dotnet_port_connect(&client->target, &diag);
	client->refused = fd < 0 ? fd : 0;
	if (fd >= 0) {
		exchange->fd = fd;
		exchange->phase = PHASE_SENDING;
		if (is_collect(exchange))
			exchange->guard_key = guard_add(client->guard, fd, &client->target);
		return true;
	}
	bool young = (fd == -ENOENT || fd == -ECONNREFUSED) && client->step == STEP_INFO &&
		now_ns < client->appear_ns && target_is_alive(client);
	/* Our own want of descriptors or memory may pass, and a stop must go out. */
	bool poor = fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS;
	if (young)
		read_target_again(client);
	if (fd == -EAGAIN || young || (poor && is_stop(exchange))) {
		exchange->retry_ns = now_ns + RETRY_NS;
		return false;
	}
	fail_exchange(client, fd, diag.text);
	return true;
}

static bool send_exchange(struct dotnet_client *client)
{
	struct exchange *exchange = &client->exchange;
	ssize_t n = send(exchange->fd, exchange->out.data + exchange->sent,
		exchange->out.len - exchange->sent, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return false;
		fail_exchange(client, -errno, "it closed the connection while it was being asked");
		return true;
	}
	exchange->sent += (size_t)n;
	if (exchange->sent < exchange->out.len)
		return true;
	exchange->phase = PHASE_HEADER;
	if (is_stop(exchange))
		guard_session(client->guard, client->streams[exchange->stream].guard_key, 0);
	return true;
}

static bool is_guarded_off(struct dotnet_client *client, uint64_t now_ns);

/* Exactly as many bytes as the reply has: what follows the reply of CollectTracing is the stream. */
static bool receive_exchange(struct dotnet_client *client, uint64_t now_ns)
{
	struct exchange *exchange = &client->exchange;
	bool header = exchange->phase == PHASE_HEADER;
	uint8_t *to = header ? exchange->header : exchange->payload;
	size_t size = header ? IPC_HEADER_SIZE : exchange->payload_size;

	if (exchange->got < size) {
		ssize_t n = recv(exchange->fd, to + exchange->got, size - exchange->got, 0);
		int error = errno;
		if (is_guarded_off(client, now_ns))
			return false;
		if (n < 0 && (error == EAGAIN || error == EINTR))
			return false;
		if (n <= 0) {
			fail_exchange(client, n < 0 ? -error : -ECONNRESET,
				"it closed the connection without a whole answer");
			return true;
		}
		exchange->got += (size_t)n;
		client->progress_ns = now_ns;
	}
	if (exchange->got < size)
		return true;
	if (!header) {
		take_reply(client);
		return true;
	}
	struct diag diag = { 0 };
	int r = ipc_decode_header(exchange->header, &exchange->payload_size, &exchange->ok, &diag);
	if (r == 0) {
		exchange->payload = malloc(exchange->payload_size + 1);
		if (!exchange->payload)
			r = diag_set(&diag, -ENOMEM, "no memory for its answer");
	}
	if (r < 0) {
		fail_exchange(client, r, diag.text);
		return true;
	}
	exchange->got = 0;
	exchange->phase = PHASE_PAYLOAD;
	return true;
}

/* True when something happened, so that another look is worth while. */
static bool advance_exchange(struct dotnet_client *client, uint64_t now_ns)
{
	switch (client->exchange.phase) {
	case PHASE_WAITING:
		return connect_exchange(client, now_ns);
	case PHASE_SENDING:
		return send_exchange(client);
	case PHASE_HEADER:
	case PHASE_PAYLOAD:
		return receive_exchange(client, now_ns);
	case PHASE_IDLE:
		break;
	}
	return false;
}

/* --- streams --------------------------------------------------------------------------------------------------- */

static void tell(struct dotnet_client *client, enum dotnet_stream which, const uint8_t *data,
	size_t size, uint64_t now_ns)
{
	struct stream *stream = &client->streams[which];

	if (stream->deaf)
		return;
	if (client->handler.bytes(client->handler.user, which, data, size) >= 0)
		return;
	stream->deaf = true;
	stream->deaf_ns = now_ns;
	stream->stop_due = true;
	if (!*client->reason)
		set_reason(client, "lied", "its event stream cannot be understood");
}

static void end_stream(struct dotnet_client *client, enum dotnet_stream which, uint64_t now_ns)
{
	struct stream *stream = &client->streams[which];

	guard_remove(client->guard, stream->guard_key);
	stream->guard_key = 0;
	close(stream->fd);
	stream->fd = -1;
	tell(client, which, NULL, 0, now_ns);
}

/*
 * The guard has ended all sessions, because we did not come by for too long. What is read after its round began may have a hole before it:
 * the streams end here. True when it is so.
 */
static bool is_guarded_off(struct dotnet_client *client, uint64_t now_ns)
{
	if (client->ended || guard_rounds(client->guard) == client->guard_rounds)
		return client->ended;
	close_exchange(client);
	client->ended = true;
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		client->streams[i].stopped = true;
		if (client->streams[i].fd >= 0)
			end_stream(client, (enum dotnet_stream)i, now_ns);
	}
	set_reason(client, "guarded", "its sessions were ended because their reader had stood still");
	return true;
}

/* True when there is more to read now. */
static bool read_stream(struct dotnet_client *client, enum dotnet_stream which, size_t *budget,
	uint64_t now_ns)
{
	struct stream *stream = &client->streams[which];
	uint8_t buffer[READ_SIZE];

	if (stream->fd < 0 || !*budget)
		return false;
	ssize_t n = recv(stream->fd, buffer, sizeof(buffer), 0);
	int error = errno;
	if (is_guarded_off(client, now_ns))
		return false;
	if (n < 0 && (error == EAGAIN || error == EINTR))
		return false;
	client->progress_ns = now_ns;
	if (n > 0) {
		*budget = *budget > (size_t)n ? *budget - (size_t)n : 0;
		tell(client, which, buffer, (size_t)n, now_ns);
		return true;
	}
	/*
	 * At its end the session is gone, and its id, an address, may be another's already: no stop for it. After an error it may still be
	 * there.
	 */
	if (n < 0)
		stream->stop_due = true;
	else
		stream->stopped = true;
	end_stream(client, which, now_ns);
	stream->whole = n == 0 && !stream->deaf;
	if (which == DOTNET_STREAM_RUNDOWN && stream->whole &&
		(stream->acknowledged || target_is_alive(client)))
		client->named = true;
	return true;
}

/* --- the whole ------------------------------------------------------------------------------------------------- */

/* True when an exchange was begun. */
static bool start_next(struct dotnet_client *client, uint64_t now_ns)
{
	if (client->exchange.phase != PHASE_IDLE)
		return false;
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		struct stream *stream = &client->streams[i];
		if (client->stopping)
			stream->stop_due = stream->opened;
		if (stream->opened && stream->stop_due && !stream->stopped) {
			begin_stop(client, (enum dotnet_stream)i, now_ns);
			return true;
		}
	}
	if (client->stopping)
		return false;
	switch (client->step) {
	case STEP_INFO: {
		const struct ipc_request request = { .command = client->info_command };
		begin_exchange(client, &request, DOTNET_STREAM_LIVE, now_ns);
		return true;
	}
	case STEP_LIVE:
		begin_collect(client, DOTNET_STREAM_LIVE, now_ns);
		return true;
	case STEP_SAMPLES:
		begin_collect(client, DOTNET_STREAM_SAMPLES, now_ns);
		return true;
	case STEP_RUNDOWN:
		begin_collect(client, DOTNET_STREAM_RUNDOWN, now_ns);
		return true;
	case STEP_METHODS:
		begin_collect(client, DOTNET_STREAM_METHODS, now_ns);
		return true;
	case STEP_DONE:
		break;
	}
	return false;
}

static bool is_open(const struct dotnet_client *client)
{
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++)
		if (client->streams[i].fd >= 0)
			return true;
	return client->exchange.phase != PHASE_IDLE;
}

/* Something is awaited from the peer that it should send without being prompted by its own work. */
static bool awaits_peer(const struct dotnet_client *client)
{
	return client->exchange.phase != PHASE_IDLE || client->streams[DOTNET_STREAM_RUNDOWN].fd >= 0;
}

static void judge_silence(struct dotnet_client *client, uint64_t now_ns)
{
	bool silent = awaits_peer(client) && now_ns >= client->progress_ns + DOTNET_ANSWER_NS;

	if (silent && !client->hung) {
		client->hung = true;
		if (target_is_stopped(client))
			set_reason(client, "stopped", "it is stopped (by a signal or a debugger)");
		else
			set_reason(client, "hung", "it has not answered for 5 s");
	} else if (!silent && client->hung) {
		client->hung = false;
		if (!strcmp(client->reason_code, "hung") || !strcmp(client->reason_code, "stopped"))
			set_reason(client, "", "");
	}
}

/* Streams that the handler gave up are read to their end, but not for ever. */
static void close_deaf(struct dotnet_client *client, uint64_t now_ns)
{
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		struct stream *stream = &client->streams[i];
		if (stream->fd >= 0 && stream->deaf && stream->stopped &&
			now_ns >= stream->deaf_ns + DOTNET_STOP_NS)
			end_stream(client, (enum dotnet_stream)i, now_ns);
	}
}

/* A stop that is sent and not waited for. A fresh connection takes these 28 bytes at once. */
static void send_stop(struct dotnet_client *client, struct stream *stream)
{
	const struct ipc_request request = {
		.command = IPC_STOP_TRACING,
		.session_id = stream->session_id,
	};
	struct bytes out = { 0 };

	if (ipc_encode(&request, &out, NULL) == 0) {
		int fd = dotnet_port_connect(&client->target, NULL);
		if (fd >= 0) {
			/* Whole or not at all; when not, the session ends with the next event that cannot be written. */
			(void)send(fd, out.data, out.len, MSG_NOSIGNAL);
			close(fd);
		}
	}
	bytes_done(&out);
	stream->stopped = true;
	guard_session(client->guard, stream->guard_key, 0);
}

/* Sessions that were not asked to stop yet are, also when the exchange is stuck with a peer that does not answer. */
static void send_due_stops(struct dotnet_client *client)
{
	const struct exchange *exchange = &client->exchange;

	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		struct stream *stream = &client->streams[i];
		bool asked = is_stop(exchange) && exchange->stream == (enum dotnet_stream)i &&
			exchange->phase > PHASE_SENDING;
		if (stream->opened && !stream->stopped && !asked)
			send_stop(client, stream);
	}
}

static void end_all(struct dotnet_client *client, uint64_t now_ns)
{
	send_due_stops(client);
	close_exchange(client);
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		if (client->streams[i].fd >= 0)
			end_stream(client, (enum dotnet_stream)i, now_ns);
	}
	client->ended = true;
}

static void judge_end(struct dotnet_client *client, uint64_t now_ns)
{
	if (client->stopping && now_ns >= client->stop_ns + DOTNET_STOP_NS) {
		end_all(client, now_ns);
		return;
	}
	if (is_open(client) || (!client->stopping && client->step != STEP_DONE))
		return;
	if (!client->stopping && !client->named && !*client->reason)
		set_reason(client, "ended", "it ended before its methods were known");
	else if (!client->stopping && client->streams[DOTNET_STREAM_LIVE].opened && !*client->reason &&
		target_is_alive(client))
		set_reason(client, "closed", "its event stream ended before the recording");
	client->ended = true;
}

/* How much of the time in which a runtime makes its socket is left to this process. */
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
	client->exchange.fd = -1;
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++)
		client->streams[i].fd = -1;
	client->info_command = IPC_PROCESS_INFO_3;
	client->collect_command = IPC_COLLECT_TRACING_4;
	client->appear_ns = now_ns + youth_left(target);
	client->progress_ns = now_ns;
	client->reason_code = "";
	*ret_client = client;
	return 0;
}

void dotnet_client_guard(struct dotnet_client *client, struct guard *guard)
{
	client->guard = guard;
	client->guard_rounds = guard_rounds(guard);
}

void dotnet_client_ask(struct dotnet_client *client, const struct ipc_provider *providers, uint32_t count)
{
	client->wanted = providers;
	client->wanted_count = count;
	if (count)
		client->collect_command = IPC_COLLECT_TRACING_5;
}

void dotnet_client_untold(struct dotnet_client *client)
{
	client->untold = true;
}

void dotnet_client_from_start(struct dotnet_client *client)
{
	client->from_start = true;
}

void dotnet_client_sample(struct dotnet_client *client)
{
	client->sampled = true;
}

/* Nothing is under way, and nothing is left of the last session of this kind. */
static bool may_ask_for(const struct dotnet_client *client, const struct stream *stream)
{
	return !client->ended && !client->stopping && client->step == STEP_DONE && client->exchange.phase == PHASE_IDLE && stream->fd < 0 &&
		(!stream->opened || stream->stopped);
}

bool dotnet_client_rundown(struct dotnet_client *client)
{
	struct stream *stream = &client->streams[DOTNET_STREAM_RUNDOWN];

	if (!may_ask_for(client, stream))
		return false;
	*stream = (struct stream){ .fd = -1 };
	client->named = false;
	client->step = STEP_RUNDOWN;
	return true;
}

bool dotnet_client_methods(struct dotnet_client *client)
{
	if (!may_ask_for(client, &client->streams[DOTNET_STREAM_METHODS]))
		return false;
	client->step = STEP_METHODS;
	return true;
}

/* The live stream had little to say a moment ago: what comes meanwhile is read at once. */
static bool rests(const struct dotnet_client *client, enum dotnet_stream which)
{
	return which == DOTNET_STREAM_LIVE && !client->stopping && client->now_ns < client->rest_ns;
}

size_t dotnet_client_fds(const struct dotnet_client *client, struct pollfd fds[DOTNET_FDS_MAX])
{
	const struct exchange *exchange = &client->exchange;
	size_t count = 0;

	if (exchange->fd >= 0)
		fds[count++] = (struct pollfd){
			.fd = exchange->fd,
			.events = exchange->phase == PHASE_SENDING ? POLLOUT : POLLIN,
		};
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		if (client->streams[i].fd >= 0 && !rests(client, (enum dotnet_stream)i))
			fds[count++] = (struct pollfd){ .fd = client->streams[i].fd, .events = POLLIN };
	}
	return count;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t dotnet_client_wake_ns(const struct dotnet_client *client)
{
	uint64_t wake_ns = UINT64_MAX;

	if (client->ended)
		return wake_ns;
	/* Nothing is under way, so something is to be begun. */
	if (client->exchange.phase == PHASE_IDLE && client->step != STEP_DONE && !client->stopping)
		return 0;
	if (client->exchange.phase == PHASE_WAITING)
		wake_ns = client->exchange.retry_ns;
	if (awaits_peer(client) && !client->hung)
		wake_ns = earlier(wake_ns, client->progress_ns + DOTNET_ANSWER_NS);
	if (client->stopping)
		wake_ns = earlier(wake_ns, client->stop_ns + DOTNET_STOP_NS);
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		const struct stream *stream = &client->streams[i];
		if (client->exchange.phase == PHASE_IDLE && stream->opened && stream->stop_due &&
			!stream->stopped)
			return 0;
		if (stream->fd >= 0 && stream->deaf && stream->stopped)
			wake_ns = earlier(wake_ns, stream->deaf_ns + DOTNET_STOP_NS);
		if (stream->fd >= 0 && rests(client, (enum dotnet_stream)i))
			wake_ns = earlier(wake_ns, client->rest_ns);
	}
	return wake_ns;
}

enum dotnet_state dotnet_client_advance(struct dotnet_client *client, uint64_t now_ns)
{
	size_t budget[DOTNET_STREAM_COUNT] = { READ_MAX, READ_MAX, READ_MAX, READ_MAX };
	bool again = !is_guarded_off(client, now_ns);

	for (unsigned i = 0; again && i < STEPS_MAX; i++) {
		again = advance_exchange(client, now_ns);
		for (unsigned s = 0; s < DOTNET_STREAM_COUNT; s++)
			again |= read_stream(client, (enum dotnet_stream)s, &budget[s], now_ns);
		again = !client->ended && (start_next(client, now_ns) || again);
	}
	client->behind = again || !budget[DOTNET_STREAM_LIVE] || !budget[DOTNET_STREAM_SAMPLES];
	client->now_ns = now_ns;
	size_t taken = READ_MAX - budget[DOTNET_STREAM_LIVE];
	bool brief = client->from_start && now_ns < client->streams[DOTNET_STREAM_LIVE].asked_ns + BRIEF_NS;
	if (taken && taken <= REST_BYTES && !client->behind && !brief)
		client->rest_ns = now_ns + REST_NS;
	if (!client->ended) {
		judge_silence(client, now_ns);
		close_deaf(client, now_ns);
		judge_end(client, now_ns);
	}
	return dotnet_client_state(client);
}

void dotnet_client_stop(struct dotnet_client *client, uint64_t now_ns)
{
	struct exchange *exchange = &client->exchange;

	if (client->stopping || client->ended)
		return;
	client->stopping = true;
	client->stop_ns = now_ns;
	/* A stop goes on, a session that may be on its way must be awaited; all else has become pointless. */
	if (!is_stop(exchange) && !may_have_session(exchange))
		close_exchange(client);
	if (!client->named && !*client->reason && client->step != STEP_DONE) {
		if (target_is_stopped(client))
			set_reason(client, "stopped", "it is stopped (by a signal or a debugger)");
		else if (client->step == STEP_INFO && target_is_alive(client) &&
			(client->refused == -ENOENT || !dotnet_port_exists(&client->target)))
			set_reason(client, "no-socket", "it has no diagnostics socket");
		else
			set_reason(client, "cut-short", "the recording ended before its methods were known");
	}
}

/* Gives a session that is on its way a last chance to be told of, so that it can be stopped. */
static void await_session(struct dotnet_client *client)
{
	for (int waited_ms = 0; may_have_session(&client->exchange) && waited_ms < FREE_WAIT_MS;
		waited_ms += 10) {
		struct pollfd fd = {
			.fd = client->exchange.fd,
			.events = client->exchange.phase == PHASE_SENDING ? POLLOUT : POLLIN,
		};
		if (poll(&fd, 1, 10) < 0 && errno != EINTR)
			return;
		while (may_have_session(&client->exchange) &&
			advance_exchange(client, client->progress_ns))
			;
	}
}

void dotnet_client_free(struct dotnet_client *client)
{
	if (!client)
		return;
	if (!client->ended && guard_rounds(client->guard) == client->guard_rounds) {
		await_session(client);
		send_due_stops(client);
	}
	close_exchange(client);
	bytes_done(&client->exchange.out);
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		guard_remove(client->guard, client->streams[i].guard_key);
		if (client->streams[i].fd >= 0)
			close(client->streams[i].fd);
	}
	ipc_process_info_done(&client->info);
	free(client);
}

enum dotnet_state dotnet_client_state(const struct dotnet_client *client)
{
	if (client->ended)
		return DOTNET_ENDED;
	if (client->stopping)
		return DOTNET_STOPPING;
	if (client->hung)
		return DOTNET_HUNG;
	bool naming = client->step != STEP_DONE || client->streams[DOTNET_STREAM_RUNDOWN].fd >= 0;
	return naming ? DOTNET_ASKING : DOTNET_LIVE;
}

uint64_t dotnet_client_asked_ns(const struct dotnet_client *client, enum dotnet_stream stream)
{
	return client->streams[stream].asked_ns;
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
	return client->sessions[stream][0] ? client->sessions[stream] : NULL;
}

const char *dotnet_client_reason(const struct dotnet_client *client)
{
	return client->reason;
}

const char *dotnet_client_reason_code(const struct dotnet_client *client)
{
	return client->reason_code;
}

const struct ipc_process_info *dotnet_client_info(const struct dotnet_client *client)
{
	return client->has_info ? &client->info : NULL;
}
