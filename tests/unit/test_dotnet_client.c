/*
 * dotnet_client.c with a simulated peer: correct, old, silent, lying, or disconnecting. The peer
 * is in this process, behind a real socket. The test sets the time.
 */
#include "unit/fake_runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/poll_set.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/stack_events.h"
#include "recording/dotnet_client.h"
#include "trace/clr_event.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

enum lie {
	HONEST,
	MUTE, /* receives the request and sends no answer */
	HALF_HEADER,
	WRONG_MAGIC,
	SIZE_BELOW_HEADER,
	SIZE_TOO_BIG,   /* its header claims more bytes than it sends, then it closes */
	REQUEST_ECHOED, /* an invalid reply */
	HANG_UP,        /* closes without an answer */
	ERROR_FAIL,
	ERROR_WITHOUT_CODE,
	LONG_SESSION, /* a session id of 12 bytes */
};

enum { CONNECTIONS = 16, SESSIONS = 6 };

struct peer {
	char folder[32];
	char path[256];
	int listener;
	struct fake_asking asking[CONNECTIONS];
	int stream[SESSIONS]; /* sessions 1000, 1001 and so on, in the order of their opening */
	unsigned opened;
	unsigned stops[SESSIONS];         /* commands that were answered */
	unsigned stop_requests[SESSIONS]; /* all commands that arrived */
	unsigned requests;
	unsigned newest_info; /* higher commands are unknown to the peer */
	unsigned newest_collect;
	enum lie lie;
	enum ipc_command lie_at; /* 0: at every command */
	bool keep_streams;       /* stop is answered, but the stream does not end */
	bool cut_stream;         /* the rundown's stream ends before its stop */
	char log[512];           /* commands in order, "408 205 205 201 " */
	uint64_t sum;            /* sum of the bytes of all requests */
};

struct received {
	char text[DOTNET_STREAM_COUNT][256];
	size_t len[DOTNET_STREAM_COUNT];
	unsigned ends[DOTNET_STREAM_COUNT];
	bool refuse;
};

/* False: the connection has become a stream. */
static bool send_lie(struct peer *peer, int fd, const uint8_t *request)
{
	uint8_t header[20] = "DOTNET_IPC_V1";
	uint8_t session[12] = { 0 };

	header[14] = 28;
	header[16] = 0xff;
	switch (peer->lie) {
	case HALF_HEADER:
		(void)send(fd, header, 10, MSG_NOSIGNAL);
		return true;
	case WRONG_MAGIC:
		header[0] = 'X';
		break;
	case SIZE_BELOW_HEADER:
		header[14] = 5;
		break;
	case SIZE_TOO_BIG:
		header[14] = header[15] = 0xff;
		break;
	case REQUEST_ECHOED:
		memcpy(header, request, 20);
		break;
	case ERROR_FAIL:
		fake_error(fd, IPC_ERROR_FAIL);
		return false;
	case ERROR_WITHOUT_CODE:
		fake_reply(fd, false, NULL, 0);
		return false;
	case LONG_SESSION:
		fake_reply(fd, true, session, 12);
		return false;
	case HANG_UP:
		return false;
	case MUTE:
	case HONEST:
		return true;
	}
	(void)send(fd, header, 20, MSG_NOSIGNAL);
	return false;
}

static void answer_stop(struct peer *peer, int fd, uint64_t id)
{
	unsigned which = (unsigned)(id - 1000);

	fake_reply(fd, true, &id, 8);
	if (which >= SESSIONS)
		return;
	peer->stops[which]++;
	if (peer->stream[which] >= 0 && !peer->keep_streams) {
		(void)send(peer->stream[which], "END", 3, MSG_NOSIGNAL);
		close(peer->stream[which]);
		peer->stream[which] = -1;
	}
}

/* True: the peer keeps the connection. */
static bool answer(struct peer *peer, int fd, const uint8_t *request)
{
	enum ipc_command command = fake_command(request);
	size_t at = strlen(peer->log);

	peer->requests++;
	for (size_t i = 0; i < (size_t)(request[14] | request[15] << 8); i++)
		peer->sum = (peer->sum ^ request[i]) * UINT64_C(0x100000001b3);
	if (command == IPC_STOP_TRACING) {
		uint64_t id;
		memcpy(&id, request + 20, 8);
		assert_in_range(id, 1000, 1000 + SESSIONS - 1);
		peer->stop_requests[id - 1000]++;
	}
	snprintf(peer->log + at, sizeof(peer->log) - at, "%x ", (unsigned)command);
	if (peer->lie && (!peer->lie_at || peer->lie_at == command)) {
		if (send_lie(peer, fd, request))
			return true;
		close(fd);
		return false;
	}
	bool info = request[16] == 4;
	bool collect = request[16] == 2 && command != IPC_STOP_TRACING;
	if ((info && command > peer->newest_info) || (collect && command > peer->newest_collect)) {
		fake_error(fd, IPC_ERROR_UNKNOWN_COMMAND);
	} else if (info) {
		fake_info(fd, command);
	} else if (collect) {
		uint64_t id = 1000 + peer->opened;
		assert_true(peer->opened < SESSIONS);
		fake_reply(fd, true, &id, 8);
		(void)send(fd, peer->opened ? "RUN" : "LIVE", peer->opened ? 3 : 4, MSG_NOSIGNAL);
		if (peer->cut_stream && peer->opened) {
			close(fd);
			fd = -1;
		}
		peer->stream[peer->opened++] = fd;
		return true;
	} else {
		uint64_t id;
		memcpy(&id, request + 20, 8);
		answer_stop(peer, fd, id);
	}
	close(fd);
	return false;
}

