/*
 * event_session.c with a simulated runtime behind socket pairs: the feature gets each event once,
 * and after an error the stream is still read to its end.
 */
#include "unit/fake_runtime.h"

#include <errno.h>

#include "base/poll_set.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/event_session.h"
#include "trace/event.h"
#include "unit/nettrace_demo.h"

enum { CONNECTIONS = 16 };

struct runtime {
	struct fake_asking asking[CONNECTIONS];
	unsigned count;
	int stream;
	const uint8_t *data; /* from the begin of the stream */
	size_t size;
	size_t sent;
	unsigned stops;
};

struct taken {
	struct runtime_client client;
	struct event_session session;
	uint32_t events;
	uint32_t samples;
	uint32_t fail_at; /* 0: never */
};

static uint8_t demo[1u << 20];
static size_t demo_size;

static int set_up(void **state)
{
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	int r = demo_write(&(struct nettrace_sink_options){ .fd = fileno(file), .name = "demo" },
		NULL);
	ssize_t n = pread(fileno(file), demo, sizeof(demo), 0);
	fclose(file);
	assert_true(n > 10000 && (size_t)n < sizeof(demo));
	demo_size = (size_t)n;
	return r;
}

static int runtime_connect(void *context, struct diag *diag)
{
	struct runtime *runtime = context;

	(void)diag;
	assert_true(runtime->count < CONNECTIONS);
	return fake_connect(&runtime->asking[runtime->count++]);
}

static char runtime_state(void *context)
{
	(void)context;
	return 'S';
}

/* Answers a request that starts or stops a session. */
static void answer(struct runtime *runtime, struct fake_asking *asking)
{
	const uint64_t id = 7;

	fake_reply(asking->fd, true, &id, sizeof(id));
	if (fake_command(asking->data) == IPC_STOP_TRACING) {
		runtime->stops++;
		close(asking->fd);
	} else {
		assert_true(ipc_is_collect(fake_command(asking->data)));
		runtime->stream = asking->fd;
	}
	asking->fd = -1;
}

/*
 * Sends as much as the socket accepts. The stream ends after the session was stopped and all bytes
 * were sent.
 */
