/* base/partition_point.h: against a walk over the table, for every size and value; from a later item on; of 64 bits. */
#include "unit/test.h"

#include "base/partition_point.h"

static void test_every_size(void **state)
{
	int items[12];

	(void)state;
	for (uint32_t count = 0; count <= 12; count++) {
		for (uint32_t i = 0; i < count; i++)
			items[i] = (int)(i / 2) * 2; /* each twice */
		for (int value = -1; value <= 13; value++) {
			uint32_t expected = 0;
			while (expected < count && items[expected] <= value)
				expected++;
			assert_int_equal(partition_point(count, i, items[i] <= value), expected);
			for (uint32_t from = 0; from <= expected; from++)
				assert_int_equal(partition_point_from(from, count, i,
							 items[i] <= value),
					expected);
		}
	}
}

static void test_wide(void **state)
{
	const uint64_t count = UINT64_C(1) << 63;
	unsigned asked = 0;

	(void)state;
	assert_int_equal(partition_point(count, i, (asked++, i < 12345678901)), 12345678901);
	assert_in_range(asked, 60, 65);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_wide),
	};

	return cmocka_run_group_tests_name("partition_point", tests, NULL, NULL);
}
