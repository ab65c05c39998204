/* Frames of functions that the JIT and crossgen have compiled: their unwind information and code are those bytes. */
#include "code/clr_unwind.h"

#include "unit/test.h"

#define RBX 3u
#define RBP 6u
#define RSP 7u
#define R14 14u
#define R15 15u
#define RA  16u

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static void expect_cfa(const struct unwind_rules *rules, uint32_t number, int64_t offset)
{
	assert_int_equal(rules->cfa.kind, RULE_VALUE_OFFSET);
	assert_int_equal(rules->cfa_register, number);
	assert_int_equal(rules->cfa.value, offset);
	assert_int_equal(rules->return_register, RA);
	assert_int_equal(rules->registers[RA].kind, RULE_OFFSET);
	assert_int_equal(rules->registers[RA].value, -8);
}

static void expect_saved(const struct unwind_rules *rules, uint32_t number, int64_t offset)
{
	assert_int_equal(rules->registers[number].kind, RULE_OFFSET);
	assert_int_equal(rules->registers[number].value, offset);
}

static void expect_same(const struct unwind_rules *rules, uint32_t number)
{
	assert_int_equal(rules->registers[number].kind, RULE_SAME);
}

/* push rax; mov edi, 20000; call; add rsp, 8; ret: a small method without a frame pointer. */
static void test_small(void **state)
{
	struct unwind_rules rules;

	(void)state;
#define SMALL 0x19, 0x01, 0x01, 0x00, 0x01, 0x02
	assert_true(clr_unwind_rules(BYTES(SMALL), 0, &rules));
	expect_cfa(&rules, RSP, 8);
	assert_true(clr_unwind_rules(BYTES(SMALL), 1, &rules));
	expect_cfa(&rules, RSP, 16);
	expect_same(&rules, RBP);
	assert_true(clr_unwind_rules(BYTES(SMALL), 14, &rules));
	expect_cfa(&rules, RSP, 16);
}

/* push rbp; push r15; push rbx; sub rsp, 32; lea rbp, [rsp + 48] */
static void test_pushes(void **state)
{
	static const int64_t cfa[] = { 8, 16, 16, 24, 32, 32, 32, 32, 64 };
	struct unwind_rules rules;

	(void)state;
#define PUSHES 0x19, 0x08, 0x04, 0x00, 0x08, 0x32, 0x04, 0x30, 0x03, 0xf0, 0x01, 0x50
	for (uint64_t i = 0; i < sizeof(cfa) / sizeof(cfa[0]); i++) {
		assert_true(clr_unwind_rules(BYTES(PUSHES), i, &rules));
		expect_cfa(&rules, RSP, cfa[i]);
		if (i >= 1)
			expect_saved(&rules, RBP, -16);
		else
			expect_same(&rules, RBP);
		if (i >= 3)
			expect_saved(&rules, R15, -24);
		else
			expect_same(&rules, R15);
		if (i >= 4)
			expect_saved(&rules, RBX, -32);
		else
			expect_same(&rules, RBX);
	}
}

/* With stackalloc: five pushes after rbp, sub rsp, 16; lea rbp, [rsp + 48]: found from rbp from then on. */
static void test_frame_register(void **state)
{
	struct unwind_rules rules;

	(void)state;
#define FRAMED                                                                                    \
	0x19, 0x11, 0x07, 0x35, 0x11, 0x03, 0x0c, 0x12, 0x08, 0x30, 0x07, 0xd0, 0x05, 0xe0, 0x03, \
		0xf0, 0x01, 0x50
	assert_true(clr_unwind_rules(BYTES(FRAMED), 0x10, &rules));
	expect_cfa(&rules, RSP, 64);
	expect_saved(&rules, RBP, -16);
	assert_true(clr_unwind_rules(BYTES(FRAMED), 0x11, &rules));
	expect_cfa(&rules, RBP, 16);
	expect_saved(&rules, RBP, -16);
	expect_saved(&rules, R15, -24);
	expect_saved(&rules, R14, -32);
	expect_saved(&rules, RBX, -48);
	/* The same in the form for distances above 240: 0x1e * 16 = 480. */
#define FRAMED_FAR                                                                                \
	0x19, 0x19, 0x0b, 0xf5, 0x19, 0x0b, 0x1e, 0x00, 0x00, 0x00, 0x11, 0x01, 0x3b, 0x00, 0x0a, \
		0x30, 0x09, 0xc0, 0x07, 0xd0, 0x05, 0xe0, 0x03, 0xf0, 0x01, 0x50
	assert_true(clr_unwind_rules(BYTES(FRAMED_FAR), 0x18, &rules));
	expect_cfa(&rules, RSP, 0x3b * 8 + 6 * 8 + 8);
	assert_true(clr_unwind_rules(BYTES(FRAMED_FAR), 0x19, &rules));
	expect_cfa(&rules, RBP, 0x3b * 8 + 6 * 8 + 8 - 480);
	expect_saved(&rules, RBP, -16);
}

