/* Rules of hand-made functions: each instruction, and what is malformed. */
#include "code/unwind_rules.h"

#include "unit/frame_builder.h"
#include "unit/test.h"

#define RBX 3u
#define RBP 6u
#define RSP 7u
#define RA  16u

/* The rules at `offset` of a function with these instructions; false as unwind_rules_find(). */
static bool rules_at(const uint8_t *code, size_t size, uint64_t offset, struct unwind_rules *ret)
{
	struct bytes out = { 0 };
	struct frame_section section = frame_build(&out, false, "zR", code, size);
	struct frame_entry entry;
	size_t at = 0;

	assert_int_equal(frame_entry_read(&section, &at, &entry), FRAME_ENTRY_OTHER);
	assert_int_equal(frame_entry_read(&section, &at, &entry), FRAME_ENTRY_FDE);
	assert_int_equal(entry.begin, FRAME_BUILD_BEGIN);
	assert_int_equal(entry.end, FRAME_BUILD_BEGIN + FRAME_BUILD_SIZE);
	bool found = unwind_rules_find(&entry, FRAME_BUILD_BEGIN + offset, ret);
	assert_int_equal(frame_entry_read(&section, &at, &entry), FRAME_ENTRY_END);
	bytes_done(&out);
	return found;
}

#define RULES(ret, offset, ...)                                                              \
	rules_at((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
		(offset), (ret))

static void expect_cfa(const struct unwind_rules *rules, uint32_t number, int64_t offset)
{
	assert_int_equal(rules->cfa.kind, RULE_VALUE_OFFSET);
	assert_int_equal(rules->cfa_register, number);
	assert_int_equal(rules->cfa.value, offset);
}

static void expect(const struct unwind_rules *rules, uint32_t number, enum unwind_rule_kind kind,
	int64_t value)
{
	assert_int_equal(rules->registers[number].kind, kind);
	if (kind != RULE_SAME && kind != RULE_UNDEFINED)
		assert_int_equal(rules->registers[number].value, value);
}

/* push rbp; mov rbp, rsp; ...; pop rbp: each address has the rules of the instructions before it. */
static void test_prologue(void **state)
{
	struct unwind_rules rules;

	(void)state;
#define FRAME 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x40, 0x0c, 7, 8, 0xc6
	assert_true(RULES(&rules, 0, FRAME));
	expect_cfa(&rules, RSP, 8);
	expect(&rules, RA, RULE_OFFSET, -8);
	expect(&rules, RBP, RULE_SAME, 0);
	assert_true(RULES(&rules, 1, FRAME));
	expect_cfa(&rules, RSP, 16);
	expect(&rules, RBP, RULE_OFFSET, -16);
	assert_true(RULES(&rules, 4, FRAME));
	expect_cfa(&rules, RBP, 16);
	assert_true(RULES(&rules, 67, FRAME));
	expect_cfa(&rules, RBP, 16);
	assert_true(RULES(&rules, 68, FRAME));
	expect_cfa(&rules, RSP, 8);
	expect(&rules, RBP, RULE_SAME, 0);
}

static void test_state(void **state)
{
	struct unwind_rules rules;

	(void)state;
	/* remember; CFA offset 8; 4 later: restore */
#define STATE 0x0e, 48, 0x83, 3, 0x0a, 0x0e, 8, 0x08, 3, 0x44, 0x0b
	assert_true(RULES(&rules, 3, STATE));
	expect_cfa(&rules, RSP, 8);
	expect(&rules, RBX, RULE_SAME, 0);
	assert_true(RULES(&rules, 4, STATE));
	expect_cfa(&rules, RSP, 48);
	expect(&rules, RBX, RULE_OFFSET, -24);
	/* a restore without a state, and more states than anyone nests */
	assert_false(RULES(&rules, 0, 0x0b));
	assert_false(RULES(&rules, 0, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a));
}

static void test_each_rule(void **state)
{
	struct unwind_rules rules;

	(void)state;
	assert_true(RULES(&rules, 0, 0x05, 3, 4, 0x11, 6, 0x7e, 0x14, 12, 2, 0x15, 13, 0x7f, 0x09,
		14, 15, 0x07, 0, 0x2f, 1, 2, 0x2e, 16, 0x2d, 0));
	expect(&rules, RBX, RULE_OFFSET, -32);
	expect(&rules, RBP, RULE_OFFSET, 16);
	expect(&rules, 12, RULE_VALUE_OFFSET, -16);
	expect(&rules, 13, RULE_VALUE_OFFSET, 8);
	expect(&rules, 14, RULE_REGISTER, 15);
	expect(&rules, 0, RULE_UNDEFINED, 0);
	expect(&rules, 1, RULE_OFFSET, 16);
	assert_true(RULES(&rules, 0, 0x12, 6, 0x7e));
	expect_cfa(&rules, RBP, 16);
	assert_true(RULES(&rules, 0, 0x13, 0x7d));
	expect_cfa(&rules, RSP, 24);
	assert_true(RULES(&rules, 0, 0x0f, 2, 0x77, 8, 0x10, 6, 2, 0x76, 0, 0x16, 3, 1, 0x30));
	assert_int_equal(rules.cfa.kind, RULE_VALUE_EXPRESSION);
	assert_int_equal(rules.cfa.size, 2);
	assert_int_equal(rules.registers[RBP].kind, RULE_EXPRESSION);
	assert_int_equal(rules.registers[RBX].kind, RULE_VALUE_EXPRESSION);
	/* a vector register is ignored, an undefined return address is the thread's start */
	assert_true(RULES(&rules, 0, 0x05, 40, 4, 0x07, 16));
	expect(&rules, RA, RULE_UNDEFINED, 0);
}

static void test_locations(void **state)
{
	struct unwind_rules rules;

	(void)state;
#define FAR 0x03, 0x80, 0x00, 0x0e, 16, 0x04, 0x40, 0, 0, 0, 0x0e, 24
	assert_true(RULES(&rules, 0x7f, FAR));
	expect_cfa(&rules, RSP, 8);
	assert_true(RULES(&rules, 0x80, FAR));
	expect_cfa(&rules, RSP, 16);
	assert_true(RULES(&rules, 0xc0, FAR));
	expect_cfa(&rules, RSP, 24);
}

static void test_malformed(void **state)
{
	struct unwind_rules rules;

	(void)state;
	assert_false(RULES(&rules, 0, 0x3f));                   /* unknown */
	assert_false(RULES(&rules, 0, 0x0e));                   /* cut */
	assert_false(RULES(&rules, 0, 0x0f, 9, 0x77));          /* cut expression */
	assert_false(RULES(&rules, 0, 0x0c, 60, 8));            /* a CFA from a vector register */
	assert_false(RULES(&rules, 0, 0x0f, 1, 0x30, 0x0e, 8)); /* an offset without a register */
	/* malformed instructions after the address are not reached */
	assert_true(RULES(&rules, 3, 0x44, 0x3f));
}

static void test_debug_frame(void **state)
{
	static const uint8_t code[] = { 0x44, 0x0e, 32 };
	struct bytes out = { 0 };
	struct frame_section section = frame_build(&out, true, "", code, sizeof(code));
	struct frame_entry entry;
	struct unwind_rules rules;
	size_t at = 0;

	(void)state;
	assert_int_equal(frame_entry_read(&section, &at, &entry), FRAME_ENTRY_OTHER);
	assert_int_equal(frame_entry_read(&section, &at, &entry), FRAME_ENTRY_FDE);
	assert_int_equal(entry.begin, FRAME_BUILD_BEGIN);
	assert_true(unwind_rules_find(&entry, FRAME_BUILD_BEGIN + 4, &rules));
	expect_cfa(&rules, RSP, 32);
	/* every prefix ends without reading further */
	for (size_t size = 0; size < out.len; size++) {
		section.size = size;
		at = 0;
		while (frame_entry_read(&section, &at, &entry) == FRAME_ENTRY_OTHER)
			;
		assert_true(at <= size);
	}
	bytes_done(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologue),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_each_rule),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_debug_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
