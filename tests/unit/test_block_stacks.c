/* Which blocks become rows, when a row is matched, and when its frames are valid. */
#include "recording/block_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "code/arch.h"
#include "code/unwind_state.h"
#include "code/unwind_trace.h"
#include "perf/known_block.h"
#include "recording/kernel_returns.h"
#include "unit/test.h"

#define PID 100u
#define TID 101u

static const uint64_t frames[] = { 0x1000, 0x2000, 0x3000 };
static struct known_block *rows;
static struct block_stacks *stacks;
static struct unwind_registers registers;
static struct unwind_trace trace;
static struct block_stack block;

static int set_up(void **state)
{
	(void)state;
	rows = calloc(KNOWN_BLOCKS, sizeof(*rows));
	assert_non_null(rows);
	assert_int_equal(block_stacks_new(rows, arch_by_name("x86_64")->unwind, &stacks), 0);
	registers = (struct unwind_registers){ .pc = 0x1000 };
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
		registers.values[i] = 0x7000 + i;
	trace = (struct unwind_trace){ .registers = 1u << 6,
		.word_count = 2,
		.offsets = { 16, 8 },
		.values = { 0x2000, 0x3000 } };
	block = (struct block_stack){ .pid = PID,
		.tid = TID,
		.time_ns = 5000,
		.registers = &registers,
		.trace = &trace,
		.frames = frames,
		.frame_count = 3 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	block_stacks_free(stacks);
	free(rows);
	return 0;
}

static uint64_t owner_of(uint32_t tid)
{
	return (uint64_t)PID << 32 | tid;
}

/* The row that the program would match; KNOWN_BLOCKS: none. */
static uint32_t matched(uint32_t tid)
{
	uint32_t found = KNOWN_BLOCKS;

	for (uint32_t i = 0; i < KNOWN_BLOCKS; i++) {
		assert_int_equal(rows[i].version % 2, 0);
		if (rows[i].owner != owner_of(tid))
			continue;
		assert_int_equal(found, KNOWN_BLOCKS);
		found = i;
	}
	return found;
}

static uint32_t activate(uint32_t tid)
{
	block.tid = tid;
	assert_true(block_stacks_add(stacks, &block));
	block_stacks_pass(stacks);
	block_stacks_pass(stacks);
	uint32_t row = matched(tid);
	assert_true(row < KNOWN_BLOCKS);
	return row;
}

static bool finds(uint32_t row, uint32_t version)
{
	struct block_found found;

	if (!block_stacks_find(stacks, row, version, &found))
		return false;
	assert_int_equal(found.frame_count, 3);
	assert_int_equal(found.learned_ns, 5000);
	assert_memory_equal(found.frames, frames, sizeof(frames));
	return true;
}

/* A row has the registers and words of the trace, and is matched after two passes. */
static void test_row(void **state)
{
	(void)state;
	assert_true(block_stacks_add(stacks, &block));
	assert_int_equal(matched(TID), KNOWN_BLOCKS);
	block_stacks_pass(stacks);
	assert_int_equal(matched(TID), KNOWN_BLOCKS);
	assert_int_equal(block_stacks_row_count(stacks), 0);
	block_stacks_pass(stacks);
	uint32_t number = matched(TID);
	assert_true(number < KNOWN_BLOCKS);
	assert_int_equal(block_stacks_row_count(stacks), 1);
	const struct known_block *row = &rows[number];
	uint32_t first = known_block_set(owner_of(TID), 0x1000, registers.values[7]);
	assert_true(number >= first && number < first + KNOWN_BLOCK_WAYS);
	/* the pc, the stack pointer, rbp on which the chain depends, and rbx on which it does not */
	assert_int_equal(row->registers[0], 0x1000);
	assert_int_equal(row->registers[1], 0x7007);
	assert_int_equal(row->registers[2], 0x7006);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(row->masks[i] == (i < 3 ? UINT64_MAX : 0));
	assert_int_equal(row->word_count, 2);
	assert_int_equal(row->span_bytes, 24);
	assert_int_equal(row->offsets[0], 2);
	assert_int_equal(row->offsets[1], 1);
	assert_int_equal(row->values[0], 0x2000);
	assert_int_equal(row->values[1], 0x3000);
	assert_true(finds(number, row->version));
	assert_int_equal(block_stacks_found(stacks), 1);
	assert_false(finds(number, row->version + 2));
	assert_false(finds(number + 1, row->version));
	assert_false(finds(KNOWN_BLOCKS, row->version));
	assert_true(block_stacks_size_bytes(stacks) > sizeof(frames));
}

/* The return addresses of the kernel, up to the end of the last one. */
static void test_kernel(void **state)
{
	struct kernel_places places = { 2, { 9, 25 }, { 0xffff1, 0xffff2 } };

	(void)state;
	uint32_t number = activate(TID);
	assert_int_equal(rows[number].return_count, 0);
	assert_int_equal(rows[number].kernel_bytes, 0);
	block.kernel_places = &places;
	number = activate(TID + 1);
	assert_int_equal(rows[number].return_count, 2);
	assert_int_equal(rows[number].kernel_bytes, 26 * 8);
	assert_int_equal(rows[number].return_offsets[1], 25);
	assert_int_equal(rows[number].returns[1], 0xffff2);
}

/* The caller's number of the stack is kept until it is said to be another one. */
static void test_forget(void **state)
{
	struct block_found found;

	(void)state;
	uint32_t number = activate(TID);
	assert_true(block_stacks_find(stacks, number, rows[number].version, &found));
	assert_int_equal(*found.stack_index, 0);
	*found.stack_index = 7;
	assert_true(block_stacks_find(stacks, number, rows[number].version, &found));
	assert_int_equal(*found.stack_index, 7);
	block_stacks_forget(stacks);
	assert_true(block_stacks_find(stacks, number, rows[number].version, &found));
	assert_int_equal(*found.stack_index, 0);
}

/* What a row cannot describe. */
static void test_unfit(void **state)
{
	(void)state;
	trace.failed = true;
	assert_false(block_stacks_add(stacks, &block));
	trace.failed = false;
	trace.registers = 1u << 10; /* r10, which a function need not preserve */
	assert_false(block_stacks_add(stacks, &block));
	trace.registers = 0;
	trace.offsets[0] = 12;
	assert_false(block_stacks_add(stacks, &block));
	trace.offsets[0] = KNOWN_BLOCK_SPAN;
	assert_false(block_stacks_add(stacks, &block));
	trace.offsets[0] = KNOWN_BLOCK_SPAN - 8;
	block.frame_count = BLOCK_STACKS_FRAMES_MAX + 1;
	assert_false(block_stacks_add(stacks, &block));
	block.frame_count = 0;
	assert_false(block_stacks_add(stacks, &block));
	block.frame_count = 3;
	assert_true(block_stacks_add(stacks, &block));
}

/* A change of code: a new row is never matched; blocks of an old one that are in the rings keep their frames. */
static void test_drop(void **state)
{
	(void)state;
	uint32_t number = activate(TID);
	uint32_t version = rows[number].version;

	assert_true(block_stacks_add(stacks, &block)); /* of the same thread, at the same place */
	block_stacks_drop(stacks, PID + 1);
	assert_int_equal(matched(TID), number);
	block_stacks_drop(stacks, PID);
	assert_int_equal(matched(TID), KNOWN_BLOCKS);
	assert_int_equal(block_stacks_row_count(stacks), 0);
	assert_true(finds(number, version));
	block_stacks_drop(stacks, PID);
	block_stacks_pass(stacks);
	assert_true(finds(number, version));
	block_stacks_pass(stacks);
	assert_false(finds(number, version));
	block_stacks_pass(stacks);
	block_stacks_pass(stacks);
	assert_int_equal(matched(TID), KNOWN_BLOCKS);
	/* The row is used again. Blocks of its former content are unknown. */
	uint32_t again = activate(TID);
	assert_false(finds(number, version));
	assert_true(finds(again, rows[again].version));
	block_stacks_drop_all(stacks);
	assert_int_equal(matched(TID), KNOWN_BLOCKS);
}

/* The places of a set are few: the row that is recognized least often makes room. */
static void test_room(void **state)
{
	uint32_t of[KNOWN_BLOCK_WAYS];

	(void)state;
	for (uint32_t i = 0; i < KNOWN_BLOCK_WAYS; i++) {
		trace.values[0] = i;
		assert_true(block_stacks_add(stacks, &block));
	}
	block_stacks_pass(stacks);
	block_stacks_pass(stacks);
	assert_int_equal(block_stacks_row_count(stacks), KNOWN_BLOCK_WAYS);
	uint32_t first = known_block_set(owner_of(TID), 0x1000, registers.values[7]);
	for (uint32_t i = 0; i < KNOWN_BLOCK_WAYS; i++) {
		of[i] = first + i;
		for (uint32_t hits = 0; i != 2 && hits < 8; hits++)
			assert_true(finds(of[i], rows[of[i]].version));
	}
	trace.values[0] = 77;
	assert_false(block_stacks_add(stacks, &block));
	assert_int_equal(block_stacks_row_count(stacks), KNOWN_BLOCK_WAYS - 1);
	assert_int_equal(rows[of[2]].owner, 0);
	/* No other row leaves while that one does. */
	assert_false(block_stacks_add(stacks, &block));
	assert_int_equal(block_stacks_row_count(stacks), KNOWN_BLOCK_WAYS - 1);
	block_stacks_pass(stacks);
	block_stacks_pass(stacks);
	assert_true(block_stacks_add(stacks, &block));
	block_stacks_pass(stacks);
	block_stacks_pass(stacks);
	assert_int_equal(rows[of[2]].values[0], 77);
	assert_true(rows[of[2]].owner == owner_of(TID));
}

/* A chain is worth a row from its second time on, for each thread. */
static void test_wants(void **state)
{
	(void)state;
	assert_false(block_stacks_wants(stacks, TID, 1));
	assert_true(block_stacks_wants(stacks, TID, 1));
	assert_false(block_stacks_wants(stacks, TID, 2));
	assert_false(block_stacks_wants(stacks, TID + 1, 1));
	assert_true(block_stacks_wants(stacks, TID, 2));
	block_stacks_refuse(stacks, TID, 2);
	assert_false(block_stacks_wants(stacks, TID, 2));
	assert_true(block_stacks_wants(stacks, TID, 1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_row, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_forget, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unfit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wants, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
