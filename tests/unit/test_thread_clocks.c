/*
 * thread_clocks.c on this process: the clocks of its threads, of threads that ended between two
 * readings, and of children add up to its CPU time.
 */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/thread_clocks.h"

#define MS    UINT64_C(1000000)
#define SLACK (40 * MS) /* two ticks of stat, one of the scheduler, and the test's own work */
#define TIDS  64u

struct reported {
	struct {
		uint32_t pid;
		uint32_t tid;
		uint64_t first_ns;
		uint64_t last_ns;
		uint64_t time_ns;
	} clocks[TIDS];
	uint32_t count;
	uint32_t ended;
	uint32_t processes_ended;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void on_clock(void *context, uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t cpu_ns)
{
	struct reported *reported = context;
	uint32_t i = 0;

	while (i < reported->count &&
		(reported->clocks[i].tid != tid || reported->clocks[i].pid != pid))
		i++;
	assert_true(i < TIDS);
	if (i == reported->count) {
		reported->count++;
		reported->clocks[i].pid = pid;
		reported->clocks[i].tid = tid;
		reported->clocks[i].first_ns = cpu_ns;
	}
	assert_true(cpu_ns >= reported->clocks[i].last_ns &&
		    time_ns >= reported->clocks[i].time_ns);
	reported->clocks[i].last_ns = cpu_ns;
	reported->clocks[i].time_ns = time_ns;
}

static void on_ended(void *context, uint32_t pid, uint32_t tid)
{
	struct reported *reported = context;

	reported->ended += tid != 0;
	reported->processes_ended += !tid && pid != (uint32_t)getpid();
}

static uint64_t used(const struct reported *reported, uint32_t tid, bool all)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < reported->count; i++)
		if (all || reported->clocks[i].tid == tid)
			ns += reported->clocks[i].last_ns - reported->clocks[i].first_ns;
	return ns;
}

static void *burn(void *context)
{
	uint64_t ns = *(uint64_t *)context;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < ns)
		;
	return NULL;
}

static void burn_in_thread(uint64_t ns)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, burn, &ns), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void burn_in_child(uint64_t ns)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		burn(&ns);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct thread_clocks *begin(struct reported *reported, bool children, bool near)
{
	const struct thread_clocks_handler calls = {
		.children = children, .clock = on_clock, .ended = on_ended
	};
	struct thread_clocks *clocks;

	*reported = (struct reported){ 0 };
	assert_int_equal(thread_clocks_new(&calls, reported, &clocks), 0);
	assert_int_equal(thread_clocks_add(clocks, (uint32_t)getpid(), near,
				 clock_ns(CLOCK_MONOTONIC), false),
		0);
	assert_int_equal(thread_clocks_add(clocks, (uint32_t)getpid(), near,
				 clock_ns(CLOCK_MONOTONIC), false),
		0);
	assert_true(thread_clocks_has(clocks, (uint32_t)getpid()));
	return clocks;
}

static void test_threads(void **state)
{
	struct reported reported;

	(void)state;
	for (int near = 0; near < 2; near++) {
		uint64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		struct thread_clocks *clocks = begin(&reported, false, near);
		burn_in_thread(100 * MS); /* starts and ends between two readings */
		uint64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 60 * MS;
		burn(&own);
		usleep(1000); /* the kernel updates the clocks at a context switch */
		thread_clocks_read_last(clocks, clock_ns(CLOCK_MONOTONIC));
		uint64_t all_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
		assert_in_range(used(&reported, 0, true), all_ns > SLACK ? all_ns - SLACK : 0,
			all_ns + SLACK);
		assert_in_range(used(&reported, (uint32_t)getpid(), false), 60 * MS - SLACK,
			all_ns);
		assert_in_range(used(&reported, 0, false), 100 * MS - SLACK, 100 * MS + SLACK);
		thread_clocks_free(clocks);
	}
}

static void test_children(void **state)
{
	struct reported reported;

	(void)state;
	for (int children = 0; children < 2; children++) {
		struct thread_clocks *clocks = begin(&reported, children, false);
		burn_in_child(100 * MS);
		burn_in_child(50 * MS);
		thread_clocks_read_last(clocks, clock_ns(CLOCK_MONOTONIC));
		if (children)
			assert_in_range(used(&reported, 0, false), 150 * MS - SLACK,
				150 * MS + SLACK);
		else
			assert_in_range(used(&reported, 0, false), 0, SLACK);
		thread_clocks_free(clocks);
	}
}

