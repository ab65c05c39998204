/* clocks.c: clocks in nanoseconds and the time left until a deadline. */
#include "unit/test.h"

#include <limits.h>

#include "base/clocks.h"

#define NS_PER_S UINT64_C(1000000000)

/* A reading of clocks.c lies between two readings of clock_gettime(). */
static uint64_t read_with_libc(clockid_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void test_clocks(void **state)
{
	(void)state;
	uint64_t before = read_with_libc(CLOCK_MONOTONIC);
	uint64_t between = clock_monotonic_ns();
	uint64_t after = read_with_libc(CLOCK_MONOTONIC);

	assert_true(before <= between && between <= after);

	before = read_with_libc(CLOCK_THREAD_CPUTIME_ID);
	between = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	after = read_with_libc(CLOCK_THREAD_CPUTIME_ID);
	assert_true(before <= between && between <= after);

	/*
	 * The time of day may be set back meanwhile, so only its magnitude is compared: after
	 * 2020-09-13, and not the monotonic time.
	 */
	assert_true(clock_utc_ns() > 1600000000 * NS_PER_S);
	assert_int_equal(clock_ns((clockid_t)INT_MAX), 0);
}

static void check_left(uint64_t deadline_ns, uint64_t now_ns, time_t expected_s, long expected_ns,
	int expected_ms)
{
	struct timespec left = clock_left(deadline_ns, now_ns);

	assert_int_equal(left.tv_sec, expected_s);
	assert_int_equal(left.tv_nsec, expected_ns);
	assert_int_equal(clock_left_ms(deadline_ns, now_ns), expected_ms);
}

static void test_left(void **state)
{
	(void)state;
	check_left(100, 100, 0, 0, 0);
	check_left(99, 100, 0, 0, 0);
	check_left(0, UINT64_MAX, 0, 0, 0);
	check_left(101, 100, 0, 1, 1); /* rounded up */
	check_left(1000000, 0, 0, 1000000, 1);
	check_left(1000001, 0, 0, 1000001, 2);
	check_left(5 * NS_PER_S + 7, 2 * NS_PER_S, 3, 7, 3001);
	check_left(UINT64_MAX - 1, 0, 18446744073, 709551614, INT_MAX);
	check_left(UINT64_MAX, 0, 18446744073, 709551615, -1);
	check_left(UINT64_MAX, UINT64_MAX, 0, 0, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_left) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