static void serve(struct peer *peer)
{
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		fake_accept(&peer->asking[i], peer->listener);
		if (!fake_receive(&peer->asking[i]))
			continue;
		int fd = peer->asking[i].fd;
		bool keep = answer(peer, fd, peer->asking[i].data);
		for (unsigned k = 0; k < SESSIONS; k++)
			keep = keep && peer->stream[k] != fd;
		if (!keep)
			peer->asking[i].fd = -1;
	}
}

static struct dotnet_target set_up_peer(struct peer *peer)
{
	struct dotnet_target target;

	*peer = (struct peer){
		.stream = { -1, -1, -1, -1 },
		.newest_info = IPC_PROCESS_INFO_3,
		.newest_collect = IPC_COLLECT_TRACING_4,
	};
	for (unsigned i = 0; i < CONNECTIONS; i++)
		peer->asking[i].fd = -1;
	strcpy(peer->folder, "/tmp/spoor-session-XXXXXX");
	assert_non_null(mkdtemp(peer->folder));
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &target, NULL), 0);
	strcpy(target.tmpdir, peer->folder);
	fake_path(&target, peer->path, sizeof(peer->path));
	peer->listener = fake_listen(peer->path);
	return target;
}

static void tear_down_peer(struct peer *peer)
{
	fake_hang_up(peer->asking, CONNECTIONS);
	for (unsigned i = 0; i < SESSIONS; i++) {
		if (peer->stream[i] >= 0)
			close(peer->stream[i]);
	}
	if (peer->listener >= 0)
		close(peer->listener);
	unlink(peer->path);
	assert_int_equal(rmdir(peer->folder), 0);
}

static int take(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size)
{
	struct received *received = user;

	if (received->refuse)
		return -EBADMSG;
	if (!size) {
		received->ends[stream]++;
		return 0;
	}
	for (size_t i = 0; i < size && received->len[stream] < sizeof(received->text[stream]) - 1;
		i++)
		received->text[stream][received->len[stream]++] = (char)data[i];
	return 0;
}

struct fixture {
	struct peer peer;
	struct received received;
	struct dotnet_client *client;
	uint64_t now_ns;
};

static void want(struct fixture *fixture, const struct ipc_provider *providers, uint32_t count)
{
	dotnet_client_wishes(fixture->client)->providers = providers;
	dotnet_client_wishes(fixture->client)->provider_count = count;
}

static void begin(struct fixture *fixture)
{
	struct dotnet_handler handler = { .bytes = take, .user = &fixture->received };

	memset(fixture, 0, sizeof(*fixture));
	fixture->now_ns = 100 * S;
	struct dotnet_target target = set_up_peer(&fixture->peer);
	assert_int_equal(dotnet_client_new(&target, &handler, fixture->now_ns, &fixture->client),
		0);
}

/* The client's wake-up time and the number of its descriptors. */
static uint64_t wake_ns(const struct dotnet_client *client, uint32_t *ret_fds)
{
	struct poll_set set = { 0 };

	poll_set_begin(&set, UINT64_MAX);
	dotnet_client_await(client, &set);
	*ret_fds = set.fds.count;
	poll_set_done(&set);
	return set.wake_ns;
}

static enum dotnet_state turns(struct fixture *fixture, unsigned count, uint64_t step_ns)
{
	for (unsigned i = 0; i < count; i++) {
		(void)dotnet_client_advance(fixture->client, fixture->now_ns);
		if (fixture->peer.listener >= 0)
			serve(&fixture->peer);
		fixture->now_ns += step_ns;
	}
	return dotnet_client_advance(fixture->client, fixture->now_ns);
}

/* Steps the client by 100 ms of simulated time until it has ended. */
static void turns_to_the_end(struct fixture *fixture)
{
	uint64_t from_ns = fixture->now_ns;

	while (dotnet_client_state(fixture->client) != DOTNET_ENDED) {
		(void)turns(fixture, 1, 100 * MS);
		assert_true(fixture->now_ns - from_ns <= DOTNET_STOP_NS + S);
	}
}

static void finish(struct fixture *fixture)
{
	dotnet_client_free(fixture->client);
	/* Bytes that were sent before the end still arrive. */
	for (unsigned i = 0; fixture->peer.listener >= 0 && i < 3; i++)
		serve(&fixture->peer);
	tear_down_peer(&fixture->peer);
}

