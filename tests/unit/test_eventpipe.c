/*
 * eventpipe.c and exchange.c with a simulated peer behind socket pairs: correct, old, silent,
 * lying, or disconnecting. The test sets the time.
 */
#include "unit/fake_runtime.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "dotnet/eventpipe.h"
#include "dotnet/ipc.h"

#define S       UINT64_C(1000000000)
#define SESSION UINT64_C(0x55aa)

enum { CONNECTIONS = 16 };

struct peer {
	struct fake_asking asking[CONNECTIONS];
	unsigned count;
	int stream;
	int asked;               /* index of the connection with unanswered_request */
	enum ipc_command newest; /* higher commands of the Collect set are unknown to the peer */
	enum ipc_command unanswered_request; /* the peer sends no answer to it */
	enum ipc_command hang_up_at;
	uint32_t refuse_collect; /* HRESULT */
	bool keep_stream;        /* the stop is answered, but the stream does not end */
	bool unanswered_stop;
	unsigned opened;
	unsigned stops;
	int refuse_connect; /* negative errno */
	char state;
	char log[256];
};

struct received {
	char text[4096];
	size_t len;
	unsigned ends;
	bool refuse;
};

static int peer_connect(void *context, struct diag *diag)
{
	struct peer *peer = context;

	if (peer->refuse_connect)
		return diag_set(diag, peer->refuse_connect, "no way in");
	assert_true(peer->count < CONNECTIONS);
	return fake_connect(&peer->asking[peer->count++]);
}

static char peer_state(void *context)
{
	return ((struct peer *)context)->state;
}

static void answer(struct peer *peer, unsigned i)
{
	const uint8_t *request = peer->asking[i].data;
	enum ipc_command command = fake_command(request);
	const uint64_t id = SESSION;
	size_t at = strlen(peer->log);
	int fd = peer->asking[i].fd;

	snprintf(peer->log + at, sizeof(peer->log) - at, "%x ", (unsigned)command);
	peer->asking[i].fd = -1;
	if (command == peer->unanswered_request) {
		peer->asked = fd;
		return; /* the connection stays open */
	}
	if (command == peer->hang_up_at) {
		close(fd);
		return;
	}
	if (command == IPC_PROCESS_INFO_3) {
		fake_info(fd, command);
	} else if (command == IPC_STOP_TRACING) {
		peer->stops++;
		assert_memory_equal(request + 20, &id, 8);
		if (peer->stream >= 0 && !peer->keep_stream) {
			(void)send(peer->stream, "END", 3,
				MSG_NOSIGNAL); /* the client may have gone */
			close(peer->stream);
			peer->stream = -1;
		}
		if (peer->unanswered_stop)
			return;
		fake_reply(fd, true, &id, 8);
	} else if (ipc_is_collect(command) && command <= peer->newest && !peer->refuse_collect) {
		fake_reply(fd, true, &id, 8);
		(void)send(fd, "BEGIN", 5, MSG_NOSIGNAL);
		peer->stream = fd;
		peer->opened++;
		return;
	} else {
		fake_error(fd,
			peer->refuse_collect ? peer->refuse_collect : IPC_ERROR_UNKNOWN_COMMAND);
	}
	close(fd);
}

static void serve(struct peer *peer)
{
	for (unsigned i = 0; i < peer->count; i++)
		if (fake_receive(&peer->asking[i]))
			answer(peer, i);
}

static int on_bytes(void *user, const uint8_t *data, size_t size)
{
	struct received *received = user;

	if (received->refuse)
		return -EBADMSG;
	received->ends += !size;
	if (size && !*data)
		return 0; /* only zero bytes follow in the stream */
	assert_true(received->len + size < sizeof(received->text));
	if (size)
		memcpy(received->text + received->len, data, size);
	received->len += size;
	return 0;
}

struct fixture {
	struct peer peer;
	struct received received;
	struct ipc_provider provider;
	struct eventpipe *pipe;
	uint64_t now_ns;
};

static void begin(struct fixture *fixture, const struct eventpipe_options *more)
{
	const struct eventpipe_handler handler = {
		.bytes = on_bytes,
		.user = &fixture->received,
	};
	const struct dotnet_endpoint endpoint = {
		.connect = peer_connect, .state = peer_state, .context = &fixture->peer
	};
	struct eventpipe_options options = more ? *more : (struct eventpipe_options){ 0 };

	fixture->now_ns = 100 * S;
	fixture->peer.stream = -1;
	fixture->peer.state = fixture->peer.state ? fixture->peer.state : 'S';
	if (!fixture->peer.newest)
		fixture->peer.newest = IPC_COLLECT_TRACING_5;
	fixture->provider.name = "P";
	options.providers = &fixture->provider;
	options.provider_count = 1;
	options.buffer_mb = 1;
	assert_int_equal(
		eventpipe_new(&endpoint, &options, &handler, fixture->now_ns, &fixture->pipe), 0);
}

