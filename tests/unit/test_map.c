/* map.c: finds inserted entries, including duplicates, with any size of the table. */
#include "unit/test.h"

#include "base/map.h"

static void test_put_get(void **state)
{
	struct map map = { 0 };

	(void)state;
	assert_int_equal(map_get(&map, 7), 0);
	for (uint32_t i = 1; i <= 5000; i++)
		assert_true(map_put(&map, (uint64_t)i << 32, i));
	for (uint32_t i = 1; i <= 5000; i++)
		assert_int_equal(map_get(&map, (uint64_t)i << 32), i);
	assert_true(map_put(&map, 5ull << 32, 77));
	assert_int_equal(map_get(&map, 5ull << 32), 77);
	assert_int_equal(map.count, 5000);
	map_reset(&map);
	assert_int_equal(map_get(&map, 5ull << 32), 0);
	map_done(&map);
}

static void test_duplicates(void **state)
{
	struct map map = { 0 };
	unsigned seen = 0;

	(void)state;
	for (uint32_t i = 1; i <= 100; i++)
		assert_true(map_add(&map, 42, i));
	for (struct map_walk w = map_find(&map, 42); w.value; map_next(&w))
		seen += w.value;
	assert_int_equal(seen, 5050);
	map_done(&map);
}

static void test_remove(void **state)
{
	struct map map = { 0 };

	(void)state;
	for (uint32_t i = 1; i <= 3000; i++)
		assert_true(map_add(&map, i % 700, i));
	for (uint32_t i = 1; i <= 3000; i += 2)
		map_remove(&map, i % 700, i);
	map_remove(&map, 5, 999999); /* not there */
	assert_int_equal(map.count, 1500);
	for (uint32_t key = 0; key < 700; key++) {
		unsigned found = 0;
		for (struct map_walk w = map_find(&map, key); w.value; map_next(&w)) {
			assert_int_equal(w.value % 700, key);
			assert_int_equal(w.value % 2, 0);
			found++;
		}
		unsigned expected = 0;
		for (uint32_t i = 2; i <= 3000; i += 2)
			expected += i % 700 == key;
		assert_int_equal(found, expected);
	}
	map_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_get),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_remove),
	};

	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
