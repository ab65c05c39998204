/*
 * attribute.c: kernels that refuse some attributes, and sampling periods that are no multiple of a
 * tick.
 */
#include "unit/test.h"

#include "perf/attribute.h"
#include "unit/fake_events.h"

/* Optional attributes, as bits. */
enum { LOST = 1, BUILD_ID = 2, COMM_EXEC = 4, EXCLUDE_IDLE = 8, ALL = 15 };

static unsigned refused_wishes;

static unsigned wishes_of(const struct perf_event_attr *attr)
{
	return (attr->read_format ? LOST : 0u) | (attr->build_id ? BUILD_ID : 0u) |
	       (attr->comm_exec ? COMM_EXEC : 0u) | (attr->exclude_idle ? EXCLUDE_IDLE : 0u);
}

static int refuse_wishes(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return wishes_of(attr) & refused_wishes ? -EINVAL : 0;
}

static void test_each_kernel_gets_all_that_it_knows(void **state)
{
	struct perf_event_attr attr;

	(void)state;
	fake_events_reset();
	fake_events.rule = refuse_wishes;
	for (refused_wishes = 0; refused_wishes <= ALL; refused_wishes++) {
		assert_int_equal(attribute_probe(&attr, false, 99), 0);
		assert_int_equal(wishes_of(&attr), ALL & ~refused_wishes);
		/* The attributes were set for the trial only. */
		assert_false(attr.exclude_kernel);
		assert_true(attr.disabled);
	}
}

static int error_of_all;

static int refuse_all(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return error_of_all;
}

static void test_errors(void **state)
{
	struct perf_event_attr attr;
	static const struct {
		int error;
		bool missing;
	} cases[] = {
		{ -EINVAL, true },
		{ -E2BIG, true },
		{ -EOPNOTSUPP, true },
		{ -ENOENT, true },
		{ -ENODEV, true },
		{ -ENXIO, true },
		{ -EBUSY, true },
		{ -EACCES, false },
		{ -EPERM, false },
		{ -ENOSYS, false },
		{ -EMFILE, false },
		{ 0, false },
	};

	(void)state;
	fake_events_reset();
	fake_events.rule = refuse_all;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(attribute_missing(cases[i].error), cases[i].missing);
		error_of_all = cases[i].error;
		assert_int_equal(attribute_probe(&attr, true, 99), cases[i].error);
	}
}

static void test_cycles_carry_their_period(void **state)
{
	struct perf_event_attr attr;

	(void)state;
	fake_events_reset();
	assert_int_equal(attribute_probe(&attr, true, 250), 0);
	assert_int_equal(attr.type, PERF_TYPE_HARDWARE);
	assert_true(attr.freq);
	assert_int_equal(attr.sample_freq, 250);
	assert_true(attr.sample_type & PERF_SAMPLE_PERIOD);
	assert_int_equal(attribute_probe(&attr, false, 99), 0);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_false(attr.freq);
	assert_int_equal(attr.sample_period, 10101010);
	assert_false(attr.sample_type & PERF_SAMPLE_PERIOD);
}

/* Synchronous: the period is a multiple or a fraction of a tick, to within 0.05 %. */
static void test_no_period_is_in_step_with_a_tick(void **state)
{
	static const struct {
		uint32_t hz;
		uint64_t period_ns;
	} cases[] = {
		{ 1, 1000000000 + 1000000000 / 101 }, { 97, 10309278 }, { 99, 10101010 },
		{ 100, 10000000 + 10000000 / 101 }, { 101, 9900990 },
		{ 125, 8000000 + 8000000 / 101 }, { 249, 4016064 },
		{ 250, 4000000 + 4000000 / 101 }, { 300, 3333333 + 3333333 / 101 },
		{ 999, 1001001 }, /* 0.1 % away */
		{ 1000, 1000000 + 1000000 / 101 }, { 2000, 500000 + 500000 / 101 },
		{ 100000, 10000 + 10000 / 101 },
		{ 1999, 500250 + 500250 / 101 }, /* not exactly, but within 0.05 % */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(attribute_clock_period_ns(cases[i].hz), cases[i].period_ns);
}

/* An anchor owns a ring into which the sampling events write: same clock, same layout. */
static void test_anchor_matches_its_events(void **state)
{
	struct perf_event_attr attr, anchor;

	(void)state;
	fake_events_reset();
	assert_int_equal(attribute_probe(&attr, false, 99), 0);
	attr.wakeup_watermark = 4096;
	attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
	attribute_anchor(&anchor, &attr);
	assert_int_equal(anchor.config, PERF_COUNT_SW_DUMMY);
	assert_int_equal(anchor.sample_type, attr.sample_type);
	assert_int_equal(anchor.clockid, attr.clockid);
	assert_int_equal(anchor.use_clockid, attr.use_clockid);
	assert_int_equal(anchor.sample_id_all, attr.sample_id_all);
	assert_int_equal(anchor.wakeup_watermark, 4096);
	assert_true(anchor.exclude_kernel);
	assert_int_equal(anchor.sample_period, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kernel_gets_all_that_it_knows),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_cycles_carry_their_period),
		cmocka_unit_test(test_no_period_is_in_step_with_a_tick),
		cmocka_unit_test(test_anchor_matches_its_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
