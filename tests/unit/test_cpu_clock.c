/* cpu_clock.c: the lines of /proc, and the clock of this process read through them. */
#include "unit/test.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "machine/cpu_clock.h"

#define TICK UINT64_C(10000000)

static uint64_t children_ns;

static bool stat_of(const char *text, uint64_t *cpu_ns)
{
	return cpu_clock_parse_stat(text, strlen(text), TICK, cpu_ns, &children_ns);
}

static void test_stat(void **state)
{
	uint64_t ns = 0;

	(void)state;
	assert_true(stat_of(
		"42 (shop) S 1 42 42 0 -1 4194560 100 0 0 0 17 5 0 0 20 0 3 0 12345 1000 200\n",
		&ns));
	assert_int_equal(ns, 22 * TICK);
	assert_true(stat_of("42 (a) b) 9 9) R 1 42 42 0 -1 4194560 100 0 0 0 1 2 30 4\n", &ns));
	assert_int_equal(ns, 3 * TICK);
	assert_int_equal(children_ns, 34 * TICK);
	assert_false(stat_of("", &ns));
	assert_false(stat_of("42 (shop) S 1 42 42 0 -1 4194560 100 0 0 0 17", &ns));
	assert_false(stat_of("42 (shop) S 1 42 42 0 -1 4194560 100 0 0 0 x 5 0\n", &ns));
	assert_false(stat_of("42 (shop) S 1 42 42 0 -1 4194560 100 0 0 0 9999999999999999999 1 0\n",
		&ns));
	assert_false(stat_of(
		"42 (shop) S 1 42 42 0 -1 4194560 100 0 0 0 99999999999999999999999 1 0\n", &ns));
}

static void test_schedstat(void **state)
{
	uint64_t ns = 0;

	(void)state;
	assert_true(cpu_clock_parse_schedstat("123456789 42 7\n", 15, &ns));
	assert_int_equal(ns, 123456789);
	assert_false(cpu_clock_parse_schedstat("", 0, &ns));
	assert_false(cpu_clock_parse_schedstat("x", 1, &ns));
	assert_false(cpu_clock_parse_schedstat("123456789012345678901 1 1", 25, &ns));
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The kernel updates the clocks at each tick and at each context switch: usleep() makes one. */
static void test_ourselves(void **state)
{
	struct proc_reader proc;
	struct process_clock process;
	uint64_t ns;
	int fd;

	(void)state;
	assert_int_equal(proc_open(&proc, NULL), 0);
	uint32_t pid = (uint32_t)getpid();

	for (uint64_t begin = thread_ns(); thread_ns() < begin + 50000000;)
		;
	usleep(1000);
	assert_int_equal(thread_clock_open(&proc, pid, pid, &fd), 0);
	assert_int_equal(thread_clock_read(&proc, fd, &ns), 0);
	assert_in_range(ns, 50000000, thread_ns());
	close(fd);
	assert_int_equal(process_clock_read(&proc, pid, &process), 0);
	assert_in_range(process.cpu_ns, ns > 2 * proc.tick_ns ? ns - 2 * proc.tick_ns : 0,
		thread_ns() + 2 * proc.tick_ns);
	assert_string_equal(process.comm, "test_cpu_clock");
	assert_int_equal(process.thread_count, 1);
	assert_int_equal(thread_clock_open(&proc, pid, 0x7ffffff0, &fd), -ESRCH);
	assert_int_equal(process_clock_read(&proc, 0x7ffffff0, &process), -ESRCH);
	proc_close(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_schedstat),
		cmocka_unit_test(test_ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