static void test_polite(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	assert_int_equal(dotnet_client_state(t.client), DOTNET_ASKING);
	assert_null(dotnet_client_info(t.client));
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_true(dotnet_client_named(t.client));
	assert_string_equal(t.peer.log, "408 205 205 201 ");
	assert_string_equal(t.received.text[DOTNET_STREAM_RUNDOWN], "RUNEND");
	assert_string_equal(t.received.text[DOTNET_STREAM_LIVE], "LIVE");
	assert_int_equal(t.received.ends[DOTNET_STREAM_RUNDOWN], 1);
	assert_int_equal(t.received.ends[DOTNET_STREAM_LIVE], 0);
	assert_string_equal(dotnet_client_info(t.client)->runtime_version, "10.0.12");
	/* The stream had few bytes, so the client reads it again after a pause. */
	uint32_t fds;
	uint64_t rest_ns = wake_ns(t.client, &fds);
	assert_in_range(rest_ns, t.now_ns, t.now_ns + 100 * MS);
	assert_int_equal(fds, 0);
	t.now_ns = rest_ns;
	assert_int_equal(dotnet_client_advance(t.client, t.now_ns), DOTNET_LIVE);
	assert_int_equal(wake_ns(t.client, &fds), UINT64_MAX);
	assert_int_equal(fds, 1);
	/* A stream may be silent for an hour without an error. */
	t.now_ns += 3600 * S;
	assert_int_equal(dotnet_client_advance(t.client, t.now_ns), DOTNET_LIVE);
	assert_int_equal(send(t.peer.stream[0], "MORE", 4, 0), 4);
	(void)turns(&t, 2, MS);
	dotnet_client_stop(t.client, t.now_ns);
	dotnet_client_stop(t.client, t.now_ns);
	assert_int_equal(turns(&t, 20, MS), DOTNET_ENDED);
	assert_string_equal(t.received.text[DOTNET_STREAM_LIVE], "LIVEMOREEND");
	assert_int_equal(t.received.ends[DOTNET_STREAM_LIVE], 1);
	assert_int_equal(t.peer.stops[0], 1);
	assert_int_equal(t.peer.stops[1], 1);
	assert_string_equal(dotnet_client_reason(t.client), "");
	finish(&t);
}

static void test_old(void **state)
{
	static const struct {
		unsigned info;
		unsigned collect;
		const char *log;
	} cases[] = {
		{ IPC_PROCESS_INFO_3, IPC_COLLECT_TRACING_2, "408 205 204 203 203 201 " },
		{ IPC_PROCESS_INFO_2, IPC_COLLECT_TRACING_3, "408 404 205 204 204 201 " },
		{ IPC_PROCESS_INFO, IPC_COLLECT_TRACING_2, "408 404 400 205 204 203 203 201 " },
		{ 0x3ff, IPC_COLLECT_TRACING_4, "408 404 400 205 205 201 " },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture t;
		begin(&t);
		t.peer.newest_info = cases[i].info;
		t.peer.newest_collect = cases[i].collect;
		assert_int_equal(turns(&t, 40, MS), DOTNET_LIVE);
		assert_string_equal(t.peer.log, cases[i].log);
		assert_true(dotnet_client_named(t.client));
		assert_int_equal(dotnet_client_info(t.client) != NULL,
			cases[i].info >= IPC_PROCESS_INFO);
		finish(&t);
		/* The free above stopped the live session. */
		assert_int_equal(t.peer.stops[0], 1);
	}
	/* A runtime that is too old for any session. */
	struct fixture t;
	begin(&t);
	t.peer.newest_collect = 0;
	assert_int_equal(turns(&t, 40, MS), DOTNET_ENDED);
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "error");
	finish(&t);
}

static void test_wrong_answers_are_refused(void **state)
{
	static const struct {
		enum lie lie;
		enum dotnet_state state;
		const char *code;
	} cases[] = {
		{ MUTE, DOTNET_HUNG, "hung" },
		{ HALF_HEADER, DOTNET_HUNG, "hung" },
		{ WRONG_MAGIC, DOTNET_ENDED, "lied" },
		{ SIZE_BELOW_HEADER, DOTNET_ENDED, "lied" },
		{ SIZE_TOO_BIG, DOTNET_ENDED, "error" },
		{ REQUEST_ECHOED, DOTNET_ENDED, "lied" },
		{ HANG_UP, DOTNET_ENDED, "error" },
	};
	static const enum ipc_command at[] = { IPC_PROCESS_INFO_3, IPC_COLLECT_TRACING_4 };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (unsigned where = 0; where < 2; where++) {
			struct fixture t;
			begin(&t);
			t.peer.lie = cases[i].lie;
			t.peer.lie_at = at[where];
			assert_int_equal(turns(&t, 70, 100 * MS), cases[i].state);
			assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)),
				cases[i].code);
			assert_true(dotnet_client_reason(t.client)[0]);
			assert_false(dotnet_client_named(t.client));
			assert_int_equal(t.peer.opened, 0);
			finish(&t);
		}
	}
}

static void test_bad_sessions(void **state)
{
	static const struct {
		enum lie lie;
		const char *code;
	} cases[] = { { ERROR_FAIL, "slots" }, { ERROR_WITHOUT_CODE, "lied" },
		{ LONG_SESSION, "lied" } };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct fixture t;
		begin(&t);
		t.peer.lie = cases[i].lie;
		t.peer.lie_at = IPC_COLLECT_TRACING_4;
		assert_int_equal(turns(&t, 40, MS), DOTNET_ENDED);
		assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)),
			cases[i].code);
		assert_non_null(dotnet_client_info(t.client));
		finish(&t);
	}
}

