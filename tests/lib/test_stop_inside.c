/*
 * A listener's callback that calls spoor_stop() or exit(): it is not waited for, what waits for it is
 * lost and counted, and other sessions are complete.
 */
#include "lib/read_back.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <spoor/spoor.h>

SPOOR_PROVIDER(inside, "Inside")
SPOOR_EVENT(inside, number, 1, SPOOR_INFO, 0x1, (u64, value))

#define EVENTS 100u
/* The end of a session waits 5 s for a callback that does not return. */
#define SOON_NS UINT64_C(4900000000)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool all_fired;
	bool exits;
	bool stopped;
	uint64_t took_ns;
	unsigned calls;
} ends = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void end_inside(const struct spoor_event_view *event, void *context)
{
	(void)event;
	(void)context;
	if (++ends.calls != 5)
		return;
	pthread_mutex_lock(&ends.lock);
	while (!ends.all_fired)
		pthread_cond_wait(&ends.changed, &ends.lock);
	pthread_mutex_unlock(&ends.lock);
	if (ends.exits)
		exit(0);
	uint64_t from = spoor_now_ns();
	spoor_stop();
	ends.took_ns = spoor_now_ns() - from;
	pthread_mutex_lock(&ends.lock);
	ends.stopped = true;
	pthread_cond_broadcast(&ends.changed);
	pthread_mutex_unlock(&ends.lock);
}

static struct spoor_session_counts counts_of(struct spoor_session *session)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_session_count(session, &counts);
	return counts;
}

static void start_and_fire(const char *path, struct spoor_session **ret_file,
	struct spoor_session **ret_callback)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Inside",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_file_options to = { .size = sizeof(to), .path = path };

	assert_int_equal(spoor_start(NULL), 0);
	assert_int_equal(spoor_provider_register(&inside), 0);
	assert_int_equal(spoor_session_start_file(&options, &to, ret_file), 0);
	assert_int_equal(spoor_session_start_callback(&options, end_inside, NULL, ret_callback), 0);
	for (uint64_t i = 0; i < EVENTS; i++)
		inside_number(i);
	pthread_mutex_lock(&ends.lock);
	ends.all_fired = true;
	pthread_cond_broadcast(&ends.changed);
	pthread_mutex_unlock(&ends.lock);
}

static void file_is_whole(const char *path)
{
	struct read_file file;

	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Inside", "number"), EVENTS);
	read_free(&file);
}

static void stop_in_a_callback(void **state)
{
	const char *path = test_path("stop.nettrace");
	struct spoor_session *file, *callback;

	(void)state;
	start_and_fire(path, &file, &callback);
	pthread_mutex_lock(&ends.lock);
	while (!ends.stopped)
		pthread_cond_wait(&ends.changed, &ends.lock);
	pthread_mutex_unlock(&ends.lock);
	assert_true(ends.took_ns < SOON_NS);
	assert_int_equal(spoor_session_stop(callback), -ETIMEDOUT);
	assert_int_equal(counts_of(callback).written, 5);
	assert_int_equal(counts_of(callback).lost, EVENTS - 5);
	assert_int_equal(counts_of(file).written, EVENTS);
	assert_int_equal(counts_of(file).lost, 0);
	assert_false(inside_number_enabled());
	spoor_session_free(callback);
	spoor_session_free(file);
	file_is_whole(path);
	assert_int_equal(ends.calls, 5);
}

static void exit_in_a_callback(void **state)
{
	const char *path = test_path("exit.nettrace");
	int status = 0;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	pid_t child = fork();
	if (!child) {
		struct spoor_session *file, *callback;
		ends.exits = true;
		ends.all_fired = false;
		ends.calls = 0;
		start_and_fire(path, &file, &callback);
		for (;;)
			pause();
	}
	uint64_t from = spoor_now_ns();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(spoor_now_ns() - from < SOON_NS);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	file_is_whole(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_in_a_callback),
		cmocka_unit_test(stop_in_a_callback),
	};

	return cmocka_run_group_tests_name("stop inside", tests, NULL, test_paths_tear_down);
}