static enum eventpipe_state turns(struct fixture *fixture, unsigned count, uint64_t step_ns)
{
	struct poll_set set = { 0 };

	for (unsigned i = 0; i < count; i++) {
		(void)eventpipe_advance(fixture->pipe, fixture->now_ns);
		/*
		 * A caller that sleeps until the wake-up time or until a descriptor is ready misses
		 * nothing.
		 */
		poll_set_begin(&set, UINT64_MAX);
		eventpipe_await(fixture->pipe, &set);
		assert_true(set.fds.count || set.wake_ns != UINT64_MAX ||
			    eventpipe_state(fixture->pipe) == EVENTPIPE_ENDED);
		serve(&fixture->peer);
		fixture->now_ns += step_ns;
	}
	poll_set_done(&set);
	return eventpipe_advance(fixture->pipe, fixture->now_ns);
}

static void end(struct fixture *fixture)
{
	eventpipe_free(fixture->pipe);
	serve(&fixture->peer);
	fake_hang_up(fixture->peer.asking, fixture->peer.count);
	if (fixture->peer.stream >= 0)
		close(fixture->peer.stream);
}

static void test_complete_session(void **state)
{
	struct fixture fixture = { 0 };

	(void)state;
	begin(&fixture, NULL);
	assert_int_equal(turns(&fixture, 8, 1), EVENTPIPE_STREAMING);
	assert_string_equal(eventpipe_info(fixture.pipe)->runtime_version, "10.0.12");
	assert_true(eventpipe_opened_ns(fixture.pipe) > 0);
	assert_string_equal(fixture.received.text, "BEGIN");
	assert_int_equal(turns(&fixture, 3, 100 * S), EVENTPIPE_STREAMING); /* no error */
	eventpipe_stop(fixture.pipe, fixture.now_ns);
	assert_int_equal(turns(&fixture, 6, 1), EVENTPIPE_ENDED);
	assert_string_equal(fixture.received.text, "BEGINEND");
	assert_int_equal(fixture.received.ends, 1);
	assert_int_equal(eventpipe_bytes(fixture.pipe), 8);
	assert_true(eventpipe_whole(fixture.pipe));
	assert_string_equal(eventpipe_reason(fixture.pipe)->text, "");
	assert_string_equal(fixture.peer.log, "408 203 201 ");
	end(&fixture);
	assert_int_equal(fixture.peer.stops, 1);
}

static void test_older_runtimes(void **state)
{
	const struct eventpipe_options rundown = { .rundown_keywords = 0x18, .no_info = true };
	const uint32_t id = 1;
	struct fixture old = { .peer.newest = IPC_COLLECT_TRACING_2 };
	struct fixture picky = { .peer.newest = IPC_COLLECT_TRACING_4,
		.provider.event_ids = &id,
		.provider.event_id_count = 1,
		.provider.only_event_ids = true };

	(void)state;
	begin(&old, &rundown);
	assert_int_equal(turns(&old, 12, 1), EVENTPIPE_STREAMING);
	assert_string_equal(old.peer.log, "205 204 203 ");
	end(&old); /* freed while it streams: the session is still stopped */
	assert_int_equal(old.peer.stops, 1);

	begin(&picky, &(struct eventpipe_options){ .no_info = true });
	assert_int_equal(turns(&picky, 6, 1), EVENTPIPE_ENDED);
	assert_string_equal(picky.peer.log, "206 ");
	assert_int_equal(eventpipe_reason(picky.pipe)->kind, REASON_KIND_TOO_OLD);
	end(&picky);
}