/* The rundown is refused: the live session still streams, and the reason is stored. */
static void test_rundown_refused(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	while (t.peer.opened < 1)
		(void)turns(&t, 1, MS);
	t.peer.lie = ERROR_FAIL;
	t.peer.lie_at = IPC_COLLECT_TRACING_4;
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_false(dotnet_client_named(t.client));
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "slots");
	assert_string_equal(t.received.text[DOTNET_STREAM_LIVE], "LIVE");
	dotnet_client_stop(t.client, t.now_ns);
	assert_int_equal(turns(&t, 20, MS), DOTNET_ENDED);
	assert_int_equal(t.peer.stops[0], 1);
	finish(&t);
}

/*
 * The live session has no events of new methods. A second rundown names the methods, then a session
 * for methods sends events of new ones. All sessions are ended.
 */
static void test_no_method_events(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	dotnet_client_wishes(t.client)->without_methods = true;
	assert_false(dotnet_client_rundown(t.client)); /* the first method was not reported yet */
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_string_equal(dotnet_client_session(t.client, DOTNET_STREAM_LIVE),
		"live Microsoft-Windows-DotNETRuntime:0x38:4, 16 MB, no stacks");
	assert_true(dotnet_client_rundown(t.client));
	assert_false(dotnet_client_rundown(t.client));
	assert_false(dotnet_client_methods(t.client));
	assert_int_equal(dotnet_client_state(t.client), DOTNET_ASKING);
	assert_false(dotnet_client_named(t.client));
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_true(dotnet_client_named(t.client));
	assert_string_equal(t.received.text[DOTNET_STREAM_RUNDOWN], "RUNENDRUNEND");
	assert_int_equal(t.received.ends[DOTNET_STREAM_RUNDOWN], 2);
	assert_true(dotnet_client_methods(t.client));
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_false(dotnet_client_methods(t.client)); /* it exists */
	assert_string_equal(dotnet_client_session(t.client, DOTNET_STREAM_METHODS),
		"methods Microsoft-Windows-DotNETRuntime:0x38:5, 16 MB, no stacks");
	assert_string_equal(t.peer.log, "408 205 205 201 205 201 205 ");
	dotnet_client_stop(t.client, t.now_ns);
	assert_false(dotnet_client_rundown(t.client));
	assert_int_equal(turns(&t, 40, MS), DOTNET_ENDED);
	for (unsigned i = 0; i < t.peer.opened; i++)
		assert_int_equal(t.peer.stops[i], 1);
	assert_int_equal(t.received.ends[DOTNET_STREAM_METHODS], 1);
	assert_string_equal(dotnet_client_reason(t.client), "");
	finish(&t);
}

/* Providers that were requested at level 5 are enabled at level 5, with events of new methods. */
static void test_method_events_requested(void **state)
{
	static const struct ipc_provider wanted = {
		.name = "Microsoft-Windows-DotNETRuntime", .keywords = 1, .level = 5
	};
	struct fixture t;

	(void)state;
	begin(&t);
	dotnet_client_wishes(t.client)->without_methods = true;
	want(&t, &wanted, 1);
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_string_equal(dotnet_client_session(t.client, DOTNET_STREAM_LIVE),
		"live Microsoft-Windows-DotNETRuntime:0x39:5, 16 MB, no stacks");
	dotnet_client_stop(t.client, t.now_ns);
	assert_int_equal(turns(&t, 20, MS), DOTNET_ENDED);
	finish(&t);
}

/* The runtime answers after a minute, and the result is the same as without the delay. */
static void test_wakes_up(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	for (unsigned i = 0; i < 60; i++) {
		(void)dotnet_client_advance(t.client, t.now_ns);
		t.now_ns += S;
	}
	assert_int_equal(dotnet_client_state(t.client), DOTNET_HUNG);
	assert_string_equal(dotnet_client_reason(t.client), "it has not answered for 5 s");
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_true(dotnet_client_named(t.client));
	assert_string_equal(dotnet_client_reason(t.client), "");
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "");
	finish(&t);
}

/*
 * A runtime that stops answering at different steps: the end has a time limit, and each open
 * session got a stop request.
 */
static void test_hung_at_stop(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 8; before++) {
		struct fixture t;
		begin(&t);
		(void)turns(&t, before, MS);
		t.peer.lie = MUTE;
		dotnet_client_stop(t.client, t.now_ns);
		uint64_t from = t.now_ns;
		while (dotnet_client_state(t.client) != DOTNET_ENDED && t.now_ns < from + 60 * S)
			(void)turns(&t, 1, 100 * MS);
		assert_true(t.now_ns - from <= DOTNET_STOP_NS + S);
		assert_int_equal(wake_ns(t.client, &(uint32_t){ 0 }), UINT64_MAX);
		finish(&t);
		if (t.peer.opened)
			assert_non_null(strstr(t.peer.log, "201"));
	}
}

/*
 * The stop comes while the session is being opened: the client waits for the reply, then stops the
 * session.
 */
static void test_stop_at_once(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 12; before++) {
		struct fixture t;
		begin(&t);
		(void)turns(&t, before, MS);
		(void)dotnet_client_advance(t.client, t.now_ns);
		dotnet_client_stop(t.client, t.now_ns);
		assert_int_equal(turns(&t, 30, MS), DOTNET_ENDED);
		for (unsigned i = 0; i < t.peer.opened; i++)
			assert_int_equal(t.peer.stops[i], 1);
		if (!dotnet_client_named(t.client))
			assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)),
				"cut-short");
		finish(&t);
	}
}

/*
 * A client that is stopped before its first step is due immediately, because nothing else could
 * wake the caller.
 */
