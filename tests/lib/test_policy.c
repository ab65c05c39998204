/*
 * Full buffers: each policy, with a listener that is slow or never reads, and a socket whose peer
 * does not read or closes the connection.
 */
#include "lib/read_back.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include <spoor/spoor.h>

#include "lib/pipe/pipe_session.h"
#include "lib/sink/sinks.h"

SPOOR_PROVIDER(room, "Policy")
SPOOR_EVENT(room, number, 1, SPOOR_INFO, 0x1, (u64, value), (text, text))

#define FIRED 40000u

static struct spoor_want want_all = {
	.size = sizeof(want_all), .name = "Policy", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
};

static struct spoor_session_options options_of(uint32_t policy, uint32_t block_ms)
{
	return (struct spoor_session_options){ .size = sizeof(struct spoor_session_options),
		.wants = &want_all,
		.want_count = 1,
		.policy = policy,
		.block_ms = block_ms,
		.buffer_bytes = 512 << 10 };
}

static struct spoor_session_counts counts_of(struct spoor_session *session)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_session_count(session, &counts);
	return counts;
}

static void fire_all(struct spoor_session *session)
{
	for (uint64_t i = 0; i < FIRED; i++) {
		room_number(i, "no room for me");
		if (i % 2000 == 0)
			assert_int_equal(spoor_session_flush(session, 10000), 0);
	}
	assert_int_equal(spoor_session_flush(session, 10000), 0);
}

static uint64_t value_of(const struct spoor_event_view *view)
{
	struct spoor_value value;

	assert_int_equal(spoor_event_field(view, "value", &value), 0);
	return value.u64;
}

/*
 * Without a reader the oldest events stay and the newest are lost; a later event has the number of
 * lost ones.
 */
static void newest_are_dropped(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_DROP_NEWEST, 0);
	struct spoor_session *session = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };
	uint64_t expected = 0;

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	fire_all(session);
	uint64_t kept = counts_of(session).written;
	assert_in_range(kept, 2000, FIRED / 2);
	for (; expected < kept; expected++) {
		assert_int_equal(spoor_listener_read(session, &view, 1000), 1);
		assert_int_equal(value_of(&view), expected);
		assert_int_equal(view.lost_before, 0);
	}
	room_number(FIRED, "room again");
	assert_int_equal(spoor_listener_read(session, &view, 5000), 1);
	assert_int_equal(value_of(&view), FIRED);
	assert_int_equal(view.lost_before, FIRED - kept);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, FIRED + 1);
	spoor_session_free(session);
}

/* Without a reader the newest events stay. The first one that is read has the number of those before. */
static void oldest_are_overwritten(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_OVERWRITE_OLDEST, 0);
	struct spoor_session *session = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	fire_all(session);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, FIRED);
	uint64_t kept = counts_of(session).written;
	assert_in_range(kept, 2000, FIRED / 2);
	for (uint64_t i = FIRED - kept; i < FIRED; i++) {
		assert_int_equal(spoor_listener_read(session, &view, 1000), 1);
		assert_int_equal(value_of(&view), i);
		assert_int_equal(view.lost_before, i == FIRED - kept ? i : 0);
	}
	spoor_session_free(session);
}

#define SHARERS 3u

static void *fire_of_thread(void *context)
{
	uint64_t number = (uint64_t)(uintptr_t)context;

	for (uint64_t i = 0; i < FIRED; i++)
		room_number(number << 32 | i, "one of several threads");
	return NULL;
}

