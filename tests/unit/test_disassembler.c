/* code/disassembler.c: instructions, targets of jumps, bytes that are none, and processors that are not known. */
#include "unit/test.h"

#include <errno.h>

#include "base/diag.h"
#include "code/disassembler.h"

static struct disassembler *open_x86(void)
{
	struct disassembler *d = NULL;
	struct diag diag = { 0 };
	const char *why;

	if (!disassembler_is_available(&why)) {
		print_message("skipped: %s\n", why);
		assert_int_equal(disassembler_open("x86_64", &d, &diag), -ENOSYS);
		assert_non_null(strstr(diag.text, "capstone"));
		skip();
	}
	assert_int_equal(disassembler_open("x86_64", &d, &diag), 0);
	return d;
}

static void test_code(void **state)
{
	/* push rbp; mov rbp, rsp; jne 0; call the code 0x1000 after the begin; (bad); ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x75, 0xfa, 0xe8, 0xf5, 0x0f, 0x00,
		0x00, 0x06, 0xc3 };
	static const uint32_t sizes[] = { 1, 3, 2, 5, 1, 1 };
	struct disassembler *d = open_x86();
	struct instruction i;
	uint32_t at = 0;

	(void)state;
	for (unsigned n = 0; n < 6; n++) {
		assert_true(disassembler_next(d, code, sizeof(code), at, &i));
		assert_int_equal(i.size_bytes, sizes[n]);
		assert_int_equal(i.decoded, n != 4);
		assert_int_equal(i.has_target, n == 2 || n == 3);
		if (n == 1)
			assert_string_equal(i.text, "mov     rbp, rsp");
		if (n == 2)
			assert_int_equal(i.target, 0);
		if (n == 3)
			assert_int_equal(i.target, 0x1000);
		at += i.size_bytes;
	}
	assert_int_equal(at, sizeof(code));
	assert_false(disassembler_next(d, code, sizeof(code), at, &i));
	disassembler_close(d);
}

/* Any bytes, cut anywhere: each call advances, and stays inside. */
static void test_any_bytes(void **state)
{
	struct disassembler *d = open_x86();
	struct instruction i;
	uint8_t code[64];
	uint32_t random = 1;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t size = 1 + round % sizeof(code);
		for (uint32_t b = 0; b < size; b++)
			code[b] = (uint8_t)((random = random * 1103515245 + 12345) >> 16);
		uint32_t at = 0;
		while (disassembler_next(d, code, size, at, &i)) {
			assert_true(i.size_bytes && i.size_bytes <= size - at);
			assert_true(strlen(i.text) < INSTRUCTION_TEXT_ROOM);
			at += i.size_bytes;
		}
		assert_int_equal(at, size);
	}
	disassembler_close(d);
}

static void test_arm64(void **state)
{
	static const uint8_t code[] = { 0xfd, 0x7b, 0xbf, 0xa9, 0xff, 0xff, 0xff, 0x97, 0xc0, 0x03,
		0x5f, 0xd6 }; /* stp x29, x30, [sp, #-16]!; bl 0; ret */
	struct disassembler *d = open_x86();
	struct instruction i;

	(void)state;
	disassembler_close(d);
	assert_int_equal(disassembler_open("aarch64", &d, NULL), 0);
	assert_true(disassembler_next(d, code, sizeof(code), 0, &i));
	assert_int_equal(i.size_bytes, 4);
	assert_true(disassembler_next(d, code, sizeof(code), 4, &i));
	assert_true(i.has_target);
	assert_int_equal(i.target, 0);
	disassembler_close(d);
}

static void test_unknown(void **state)
{
	struct disassembler *d = open_x86();
	struct diag diag = { 0 };

	(void)state;
	disassembler_close(d);
	assert_int_equal(disassembler_open("vax", &d, &diag), -ENOSYS);
	disassembler_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests_name("disassembler", tests, NULL, NULL);
}
