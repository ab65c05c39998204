/*
 * runtime_client.c with a simulated runtime: two sessions of a process share its requests, each is ended by
 * its own StopTracing, also when the client is freed, and the process is guarded only if the guard can
 * connect to it.
 */
#include "unit/fake_runtime.h"

#include "base/poll_set.h"
#include "dotnet/guard.h"
#include "dotnet/runtime_client.h"

enum { CONNECTIONS = 16, SESSIONS = 4, TURNS_MAX = 100 };

struct peer {
	struct fake_asking asking[CONNECTIONS];
	unsigned count;
	int streams[SESSIONS]; /* -1: ended */
	unsigned opened;
	unsigned stops;
	bool is_held; /* receives no request for now */
};

struct fixture {
	struct peer peer;
	struct runtime_client client;
	struct ipc_provider provider;
	unsigned ends;
	uint64_t now_ns;
};

static int peer_connect(void *context, struct diag *diag)
{
	struct peer *peer = context;

	(void)diag;
	assert_true(peer->count < CONNECTIONS);
	return fake_connect(&peer->asking[peer->count++]);
}

static char peer_state(void *context)
{
	(void)context;
	return 'S';
}

static void answer(struct peer *peer, struct fake_asking *asking)
{
	enum ipc_command command = fake_command(asking->data);
	uint64_t id = peer->opened;

	if (ipc_is_collect(command)) {
		assert_true(peer->opened < SESSIONS);
		peer->streams[peer->opened++] = asking->fd;
		fake_reply(asking->fd, true, &id, sizeof(id));
	} else {
		assert_int_equal(command, IPC_STOP_TRACING);
		memcpy(&id, asking->data + 20, sizeof(id));
		assert_true(id < peer->opened && peer->streams[id] >= 0);
		peer->stops++;
		fake_reply(asking->fd, true, &id, sizeof(id));
		close(peer->streams[id]);
		peer->streams[id] = -1;
		close(asking->fd);
	}
	asking->fd = -1;
}

static void serve(struct peer *peer)
{
	for (unsigned i = 0; !peer->is_held && i < peer->count; i++)
		if (fake_receive(&peer->asking[i]))
			answer(peer, &peer->asking[i]);
}

static int on_bytes(void *user, const uint8_t *data, size_t size)
{
	struct fixture *f = user;

	(void)data;
	f->ends += !size;
	return 0;
}

static void set_up_client(struct fixture *f)
{
	const struct dotnet_endpoint endpoint = {
		.connect = peer_connect, .state = peer_state, .context = &f->peer
	};

	f->provider.name = "P";
	runtime_client_init(&f->client, &endpoint, NULL, NULL);
}

static struct eventpipe *open_one(struct fixture *f)
{
	const struct eventpipe_options options = {
		.providers = &f->provider, .provider_count = 1, .buffer_mb = 1, .no_info = true
	};
	const struct eventpipe_handler handler = { .bytes = on_bytes, .user = f };
	struct eventpipe *session;

	assert_int_equal(runtime_client_open(&f->client, &options, &handler, ++f->now_ns, &session),
		0);
	return session;
}

/* One turn. What the client waits for is never nothing while it has an open session. */
static void turn(struct fixture *f)
{
	struct poll_set set = { 0 };

	poll_set_begin(&set, UINT64_MAX);
	runtime_client_await(&f->client, &set);
	assert_true(set.fds.count || set.wake_ns != UINT64_MAX ||
		    runtime_client_is_over(&f->client));
	poll_set_done(&set);
	serve(&f->peer);
	runtime_client_advance(&f->client, ++f->now_ns);
}

static void turn_until_over(struct fixture *f)
{
	for (unsigned i = 0; i < TURNS_MAX && !runtime_client_is_over(&f->client); i++)
		turn(f);
	assert_true(runtime_client_is_over(&f->client));
}