/* The gap between two events of a thread is the number of those that were lost between them. */
static void losses_of_each_thread_are_at_their_place(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_OVERWRITE_OLDEST, 0);
	struct spoor_session *session = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };
	uint64_t next[SHARERS] = { 0 };
	uint64_t read = 0, gaps = 0;
	pthread_t threads[SHARERS];
	int r;

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	for (uint64_t i = 0; i < SHARERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, fire_of_thread, (void *)(uintptr_t)i), 0);
	for (bool joined = false; (r = spoor_listener_read(session, &view, 100)) >= 0;) {
		if (r == 0 && !joined) {
			for (uint64_t i = 0; i < SHARERS; i++)
				pthread_join(threads[i], NULL);
			joined = true;
			assert_int_equal(spoor_session_stop(session), 0);
		}
		if (r == 0)
			continue;
		uint64_t number = value_of(&view) >> 32, value = value_of(&view) & UINT32_MAX;
		assert_true(number < SHARERS);
		assert_int_equal(view.lost_before, value - next[number]);
		next[number] = value + 1;
		gaps += view.lost_before;
		if (read++ % 1000 == 0)
			usleep(5000); /* slower than three threads: some are overwritten */
	}
	assert_int_equal(r, -ESHUTDOWN);
	assert_int_equal(counts_of(session).written, read);
	assert_int_equal(counts_of(session).lost, SHARERS * FIRED - read);
	assert_true(gaps > 0 && gaps <= counts_of(session).lost);
	spoor_session_free(session);
}

static void *fire_thread(void *context)
{
	(void)context;
	for (uint64_t i = 0; i < FIRED; i++)
		room_number(i, "I wait");
	return NULL;
}

/* A reader that is slower than the writer: nothing is lost, the writer waits. */
static void writers_wait_for_room(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_BLOCK, 60000);
	struct spoor_session *session = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };
	pthread_t thread;

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	assert_int_equal(pthread_create(&thread, NULL, fire_thread, NULL), 0);
	for (uint64_t i = 0; i < FIRED; i++) {
		assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
		assert_int_equal(value_of(&view), i);
		if (i % 5000 == 0)
			usleep(5000);
	}
	pthread_join(thread, NULL);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).lost, 0);
	spoor_session_free(session);
}

/*
 * Without a reader the wait has a limit; then events are lost and counted. Another session is not
 * affected.
 */
static void waiting_has_a_bound(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_BLOCK, 30);
	struct spoor_session_options all = options_of(SPOOR_DROP_NEWEST, 0);
	struct spoor_session *session = NULL;
	struct spoor_session *other = NULL;

	(void)state;
	all.buffer_bytes = 64 << 20;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	assert_int_equal(spoor_session_start_listener(&all, &other), 0);
	uint64_t before = spoor_now_ns();
	fire_all(other);
	assert_true(spoor_now_ns() - before < UINT64_C(20000000000));
	spoor_session_stop(session);
	spoor_session_stop(other);
	assert_true(counts_of(session).lost > 0);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, FIRED);
	assert_int_equal(counts_of(other).written, FIRED);
	spoor_session_free(session);
	spoor_session_free(other);
}

/* ---- A callback that does not return ---- */

static bool let_go; /* atomic */

static void sticks(const struct spoor_event_view *event, void *context)
{
	(void)event;
	*(unsigned *)context += 1;
	while (!__atomic_load_n(&let_go, __ATOMIC_RELAXED))
		usleep(1000);
}

static void a_stuck_callback_delays_its_session_alone(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_DROP_NEWEST, 0);
	struct spoor_session *stuck = NULL;
	struct spoor_session *other = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };
	unsigned calls = 0;

	(void)state;
	assert_int_equal(spoor_session_start_callback(&options, sticks, &calls, &stuck), 0);
	assert_int_equal(spoor_session_start_listener(&options, &other), 0);
	for (uint64_t i = 0; i < 100; i++) {
		room_number(i, "past the stuck one");
		assert_int_equal(spoor_listener_read(other, &view, 5000), 1);
		assert_int_equal(value_of(&view), i);
	}
	spoor_session_stop(other);
	spoor_session_free(other);
	__atomic_store_n(&let_go, true, __ATOMIC_RELAXED);
	spoor_session_stop(stuck);
	assert_int_equal(calls, 100);
	spoor_session_free(stuck);
}

/* A callback that stops its own session. */
static void stops_itself(const struct spoor_event_view *event, void *context)
{
	*(unsigned *)context += 1;
	spoor_session_stop(event->session);
}