static void test_refusals(void **state)
{
	struct fixture full = { .peer.refuse_collect = IPC_ERROR_FAIL };
	struct fixture foreign = { .peer.refuse_connect = -EACCES };
	struct fixture absent = { .peer.refuse_connect = -ENOENT };
	struct fixture torn = { .peer.hang_up_at = IPC_COLLECT_TRACING_2 };

	(void)state;
	begin(&full, &(struct eventpipe_options){ .no_info = true });
	assert_int_equal(turns(&full, 6, 1), EVENTPIPE_ENDED);
	assert_int_equal(eventpipe_reason(full.pipe)->kind, REASON_KIND_SLOTS);
	end(&full);
	begin(&foreign, NULL);
	assert_int_equal(turns(&foreign, 3, 1), EVENTPIPE_ENDED);
	assert_int_equal(eventpipe_reason(foreign.pipe)->kind, REASON_KIND_PERMISSION);
	assert_string_equal(eventpipe_reason(foreign.pipe)->text, "no way in");
	end(&foreign);
	/* Its socket may still appear, but the wait has a limit. */
	begin(&absent, &(struct eventpipe_options){ .appear_ns = 102 * S });
	assert_int_equal(turns(&absent, 3, S / 10), EVENTPIPE_OPENING);
	assert_int_equal(turns(&absent, 30, S / 10), EVENTPIPE_ENDED);
	assert_int_equal(eventpipe_reason(absent.pipe)->kind, REASON_KIND_NO_SOCKET);
	end(&absent);
	begin(&torn, &(struct eventpipe_options){ .no_info = true });
	assert_int_equal(turns(&torn, 6, 1), EVENTPIPE_ENDED);
	assert_int_equal(eventpipe_reason(torn.pipe)->kind, REASON_KIND_ERROR);
	end(&torn);
}

static void test_silence(void **state)
{
	struct fixture never_answers = { .peer.unanswered_request = IPC_PROCESS_INFO_3 };
	struct fixture stopped = { .peer.state = 'T' };
	struct fixture lingering = { .peer.keep_stream = true };
	struct fixture dripping = { .peer.keep_stream = true };
	struct fixture flooding = { .peer.keep_stream = true };
	struct fixture trickling = { .peer.unanswered_request = IPC_PROCESS_INFO_3 };
	static const char block[EVENTPIPE_PROGRESS_BYTES];
	struct fixture deaf_ear = { .peer.unanswered_stop = true };

	(void)state;
	begin(&never_answers, NULL);
	assert_int_equal(turns(&never_answers, 4, S), EVENTPIPE_OPENING);
	assert_int_equal(turns(&never_answers, 4, S), EVENTPIPE_HUNG);
	assert_int_equal(eventpipe_reason(never_answers.pipe)->kind, REASON_KIND_HUNG);
	eventpipe_stop(never_answers.pipe, never_answers.now_ns);
	assert_int_equal(turns(&never_answers, 2, 1), EVENTPIPE_ENDED);
	end(&never_answers);

	begin(&stopped, NULL);
	assert_int_equal(turns(&stopped, 8, S), EVENTPIPE_HUNG);
	assert_string_equal(stopped.peer.log, ""); /* nothing was sent */
	assert_int_equal(eventpipe_reason(stopped.pipe)->kind, REASON_KIND_STOPPED);
	stopped.peer.state = 'S';
	assert_int_equal(turns(&stopped, 8, 1 + S / 10), EVENTPIPE_STREAMING);
	assert_string_equal(eventpipe_reason(stopped.pipe)->text, "");
	end(&stopped);

	begin(&lingering, &(struct eventpipe_options){ .rundown_keywords = 1 });
	assert_int_equal(turns(&lingering, 8, 1), EVENTPIPE_STREAMING);
	eventpipe_stop(lingering.pipe, lingering.now_ns);
	/* The wait is extended while many bytes arrive, up to the longest time of a rundown. */
	for (int i = 0; i < 7; i++) {
		assert_int_equal(turns(&lingering, 2, 2 * S), EVENTPIPE_STOPPING);
		assert_int_equal(send(lingering.peer.stream, block, sizeof(block), MSG_NOSIGNAL),
			sizeof(block));
	}
	assert_int_equal(turns(&lingering, 2, 2 * S), EVENTPIPE_ENDED);
	assert_int_equal(eventpipe_reason(lingering.pipe)->kind, REASON_KIND_CUT_SHORT);
	assert_string_equal(eventpipe_reason(lingering.pipe)->text,
		"it did not end the session within 30 s");
	assert_false(eventpipe_whole(lingering.pipe));
	assert_int_equal(lingering.received.ends, 1);
	end(&lingering);

	begin(&dripping, &(struct eventpipe_options){ .rundown_keywords = 1 });
	assert_int_equal(turns(&dripping, 8, 1), EVENTPIPE_STREAMING);
	eventpipe_stop(dripping.pipe, dripping.now_ns);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(turns(&dripping, 2, S / 2), EVENTPIPE_STOPPING);
		assert_int_equal(send(dripping.peer.stream, "x", 1, MSG_NOSIGNAL), 1);
	}
	assert_int_equal(turns(&dripping, 3, S / 2), EVENTPIPE_ENDED);
	assert_string_equal(eventpipe_reason(dripping.pipe)->text,
		"it did not end the session within 5 s");
	end(&dripping);

	/* Without a rundown only the buffered events arrive. */
	begin(&flooding, &(struct eventpipe_options){ .buffer_mb = 1 });
	assert_int_equal(turns(&flooding, 8, 1), EVENTPIPE_STREAMING);
	eventpipe_stop(flooding.pipe, flooding.now_ns);
	unsigned sent = 0;
	while (turns(&flooding, 1, 1) == EVENTPIPE_STOPPING && sent < 1000)
		sent += send(flooding.peer.stream, block, sizeof(block), MSG_NOSIGNAL) ==
			(ssize_t)sizeof(block);
	assert_in_range(sent, 128, 140);
	assert_string_equal(eventpipe_reason(flooding.pipe)->text,
		"it sent more than a session can hold after its end");
	end(&flooding);

	/* The time limit is that of the whole answer, in any number of pieces. */
	begin(&trickling, NULL);
	for (int i = 0; i < 8; i++) {
		(void)turns(&trickling, 1, S);
		if (i)
			assert_int_equal(send(trickling.peer.asked, &"DOTNET_IPC_V1"[i], 1,
						 MSG_NOSIGNAL),
				1);
	}
	assert_int_equal(eventpipe_state(trickling.pipe), EVENTPIPE_HUNG);
	end(&trickling);

	begin(&deaf_ear, NULL);
	assert_int_equal(turns(&deaf_ear, 8, 1), EVENTPIPE_STREAMING);
	eventpipe_stop(deaf_ear.pipe, deaf_ear.now_ns);
	assert_int_equal(turns(&deaf_ear, 8, S), EVENTPIPE_ENDED);
	assert_true(eventpipe_whole(deaf_ear.pipe));
	assert_int_equal(deaf_ear.peer.stops, 1);
	end(&deaf_ear);
}

