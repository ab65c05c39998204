/* trace/code_bytes.c: bodies in one and several parts, parts that do not fit, and the limits. */
#include "unit/test.h"

#include <stdlib.h>

#include "trace/code_bytes.h"

static const struct code_copy body = {
	.mapping_id = 1, .begin = 0x1000, .method_id = 7, .process = 2
};

static void test_parts(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	struct code_bytes code = { 0 };
	struct code_copy other = body;
	uint32_t size;

	(void)state;
	other.method_id = 8;
	assert_null(code_bytes_find(&code, 2, 1, 0x1000, 7, &size));
	assert_true(code_bytes_add(&code, &body, 3, bytes, 2)); /* without its begin */
	assert_int_equal(code.copies.count, 0);
	assert_true(code_bytes_add(&code, &body, 0, bytes, 3));
	assert_true(code_bytes_add(&code, &body, 4, bytes, 1));  /* not where it continues */
	assert_true(code_bytes_add(&code, &other, 3, bytes, 1)); /* of another body */
	assert_true(code_bytes_add(&code, &body, 3, bytes + 3, 2));
	assert_true(code_bytes_add(&code, &other, 0, bytes + 4, 1));
	assert_true(code_bytes_add(&code, &body, 5, bytes, 1));     /* no more the last one */
	assert_true(code_bytes_add(&code, &body, 0, bytes + 1, 1)); /* the first remains */

	const uint8_t *found = code_bytes_find(&code, 2, 1, 0x1000, 7, &size);
	assert_int_equal(size, 5);
	assert_memory_equal(found, bytes, 5);
	found = code_bytes_find(&code, 2, 1, 0x1000, 8, &size);
	assert_int_equal(size, 1);
	assert_int_equal(found[0], 5);
	assert_null(code_bytes_find(&code, 3, 1, 0x1000, 7, &size));
	code_bytes_done(&code);
}

static void test_limits(void **state)
{
	const uint32_t part = CODE_BODY_MAX / 2;
	uint8_t *bytes = calloc(1, CODE_BODY_MAX + 1);
	struct code_bytes code = { 0 };
	struct code_copy each = body;
	uint32_t size;

	(void)state;
	assert_non_null(bytes);
	assert_true(code_bytes_add(&code, &each, 0, bytes, CODE_BODY_MAX + 1));
	assert_int_equal(code.bytes.count, 0);
	assert_true(code_bytes_add(&code, &each, 0, bytes, part));
	assert_true(code_bytes_add(&code, &each, part, bytes, part));
	assert_true(code_bytes_add(&code, &each, CODE_BODY_MAX, bytes, 1));
	(void)code_bytes_find(&code, 2, 1, 0x1000, 7, &size);
	assert_int_equal(size, CODE_BODY_MAX);
	for (unsigned i = 1; i < 100; i++) {
		each.begin += CODE_BODY_MAX;
		assert_true(code_bytes_add(&code, &each, 0, bytes, CODE_BODY_MAX));
	}
	assert_int_equal(code.bytes.count, CODE_TOTAL_MAX);
	code_bytes_done(&code);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("code_bytes", tests, NULL, NULL);
}
