/*
 * runtime_start.c: the start is over after a second, and later by the time that the process had to wait for a
 * CPU: real threads that compete for one.
 */
#include "unit/test.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/clocks.h"
#include "dotnet/runtime_start.h"

#define NO_PROCESS  0x7fffffffu
#define COMPETITORS 4
#define COMPETE_NS  UINT64_C(200000000)

static void *compete(void *cpu)
{
	uint64_t until_ns = clock_monotonic_ns() + COMPETE_NS;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned)*(const int *)cpu, &one);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
	while (clock_monotonic_ns() < until_ns)
		;
	return NULL;
}

static void test_a_second(void **state)
{
	struct runtime_start start;

	(void)state;
	runtime_start_begin(&start, NO_PROCESS, 5);
	assert_int_equal(start.due_ns, 5 + RUNTIME_START_NS);
	assert_false(runtime_start_is_over(&start, NO_PROCESS, start.due_ns - 1));
	assert_true(runtime_start_is_over(&start, NO_PROCESS, start.due_ns));
}

static void test_waits_for_a_cpu_are_added(void **state)
{
	struct runtime_start start;
	pthread_t threads[COMPETITORS];
	int cpu = sched_getcpu();
	uint32_t pid = (uint32_t)getpid();
	uint64_t second_ns;

	(void)state;
	runtime_start_begin(&start, pid, 0);
	second_ns = start.due_ns;
	for (int i = 0; i < COMPETITORS - 1; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, compete, &cpu), 0);
	(void)compete(&cpu);
	/* This thread alone has waited for most of the time: three others used its CPU. */
	assert_false(runtime_start_is_over(&start, pid, second_ns));
	assert_true(start.due_ns > second_ns + COMPETE_NS / 4);
	assert_true(runtime_start_is_over(&start, pid, RUNTIME_START_MOST_NS));
	for (int i = 0; i < COMPETITORS - 1; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_second),
		cmocka_unit_test(test_waits_for_a_cpu_are_added),
	};

	return cmocka_run_group_tests_name("runtime_start", tests, NULL, NULL);
}