static void test_ends_by_themselves(void **state)
{
	struct fixture exited = { 0 };
	struct fixture refused = { .received.refuse = true };

	(void)state;
	begin(&exited, NULL);
	assert_int_equal(turns(&exited, 8, 1), EVENTPIPE_STREAMING);
	close(exited.peer.stream);
	exited.peer.stream = -1;
	exited.peer.state = 0;
	assert_int_equal(turns(&exited, 3, 1), EVENTPIPE_ENDED);
	assert_true(eventpipe_whole(exited.pipe));
	assert_string_equal(eventpipe_reason(exited.pipe)->text, "");
	end(&exited);
	assert_int_equal(exited.peer.stops, 0); /* the id may belong to another session now */

	/*
	 * The handler rejects the bytes: the session is stopped and read to its end, and the
	 * handler gets no more.
	 */
	begin(&refused, NULL);
	assert_int_equal(turns(&refused, 14, 1), EVENTPIPE_ENDED);
	assert_int_equal(refused.peer.stops, 1);
	assert_int_equal(eventpipe_reason(refused.pipe)->kind, REASON_KIND_LIED);
	assert_int_equal(refused.received.ends, 0);
	end(&refused);
}

/* The end is requested at every step of the exchange: each open session is stopped. */
static void test_stopped_at_any_time(void **state)
{
	(void)state;
	for (unsigned moment = 0; moment < 9; moment++) {
		struct fixture fixture = { 0 };
		begin(&fixture, NULL);
		(void)turns(&fixture, moment, 1);
		eventpipe_stop(fixture.pipe, fixture.now_ns);
		assert_int_equal(turns(&fixture, 12, 1), EVENTPIPE_ENDED);
		assert_int_equal(fixture.peer.stops, fixture.peer.opened);
		end(&fixture);

		struct fixture dropped = { 0 };
		begin(&dropped, NULL);
		(void)turns(&dropped, moment, 1);
		bool opened = eventpipe_opened_ns(dropped.pipe) != 0;
		end(&dropped);
		assert_int_equal(dropped.peer.stops, opened);
	}
}

