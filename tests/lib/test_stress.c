/*
 * All features at the same time: threads that start, fire and end; sessions of every kind that
 * start and stop; sources at run time; forks. No part hangs, no sanitizer reports an error, and for
 * the session that runs all the time written + lost = fired, exactly.
 */
#include "lib/read_back.h"

#include <pthread.h>
#include <sys/wait.h>

#include <spoor/spoor.h>

SPOOR_PROVIDER(stress, "Stress")
SPOOR_EVENT(stress, one, 1, SPOOR_INFO, 0x1, (u64, value))
SPOOR_EVENT(stress, two, 2, SPOOR_VERBOSE, 0x2, (u32, a), (text, b))

static bool stop; /* atomic */
static uint64_t fired_in_all;

static bool going(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static struct spoor_session *start(int kind, uint32_t policy, bool stacks, const char *path,
	spoor_listener_function *function, void *context)
{
	struct spoor_want wants[2] = {
		{ .size = sizeof(wants[0]),
			.name = "Stress",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
		{ .size = sizeof(wants[0]),
			.name = "Stress-Source",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
	};
	struct spoor_session_options options = { .size = sizeof(options),
		.wants = wants,
		.want_count = kind == 3 ? 1 : 2,
		.policy = policy,
		.block_ms = 20,
		.stacks = stacks,
		.buffer_bytes = 1 << 20,
		.flush_ms = 5 };
	struct spoor_file_options file = { .size = sizeof(file),
		.path = path,
		.rotate_bytes = policy == SPOOR_BLOCK ? 1 << 20 : 0,
		.keep = 2 };
	struct spoor_session *session = NULL;
	int r;

	if (kind == 0)
		r = spoor_session_start_file(&options, &file, &session);
	else if (kind == 1)
		r = spoor_session_start_callback(&options, function, context, &session);
	else
		r = spoor_session_start_listener(&options, &session);
	assert_int_equal(r, 0);
	return session;
}

static void *short_life(void *context)
{
	uint64_t count = 0;

	(void)context;
	for (int i = 0; i < 2000; i++) {
		stress_one((uint64_t)i);
		stress_two((uint32_t)i, "text of an event");
		count += 2;
		if (i % 500 == 0)
			usleep(200);
	}
	__atomic_fetch_add(&fired_in_all, count, __ATOMIC_RELAXED);
	return NULL;
}

static void *threads_come_and_go(void *context)
{
	(void)context;
	while (going()) {
		pthread_t threads[3];
		for (int i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, short_life, NULL), 0);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
	}
	return NULL;
}

static void count_event(const struct spoor_event_view *event, void *context)
{
	__atomic_fetch_add((uint64_t *)context, event->info->id != 0, __ATOMIC_RELAXED);
}

static void *sessions_come_and_go(void *context)
{
	uintptr_t kind = (uintptr_t)context;
	uint32_t round = 0;

	while (going()) {
		uint64_t calls = 0;
		struct spoor_session *session = start((int)kind, round % 3, round % 2 == 0,
			kind ? NULL : test_path("stress.nettrace"), count_event, &calls);
		usleep(1000 * (round % 7));
		if (kind == 2) {
			struct spoor_event_view view = { .size = sizeof(view) };
			for (int i = 0; i < 100 && spoor_listener_read(session, &view, 1) == 1; i++)
				;
		}
		spoor_session_stop(session);
		if (kind == 1) {
			struct spoor_session_counts counts = { .size = sizeof(counts) };
			spoor_session_count(session, &counts);
			assert_int_equal(counts.written, __atomic_load_n(&calls, __ATOMIC_RELAXED));
		}
		spoor_session_free(session);
		round++;
	}
	return NULL;
}

static void *sources_come_and_go(void *context)
{
	(void)context;
	while (going()) {
		struct spoor_event_source *source = spoor_source_new("Stress-Source");
		struct spoor_writer writer;
		for (uint32_t i = 0; i < 500; i++) {
			char name[16];
			snprintf(name, sizeof(name), "kind%u", i % 20);
			if (!spoor_source_begin(source, name, SPOOR_INFO, 0, &writer))
				continue;
			spoor_write_u32(&writer, "number", i);
			spoor_write_text(&writer, "text", name);
			/* SPOOR_NOT_ENABLED: the session has ended meanwhile */
			assert_true(spoor_source_end(&writer) >= 0);
		}
		spoor_source_free(source);
	}
	return NULL;
}

static void *forks(void *context)
{
	(void)context;
	while (going()) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			stress_one(1);
			_exit(0);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		usleep(10000);
	}
	return NULL;
}

static void all_at_once(void **state)
{
	static void *(*const functions[])(void *) = { threads_come_and_go, threads_come_and_go,
		sessions_come_and_go, sessions_come_and_go, sessions_come_and_go,
		sources_come_and_go, forks };
	static const uintptr_t contexts[] = { 0, 0, 0, 1, 2, 0, 0 };
	pthread_t threads[7];

	(void)state;
	struct spoor_session *always = start(3, SPOOR_OVERWRITE_OLDEST, false, NULL, NULL, NULL);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, functions[i], (void *)contexts[i]), 0);
	sleep(4);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (size_t i = 0; i < 7; i++)
		pthread_join(threads[i], NULL);
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	spoor_session_stop(always);
	spoor_session_count(always, &counts);
	assert_int_equal(counts.written + counts.lost, fired_in_all);
	assert_true(fired_in_all > 10000);
	spoor_session_free(always);
}