static void serve(struct runtime *runtime)
{
	for (unsigned i = 0; i < runtime->count; i++)
		if (fake_receive(&runtime->asking[i]))
			answer(runtime, &runtime->asking[i]);
	if (runtime->stream < 0)
		return;
	while (runtime->sent < runtime->size) {
		ssize_t n = send(runtime->stream, runtime->data + runtime->sent,
			runtime->size - runtime->sent, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		runtime->sent += (size_t)n;
	}
	if (runtime->stops) {
		close(runtime->stream);
		runtime->stream = -1;
	}
}

static void take(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct taken *taken = user;

	assert_ptr_equal(schema, &taken->session.trace.schemas.items[event->schema_index]);
	taken->samples += event->kind == EVENT_SAMPLE;
	if (++taken->events == taken->fail_at)
		diag_set(broken, -ENOSPC, "enough");
}

/* Opens a session whose stream is `data`, reads all of it, and stops the session. */
static void run(struct taken *taken, const uint8_t *data, size_t size, bool ignored)
{
	struct runtime runtime = { .stream = -1, .data = data, .size = size };
	const struct dotnet_endpoint endpoint = {
		.connect = runtime_connect, .state = runtime_state, .context = &runtime
	};
	const struct ipc_provider provider = { .name = "P" };
	const struct eventpipe_options options = {
		.providers = &provider, .provider_count = 1, .buffer_mb = 1, .no_info = true
	};
	const struct event_reading reading = {
		.take = ignored ? NULL : take, .user = taken, .name = "the test's events"
	};
	struct poll_set set = { 0 };
	uint64_t bytes = taken->session.bytes;
	uint64_t now_ns = 1000;

	event_session_end(&taken->session);
	runtime_client_done(&taken->client);
	runtime_client_init(&taken->client, &endpoint, NULL, NULL);
	assert_int_equal(event_session_open(&taken->session, &taken->client, &options, &reading),
		0);
	for (bool stopped = false; !event_session_is_over(&taken->session);) {
		poll_set_begin(&set, UINT64_MAX);
		runtime_client_await(&taken->client, &set);
		assert_true(set.fds.count || set.wake_ns != UINT64_MAX);
		serve(&runtime);
		runtime_client_advance(&taken->client, ++now_ns);
		if (!stopped && taken->session.bytes - bytes == size && size) {
			event_session_stop(&taken->session, now_ns);
			stopped = true;
		}
	}
	assert_int_equal(runtime.stops, 1);
	assert_int_equal(taken->session.bytes - bytes, size);
	assert_true(eventpipe_whole(taken->session.pipe));
	poll_set_done(&set);
}

static void close_taken(struct taken *taken)
{
	event_session_close(&taken->session);
	runtime_client_done(&taken->client);
}

static void test_not_opened(void **state)
{
	struct event_session session = { 0 };
	struct runtime_client client = { 0 };
	struct poll_set set = { 0 };
	char version[16] = "old";

	(void)state;
	assert_true(event_session_is_over(&session));
	assert_true(runtime_client_is_over(&client));
	runtime_client_advance(&client, 1);
	event_session_stop(&session, 1);
	poll_set_begin(&set, UINT64_MAX);
	runtime_client_await(&client, &set);
	assert_int_equal(set.fds.count, 0);
	assert_int_equal(set.wake_ns, UINT64_MAX);
	assert_int_equal(event_session_lost(&session), 0);
	assert_false(event_session_version(&session, version, sizeof(version)));
	assert_string_equal(version, "old");
	event_session_end(&session);
	event_session_close(&session);
	runtime_client_done(&client);
}

static void test_whole_stream(void **state)
{
	struct taken taken = { .samples = 0 };

	(void)state;
	run(&taken, demo, demo_size, false);
	assert_int_equal(taken.samples, DEMO_SAMPLES);
	assert_int_equal(taken.session.broken.error, 0);
	uint32_t events = taken.events;

	/* The tables and the number of lost events exist after the pipe was freed. */
	event_session_end(&taken.session);
	assert_true(event_session_is_over(&taken.session));
	assert_int_equal(event_session_lost(&taken.session), DEMO_LOST);
	assert_true(taken.session.trace.schemas.count > 1);

	/* The session is opened again: another stream, from its first byte. */
	run(&taken, demo, demo_size, false);
	assert_int_equal(taken.events, 2 * events);
	assert_int_equal(taken.session.bytes, 2 * demo_size);
	close_taken(&taken);
}

static void test_broken_stream(void **state)
{
	static uint8_t broken[sizeof(demo)];
	struct taken taken = { .samples = 0 };

	(void)state;
	memcpy(broken, demo, demo_size);
	memset(broken + demo_size / 2, 0xff, demo_size - demo_size / 2);
	run(&taken, broken, demo_size, false);
	assert_int_equal(taken.session.broken.error, -EBADMSG);
	assert_true(taken.samples > 0 && taken.samples < DEMO_SAMPLES);
	close_taken(&taken);
}

static void test_taker_fails(void **state)
{
	struct taken taken = { .fail_at = 10 };

	(void)state;
	run(&taken, demo, demo_size, false);
	assert_int_equal(taken.events, 10);
	assert_int_equal(taken.session.broken.error, -ENOSPC);
	assert_string_equal(taken.session.broken.text, "enough");
	close_taken(&taken);
}

static void test_ignored_stream(void **state)
{
	struct taken taken = { .samples = 0 };

	(void)state;
	run(&taken, demo, demo_size, true);
	assert_int_equal(taken.events, 0);
	assert_int_equal(event_session_lost(&taken.session), 0);
	close_taken(&taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_opened),
		cmocka_unit_test(test_whole_stream),
		cmocka_unit_test(test_broken_stream),
		cmocka_unit_test(test_taker_fails),
		cmocka_unit_test(test_ignored_stream),
	};

	return cmocka_run_group_tests_name("event_session", tests, set_up, NULL);
}