/*
 * On-stack replacement: push rax (the saved rbp); sub rsp, 16; mov [rsp + 88], rbx; lea rbp, [rsp + 16].
 * Offset 0 describes the frame of the code that it replaces: push rbp; sub rsp, 72.
 */
static void test_replacement(void **state)
{
	struct unwind_rules rules;

	(void)state;
#define REPLACEMENT                                                                               \
	0x19, 0x0e, 0x06, 0x00, 0x0e, 0x34, 0x0b, 0x00, 0x09, 0x12, 0x05, 0x02, 0x00, 0x82, 0x00, \
		0x50
	assert_true(clr_unwind_rules(BYTES(REPLACEMENT), 0, &rules));
	expect_cfa(&rules, RSP, 88);
	expect_saved(&rules, RBP, -16);
	expect_same(&rules, RBX);
	assert_true(clr_unwind_rules(BYTES(REPLACEMENT), 0x2e, &rules));
	expect_cfa(&rules, RSP, 112);
	expect_saved(&rules, RBP, -16);
	expect_saved(&rules, RBX, 88 - 112);
}

static void test_large(void **state)
{
	struct unwind_rules rules;

	(void)state;
	/* push rbp; sub rsp, 1424 */
	assert_true(clr_unwind_rules(
		BYTES(0x19, 0x08, 0x03, 0x00, 0x08, 0x01, 0xb2, 0x00, 0x01, 0x50), 99, &rules));
	expect_cfa(&rules, RSP, 1440);
	/* sub rsp, 0x123450, as four bytes */
	assert_true(clr_unwind_rules(
		BYTES(0x19, 0x08, 0x03, 0x00, 0x08, 0x11, 0x50, 0x34, 0x12, 0x00), 99, &rules));
	expect_cfa(&rules, RSP, 0x123450 + 8);
	/* a vector register is saved: of no interest */
	assert_true(clr_unwind_rules(
		BYTES(0x19, 0x08, 0x03, 0x00, 0x08, 0x68, 0x02, 0x00, 0x01, 0x50), 99, &rules));
	expect_cfa(&rules, RSP, 16);
}

static void test_malformed(void **state)
{
	struct unwind_rules rules;

	(void)state;
	/* cut, another version, a chained entry */
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01), 9, &rules));
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01, 0x00, 0x01), 9, &rules));
	assert_false(clr_unwind_rules(BYTES(0x1a, 0x01, 0x01, 0x00, 0x01, 0x02), 9, &rules));
	assert_false(clr_unwind_rules(BYTES(0x21, 0x01, 0x01, 0x00, 0x01, 0x02), 9, &rules));
	/* an operand that is cut, a code that is not known, a frame of the processor */
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01, 0x00, 0x01, 0x11), 9, &rules));
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01, 0x00, 0x01, 0x07), 9, &rules));
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01, 0x00, 0x01, 0x0a), 9, &rules));
	/* rsp is pushed, rbx is the frame register, the frame is larger than a stack */
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01, 0x00, 0x01, 0x40), 9, &rules));
	assert_false(clr_unwind_rules(BYTES(0x19, 0x01, 0x01, 0x03, 0x01, 0x03), 9, &rules));
	assert_false(clr_unwind_rules(
		BYTES(0x19, 0x01, 0x03, 0x00, 0x01, 0x11, 0xf8, 0xff, 0xff, 0xff), 9, &rules));
	/* no code: a leaf without a frame */
	assert_true(clr_unwind_rules(BYTES(0x19, 0x00, 0x00, 0x00), 9, &rules));
	expect_cfa(&rules, RSP, 8);
	assert_int_equal(clr_unwind_size((const uint8_t[]){ 0x19, 0x01, 0x03, 0x00 }), 10);
}

#define BEGIN UINT64_C(0x7fd0b606f800)

static bool epilog(const uint8_t *code, size_t size, struct unwind_rules *ret_rules)
{
	const struct clr_range function = { BEGIN, BEGIN + 0x80 };

	return clr_unwind_epilog(code, size, BEGIN + 0x40, &function, ret_rules);
}