/*
 * Rings that are too small and no room in the session: many events are lost, and the stream has
 * their exact number.
 */
static void losses_are_exact(void **state)
{
	const char *path = test_path("losses.nettrace");
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct spoor_options options = { .size = sizeof(options), .ring_bytes = 64 << 10 };
	struct read_file file;
	pthread_t threads[4];

	(void)state;
	spoor_stop();
	assert_int_equal(spoor_start(&options), 0);
	struct spoor_session *session = start(0, SPOOR_DROP_NEWEST, false, path, NULL, NULL);
	fired_in_all = 0;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, short_life, NULL), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	/* One burst that no ring of this size can hold. */
	static char large[20000];
	memset(large, 'x', sizeof(large) - 1);
	for (uint32_t i = 0; i < 3000; i++)
		stress_two(i, large);
	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written + counts.lost, fired_in_all + 3000);
	assert_true(counts.lost > 0);
	spoor_session_free(session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Stress", NULL), counts.written);
	assert_int_equal(file.lost, counts.lost);
	/* The loss events have the sum of all losses. */
	uint64_t reported = 0;
	for (size_t i = 0; i < file.count; i++) {
		uint64_t count;
		if (strcmp(file.events[i].name, "Loss") != 0)
			continue;
		memcpy(&count, file.events[i].payload, 8);
		reported += count;
	}
	assert_int_equal(reported, counts.lost);
	read_free(&file);
}

/*
 * No event in a file has an earlier time than a previous event marked sorted. The reader returns
 * events in file order, so each run is checked.
 */
static void time_of_a_thread_never_steps_back(void **state)
{
	const char *path = test_path("order.nettrace");
	struct read_file file;
	pthread_t threads[4];

	(void)state;
	struct spoor_session *session = start(0, SPOOR_BLOCK, false, path, NULL, NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, short_life, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	spoor_session_free(session);
	read_back(path, &file);
	for (size_t i = 0; i < file.count; i++)
		for (size_t k = i + 1; k < file.count && k < i + 50; k++)
			if (file.events[k].thread_id == file.events[i].thread_id)
				assert_true(file.events[k].time_ns >= file.events[i].time_ns);
	read_free(&file);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&stress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(losses_are_exact),
		cmocka_unit_test(time_of_a_thread_never_steps_back),
	};

	return cmocka_run_group_tests_name("stress", tests, set_up, test_paths_tear_down);
}
