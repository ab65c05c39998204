/* What of a runtime's memory is believed about the owner of a lock. Real locks: kernel/diagnose_live. */
#include "unit/test.h"

#include <string.h>

#include "base/bytes.h"
#include "stacks/lock_owners.h"

static void test_contract(void **state)
{
	uint32_t slot;

	(void)state;
	assert_true(lock_owners_parse_contract(
		"{\"types\":{\"SyncBlock\":{\"InteropInfo\":56}},\"globals\":{\"SyncTableEntries\":[[13],\"pointer\"]}}",
		&slot));
	assert_int_equal(slot, 13);
	assert_true(lock_owners_parse_contract("{\"SyncTableEntries\":[ 4 ],\"InteropInfo\":56}",
		&slot));
	assert_int_equal(slot, 4);
	/* another layout of sync blocks; no table; a slot beyond any table; no number */
	assert_false(lock_owners_parse_contract("{\"InteropInfo\":48,\"SyncTableEntries\":[[13]]}",
		&slot));
	assert_false(lock_owners_parse_contract("{\"InteropInfo\":56}", &slot));
	assert_false(lock_owners_parse_contract(
		"{\"InteropInfo\":56,\"SyncTableEntries\":[[4096]]}", &slot));
	assert_false(lock_owners_parse_contract(
		"{\"InteropInfo\":56,\"SyncTableEntries\":\"0x12\"}", &slot));
	assert_false(lock_owners_parse_contract("", &slot));
}

struct block {
	uint32_t state;
	uint64_t holder;
	uint64_t tid;
	uint32_t number;
};

static bool parse(struct block block, uint64_t *ret_tid)
{
	struct bytes bytes = { 0 };

	bytes_u32(&bytes, block.state);
	bytes_u32(&bytes, 0);
	bytes_u64(&bytes, block.holder);
	bytes_u64(&bytes, block.tid);
	bytes_u32(&bytes, 0);
	bytes_u32(&bytes, block.number);
	assert_int_equal(bytes.len, SYNC_BLOCK_BYTES);
	bool held = lock_owners_parse_block(bytes.data, 7, ret_tid);
	bytes_done(&bytes);
	return held;
}

static void test_block(void **state)
{
	uint64_t tid;

	(void)state;
	assert_true(parse((struct block){ 1 | 2 << 6, 3, 4711, 7 | 0x80000000u }, &tid));
	assert_int_equal(tid, 4711);
	/* not held; without waiters; no holder; no thread; another block */
	assert_false(parse((struct block){ 2 << 6, 3, 4711, 7 }, &tid));
	assert_false(parse((struct block){ 1, 3, 4711, 7 }, &tid));
	assert_false(parse((struct block){ 1 | 2 << 6, 0, 4711, 7 }, &tid));
	assert_false(parse((struct block){ 1 | 2 << 6, 3, 0, 7 }, &tid));
	assert_false(parse((struct block){ 1 | 2 << 6, 3, 4711, 8 }, &tid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contract),
		cmocka_unit_test(test_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
