/*
 * reorder_window.c: items leave in time order, whatever their order of arrival; items that are too late are
 * moved and marked.
 */
#include "unit/test.h"

#include "pipeline/reorder_window.h"

static void add(struct reorder_window *window, uint64_t time_ns, int16_t cpu)
{
	struct pending *item = reorder_window_add(window);

	assert_non_null(item);
	item->time_ns = time_ns;
	item->cpu = cpu;
}

static void test_order(void **state)
{
	struct reorder_window window = { 0 };
	uint64_t late;
	uint64_t last = 0;
	unsigned count = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		add(&window, i * 10, 0);
		add(&window, (i * 7919) % 9990, 1);
	}
	for (uint64_t until = 1000; until <= 10000; until += 500) {
		reorder_window_sort(&window, until);
		for (struct pending *item; (item = reorder_window_next(&window, &late)); count++) {
			assert_true(item->time_ns >= last && item->time_ns <= until);
			assert_int_equal(late, 0);
			last = item->time_ns;
		}
	}
	assert_int_equal(count, 2000);
	reorder_window_done(&window);
}

static void test_equal_times_keep_their_order(void **state)
{
	struct reorder_window window = { 0 };
	uint64_t late;

	(void)state;
	for (int16_t i = 0; i < 100; i++)
		add(&window, 5, i);
	reorder_window_sort(&window, 5);
	for (int i = 0; i < 100; i++)
		assert_int_equal(reorder_window_next(&window, &late)->cpu, i);
	assert_null(reorder_window_next(&window, &late));
	reorder_window_done(&window);
}

/*
 * Runs of several sources that overlap in part, sorted several times with some items released each
 * time: no item is lost, late or out of order.
 */
static void test_in_parts(void **state)
{
	struct reorder_window window = { 0 };
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
				add(&window, next_ns[source], (int16_t)source);
			}
			if (next_ns[source] < least_ns)
				least_ns = next_ns[source];
		}
		reorder_window_sort(&window, round == 299 ? UINT64_MAX : least_ns - 1);
		/* Some ready items stay in the window. */
		for (uint32_t n = round % 7 == 3 ? 5 : UINT32_MAX; n; n--) {
			const struct pending *item = reorder_window_next(&window, &late);
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
	reorder_window_done(&window);
}

static void test_late(void **state)
{
	struct reorder_window window = { 0 };
	uint64_t late;

	(void)state;
	add(&window, 100, 0);
	reorder_window_sort(&window, 100);
	assert_non_null(reorder_window_next(&window, &late));
	add(&window, 70, 0);
	add(&window, 150, 0);
	reorder_window_sort(&window, 120);
	struct pending *item = reorder_window_next(&window, &late);
	assert_int_equal(late, 30);
	assert_int_equal(item->time_ns, 100);
	assert_null(reorder_window_next(&window, &late));
	item = reorder_window_add(&window);
	item->side = malloc(10); /* freed by reorder_window_done() */
	reorder_window_done(&window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_equal_times_keep_their_order),
		cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
