/*
 * clock_watch.c with simulated readings: a suspended machine, a changed time of day, and no change.
 */
#include "unit/test.h"

#include "pipeline/clock_watch.h"

#define S INT64_C(1000000000)

static struct clock_reading reading(int64_t monotonic, int64_t slept, int64_t set)
{
	return (struct clock_reading){ .monotonic_ns = monotonic,
		.boot_ns = monotonic + 7 * S + slept,
		.real_ns = monotonic + 1700000000 * S + slept + set };
}

static void test_steady(void **state)
{
	struct clock_watch watch;
	int64_t by = 0;

	(void)state;
	clock_watch_begin(&watch, reading(S, 0, 0));
	/* the clocks of one reading are read one after the other */
	for (int i = 2; i < 100; i++)
		assert_int_equal(clock_watch_look(&watch, reading(i * S, i * 1000, -i * 900), &by),
			CLOCK_STEADY);
	clock_watch_begin(&watch, clock_watch_read());
	assert_int_equal(clock_watch_look(&watch, clock_watch_read(), &by), CLOCK_STEADY);
}

static void test_slept(void **state)
{
	struct clock_watch watch;
	int64_t by = 0;

	(void)state;
	clock_watch_begin(&watch, reading(S, 0, 0));
	assert_int_equal(clock_watch_look(&watch, reading(2 * S, 3600 * S, 0), &by), CLOCK_SLEPT);
	assert_int_equal(by, 3600 * S);
	assert_int_equal(clock_watch_look(&watch, reading(3 * S, 3600 * S, 0), &by), CLOCK_STEADY);
}

static void test_set(void **state)
{
	struct clock_watch watch;
	int64_t by = 0;

	(void)state;
	clock_watch_begin(&watch, reading(S, 0, 0));
	assert_int_equal(clock_watch_look(&watch, reading(2 * S, 0, -5 * S), &by), CLOCK_SET);
	assert_int_equal(by, -5 * S);
	assert_int_equal(clock_watch_look(&watch, reading(3 * S, 0, -5 * S), &by), CLOCK_STEADY);
	assert_int_equal(clock_watch_look(&watch, reading(4 * S, 0, 20 * S), &by), CLOCK_SET);
	assert_int_equal(by, 25 * S);
}

static void test_both(void **state)
{
	struct clock_watch watch;
	int64_t by = 0;

	(void)state;
	clock_watch_begin(&watch, reading(S, 0, 0));
	assert_int_equal(clock_watch_look(&watch, reading(2 * S, 10 * S, 60 * S), &by),
		CLOCK_SLEPT);
	assert_int_equal(by, 10 * S);
	assert_int_equal(clock_watch_look(&watch, reading(3 * S, 10 * S, 60 * S), &by), CLOCK_SET);
	assert_int_equal(by, 60 * S);
	assert_int_equal(clock_watch_look(&watch, reading(4 * S, 10 * S, 60 * S), &by),
		CLOCK_STEADY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_slept),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
