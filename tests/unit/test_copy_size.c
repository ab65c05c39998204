/* When small stack copies are taken, and when no longer. */
#include "recording/copy_size.h"

#include "unit/test.h"

/* So many samples, of which each `every`th is missing something (0: none); how often the size changed. */
static uint32_t samples(struct copy_size *size, uint32_t count, uint32_t every)
{
	uint32_t changes = 0;

	for (uint32_t i = 1; i <= count; i++)
		if (size->small || size->wait || copy_size_judges(size))
			changes += copy_size_note(size, every && i % every == 0);
	return changes;
}

static void test_frame_pointers(void **state)
{
	struct copy_size size = { 0 };

	(void)state;
	assert_int_equal(samples(&size, 200, 0), 0);
	assert_false(size.small);
	assert_int_equal(samples(&size, 100, 0), 1);
	assert_true(size.small);
	assert_int_equal(samples(&size, 100000, 100), 0);
	assert_true(size.small);
}

static void test_without(void **state)
{
	struct copy_size size = { 0 };

	(void)state;
	assert_int_equal(samples(&size, 100000, 3), 0);
	assert_false(size.small);
	/* then everything has frame pointers: after a time that is tried again */
	assert_int_equal(samples(&size, 200000, 0), 1);
	assert_true(size.small);
}

/* A program that changes does not make the size change all the time. */
static void test_change(void **state)
{
	struct copy_size size = { 0 };
	uint32_t changes = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		changes += samples(&size, 500, i % 2 ? 2 : 0);
	assert_true(changes >= 4);
	assert_true(changes <= 40);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