static void a_callback_may_stop_its_session(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_DROP_NEWEST, 0);
	struct spoor_session *session = NULL;
	unsigned calls = 0;

	(void)state;
	assert_int_equal(spoor_session_start_callback(&options, stops_itself, &calls, &session), 0);
	room_number(1, "the only one");
	for (int i = 0; i < 2000 && room_number_enabled(); i++)
		usleep(1000);
	assert_false(room_number_enabled());
	spoor_session_stop(session);
	assert_int_equal(calls, 1);
	spoor_session_free(session);
}

/* Waits until the dispatch threads of all callbacks have ended. */
static void dispatch_threads_end(void)
{
	for (unsigned left = 1, tries = 0; left && tries < 60000; tries++) {
		DIR *folder = opendir("/proc/self/task");
		const struct dirent *entry;
		char path[300], name[32];

		assert_non_null(folder);
		left = 0;
		while ((entry = readdir(folder))) {
			snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
			FILE *file = fopen(path, "r");
			if (!file)
				continue;
			if (fgets(name, sizeof(name), file))
				left += strcmp(name, "spoor-listener\n") == 0;
			fclose(file);
		}
		closedir(folder);
		if (!left)
			return;
		usleep(1000);
	}
	fail_msg("a dispatch thread has not ended");
}

struct hang {
	bool let_go;    /* atomic */
	unsigned calls; /* atomic */
	unsigned hangs_at;
};

