/* The rows of a process, merged by some members of their keys, all of them or only some. */
#include "unit/test.h"

#include "analysis/tally.h"

static const struct tally_row rows[] = {
	{ .key = { .id = 1, .kind = 7, .stack = 1 }, .count = 1, .amount = 100 },
	{ .key = { .id = 2, .kind = 7, .stack = 2 }, .count = 2, .amount = 70 },
	{ .key = { .id = 3, .kind = 8, .stack = 1 }, .count = 4, .amount = 50 },
	{ .key = { .id = 2, .kind = 7, .stack = 2 }, .count = 8, .amount = 20 },
};

static struct tally_process filled(struct tally *tally)
{
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_true(vec_add(&tally->rows.list, rows[i]));
	return (struct tally_process){ .row_count = tally->rows.list.count };
}

static bool is_of_thread(const void *context, const struct tally_row *row)
{
	return row->key.id == *(const uint64_t *)context;
}

static void test_all_rows_are_merged_by_the_members_that_are_kept(void **state)
{
	struct tally tally = { 0 };
	const struct tally_process process = filled(&tally);
	struct tally_rows merged;

	(void)state;
	assert_int_equal(tally_group(&tally, &process, TALLY_KIND, &merged), 0);
	assert_int_equal(merged.list.count, 2);
	assert_int_equal(merged.list.items[0].amount, 190);
	assert_int_equal(merged.list.items[0].count, 11);
	assert_int_equal(merged.list.items[1].amount, 50);
	tally_rows_done(&merged);
	tally_done(&tally);
}

/* Threads differ within a merged row, so a row of another thread must not be judged by the first. */
static void test_rows_are_chosen_before_they_are_merged(void **state)
{
	struct tally tally = { 0 };
	const struct tally_process process = filled(&tally);
	const uint64_t thread = 2;
	struct tally_rows merged;

	(void)state;
	assert_int_equal(
		tally_group_some(&tally, &process, TALLY_KIND, is_of_thread, &thread, &merged), 0);
	assert_int_equal(merged.list.count, 1);
	assert_int_equal(merged.list.items[0].amount, 90);
	assert_int_equal(merged.list.items[0].count, 10);
	tally_rows_done(&merged);
	tally_done(&tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rows_are_merged_by_the_members_that_are_kept),
		cmocka_unit_test(test_rows_are_chosen_before_they_are_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
