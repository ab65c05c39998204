/* usdt_arguments.c: operands of x86-64 and arm64 as compilers write them, and texts that are none. */
#include "unit/test.h"

#include "code/usdt_arguments.h"

#define RBP 32
#define RBX 40
#define RAX 80
#define RDI 112
#define RSP 152

struct expectation {
	const char *text;
	struct usdt_argument argument;
};

#define NONE USDT_NO_REGISTER

static void check(uint16_t machine, const struct expectation *expected)
{
	struct usdt_argument got[USDT_ARGUMENTS_MAX];
	const struct usdt_argument *wanted = &expected->argument;

	if (usdt_arguments_parse(machine, expected->text, got) != 1)
		fail_msg("'%s' is one argument", expected->text);
	if (got->place != wanted->place || got->size != wanted->size ||
		got->is_signed != wanted->is_signed || got->is_float != wanted->is_float ||
		got->base != wanted->base || got->index != wanted->index ||
		got->scale != wanted->scale || got->shift != wanted->shift ||
		got->value != wanted->value || got->symbol_len != wanted->symbol_len)
		fail_msg(
			"'%s': place %u, size %u, base %u, index %u, scale %u, shift %u, value %lld",
			expected->text, got->place, got->size, got->base, got->index, got->scale,
			got->shift, (long long)got->value);
	if (wanted->symbol_len)
		assert_memory_equal(got->symbol, wanted->symbol, wanted->symbol_len);
}

