/*
 * What the library costs when nothing is fired: how often its thread wakes up, and how much memory
 * the rings of ended threads keep. The first event after a rest arrives without a flush.
 */
#include "lib/read_back.h"

#include <dirent.h>
#include <pthread.h>

#include <spoor/spoor.h>

#define THREADS 200

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
	struct spoor_session *session = start(NULL);
	fire_in_threads();
	spoor_session_flush(session, 60000);
	spoor_session_flush(session, 60000);
	uint64_t before = status_number("/proc/self/status", "VmSize:");
	fire_in_threads();
	/*
	 * 200 rings are 150 MiB of addresses at the same time; eight of them stay, and eight large
	 * ones are made in advance, at a time that depends on the load.
	 */
	spoor_session_flush(session, 60000);
	spoor_session_flush(session, 60000);
	assert_in_range(status_number("/proc/self/status", "VmSize:"), 0, before + (128 << 10));
	print_message("size %lu peak %lu\n",
		(unsigned long)status_number("/proc/self/status", "VmSize:"),
		(unsigned long)status_number("/proc/self/status", "VmPeak:"));
	assert_in_range(status_number("/proc/self/status", "VmSize:") + 1, 0,
		status_number("/proc/self/status", "VmPeak:") - (64 << 10));
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
		cmocka_unit_test(rings_of_ended_threads_are_unmapped),
		cmocka_unit_test(ring_memory_is_bounded),
	};

	return cmocka_run_group_tests_name("idle", tests, set_up, test_paths_tear_down);
}
