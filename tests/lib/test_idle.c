/*
 * What the library costs when nothing is fired: how often its thread wakes up, and how much memory
 * the rings of ended threads keep. The first event after a rest arrives without a flush.
 */
#include "lib/read_back.h"

#include <dirent.h>
#include <pthread.h>

#include <spoor/spoor.h>

#include "lib/event/thread_ring.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/sink.h"

#define THREADS 200
#define SPARES  16u /* rings of ended threads, and rings made in advance (thread_ring.c) */

SPOOR_PROVIDER(idle, "Idle")
SPOOR_EVENT(idle, number, 1, SPOOR_INFO, 0x1, (u64, value))

static struct spoor_session *start(const char *path)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Idle", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct spoor_session *session = NULL;

	assert_int_equal(path ? spoor_session_start_file(&options, &file, &session)
			      : spoor_session_start_listener(&options, &session),
		0);
	return session;
}

/* A number of a status file of /proc. */
static uint64_t status_number(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	uint64_t number = UINT64_MAX;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			number = strtoull(line + strlen(name), NULL, 10);
	fclose(file);
	return number;
}

/* How often the library's thread has gone to sleep. */
static uint64_t sleeps(void)
{
	static char path[300];
	struct dirent *entry;

	if (!path[0]) {
		DIR *folder = opendir("/proc/self/task");
		assert_non_null(folder);
		while ((entry = readdir(folder))) {
			char name[300];
			char word[32] = "";
			snprintf(name, sizeof(name), "/proc/self/task/%s/comm", entry->d_name);
			FILE *file = fopen(name, "r");
			if (!file)
				continue;
			if (fgets(word, sizeof(word), file) && strcmp(word, "spoor\n") == 0)
				snprintf(path, sizeof(path), "/proc/self/task/%s/status",
					entry->d_name);
			fclose(file);
		}
		closedir(folder);
	}
	assert_true(path[0]);
	return status_number(path, "voluntary_ctxt_switches:");
}

static void sessions_without_events_sleep(void **state)
{
	(void)state;
	struct spoor_session *listener = start(NULL);
	struct spoor_session *file = start(test_path("idle.nettrace"));
	struct spoor_event_view view = { .size = sizeof(view) };

	idle_number(1);
	assert_int_equal(spoor_listener_read(listener, &view, 60000), 1);
	sleep(1); /* the file is flushed after 100 ms */
	uint64_t before = sleeps();
	sleep(3);
	assert_in_range(sleeps() - before, 0, 15); /* 5 a second */
	/* An event ends the rest; a single one is followed by another rest. */
	before = sleeps();
	for (int i = 0; i < 3; i++) {
		idle_number(2);
		assert_int_equal(spoor_listener_read(listener, &view, 60000), 1);
		sleep(1);
	}
	assert_in_range(sleeps() - before, 0, 60); /* 20 a second */
	spoor_session_stop(listener);
	spoor_session_stop(file);
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	spoor_session_count(file, &counts);
	assert_int_equal(counts.written, 4);
	spoor_session_free(listener);
	spoor_session_free(file);
}

/*
 * A sink that looks, in each pass, whether events take the slow path: they do while the loop thread
 * rests. The first pass that finds some must end that, also when it has other work for many more.
 */
static struct {
	struct sink sink;
	bool found;      /* the pass before has found events */
	unsigned first;  /* passes that found events which took the slow path */
	unsigned broken; /* passes after such that found it as it was */
} spy;

static int spy_event(struct sink *sink, const struct pipe_event *event)
{
	(void)sink;
	(void)event;
	return 0;
}

static int spy_turn(struct sink *sink, uint64_t now_ns, uint64_t watermark_ns, unsigned flags)
{
	bool slow = __atomic_load_n(&pipe_hot.special, __ATOMIC_RELAXED) == UINT64_MAX;

	(void)sink;
	(void)now_ns;
	(void)watermark_ns;
	spy.broken += spy.found && slow;
	spy.found = !(flags & SINK_IDLE);
	spy.first += spy.found && slow;
	return 0;
}