static void test_stop_before_first_turn(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	dotnet_client_stop(t.client, t.now_ns);
	assert_int_equal(wake_ns(t.client, &(uint32_t){ 0 }), 0);
	assert_int_equal(dotnet_client_advance(t.client, t.now_ns), DOTNET_ENDED);
	assert_int_equal(t.peer.opened, 0);
	finish(&t);
}

/* The same, but the client is freed without waiting. */
static void test_free_at_once(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 12; before++) {
		struct fixture t;
		begin(&t);
		(void)turns(&t, before, MS);
		serve(&t.peer); /* its session is being opened */
		finish(&t);
		for (unsigned i = 0; i < t.peer.opened; i++)
			assert_int_equal(t.peer.stops[i], 1);
	}
}

static void test_torn(void **state)
{
	struct fixture t;

	(void)state;
	/*
	 * The runtime ends the rundown: no stop is sent for a session that has ended, because its
	 * id may belong to another session.
	 */
	begin(&t);
	t.peer.cut_stream = true;
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_int_equal(t.received.ends[DOTNET_STREAM_RUNDOWN], 1);
	assert_int_equal(t.peer.stops[0], 0);
	/* The live session ends in the same way. */
	close(t.peer.stream[0]);
	t.peer.stream[0] = -1;
	assert_int_equal(turns(&t, 5, MS), DOTNET_ENDED);
	assert_int_equal(t.received.ends[DOTNET_STREAM_LIVE], 1);
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "closed");
	finish(&t);

	/* The peer closes all connections. */
	begin(&t);
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	close(t.peer.listener);
	t.peer.listener = -1;
	dotnet_client_stop(t.client, t.now_ns);
	close(t.peer.stream[0]);
	t.peer.stream[0] = -1;
	assert_int_equal(turns(&t, 5, MS), DOTNET_ENDED);
	finish(&t);
}

/* The decoder rejects the bytes: the sessions are stopped, and a stream without end is closed. */
static void test_refused_bytes(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	t.received.refuse = true;
	t.peer.keep_streams = true;
	(void)turns(&t, 20, MS);
	assert_int_equal(t.peer.stops[0], 1);
	assert_int_equal(t.peer.stops[1], 1);
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "lied");
	assert_int_equal(turns(&t, 60, 100 * MS), DOTNET_ENDED);
	assert_int_equal(t.received.ends[0] + t.received.ends[1], 0);
	finish(&t);
}

/*
 * The sums of the bytes of all requests of whole recordings, with runtimes that support more or
 * fewer commands. A malformed request kills a runtime, so a sum may change only with an intended
 * change of a request.
 */
static void test_exact_requests(void **state)
{
	static const uint32_t ids[] = { 80, 250 }; /* commands that the runtime does not support */
	static const struct ipc_provider wanted[] = {
		{ .name = "Microsoft-Windows-DotNETRuntime",
			.keywords = 0x8001,
			.level = 4,
			.event_ids = ids,
			.event_id_count = 2 },
		{ .name = "Shop", .keywords = UINT64_MAX, .level = 5, .arguments = "a=1" },
	};
	enum { UNTOLD = 1, SAMPLED = 2, FROM_START = 4, WANTED = 8, METHODS = 16, RUNDOWN = 32 };
	static const struct {
		unsigned what;
		unsigned newest;
		uint64_t sum;
		const char *log;
	} cases[] = {
		{ 0, IPC_COLLECT_TRACING_5, UINT64_C(0x2aeee638aec8df4d), "408 205 205 201 201 " },
		{ 0, IPC_COLLECT_TRACING_3, UINT64_C(0xa4851568fce9ea51),
			"408 205 204 204 201 201 " },
		{ 0, IPC_COLLECT_TRACING_2, UINT64_C(0xd7e845dd804a6b48),
			"408 205 204 203 203 201 201 " },
		{ UNTOLD | METHODS | RUNDOWN, IPC_COLLECT_TRACING_5, UINT64_C(0xd1d81a5c29f05dd4),
			"408 205 205 201 205 201 205 201 201 " },
		{ UNTOLD | METHODS | RUNDOWN, IPC_COLLECT_TRACING_2, UINT64_C(0xf9bdc68174ba5370),
			"408 205 204 203 203 201 203 201 203 201 201 " },
		{ SAMPLED, IPC_COLLECT_TRACING_5, UINT64_C(0xf0d32a72b45d64d4),
			"408 205 205 205 201 201 201 " },
		{ SAMPLED, IPC_COLLECT_TRACING_2, UINT64_C(0x28b67aab5e528162),
			"408 205 204 203 203 203 201 201 201 " },
		{ WANTED, IPC_COLLECT_TRACING_5, UINT64_C(0x9d1716b7d8ca9408),
			"408 206 206 201 201 " },
		{ WANTED, IPC_COLLECT_TRACING_4, UINT64_C(0x1ff865a6b02425a),
			"408 206 205 205 201 201 " },
		{ WANTED, IPC_COLLECT_TRACING_2, UINT64_C(0x310f759cb15e3cf3),
			"408 206 205 204 203 203 201 201 " },
		{ SAMPLED | FROM_START | WANTED, IPC_COLLECT_TRACING_5,
			UINT64_C(0xf8cd0ea68893f81c), "408 206 206 201 201 " },
		{ SAMPLED | FROM_START | WANTED, IPC_COLLECT_TRACING_2,
			UINT64_C(0x26440db922f2d6bb), "408 206 205 204 203 203 201 201 " },
		{ UNTOLD | WANTED | RUNDOWN, IPC_COLLECT_TRACING_5, UINT64_C(0x6f72dee2fa84c3eb),
			"408 206 206 201 206 201 201 " },
		{ FROM_START, IPC_COLLECT_TRACING_5, UINT64_C(0xdc7119247896eb37), "408 205 201 " },
		{ FROM_START, IPC_COLLECT_TRACING_3, UINT64_C(0xbfc7f226275140f7),
			"408 205 204 201 " },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned what = cases[i].what;
		struct fixture t;
		begin(&t);
		t.peer.newest_collect = cases[i].newest;
		if (what & UNTOLD)
			dotnet_client_wishes(t.client)->without_methods = true;
		if (what & SAMPLED)
			dotnet_client_wishes(t.client)->samples = true;
		if (what & FROM_START)
			dotnet_client_wishes(t.client)->from_start = true;
		if (what & WANTED)
			want(&t, wanted, 2);
		assert_int_equal(turns(&t, 60, MS), DOTNET_LIVE);
		if (what & RUNDOWN)
			assert_true(dotnet_client_rundown(t.client));
		(void)turns(&t, 40, MS);
		if (what & METHODS)
			assert_true(dotnet_client_methods(t.client));
		(void)turns(&t, 40, MS);
		dotnet_client_stop(t.client, t.now_ns);
		assert_int_equal(turns(&t, 60, MS), DOTNET_ENDED);
		assert_string_equal(t.peer.log, cases[i].log);
		assert_true(t.peer.sum == cases[i].sum);
		for (unsigned s = 0; s < t.peer.opened; s++)
			assert_int_equal(t.peer.stop_requests[s], 1);
		finish(&t);
	}
}