/* The time of a process with its own clock is not counted for its parent, too. */
static void test_seen_child(void **state)
{
	struct reported reported;
	int go[2];
	char c = 0;

	(void)state;
	assert_int_equal(pipe(go), 0);
	struct thread_clocks *clocks = begin(&reported, true, false);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		uint64_t ns = 100 * MS;
		burn(&ns);
		_exit(read(go[0], &c, 1) == 1 ? 0 : 1);
	}
	assert_int_equal(
		thread_clocks_add(clocks, (uint32_t)pid, true, clock_ns(CLOCK_MONOTONIC), true), 0);
	for (uint64_t end = clock_ns(CLOCK_MONOTONIC) + 60000 * MS;
		used(&reported, (uint32_t)pid, false) < 95 * MS &&
		clock_ns(CLOCK_MONOTONIC) < end;) {
		usleep(5000);
		thread_clocks_read(clocks, clock_ns(CLOCK_MONOTONIC));
	}
	assert_int_equal(write(go[1], &c, 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	thread_clocks_read_last(clocks, clock_ns(CLOCK_MONOTONIC));
	thread_clocks_read_last(clocks, clock_ns(CLOCK_MONOTONIC));
	assert_false(thread_clocks_has(clocks, (uint32_t)pid));
	assert_in_range(used(&reported, (uint32_t)pid, false), 95 * MS, 100 * MS + SLACK);
	assert_in_range(used(&reported, 0, false), 0, SLACK);
	thread_clocks_free(clocks);
	close(go[0]);
	close(go[1]);
}

/*
 * A process that has ended stays in /proc until its parent waits for it. A caller that reads /proc
 * adds it again.
 */
static void test_zombie(void **state)
{
	struct reported reported;
	siginfo_t info;

	(void)state;
	struct thread_clocks *clocks = begin(&reported, true, false);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		uint64_t ns = 100 * MS;
		burn(&ns);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	for (int i = 0; i < 3; i++) {
		if (!i || !thread_clocks_has(clocks, (uint32_t)pid))
			assert_int_equal(thread_clocks_add(clocks, (uint32_t)pid, false,
						 clock_ns(CLOCK_MONOTONIC), true),
				0);
		usleep(1000);
		thread_clocks_read_all(clocks, clock_ns(CLOCK_MONOTONIC));
		assert_int_equal(reported.processes_ended, 1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	thread_clocks_read_last(clocks, clock_ns(CLOCK_MONOTONIC));
	assert_false(thread_clocks_has(clocks, (uint32_t)pid));
	assert_int_equal(reported.processes_ended, 1);
	uint64_t own_ns = 0;

	for (uint32_t i = 0; i < reported.count; i++)
		if (reported.clocks[i].pid == (uint32_t)pid)
			own_ns += reported.clocks[i].last_ns - reported.clocks[i].first_ns;
	assert_in_range(own_ns, 100 * MS - SLACK, 100 * MS + SLACK);
	assert_in_range(used(&reported, 0, false), 0, 2 * SLACK);
	thread_clocks_free(clocks);
}

static void *work_without_main_thread(void *context)
{
	uint64_t ns = 100 * MS;
	char c;

	/* it works only when the test has seen it */
	if (read(*(int *)context, &c, 1) != 1)
		_exit(1);
	(void)burn(&ns);
	_exit(read(*(int *)context, &c, 1) == 1 ? 0 : 1);
}

static void await_second_thread(pid_t pid)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 60000 * MS;
	unsigned count = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	while (count < 2) {
		DIR *threads = opendir(path);
		assert_non_null(threads);
		count = 0;
		for (struct dirent *entry; (entry = readdir(threads));)
			count += entry->d_name[0] != '.';
		closedir(threads);
		assert_true(clock_ns(CLOCK_MONOTONIC) < end);
		usleep(1000);
	}
}

/* The main thread has ended and another thread runs: the kernel reports the process as a zombie. */
static void test_main_thread_ended(void **state)
{
	struct reported reported;
	int go[2];
	char c = 0;

	(void)state;
	assert_int_equal(pipe(go), 0);
	struct thread_clocks *clocks = begin(&reported, true, false);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;
		close(go[1]); /* the process ends when this test closes the pipe */
		if (pthread_create(&thread, NULL, work_without_main_thread, &go[0]) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	await_second_thread(pid); /* what it uses before it is seen does not count */
	assert_int_equal(thread_clocks_add(clocks, (uint32_t)pid, false, clock_ns(CLOCK_MONOTONIC),
				 true),
		0);
	/* the first reading of the second thread must not find it at work */
	thread_clocks_read_all(clocks, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(write(go[1], &c, 1), 1);
	uint64_t own_ns = 0;

	/*
	 * On a busy machine it is no newborn process by the end, whose threads are read only if
	 * user or system time has grown by a whole tick.
	 */
	for (uint64_t end = clock_ns(CLOCK_MONOTONIC) + 60000 * MS;
		own_ns < 75 * MS && clock_ns(CLOCK_MONOTONIC) < end;) {
		usleep(5000);
		thread_clocks_read_all(clocks, clock_ns(CLOCK_MONOTONIC));
		assert_true(thread_clocks_has(clocks, (uint32_t)pid));
		assert_int_equal(reported.processes_ended, 0);
		own_ns = 0;
		for (uint32_t i = 0; i < reported.count; i++)
			if (reported.clocks[i].pid == (uint32_t)pid)
				own_ns += reported.clocks[i].last_ns - reported.clocks[i].first_ns;
	}
	assert_true(own_ns >= 75 * MS);
	assert_int_equal(write(go[1], &c, 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	thread_clocks_read_last(clocks, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(reported.processes_ended, 1);
	thread_clocks_free(clocks);
	close(go[0]);
	close(go[1]);
}

static void *wait_for_end(void *context)
{
	char c;

	assert_int_equal(read(*(int *)context, &c, 1), 0);
	return NULL;
}

/* A thread that was read before it ended. */
static void test_ended_thread(void **state)
{
	struct reported reported;
	pthread_t thread;
	int go[2];

	(void)state;
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &go[0]), 0);
	struct thread_clocks *clocks = begin(&reported, false, true);

	assert_int_equal(reported.ended, 0);
	close(go[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* pthread_join() may return before the kernel has removed the thread */
	for (unsigned i = 0; i < 6000 && !reported.ended; i++) {
		usleep(10000);
		thread_clocks_read_all(clocks, clock_ns(CLOCK_MONOTONIC));
	}
	assert_int_equal(reported.ended, 1);
	assert_int_equal(thread_clocks_add(clocks, 0x7ffffff0, false, clock_ns(CLOCK_MONOTONIC),
				 false),
		-ESRCH);
	thread_clocks_free(clocks);
	close(go[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_seen_child),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_main_thread_ended),
		cmocka_unit_test(test_ended_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