static void test_none(void **state)
{
	struct runtime_client client = { 0 };
	struct eventpipe *session = NULL;
	struct poll_set set = { 0 };

	(void)state;
	assert_true(runtime_client_is_over(&client));
	assert_false(runtime_client_is_asking(&client));
	assert_false(runtime_client_is_guarded_off(&client));
	assert_int_equal(runtime_client_heard_ns(&client), 0);
	runtime_client_advance(&client, 1);
	runtime_client_stop(&client, 1);
	runtime_client_close(&client, &session);
	poll_set_begin(&set, UINT64_MAX);
	runtime_client_await(&client, &set);
	assert_int_equal(set.fds.count, 0);
	assert_int_equal(set.wake_ns, UINT64_MAX);
	runtime_client_done(&client);
}

/* While the first session's request is not answered, the second one sends none. */
static void test_one_request_at_a_time(void **state)
{
	struct fixture f = { .peer.is_held = true };

	(void)state;
	set_up_client(&f);
	struct eventpipe *first = open_one(&f);
	struct eventpipe *second = open_one(&f);

	for (unsigned i = 0; i < 10; i++)
		turn(&f);
	assert_int_equal(f.peer.count, 1);
	assert_true(runtime_client_is_asking(&f.client));
	f.peer.is_held = false;
	for (unsigned i = 0; i < TURNS_MAX && f.peer.opened < 2; i++)
		turn(&f);
	for (unsigned i = 0; i < TURNS_MAX && runtime_client_is_asking(&f.client); i++)
		turn(&f);
	assert_int_equal(eventpipe_state(first), EVENTPIPE_STREAMING);
	assert_int_equal(eventpipe_state(second), EVENTPIPE_STREAMING);
	assert_true(runtime_client_heard_ns(&f.client) > 0);

	/* The end of all: each by its own StopTracing, and both streams are read to their ends. */
	runtime_client_stop(&f.client, ++f.now_ns);
	turn_until_over(&f);
	assert_int_equal(f.peer.stops, 2);
	assert_int_equal(f.ends, 2);
	assert_true(eventpipe_whole(first) && eventpipe_whole(second));
	runtime_client_done(&f.client);
}

/* A session that is closed is stopped, and the others stream on; so is one that the client still has. */
static void test_close(void **state)
{
	struct fixture f = { .now_ns = 1 };

	(void)state;
	set_up_client(&f);
	struct eventpipe *first = open_one(&f);
	struct eventpipe *second = open_one(&f);

	for (unsigned i = 0; i < TURNS_MAX && f.peer.opened < 2; i++)
		turn(&f);
	for (unsigned i = 0; i < TURNS_MAX && runtime_client_is_asking(&f.client); i++)
		turn(&f);
	runtime_client_close(&f.client, &first);
	assert_null(first);
	serve(&f.peer);
	assert_int_equal(f.peer.stops, 1);
	turn(&f);
	assert_int_equal(eventpipe_state(second), EVENTPIPE_STREAMING);
	assert_false(runtime_client_is_over(&f.client));
	runtime_client_done(&f.client);
	serve(&f.peer);
	assert_int_equal(f.peer.stops, 2);
	assert_true(runtime_client_is_over(&f.client));
}

static void test_guard(void **state)
{
	struct dotnet_target target;
	struct runtime_client client;
	struct guard *guard;

	(void)state;
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &target, NULL), 0);
	assert_int_equal(guard_start(&guard, NULL), 0);
	runtime_client_init(&client, NULL, &target, guard);
	assert_ptr_equal(client.guard, guard);
	assert_int_equal(client.endpoint.state(client.endpoint.context), 'R');
	assert_false(runtime_client_is_guarded_off(&client));
	runtime_client_done(&client);

	/* a pid of another namespace: the guard would connect to another process */
	const struct dotnet_endpoint endpoint = dotnet_target_endpoint(&target);

	runtime_client_init(&client, &endpoint, NULL, guard);
	assert_null(client.guard);
	runtime_client_done(&client);
	guard_free(guard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_one_request_at_a_time),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_guard),
	};

	return cmocka_run_group_tests_name("runtime_client", tests, NULL, NULL);
}