/*
 * An id that both the client and the caller exclude is sent one time: .NET 10 sends no event of a
 * provider whose filter contains an id twice.
 */
static void test_denied_id_twice(void **state)
{
	static const uint32_t ids[] = { 10, 250 };
	uint64_t sums[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		const struct ipc_provider wanted = { .name = "Microsoft-Windows-DotNETRuntime",
			.keywords = 0x8001,
			.level = 4,
			.event_ids = ids + i,
			.event_id_count = 2 - i };
		struct fixture t;
		begin(&t);
		want(&t, &wanted, 1);
		assert_int_equal(turns(&t, 60, MS), DOTNET_LIVE);
		sums[i] = t.peer.sum;
		finish(&t);
	}
	assert_true(sums[0] == sums[1]);
}

/*
 * Events with stacks have a session of their own. A runtime of .NET 10 gets their ids, and no id of
 * them for the session without stacks; an older one gets the keywords of events that it has.
 */
static void test_stacks(void **state)
{
	static const struct ipc_provider wanted = {
		.name = "Microsoft-Windows-DotNETRuntime", .keywords = 0x8001, .level = 4
	};
	static const struct {
		enum ipc_command newest;
		const char *log;
		const char *session;
		bool has_ticks; /* allocation ticks instead of sampled allocations */
	} cases[] = {
		{ IPC_COLLECT_TRACING_5, "408 206 206 206 201 ",
			"events Microsoft-Windows-DotNETRuntime:0x80200000000:4, 16 MB, with stacks",
			false },
		{ IPC_COLLECT_TRACING_4, "408 206 205 205 205 201 ",
			"events Microsoft-Windows-DotNETRuntime:0x200000001:5, 16 MB, with stacks",
			true },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture t;
		begin(&t);
		t.peer.newest_collect = cases[i].newest;
		want(&t, &wanted, 1);
		dotnet_client_wishes(t.client)->stack_kinds =
			STACKS_OF_EXCEPTIONS | STACKS_OF_ALLOCATIONS;
		assert_false(dotnet_client_is_prepared(t.client));
		assert_false(dotnet_client_takes_stacks(t.client, CLR_ID_ExceptionThrown_V1));
		assert_int_equal(turns(&t, 60, MS), DOTNET_LIVE);
		assert_true(dotnet_client_is_prepared(t.client));
		assert_string_equal(t.peer.log, cases[i].log);
		assert_string_equal(dotnet_client_session(t.client, DOTNET_STREAM_STACKS),
			cases[i].session);
		assert_string_equal(t.received.text[DOTNET_STREAM_STACKS], "RUN");
		assert_true(dotnet_client_takes_stacks(t.client, CLR_ID_ExceptionThrown_V1));
		assert_int_equal(dotnet_client_takes_stacks(t.client, CLR_ID_AllocationSampled),
			!cases[i].has_ticks);
		assert_int_equal(dotnet_client_takes_stacks(t.client, CLR_ID_GCAllocationTick),
			cases[i].has_ticks);
		assert_false(dotnet_client_takes_stacks(t.client, CLR_ID_ContentionStart_V2));
		dotnet_client_stop(t.client, t.now_ns);
		assert_int_equal(turns(&t, 60, MS), DOTNET_ENDED);
		for (unsigned s = 0; s < t.peer.opened; s++)
			assert_int_equal(t.peer.stop_requests[s], 1);
		finish(&t);
	}
}

