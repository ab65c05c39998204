/* Expressions of unwind tables, evaluated on hand-made registers and stacks. */
#include "code/unwind_expression.h"

#include <errno.h>

#include "code/unwind_state.h"
#include "unit/test.h"

static const uint64_t words[] = { 11, 22, 33, 44 };
static const struct unwind_stack stack = { (const uint8_t *)words, sizeof(words), 0x7000 };
static const struct unwind_registers registers = {
	.values = { [7] = 0x7000, [16] = 0x401236 },
	.known = 1u << 7 | 1u << 16,
};

static int value_of(const uint8_t *code, size_t size, const uint64_t *initial, uint64_t *ret_value)
{
	return unwind_expression_value(code, size, &registers, &stack, initial, ret_value);
}

#define VALUE(ret, ...)                                                                            \
	value_of((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), NULL, \
		(ret))

/* breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus: the CFA of each PLT stub */
#define PLT 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22

static void test_plt(void **state)
{
	struct unwind_registers pushed = registers;
	static const uint8_t code[] = { PLT };
	uint64_t value;

	(void)state;
	assert_int_equal(VALUE(&value, PLT), 0);
	assert_int_equal(value, 0x7008);
	pushed.values[16] = 0x40123b; /* behind the stub's push */
	assert_int_equal(unwind_expression_value(code, sizeof(code), &pushed, &stack, NULL, &value),
		0);
	assert_int_equal(value, 0x7010);
}

static void test_operations(void **state)
{
	uint64_t initial = 0x7008;
	uint64_t value;

	(void)state;
	assert_int_equal(VALUE(&value, 0x77, 8, 0x06), 0);
	assert_int_equal(value, 22);
	assert_int_equal(value_of((const uint8_t[]){ 0x23, 8, 0x06 }, 3, &initial, &value), 0);
	assert_int_equal(value, 33);
	assert_int_equal(VALUE(&value, 0x0b, 0xfe, 0xff, 0x1f), 0); /* -(-2) */
	assert_int_equal(value, 2);
	assert_int_equal(VALUE(&value, 0x35, 0x33, 0x16, 0x1c), 0); /* 3 - 5 */
	assert_int_equal(value, -2);
	assert_int_equal(VALUE(&value, 0x11, 0x7f, 0x12, 0x22), 0); /* -1, twice */
	assert_int_equal(value, -2);
	assert_int_equal(VALUE(&value, 0x31, 0x08, 200, 0x24), 0); /* shifted out */
	assert_int_equal(value, 0);
	assert_int_equal(VALUE(&value, 0x36, 0x32, 0x15, 1, 0x21), 0); /* 6, 2, pick 1: 6 | 2 */
	assert_int_equal(value, 6);
}

static void test_failures(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(VALUE(&value, 0x77, 0x80, 1, 0x06), -EFAULT);
	assert_int_equal(value, 0x7080);
	assert_int_equal(VALUE(&value, 0x73, 0), -ENODATA);          /* rbx is not known */
	assert_int_equal(VALUE(&value, 0x22), -EBADMSG);             /* an empty stack */
	assert_int_equal(VALUE(&value, 0x0e, 1), -EBADMSG);          /* cut */
	assert_int_equal(VALUE(&value, 0x2f, 0xfd, 0xff), -EBADMSG); /* a branch back */
	assert_int_equal(value_of(NULL, 0, NULL, &value), -EBADMSG);
	uint8_t many[100];
	memset(many, 0x30, sizeof(many));
	assert_int_equal(value_of(many, sizeof(many), NULL, &value), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