static void test_x86(void **state)
{
	static const struct expectation cases[] = {
		{ "-4@%edi", { .place = USDT_REGISTER,
				     .size = 4,
				     .is_signed = true,
				     .base = RDI,
				     .index = NONE } },
		{ "8@%rbx", { .place = USDT_REGISTER, .size = 8, .base = RBX, .index = NONE } },
		{ "2@%ax", { .place = USDT_REGISTER, .size = 2, .base = RAX, .index = NONE } },
		{ "1@%ah", { .place = USDT_REGISTER,
				   .size = 1,
				   .base = RAX,
				   .index = NONE,
				   .shift = 8 } },
		{ "1@%dil", { .place = USDT_REGISTER, .size = 1, .base = RDI, .index = NONE } },
		{ "4@%r14d", { .place = USDT_REGISTER, .size = 4, .base = 8, .index = NONE } },
		{ "8f@%rdi", { .place = USDT_REGISTER,
				     .size = 8,
				     .is_float = true,
				     .base = RDI,
				     .index = NONE } },
		{ "8@$-5", { .place = USDT_CONSTANT,
				   .size = 8,
				   .base = NONE,
				   .index = NONE,
				   .value = -5 } },
		{ "8@$0x1F", { .place = USDT_CONSTANT,
				     .size = 8,
				     .base = NONE,
				     .index = NONE,
				     .value = 31 } },
		{ "-8@-24(%rbp)", { .place = USDT_MEMORY,
					  .size = 8,
					  .is_signed = true,
					  .base = RBP,
					  .index = NONE,
					  .value = -24 } },
		{ "8@(%rsp)", { .place = USDT_MEMORY, .size = 8, .base = RSP, .index = NONE } },
		{ "4@16(%rax,%rbx,4)", { .place = USDT_MEMORY,
					       .size = 4,
					       .base = RAX,
					       .index = RBX,
					       .scale = 2,
					       .value = 16 } },
		{ "4@(%rax,%rbx)", { .place = USDT_MEMORY, .size = 4, .base = RAX, .index = RBX } },
		{ "4@8(,%rbx,8)", { .place = USDT_MEMORY,
					  .size = 4,
					  .base = NONE,
					  .index = RBX,
					  .scale = 3,
					  .value = 8 } },
		{ "2@count(%rip)", { .place = USDT_SYMBOL,
					   .size = 2,
					   .base = NONE,
					   .index = NONE,
					   .symbol = "count",
					   .symbol_len = 5 } },
		{ "8@count.0+8(%rip)", { .place = USDT_SYMBOL,
					       .size = 8,
					       .base = NONE,
					       .index = NONE,
					       .value = 8,
					       .symbol = "count.0",
					       .symbol_len = 7 } },
		{ "8@8+count-2(%rip)", { .place = USDT_SYMBOL,
					       .size = 8,
					       .base = NONE,
					       .index = NONE,
					       .value = 6,
					       .symbol = "count",
					       .symbol_len = 5 } },
		{ "8@count", { .place = USDT_SYMBOL,
				     .size = 8,
				     .base = NONE,
				     .index = NONE,
				     .symbol = "count",
				     .symbol_len = 5 } },
		/* without a size */
		{ "%rdi", { .place = USDT_REGISTER, .size = 8, .base = RDI, .index = NONE } },
		/* not readable */
		{ "8f@%xmm0", { .size = 8, .is_float = true, .base = NONE, .index = NONE } },
		{ "-2@%rip", { .size = 2, .is_signed = true, .base = NONE, .index = NONE } },
		{ "8@%fs:0(%rax)", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@16", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@8(%ah)", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@8(%rax,%rbx,3)", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@()", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@", { .size = 8, .base = NONE, .index = NONE } },
		{ "3@%rax", { .size = 8, .base = NONE, .index = NONE } },
		{ "2f@%rax", { .size = 8, .base = NONE, .index = NONE } },
		{ "-9223372036854775808@%rax", { .size = 8, .base = NONE, .index = NONE } },
		{ "@", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@$", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@(%rax", { .size = 8, .base = NONE, .index = NONE } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(USDT_X86_64, &cases[i]);
}

static void test_arm64(void **state)
{
	static const struct expectation cases[] = {
		{ "-4@w0", { .place = USDT_REGISTER,
				   .size = 4,
				   .is_signed = true,
				   .base = 0,
				   .index = NONE } },
		{ "8@x30", { .place = USDT_REGISTER, .size = 8, .base = 240, .index = NONE } },
		{ "8@sp", { .place = USDT_REGISTER, .size = 8, .base = 248, .index = NONE } },
		{ "8@[x3]", { .place = USDT_MEMORY, .size = 8, .base = 24, .index = NONE } },
		{ "-4@[sp, 12]", { .place = USDT_MEMORY,
					 .size = 4,
					 .is_signed = true,
					 .base = 248,
					 .index = NONE,
					 .value = 12 } },
		{ "8@[x0, #-16]", { .place = USDT_MEMORY,
					  .size = 8,
					  .base = 0,
					  .index = NONE,
					  .value = -16 } },
		{ "8@[x0, x1]", { .place = USDT_MEMORY, .size = 8, .base = 0, .index = 8 } },
		{ "8@[x0, x1, lsl 3]",
			{ .place = USDT_MEMORY, .size = 8, .base = 0, .index = 8, .scale = 3 } },
		{ "4@7", { .place = USDT_CONSTANT,
				 .size = 4,
				 .base = NONE,
				 .index = NONE,
				 .value = 7 } },
		{ "4@#-7", { .place = USDT_CONSTANT,
				   .size = 4,
				   .base = NONE,
				   .index = NONE,
				   .value = -7 } },
		{ "8@xzr", { .place = USDT_CONSTANT, .size = 8, .base = NONE, .index = NONE } },
		{ "8f@d0", { .size = 8, .is_float = true, .base = NONE, .index = NONE } },
		{ "8@x31", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@[x0", { .size = 8, .base = NONE, .index = NONE } },
		{ "8@[x0, x1, lsl 9]", { .size = 8, .base = NONE, .index = NONE } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(USDT_ARM64, &cases[i]);
}

static void test_lists(void **state)
{
	struct usdt_argument got[USDT_ARGUMENTS_MAX];
	char many[2048] = "";

	(void)state;
	assert_int_equal(usdt_arguments_parse(USDT_X86_64, "", got), 0);
	assert_int_equal(usdt_arguments_parse(USDT_X86_64, "   ", got), 0);
	assert_int_equal(usdt_arguments_parse(USDT_X86_64, "  -4@%edi  8@-16(%rbp) ", got), 2);
	assert_int_equal(got[0].base, RDI);
	assert_int_equal(got[1].value, -16);
	assert_int_equal(usdt_arguments_parse(USDT_ARM64, "4@[sp, 8] 8@x1", got), 2);
	assert_int_equal(got[1].base, 8);
	for (unsigned i = 0; i < 2 * USDT_ARGUMENTS_MAX; i++)
		memcpy(many + i * 7, "8@%rax ", 8);
	assert_int_equal(usdt_arguments_parse(USDT_X86_64, many, got), USDT_ARGUMENTS_MAX);
	/* an unknown machine: as many arguments, none of them readable */
	assert_int_equal(usdt_arguments_parse(40, "8@r0 4@r1", got), 2);
	assert_int_equal(got[1].place, USDT_UNKNOWN);
	assert_int_equal(got[1].size, 4);
	assert_int_equal(usdt_instruction_pointer(USDT_X86_64), 128);
	assert_int_equal(usdt_instruction_pointer(USDT_ARM64), 256);
	assert_int_equal(usdt_instruction_pointer(40), USDT_NO_REGISTER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