static void hangs(const struct spoor_event_view *event, void *context)
{
	struct hang *hang = context;

	(void)event;
	if (__atomic_add_fetch(&hang->calls, 1, __ATOMIC_RELAXED) != hang->hangs_at)
		return;
	while (!__atomic_load_n(&hang->let_go, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* The session's end does not wait for a function that never returns, and counts what it did not get. */
static void a_hung_callback_is_left(void **state)
{
	static struct hang hangs_at[] = { { .hangs_at = 1 }, { .hangs_at = 300 } };

	(void)state;
	for (size_t i = 0; i < sizeof(hangs_at) / sizeof(hangs_at[0]); i++) {
		struct spoor_session_options options = options_of(SPOOR_DROP_NEWEST, 0);
		struct hang *hang = &hangs_at[i];
		struct spoor_session *session = NULL;

		options.buffer_bytes = 16 << 20;
		assert_int_equal(spoor_session_start_callback(&options, hangs, hang, &session), 0);
		for (uint64_t k = 0; k < 10000; k++)
			room_number(k, "not wanted any more");
		assert_int_equal(spoor_session_stop(session), -ETIMEDOUT);
		assert_int_equal(counts_of(session).written, hang->hangs_at);
		assert_int_equal(counts_of(session).lost, 10000 - hang->hangs_at);
		assert_int_equal(spoor_session_stop(session), -ETIMEDOUT);
		spoor_session_free(session);
		/* When it returns after all, it is not called for events that were lost. */
		__atomic_store_n(&hang->let_go, true, __ATOMIC_RELEASE);
		dispatch_threads_end();
		assert_int_equal(__atomic_load_n(&hang->calls, __ATOMIC_RELAXED), hang->hangs_at);
	}
}

/* A function that is slow, but returns, gets all events, however long that takes. */
static void is_slow(const struct spoor_event_view *event, void *context)
{
	*(unsigned *)context += 1;
	(void)event;
	usleep(70000);
}

static void a_slow_callback_is_waited_for(void **state)
{
	struct spoor_session_options options = options_of(SPOOR_DROP_NEWEST, 0);
	struct spoor_session *session = NULL;
	unsigned calls = 0;

	(void)state;
	assert_int_equal(spoor_session_start_callback(&options, is_slow, &calls, &session), 0);
	for (uint64_t i = 0; i < 100; i++)
		room_number(i, "one after the other");
	assert_int_equal(spoor_session_stop(session), 0);
	assert_int_equal(calls, 100);
	assert_int_equal(counts_of(session).written, 100);
	spoor_session_free(session);
}

/* ---- Sockets ---- */

struct end {
	pthread_mutex_t lock;
	int error;
	bool ended;
};

static void ended(struct session *session, int error, void *context)
{
	struct end *end = context;

	(void)session;
	pthread_mutex_lock(&end->lock);
	end->error = error;
	end->ended = true;
	pthread_mutex_unlock(&end->lock);
}

/* Called after a session has ended. */
static int error_of(struct end *end)
{
	for (int i = 0; i < 10000; i++) {
		pthread_mutex_lock(&end->lock);
		bool done = end->ended;
		int error = end->error;
		end->ended = false;
		pthread_mutex_unlock(&end->lock);
		if (done)
			return error;
		usleep(1000);
	}
	fail_msg("the session's end was not reported");
	return 0;
}

static struct session *socket_session(int fd, struct end *end)
{
	struct session_config config = {
		.options = options_of(SPOOR_DROP_NEWEST, 0), .ended = ended, .context = end
	};
	struct session *session = NULL;

	assert_int_equal(sink_socket_new(fd, 1 << 20, &config.sink), 0);
	assert_int_equal(session_new(&config, &session), 0);
	assert_int_equal(session_enable(session), 0);
	return session;
}

static void *drain_socket(void *context)
{
	int *fds = context;
	char buffer[65536];
	FILE *out = fopen(test_path("socket.nettrace"), "wb");

	for (ssize_t n; (n = read(fds[0], buffer, sizeof(buffer))) > 0;)
		fwrite(buffer, 1, (size_t)n, out);
	fclose(out);
	return NULL;
}

/* A peer that reads gets a complete stream, which ends with the session. */
static void a_socket_gets_a_whole_stream(void **state)
{
	struct end end = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct read_file file;
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	struct session *session = socket_session(fds[1], &end);
	assert_int_equal(pthread_create(&thread, NULL, drain_socket, fds), 0);
	for (uint64_t i = 0; i < 1000; i++)
		room_number(i, "through a socket");
	session_stop(session, false);
	assert_int_equal(session_wait(session, UINT64_C(10000000000)), 0);
	pthread_join(thread, NULL);
	assert_int_equal(error_of(&end), 0);
	session_unref(session);
	close(fds[0]);
	read_back(test_path("socket.nettrace"), &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Policy", NULL), 1000);
	read_free(&file);
}

/*
 * A peer that closes the connection ends its session with an error; one that never reads is
 * disconnected on request.
 */
static void a_dead_peer_ends_its_session(void **state)
{
	struct end end = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	struct session *session = socket_session(fds[1], &end);
	close(fds[0]);
	assert_int_equal(session_wait(session, UINT64_C(10000000000)), 0);
	assert_false(room_number_enabled());
	int error = error_of(&end);
	assert_true(error == -EPIPE || error == -ECONNRESET);
	session_unref(session);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	session = socket_session(fds[1], &end);
	for (uint64_t i = 0; i < FIRED; i++)
		room_number(i, "into a socket without a reader");
	uint64_t before = spoor_now_ns();
	session_stop(session, true);
	assert_int_equal(session_wait(session, UINT64_C(10000000000)), 0);
	assert_true(spoor_now_ns() - before < UINT64_C(4000000000));
	assert_int_equal(error_of(&end), -ETIMEDOUT);
	session_unref(session);
	close(fds[0]);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_are_dropped),
		cmocka_unit_test(oldest_are_overwritten),
		cmocka_unit_test(losses_of_each_thread_are_at_their_place),
		cmocka_unit_test(writers_wait_for_room),
		cmocka_unit_test(waiting_has_a_bound),
		cmocka_unit_test(a_stuck_callback_delays_its_session_alone),
		cmocka_unit_test(a_callback_may_stop_its_session),
		cmocka_unit_test(a_hung_callback_is_left),
		cmocka_unit_test(a_slow_callback_is_waited_for),
		cmocka_unit_test(a_socket_gets_a_whole_stream),
		cmocka_unit_test(a_dead_peer_ends_its_session),
	};

	return cmocka_run_group_tests_name("policy", tests, set_up, test_paths_tear_down);
}
