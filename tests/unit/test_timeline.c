/* Amounts over time: nothing is lost when the intervals grow. */
#include "unit/test.h"

#include "analysis/timeline.h"

#define MS UINT64_C(1000000)

static uint64_t sum_of(const struct timeline *line)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TIMELINE_PLACES; i++)
		sum += line->amounts[i];
	return sum;
}

static void test_growth(void **state)
{
	struct timeline line = { 0 };

	(void)state;
	timeline_add(&line, 0, 1);
	timeline_add(&line, 1 * MS, 2);
	timeline_add(&line, 63 * MS, 4);
	assert_int_equal(timeline_width_ns(&line), MS);
	assert_int_equal(line.amounts[63], 4);
	timeline_add(&line, 64 * MS, 8);
	assert_int_equal(timeline_width_ns(&line), 2 * MS);
	assert_int_equal(line.amounts[0], 3);
	assert_int_equal(line.amounts[31], 4);
	assert_int_equal(line.amounts[32], 8);
	assert_int_equal(timeline_peak(&line), 32);
	assert_int_equal(timeline_count(&line, 64 * MS), 33);
	timeline_add(&line, 1000 * MS, 16);
	assert_int_equal(timeline_width_ns(&line), 16 * MS);
	assert_int_equal(sum_of(&line), 31);
	assert_int_equal(timeline_peak(&line), 62);
}

static void test_ends(void **state)
{
	struct timeline line = { 0 };

	(void)state;
	assert_int_equal(timeline_peak(&line), 0);
	timeline_add(&line, UINT64_MAX, 5);
	assert_int_equal(sum_of(&line), 5);
	assert_true(timeline_count(&line, UINT64_MAX) <= TIMELINE_PLACES);
}

/* Each interval gets its part, and the sum stays exact. */
static void test_spread(void **state)
{
	struct timeline line = { 0 };

	(void)state;
	timeline_spread(&line, 10 * MS, 0, 5);
	assert_int_equal(line.amounts[10], 5);
	timeline_spread(&line, 20 * MS, 10 * MS, 1003);
	assert_int_equal(sum_of(&line), 1008);
	for (uint32_t i = 20; i < 30; i++)
		assert_in_range(line.amounts[i], 100, 101);
	assert_int_equal(line.amounts[30], 0);
	timeline_spread(&line, 0, UINT64_MAX, UINT64_MAX - 1008);
	assert_true(sum_of(&line) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
