/*
 * frame_chain.c: stacks with remains of earlier calls, methods without frame records, and random
 * words.
 */
#include "unit/test.h"

#include <string.h>

#include "code/frame_chain.h"

#define SP    UINT64_C(0x7000)
#define AT(i) (SP + (uint64_t)(i)*8)

/*
 * Code is at 0x100000 to 0x1fffff, and every address of it follows a call. Threads start at
 * 0x1ff000 and above.
 */
static bool is_return(void *context, uint64_t address, uint64_t *ret_target)
{
	/* pairs of a return address and the target of the call before it; ends with 0 */
	const uint64_t *targets = context;

	*ret_target = 0;
	for (; targets && *targets; targets += 2)
		if (*targets == address)
			*ret_target = targets[1];
	return address >= 0x100000 && address < 0x200000;
}

static bool is_start(void *context, uint64_t address)
{
	(void)context;
	return address >= 0x1ff000;
}

static uint32_t find(const uint64_t *words, size_t count, const uint64_t *managed,
	uint32_t managed_count, const uint64_t *targets, uint64_t *frames, uint32_t *skipped)
{
	const struct frame_chain chain = {
		.words = words,
		.count = count,
		.sp = SP,
		.is_return = is_return,
		.is_start = is_start,
		.context = (void *)targets,
	};

	return frame_chain_find(&chain, managed, managed_count, frames, 16, skipped);
}

static void test_mixed(void **state)
{
	/*
	 * Native 0x101000, called by managed 0x110020 (left at 0x110010), called by 0x120000,
	 * called by native 0x102000, called by the start of the thread.
	 */
	uint64_t words[] = { 7, AT(4), 0x101000, 8, AT(8), 0x110020, 9, 10, AT(11), 0x120000, 5,
		AT(14), 0x102000, 1, 0x1234, 0x1ff010, 0 };
	const uint64_t managed[] = { 0x110010, 0x120000 };
	const uint64_t expected[] = { 0x101000, 0x110020, 0x120000, 0x102000, 0x1ff010 };
	uint64_t frames[16];
	uint32_t skipped;

	(void)state;
	assert_int_equal(find(words, 17, managed, 2, NULL, frames, &skipped), 5);
	assert_memory_equal(frames, expected, sizeof(expected));
	assert_int_equal(skipped, 0);

	/*
	 * Two records lead to the same frame. One of them is a remain of an earlier call, so
	 * neither is used.
	 */
	words[0] = AT(4);
	words[1] = 0x101500;
	words[2] = AT(4);
	words[3] = 0x101000;
	assert_int_equal(find(words, 17, managed, 2, NULL, frames, &skipped), 4);
	assert_memory_equal(frames, expected + 1, sizeof(expected) - sizeof(expected[0]));

	/* The target of the call before the return address decides between them. */
	const uint64_t targets[] = { 0x110020, 0x100f00, 0 };
	words[1] = 0x100100;
	assert_int_equal(find(words, 17, managed, 2, targets, frames, &skipped), 5);
	assert_memory_equal(frames, expected, sizeof(expected));
}

static void test_without_records(void **state)
{
	/*
	 * 0x120000 returns into a method that has a record but writes none itself: its address is
	 * between two records.
	 */
	const uint64_t words[] = { 1, AT(4), 0x110004, 3, AT(9), 0x111000, 6, 0x120000, 8, AT(12),
		0x130000, 9, 0, 0x1ff010, 0 };
	const uint64_t managed[] = { 0x110000, 0x111000, 0x120000, 0x130000 };
	const uint64_t expected[] = { 0x110004, 0x111000, 0x120000, 0x130000, 0x1ff010 };
	uint64_t frames[16];
	uint32_t skipped;

	(void)state;
	assert_int_equal(find(words, 15, managed, 4, NULL, frames, &skipped), 5);
	assert_memory_equal(frames, expected, sizeof(expected));

	/* The leaf is not found in the stack, so it comes before all other frames. */
	const uint64_t other[] = { 0x118000, 0x111000, 0x120000, 0x130000 };
	assert_int_equal(find(words, 15, other, 4, NULL, frames, &skipped), 4);
	assert_int_equal(skipped, 1);
	assert_memory_equal(frames, expected + 1, sizeof(expected) - sizeof(expected[0]));

	/* A frame that the runtime reported is missing: the thread has moved on since. */
	const uint64_t moved[] = { 0x110000, 0x111000, 0x125000, 0x130000 };
	assert_int_equal(find(words, 15, moved, 4, NULL, frames, &skipped), 0);
}

static void test_native(void **state)
{
	const uint64_t words[] = { AT(3), 0x101000, 0, AT(7), 0x102000, 5, 6, 0x99, 0x1ff010, 0,
		0 };
	const uint64_t expected[] = { 0x101000, 0x102000, 0x1ff010 };
	uint64_t frames[16];
	uint32_t skipped;

	(void)state;
	assert_int_equal(find(words, 11, NULL, 0, NULL, frames, &skipped), 3);
	assert_memory_equal(frames, expected, sizeof(expected));
	assert_int_equal(find(words, 1, NULL, 0, NULL, frames, &skipped), 0);
	assert_int_equal(find(words, 0, NULL, 0, NULL, frames, &skipped), 0);
}

/* With random words the walk ends, and returns no more frames than fit. */
static void test_rubbish(void **state)
{
	static uint64_t words[2000];
	uint64_t seed = 88172645463325252u;
	uint64_t frames[16];
	uint32_t skipped;

	(void)state;
	for (int round = 0; round < 300; round++) {
		for (size_t i = 0; i < 2000; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			words[i] = seed % 3 == 0   ? AT(seed / 8 % 2100)
				   : seed % 3 == 1 ? 0x100000 + seed / 16 % 0x40 * 0x4000
						   : seed;
		}
		const uint64_t managed[] = { words[5], words[100], words[101] };
		assert_true(find(words, 2000, managed, (uint32_t)(round % 4), NULL, frames,
				    &skipped) <= 16);
		assert_true(skipped <= 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_without_records),
		cmocka_unit_test(test_native),
		cmocka_unit_test(test_rubbish),
	};

	return cmocka_run_group_tests_name("frame_chain", tests, NULL, NULL);
}
