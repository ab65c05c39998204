/* The walk by frame pointers over a copy of the stack: the chain that the kernel found, and the words that it depends on. */
#include "recording/frame_walk.h"

#include <string.h>

#include "code/arch.h"
#include "code/unwind_state.h"
#include "code/unwind_trace.h"
#include "perf/perf_record.h"
#include "unit/test.h"

#define STACK UINT64_C(0x7ffe0000)

static uint64_t stack[64];
static uint64_t registers[24];
static uint64_t frames[] = { 0x401000, 0x402000, 0x403000 };
static struct perf_record record;
static struct unwind_registers found;
static struct unwind_trace trace;

/* Sets the register that has this number in DWARF; ARCH_NO_REGISTER and the number of the pc: the pc. */
static void set_register(uint8_t number, uint64_t value)
{
	const struct arch_unwind *arch = arch_by_name("x86_64")->unwind;

	for (uint32_t i = 0; i < arch->kernel_count; i++)
		if (arch->kernel_order[i] == number)
			registers[i] = value;
}

/* Two frames: the second has no next one. */
static int set_up(void **state)
{
	const struct arch_unwind *arch = arch_by_name("x86_64")->unwind;

	(void)state;
	memset(stack, 0, sizeof(stack));
	stack[10] = STACK + 20 * 8;
	stack[11] = 0x402000;
	stack[20] = 0;
	stack[21] = 0x403000;
	set_register(arch->pc_register, 0x401000);
	set_register(arch->stack_register, STACK);
	set_register(arch->frame_register, STACK + 10 * 8);
	record = (struct perf_record){ .user_registers = (const uint8_t *)registers,
		.user_is_64 = true,
		.user_stack = (const uint8_t *)stack,
		.user_stack_size = sizeof(stack) };
	return 0;
}

static bool walk(uint32_t count)
{
	return frame_walk_trace(arch_by_name("x86_64"), &record, frames, count, &found, &trace);
}

static void test_chain(void **state)
{
	(void)state;
	assert_true(walk(3));
	assert_int_equal(found.pc, 0x401000);
	assert_int_equal(trace.registers, 1u << 6);
	assert_int_equal(trace.word_count, 4);
	assert_false(trace.failed);
	uint32_t offsets[] = { 88, 80, 168, 160 };
	uint64_t values[] = { 0x402000, STACK + 160, 0x403000, 0 };
	assert_memory_equal(trace.offsets, offsets, sizeof(offsets));
	assert_memory_equal(trace.values, values, sizeof(values));
}

/* The kernel's walk ends at an address that cannot be code, which is part of what the chain depends on. */
static void test_impossible(void **state)
{
	(void)state;
	stack[21] = 17;
	assert_true(walk(2));
	assert_int_equal(trace.word_count, 3);
	stack[21] = UINT64_C(0xffffffff81000000);
	assert_true(walk(2));
	assert_false(walk(3));
}

static void test_other(void **state)
{
	(void)state;
	/* another chain than the kernel's */
	assert_false(walk(2));
	assert_false(walk(0));
	frames[1]++;
	assert_false(walk(3));
	frames[1]--;
	frames[0]++;
	assert_false(walk(3));
	frames[0]--;
	/* it continues beyond the copy */
	stack[20] = STACK + sizeof(stack);
	assert_false(walk(3));
	stack[20] = 0;
	record.user_stack_size = 160;
	assert_false(walk(3));
	record.user_stack_size = sizeof(stack);
	/* a frame that is not aligned, which a row cannot have */
	set_register(6, STACK + 10 * 8 + 1);
	assert_false(walk(3));
	set_register(6, STACK + 10 * 8);
	record.user_is_64 = false;
	assert_false(walk(3));
	record.user_registers = NULL;
	assert_false(walk(3));
}

/* A frame that leads to itself ends with the room for words. */
static void test_circle(void **state)
{
	uint64_t many[UNWIND_TRACE_WORDS];

	(void)state;
	stack[10] = STACK + 10 * 8;
	many[0] = 0x401000;
	for (uint32_t i = 1; i < UNWIND_TRACE_WORDS; i++)
		many[i] = 0x402000;
	assert_false(frame_walk_trace(arch_by_name("x86_64"), &record, many, UNWIND_TRACE_WORDS,
		&found, &trace));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chain, set_up, NULL),
		cmocka_unit_test_setup_teardown(test_impossible, set_up, NULL),
		cmocka_unit_test_setup_teardown(test_other, set_up, NULL),
		cmocka_unit_test_setup_teardown(test_circle, set_up, NULL),
	};

	return cmocka_run_group_tests_name("frame_walk", tests, NULL, NULL);
}