/* Each instruction of an epilog, as the leaf of a sample finds it. */
static void test_epilog(void **state)
{
	/* vzeroupper; add rsp, 16; pop rbx; pop r15; pop rbp; ret */
	static const uint8_t code[] = { 0xc5, 0xf8, 0x77, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0x41, 0x5f,
		0x5d, 0xc3 };
	struct unwind_rules rules;

	(void)state;
	for (size_t at = 0; at <= 3; at += 3) {
		assert_true(epilog(code + at, sizeof(code) - at, &rules));
		expect_cfa(&rules, RSP, 48);
		expect_saved(&rules, RBX, -32);
		expect_saved(&rules, R15, -24);
		expect_saved(&rules, RBP, -16);
	}
	assert_true(epilog(code + 8, sizeof(code) - 8, &rules));
	expect_cfa(&rules, RSP, 24);
	expect_same(&rules, RBX);
	expect_saved(&rules, RBP, -16);
	assert_true(epilog(code + 11, 1, &rules));
	expect_cfa(&rules, RSP, 8);
	expect_same(&rules, RBP);
	/* lea rsp, [rbp - 8]; pop rbx; pop rbp; ret */
	assert_true(epilog(BYTES(0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3), &rules));
	expect_cfa(&rules, RBP, 16);
	expect_saved(&rules, RBX, -24);
	/* add rsp, 272; pop rbp; ret */
	assert_true(epilog(BYTES(0x48, 0x81, 0xc4, 0x10, 0x01, 0x00, 0x00, 0x5d, 0xc3), &rules));
	expect_cfa(&rules, RSP, 272 + 16);
	/* tail calls: add rsp, 8; rex.jmp [rax], and rex.jmp rax; jmp [rip + 5]; jmp out of the function */
	assert_true(epilog(BYTES(0x48, 0x83, 0xc4, 0x08, 0x48, 0xff, 0x20), &rules));
	expect_cfa(&rules, RSP, 16);
	assert_true(epilog(BYTES(0x5d, 0x48, 0xff, 0xe0), &rules));
	expect_cfa(&rules, RSP, 16);
	assert_true(epilog(BYTES(0xff, 0x25, 0x05, 0x00, 0x00, 0x00), &rules));
	assert_true(epilog(BYTES(0x5d, 0xe9, 0x00, 0x10, 0x00, 0x00), &rules));
	assert_true(epilog(BYTES(0x5d, 0xeb, 0x80), &rules));
}

static void test_no_epilog(void **state)
{
	struct unwind_rules rules;

	(void)state;
	/* jumps within the function, a jump table, a call, bytes that end */
	assert_false(epilog(BYTES(0xe9, 0x10, 0x00, 0x00, 0x00), &rules));
	assert_false(epilog(BYTES(0xeb, 0xc0), &rules));
	assert_false(epilog(BYTES(0xff, 0xe0), &rules));
	assert_false(epilog(BYTES(0xe8, 0x00, 0x10, 0x00, 0x00, 0xc3), &rules));
	assert_false(epilog(BYTES(0x48, 0x83, 0xc4, 0x10), &rules));
	assert_false(epilog(BYTES(0x48, 0x83, 0xc4), &rules));
	assert_false(epilog(BYTES(0x41), &rules));
	assert_false(epilog(BYTES(0xe9, 0x00), &rules));
	/* pop rsp; add rsp, -16; lea rsp from the frame after a pop */
	assert_false(epilog(BYTES(0x5c, 0xc3), &rules));
	assert_false(epilog(BYTES(0x48, 0x83, 0xc4, 0xf0, 0xc3), &rules));
	assert_false(epilog(BYTES(0x5b, 0x48, 0x8d, 0x65, 0xf8, 0xc3), &rules));
}

static uint32_t set_end(const uint8_t *code, size_t size, bool *ret_first)
{
	struct clr_prolog prolog;
	bool found = clr_unwind_prolog(code, size, &prolog);

	assert_int_equal(found, prolog.set_end != 0);
	*ret_first = prolog.saves_first;
	return prolog.set_end;
}

static void test_prolog(void **state)
{
	bool first;

	(void)state;
	/* push rbp; mov rbp, rsp */
	assert_int_equal(set_end(BYTES(0x55, 0x48, 0x8b, 0xec, 0xb8, 0x01), &first), 4);
	assert_true(first);
	/* push rbp; push r15; push rbx; sub rsp, 120; vzeroupper; lea rbp, [rsp + 144] */
	assert_int_equal(set_end(BYTES(0x55, 0x41, 0x57, 0x53, 0x48, 0x83, 0xec, 0x78, 0xc5, 0xf8,
					 0x77, 0x48, 0x8d, 0xac, 0x24, 0x90, 0x00, 0x00, 0x00),
				 &first),
		19);
	/* on-stack replacement: mov rax, [rbp]; push rax; sub rsp, 16; mov [rsp + 88], rbx; lea rbp, [rsp + 16] */
	assert_int_equal(set_end(BYTES(0x48, 0x8b, 0x45, 0x00, 0x50, 0x48, 0x83, 0xec, 0x10, 0x48,
					 0x89, 0x5c, 0x24, 0x58, 0x48, 0x8d, 0x6c, 0x24, 0x10),
				 &first),
		19);
	assert_false(first);
	/* push r15; push rbx; push rax; mov rbx, rdi */
	assert_int_equal(set_end(BYTES(0x41, 0x57, 0x53, 0x50, 0x48, 0x8b, 0xdf, 0xff), &first), 0);
	assert_false(first);
	/* push rax; mov edi, 20000; the bytes end */
	assert_int_equal(set_end(BYTES(0x50, 0xbf, 0x20, 0x4e, 0x00, 0x00), &first), 0);
	assert_int_equal(set_end(BYTES(0x55, 0x48, 0x8d, 0x6c, 0x24), &first), 0);
	assert_true(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_pushes),
		cmocka_unit_test(test_frame_register),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_epilog),
		cmocka_unit_test(test_no_epilog),
		cmocka_unit_test(test_prolog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
