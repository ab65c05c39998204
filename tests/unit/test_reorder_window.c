/*
 * merge.c: items leave in time order, whatever their order of arrival; items that are too late are
 * moved and marked.
 */
#include "unit/test.h"

#include "pipeline/reorder_window.h"

static void add(struct merge *merge, uint64_t time_ns, int16_t cpu)
{
	struct pending *item = merge_add(merge);

	assert_non_null(item);
	item->time_ns = time_ns;
	item->cpu = cpu;
}

static void test_order(void **state)
{
	struct merge merge = { 0 };
	uint64_t late;
	uint64_t last = 0;
	unsigned count = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		add(&merge, i * 10, 0);
		add(&merge, (i * 7919) % 9990, 1);
	}
	for (uint64_t until = 1000; until <= 10000; until += 500) {
		merge_sort(&merge, until);
		for (struct pending *item; (item = merge_next(&merge, &late)); count++) {
			assert_true(item->time_ns >= last && item->time_ns <= until);
			assert_int_equal(late, 0);
			last = item->time_ns;
		}
	}
	assert_int_equal(count, 2000);
	merge_done(&merge);
}

static void test_equal_times_keep_their_order(void **state)
{
	struct merge merge = { 0 };
	uint64_t late;

	(void)state;
	for (int16_t i = 0; i < 100; i++)
		add(&merge, 5, i);
	merge_sort(&merge, 5);
	for (int i = 0; i < 100; i++)
		assert_int_equal(merge_next(&merge, &late)->cpu, i);
	assert_null(merge_next(&merge, &late));
	merge_done(&merge);
}

/*
 * Runs of several sources that overlap in part, sorted several times with some items released each
 * time: no item is lost, late or out of order.
 */
static void test_in_parts(void **state)
{
	struct merge merge = { 0 };
	uint64_t next_ns[3] = { 1000, 1003, 1000 };
	uint64_t random = 12345;
	uint64_t late;
	uint64_t last_ns = 0;
	uint32_t last_sequence = 0;
	uint32_t added = 0;
	uint32_t left = 0;

	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		uint64_t least_ns = UINT64_MAX;
		for (int source = 0; source < 3; source++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			for (uint64_t n = random >> 59; n; n--, added++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				next_ns[source] += random >> 61; /* equal times too */
				add(&merge, next_ns[source], (int16_t)source);
			}
			if (next_ns[source] < least_ns)
				least_ns = next_ns[source];
		}
		merge_sort(&merge, round == 299 ? UINT64_MAX : least_ns - 1);
		/* Some ready items stay in the window. */
		for (uint32_t n = round % 7 == 3 ? 5 : UINT32_MAX; n; n--) {
			const struct pending *item = merge_next(&merge, &late);
			if (!item)
				break;
			assert_int_equal(late, 0);
			assert_true(item->time_ns > last_ns ||
				    (item->time_ns == last_ns && item->sequence > last_sequence));
			last_ns = item->time_ns;
			last_sequence = item->sequence;
			left++;
		}
	}
	assert_true(added > 5000);
	assert_int_equal(left, added);
	merge_done(&merge);
}

static void test_late(void **state)
{
	struct merge merge = { 0 };
	uint64_t late;

	(void)state;
	add(&merge, 100, 0);
	merge_sort(&merge, 100);
	assert_non_null(merge_next(&merge, &late));
	add(&merge, 70, 0);
	add(&merge, 150, 0);
	merge_sort(&merge, 120);
	struct pending *item = merge_next(&merge, &late);
	assert_int_equal(late, 30);
	assert_int_equal(item->time_ns, 100);
	assert_null(merge_next(&merge, &late));
	item = merge_add(&merge);
	item->side = malloc(10); /* freed by merge_done() */
	merge_done(&merge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_equal_times_keep_their_order),
		cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
