/*
 * event_counts.c: one row for each name, whatever its schema; the most frequent first; names beyond
 * the limit share one row.
 */
#include "unit/test.h"

#include "analysis/event_counts.h"

static uint32_t row_of(struct event_counts *counts, const char *provider, const char *name)
{
	return event_counts_row(counts, provider, strlen(provider), name, strlen(name));
}

static void test_rows(void **state)
{
	struct event_counts counts = { 0 };

	(void)state;
	event_counts_sort(&counts); /* an empty file */
	assert_int_equal(event_counts_of_schema(&counts, 5), 0);
	uint32_t start = row_of(&counts, "Runtime", "GC/Start");
	uint32_t stop = row_of(&counts, "Runtime", "GC/Stop");

	assert_int_not_equal(start, 0);
	assert_int_not_equal(start, stop);
	assert_int_equal(row_of(&counts, "Runtime", "GC/Start"), start);
	assert_int_not_equal(row_of(&counts, "Other", "GC/Start"), start);
	event_counts_remember(&counts, 5, stop);
	assert_int_equal(event_counts_of_schema(&counts, 5), stop);
	assert_int_equal(event_counts_of_schema(&counts, 4), 0);
	event_counts_add(&counts, start, 1, 10);
	event_counts_add(&counts, stop, 1, 7);
	event_counts_add(&counts, stop, 1, 8);
	event_counts_sort(&counts);
	assert_string_equal(strtab_get(&counts.strings, counts.rows.items[1].name), "GC/Stop");
	assert_int_equal(counts.rows.items[1].count, 2);
	assert_int_equal(counts.rows.items[1].size_bytes, 15);
	assert_int_equal(counts.rows.items[2].size_bytes, 10);
	event_counts_done(&counts);
}

static void test_too_many(void **state)
{
	struct event_counts counts = { 0 };
	const uint32_t more = 100;

	(void)state;
	for (uint32_t i = 0; i < EVENT_COUNTS_MAX + more; i++) {
		char name[32];
		snprintf(name, sizeof(name), "event %u", i);
		uint32_t row = row_of(&counts, "Hostile", name);
		assert_int_not_equal(row, 0);
		event_counts_add(&counts, row, 1, 1);
	}
	assert_true(counts.rows.count <= EVENT_COUNTS_MAX);
	event_counts_sort(&counts);
	assert_int_equal(counts.rows.items[1].name, 0);
	assert_true(counts.rows.items[1].count >= more);
	uint64_t all = 0;
	for (uint32_t i = 1; i < counts.rows.count; i++)
		all += counts.rows.items[i].count;
	assert_int_equal(all, EVENT_COUNTS_MAX + more);
	event_counts_done(&counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests_name("event_counts", tests, NULL, NULL);
}
