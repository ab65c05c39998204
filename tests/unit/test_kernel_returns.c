/* Where return addresses are in the kernel's stack: places in which all samples of a chain agree. */
#include "recording/kernel_returns.h"

#include <string.h>

#include "unit/test.h"

#define WORDS 100u
#define LEAF  UINT64_C(0xffffffff81000010)
#define OUTER UINT64_C(0xffffffff81000020)
#define CALL  UINT64_C(0xffffffff81000030)
#define ENTRY UINT64_C(0xffffffff81000040)

static struct kernel_returns *returns;
static uint64_t words[WORDS];
static const uint64_t frames[] = { LEAF, OUTER, CALL, ENTRY };
static struct kernel_places places;

static int set_up(void **state)
{
	(void)state;
	memset(words, 0, sizeof(words));
	words[9] = LEAF;
	words[25] = OUTER;
	words[40] = CALL;
	return kernel_returns_new(&returns);
}

static int tear_down(void **state)
{
	(void)state;
	kernel_returns_free(returns);
	return 0;
}

static bool learn(uint32_t frame_count)
{
	struct kernel_stack stack = { frames, frame_count, (const uint8_t *)words, WORDS };

	return kernel_returns_learn(returns, &stack, &places);
}

/* What earlier calls left is at another place each time; the entry is anywhere. */
static void test_left_over(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		words[50 + i] = CALL;
		words[12 + i] = LEAF;
		words[60 + i] = ENTRY;
		assert_false(learn(4));
		words[50 + i] = words[12 + i] = words[60 + i] = 0;
	}
	words[70] = CALL;
	words[19] = OUTER;
	assert_true(learn(4));
	assert_int_equal(places.count, 3);
	assert_int_equal(places.offsets[0], 9);
	assert_int_equal(places.offsets[1], 25);
	assert_int_equal(places.offsets[2], 40);
	assert_int_equal(places.returns[0], LEAF);
	assert_int_equal(places.returns[2], CALL);
	assert_true(kernel_returns_size_bytes(returns) > sizeof(words));
}

/* One that is always there is compared as well: it may be the right one. */
static void test_twice(void **state)
{
	(void)state;
	words[30] = LEAF;
	while (!learn(4))
		;
	assert_int_equal(places.count, 4);
	assert_int_equal(places.offsets[2], 30);
	/* until it is not */
	words[30] = 0;
	assert_true(learn(4));
	assert_int_equal(places.count, 3);
}

/* The chain is called from another depth: it is learned anew. */
static void test_moved(void **state)
{
	(void)state;
	while (!learn(4))
		;
	memmove(words + 1, words, sizeof(words) - sizeof(words[0]));
	words[9] = 0;
	assert_false(learn(4));
	while (!learn(4))
		;
	assert_int_equal(places.offsets[0], 10);
	assert_int_equal(places.offsets[2], 41);
}

/* Never, if an address is missing, or is in too many places, or there are too many frames. */
static void test_unfit(void **state)
{
	uint64_t many[KNOWN_BLOCK_RETURNS + 2];
	struct kernel_stack stack = { many, KNOWN_BLOCK_RETURNS + 2, (const uint8_t *)many,
		KNOWN_BLOCK_RETURNS + 2 };

	(void)state;
	words[25] = 0;
	for (unsigned i = 0; i < 9; i++)
		assert_false(learn(4));
	words[25] = OUTER;
	for (unsigned i = 26; i < WORDS; i++)
		words[i] = CALL;
	for (unsigned i = 0; i < 9; i++)
		assert_false(learn(4));
	for (unsigned i = 0; i < KNOWN_BLOCK_RETURNS + 2; i++)
		many[i] = LEAF + i;
	for (unsigned i = 0; i < 9; i++)
		assert_false(kernel_returns_learn(returns, &stack, &places));
	stack.frame_count--;
	while (!kernel_returns_learn(returns, &stack, &places))
		;
	assert_int_equal(places.count, KNOWN_BLOCK_RETURNS);
	stack.frame_count = 0;
	assert_false(kernel_returns_learn(returns, &stack, &places));
	/* a single frame is compared */
	for (unsigned i = 0; i < 9; i++)
		(void)learn(1);
	assert_int_equal(places.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_left_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_twice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unfit, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("kernel_returns", tests, NULL, NULL);
}