static void spy_free(struct sink *sink)
{
	(void)sink;
}

static void *fire_many(void *context)
{
	(void)context;
	for (int i = 0; i < 10; i++) {
		while (!__atomic_load_n(&pipe_hot.asleep, __ATOMIC_ACQUIRE))
			usleep(1000);
		for (uint64_t k = 0; k < 100000; k++)
			idle_number(k);
	}
	return NULL;
}

static void events_are_fast_soon_after_a_rest(void **state)
{
	static const struct session_sink_ops ops = {
		.name = "spy", .event = spy_event, .turn = spy_turn, .free = spy_free
	};
	struct spoor_want want = {
		.size = sizeof(want), .name = "Idle", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session;
	pthread_t thread;

	(void)state;
	if (__atomic_load_n(&pipe_hot.fences, __ATOMIC_RELAXED)) {
		print_message("skipped: without membarrier all events take the slow path\n");
		skip();
	}
	spy.sink.ops = &ops;
	assert_int_equal(session_start_public(&options, &spy.sink, &session), 0);
	assert_int_equal(pthread_create(&thread, NULL, fire_many, NULL), 0);
	pthread_join(thread, NULL);
	spoor_session_stop(session);
	print_message("%u passes ended a rest\n", spy.first);
	assert_true(spy.first >= 5);
	assert_int_equal(spy.broken, 0);
	spoor_session_free(session);
}

/* States that hold the memory of rings. */
static unsigned mapped_rings(void)
{
	unsigned count = 0;

	for (struct thread_state *state = thread_state_first(); state; state = state->next)
		count += __atomic_load_n(&state->main.base, __ATOMIC_RELAXED) != NULL;
	return count;
}

static pthread_barrier_t meeting;

static void *fire_ten(void *context)
{
	(void)context;
	for (uint64_t i = 0; i < 10; i++)
		idle_number(i);
	pthread_barrier_wait(&meeting); /* all threads have a ring at the same time */
	return NULL;
}

static void fire_in_threads(void)
{
	static pthread_t threads[THREADS];
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_barrier_init(&meeting, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], &attributes, fire_ten, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&meeting);
	pthread_attr_destroy(&attributes);
}

static void rings_of_ended_threads_are_unmapped(void **state)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	(void)state;
	uint64_t before = status_number("/proc/self/status", "VmSize:");
	struct spoor_session *session = start(NULL);
	fire_in_threads();
	fire_in_threads();
	/* 200 threads had rings at the same time. The loop thread unmaps them in its passes. */
	for (int i = 0; i < 60000 && mapped_rings() > SPARES + 2; i++) {
		spoor_session_flush(session, 60000);
		usleep(1000);
	}
	assert_in_range(mapped_rings(), 1, SPARES + 2);
	assert_in_range(status_number("/proc/self/status", "VmSize:"), 0, before + (128 << 10));
	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written, 2 * THREADS * 10);
	assert_int_equal(counts.lost, 0);
	spoor_session_free(session);
}

/* Threads beyond the memory of all rings get none: their events are lost, and counted. */
static void ring_memory_is_bounded(void **state)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct spoor_options options = { .size = sizeof(options),
		.flags = SPOOR_START_NO_SERVER,
		.ring_bytes = 1 << 20,
		.memory_bytes = 4 << 20 };

	(void)state;
	spoor_stop();
	assert_int_equal(spoor_start(&options), 0);
	struct spoor_session *session = start(NULL);
	fire_in_threads();
	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written + counts.lost, THREADS * 10);
	assert_true(counts.lost > 0 && counts.written > 0);
	spoor_session_free(session);
}

static int set_up(void **state)
{
	struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };

	(void)state;
	return spoor_start(&options) || spoor_provider_register(&idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_without_events_sleep),
		cmocka_unit_test(events_are_fast_soon_after_a_rest),
		cmocka_unit_test(rings_of_ended_threads_are_unmapped),
		cmocka_unit_test(ring_memory_is_bounded),
	};

	return cmocka_run_group_tests_name("idle", tests, set_up, test_paths_tear_down);
}