/* A session with counters is stopped after their first values, or when these do not come. */
static void test_values(void **state)
{
	static const char *const arguments[] = { "EventCounterIntervalSec=1",
		"SessionId=SHARED;RefreshInterval=1;MaxTimeSeries=10" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture fixture = { .provider.arguments = arguments[i] };
		begin(&fixture, NULL);
		assert_int_equal(turns(&fixture, 6, 1), EVENTPIPE_STREAMING);
		eventpipe_stop(fixture.pipe, fixture.now_ns);
		assert_int_equal(turns(&fixture, 10, S / 10), EVENTPIPE_STOPPING);
		assert_int_equal(fixture.peer.stops, 0);
		assert_true(send(fixture.peer.stream, "VALUES", 6, MSG_NOSIGNAL) == 6);
		(void)turns(&fixture, 1, 1);
		assert_non_null(strstr(fixture.received.text, "VALUES")); /* it is read meanwhile */
		eventpipe_valued(fixture.pipe);
		assert_int_equal(turns(&fixture, 6, 1), EVENTPIPE_ENDED);
		assert_int_equal(fixture.peer.stops, 1);
		end(&fixture);

		struct fixture silent = { .provider.arguments = arguments[i] };
		begin(&silent, NULL);
		assert_int_equal(turns(&silent, 6, 1), EVENTPIPE_STREAMING);
		eventpipe_stop(silent.pipe, silent.now_ns);
		assert_int_equal(turns(&silent, 19, S / 10), EVENTPIPE_STOPPING);
		assert_int_equal(silent.peer.stops, 0);
		assert_int_equal(turns(&silent, 6, S / 10), EVENTPIPE_ENDED);
		assert_int_equal(silent.peer.stops, 1);
		end(&silent);

		/* It is not waited for where the caller gives up, or where the process ends. */
		struct fixture dropped = { .provider.arguments = arguments[i] };
		begin(&dropped, NULL);
		(void)turns(&dropped, 6, 1);
		eventpipe_stop(dropped.pipe, dropped.now_ns);
		end(&dropped);
		assert_int_equal(dropped.peer.stops, 1);

		struct fixture gone = { .provider.arguments = arguments[i] };
		begin(&gone, NULL);
		(void)turns(&gone, 6, 1);
		eventpipe_stop(gone.pipe, gone.now_ns);
		close(gone.peer.stream);
		gone.peer.stream = -1;
		assert_int_equal(turns(&gone, 4, 1), EVENTPIPE_ENDED);
		assert_int_equal(gone.peer.stops, 0);
		end(&gone);
	}
}

static void test_environment(void **state)
{
	struct bytes message = { 0 };
	struct peer peer = { .stream = -1, .state = 'S' };
	const struct dotnet_endpoint endpoint = {
		.connect = peer_connect, .state = peer_state, .context = &peer
	};
	const struct ipc_request request = { .command = IPC_PROCESS_ENVIRONMENT };
	struct exchange exchange = { 0 };
	struct bytes variables = { 0 };

	(void)state;
	bytes_u32(&variables, 1);
	fake_text(&variables, "A=1");
	assert_int_equal(exchange_begin(&exchange, &endpoint, &request, 1, 0, NULL), 0);
	assert_int_equal(exchange_advance(&exchange, 1), EXCHANGE_HEADER);
	bytes_add(&message, "DOTNET_IPC_V1", 14);
	bytes_u16(&message, 26);
	bytes_u16(&message, 0x00ff);
	bytes_u16(&message, 0);
	bytes_u32(&message, (uint32_t)variables.len);
	bytes_u16(&message, 0);
	bytes_add(&message, variables.data, variables.len);
	for (size_t i = 0; i < message.len; i++) {
		assert_false(exchange_is_over(&exchange));
		assert_int_equal(send(peer.asking[0].fd, message.data + i, 1, MSG_NOSIGNAL), 1);
		(void)exchange_advance(&exchange, 2);
	}
	assert_int_equal(exchange.state, EXCHANGE_ANSWERED);
	assert_true(exchange.ok);
	assert_int_equal(exchange.payload_size, variables.len);
	assert_memory_equal(exchange.payload, variables.data, variables.len);
	exchange_done(&exchange);
	assert_true(exchange_is_over(&exchange));
	close(peer.asking[0].fd);
	bytes_done(&message);
	bytes_done(&variables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete_session),
		cmocka_unit_test(test_older_runtimes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_ends_by_themselves),
		cmocka_unit_test(test_stopped_at_any_time),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests_name("eventpipe", tests, NULL, NULL);
}