/*
 * Whatever the answer to StopTracing, it was sent once for each session, and the end has a time
 * limit.
 */
static void test_failing_stops(void **state)
{
	static const enum lie lies[] = { MUTE, HALF_HEADER, WRONG_MAGIC, SIZE_BELOW_HEADER,
		SIZE_TOO_BIG, REQUEST_ECHOED, HANG_UP, ERROR_FAIL, ERROR_WITHOUT_CODE };

	(void)state;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		for (unsigned before = 0; before < 16; before++) {
			struct fixture t;
			begin(&t);
			t.peer.lie = lies[i];
			t.peer.lie_at = IPC_STOP_TRACING;
			dotnet_client_wishes(t.client)->samples = true;
			(void)turns(&t, before, MS);
			dotnet_client_stop(t.client, t.now_ns);
			turns_to_the_end(&t);
			finish(&t);
			for (unsigned s = 0; s < t.peer.opened; s++)
				assert_int_equal(t.peer.stop_requests[s], 1);
		}
	}
}

/* The same when the client is freed without a stop. */
static void test_freed_with_hung_stop(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 16; before++) {
		struct fixture t;
		begin(&t);
		t.peer.lie = MUTE;
		t.peer.lie_at = IPC_STOP_TRACING;
		(void)turns(&t, before, MS);
		serve(&t.peer);
		finish(&t);
		for (unsigned s = 0; s < t.peer.opened; s++)
			assert_int_equal(t.peer.stop_requests[s], 1);
	}
}

/* The process ends at any step, with its streams, its connections and its socket. */
static void test_peer_ends(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 16; before++) {
		struct fixture t;
		begin(&t);
		dotnet_client_wishes(t.client)->samples = true;
		(void)turns(&t, before, MS);
		bool had_begun = t.peer.requests > 0;
		for (unsigned i = 0; i < CONNECTIONS; i++) {
			if (t.peer.asking[i].fd >= 0)
				close(t.peer.asking[i].fd);
			t.peer.asking[i].fd = -1;
		}
		for (unsigned i = 0; i < t.peer.opened; i++) {
			if (t.peer.stream[i] >= 0)
				close(t.peer.stream[i]);
			t.peer.stream[i] = -1;
		}
		close(t.peer.listener);
		t.peer.listener = -1;
		enum dotnet_state end = turns(&t, 80, 100 * MS);
		assert_int_equal(end, DOTNET_ENDED);
		assert_true(!had_begun || dotnet_client_named(t.client) ||
			    dotnet_client_reason(t.client)[0]);
		for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++)
			assert_true(t.received.ends[i] <= 1);
		finish(&t);
	}
}

/* Blocks this process until the guard has requested the end of `count` sessions. */
static void stand_still(struct fixture *t, unsigned count)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < 120 && seen < count; i++) {
		struct pollfd fd = { .fd = t->peer.listener, .events = POLLIN };
		(void)poll(&fd, 1, 1000);
		serve(&t->peer);
		serve(&t->peer);
		seen = 0;
		for (unsigned s = 0; s < SESSIONS; s++)
			seen += t->peer.stop_requests[s];
	}
	assert_int_equal(seen, count);
}

/*
 * The guard ends the sessions. The client finds this in its next step, ends, and stops no session,
 * because the ids may belong to other sessions.
 */
static void test_guard_ends_sessions(void **state)
{
	struct guard *guard;
	struct fixture t;

	(void)state;
	assert_int_equal(guard_start(&guard, NULL), 0);
	begin(&t);
	dotnet_client_guard(t.client, guard);
	dotnet_client_wishes(t.client)->samples = true;
	assert_int_equal(turns(&t, 30, MS), DOTNET_LIVE);
	assert_int_equal(t.peer.stop_requests[2], 1); /* the session of the rundown */
	guard_beat(guard, t.now_ns);
	stand_still(&t, 3);
	assert_int_equal(dotnet_client_advance(t.client, t.now_ns), DOTNET_ENDED);
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "guarded");
	assert_int_equal(t.received.ends[DOTNET_STREAM_LIVE], 1);
	assert_int_equal(t.received.ends[DOTNET_STREAM_SAMPLES], 1);
	/* bytes that arrive after the guard's round began are not read */
	assert_string_equal(t.received.text[DOTNET_STREAM_LIVE], "LIVE");
	finish(&t);
	for (unsigned s = 0; s < 3; s++)
		assert_int_equal(t.peer.stop_requests[s], 1);
	guard_free(guard);
}

/* The same while a session is being opened, and the client is freed without another step. */
static void test_guard_while_opening(void **state)
{
	struct guard *guard;
	struct fixture t;

	(void)state;
	assert_int_equal(guard_start(&guard, NULL), 0);
	begin(&t);
	dotnet_client_guard(t.client, guard);
	while (t.peer.opened < 1)
		(void)turns(&t, 1, MS);
	/* The client does not read the answer to the CollectTracing of the rundown any more. */
	while (t.peer.opened < 2) {
		(void)dotnet_client_advance(t.client, t.now_ns);
		serve(&t.peer);
	}
	guard_beat(guard, t.now_ns);
	stand_still(&t, 2);
	finish(&t);
	for (unsigned s = 0; s < 2; s++)
		assert_int_equal(t.peer.stop_requests[s], 1);
	guard_free(guard);
}

static void expect_streams(struct fixture *t, enum dotnet_stream stream, bool streams)
{
	for (unsigned i = 0; i < 100 && dotnet_client_streams(t->client, stream) != streams; i++)
		(void)turns(t, 1, MS);
	assert_int_equal(dotnet_client_streams(t->client, stream), streams);
}

/*
 * Exceptions have a session of their own, which is closed and opened again, and so is one for
 * counters. Neither begins another rundown, and the other sessions stay.
 */
static void test_exceptions(void **state)
{
	static const struct ipc_provider wanted = {
		.name = "Microsoft-Windows-DotNETRuntime", .keywords = 0x200000001, .level = 4
	};
	struct fixture t;

	(void)state;
	begin(&t);
	want(&t, &wanted, 1);
	dotnet_client_wishes(t.client)->stack_kinds = STACKS_OF_EXCEPTIONS;
	dotnet_client_wishes(t.client)->exceptions = true;
	assert_int_equal(turns(&t, 60, MS), DOTNET_LIVE);
	assert_true(dotnet_client_named(t.client));
	assert_string_equal(dotnet_client_session(t.client, DOTNET_STREAM_LIVE),
		"live Microsoft-Windows-DotNETRuntime:0x39:5, 16 MB, no stacks");
	assert_string_equal(dotnet_client_session(t.client, DOTNET_STREAM_EXCEPTIONS),
		"exceptions Microsoft-Windows-DotNETRuntime:0x200000000:2, 16 MB, with stacks");
	/* it is the only one with stacks */
	assert_null(dotnet_client_session(t.client, DOTNET_STREAM_STACKS));
	assert_false(dotnet_client_takes_stacks(t.client, CLR_ID_ExceptionThrown_V1));
	assert_int_equal(t.peer.opened, 3);
	expect_streams(&t, DOTNET_STREAM_EXCEPTIONS, true);
	expect_streams(&t, DOTNET_STREAM_COUNTS, false);

	assert_true(dotnet_client_open(t.client, DOTNET_STREAM_COUNTS));
	assert_false(dotnet_client_open(t.client, DOTNET_STREAM_COUNTS)); /* it is under way */
	expect_streams(&t, DOTNET_STREAM_COUNTS, true);
	dotnet_client_end(t.client, DOTNET_STREAM_EXCEPTIONS, t.now_ns);
	dotnet_client_end(t.client, DOTNET_STREAM_EXCEPTIONS, t.now_ns);
	expect_streams(&t, DOTNET_STREAM_EXCEPTIONS, false);
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_int_equal(t.received.ends[DOTNET_STREAM_EXCEPTIONS], 1);
	assert_true(dotnet_client_open(t.client, DOTNET_STREAM_EXCEPTIONS));
	expect_streams(&t, DOTNET_STREAM_EXCEPTIONS, true);
	dotnet_client_valued(t.client, DOTNET_STREAM_COUNTS);
	dotnet_client_end(t.client, DOTNET_STREAM_COUNTS, t.now_ns);
	expect_streams(&t, DOTNET_STREAM_COUNTS, false);
	assert_int_equal(turns(&t, 20, MS), DOTNET_LIVE);
	assert_int_equal(t.peer.opened, 5);
	assert_int_equal(t.received.ends[DOTNET_STREAM_LIVE], 0);
	assert_int_equal(t.received.ends[DOTNET_STREAM_RUNDOWN], 1);
	finish(&t);
	/* each was stopped once, the last two by the free */
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(t.peer.stops[i], 1);
}

static void test_no_socket(void **state)
{
	struct fixture t;

	(void)state;
	begin(&t);
	assert_int_equal(unlink(t.peer.path), 0);
	/* The process may be starting, so the client connects repeatedly for five seconds. */
	assert_int_equal(turns(&t, 10, 100 * MS), DOTNET_ASKING);
	assert_int_equal(turns(&t, 50, 100 * MS), DOTNET_ENDED);
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "no-socket");
	finish(&t);
	begin(&t);
	close(t.peer.listener);
	t.peer.listener = -1;
	assert_int_equal(turns(&t, 60, 100 * MS), DOTNET_ENDED);
	assert_string_equal(reason_word(dotnet_client_reason_kind(t.client)), "refused");
	finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_socket), /* first: it needs a process younger than 5 s */
		cmocka_unit_test(test_polite),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_wrong_answers_are_refused),
		cmocka_unit_test(test_bad_sessions),
		cmocka_unit_test(test_rundown_refused),
		cmocka_unit_test(test_no_method_events),
		cmocka_unit_test(test_method_events_requested),
		cmocka_unit_test(test_wakes_up),
		cmocka_unit_test(test_hung_at_stop),
		cmocka_unit_test(test_stop_at_once),
		cmocka_unit_test(test_stop_before_first_turn),
		cmocka_unit_test(test_denied_id_twice),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_free_at_once),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_refused_bytes),
		cmocka_unit_test(test_exact_requests),
		cmocka_unit_test(test_failing_stops),
		cmocka_unit_test(test_freed_with_hung_stop),
		cmocka_unit_test(test_peer_ends),
		cmocka_unit_test(test_guard_ends_sessions),
		cmocka_unit_test(test_guard_while_opening),
	};

	return cmocka_run_group_tests_name("dotnet_client", tests, NULL, NULL);
}
