/* tracepoint_format.c: the kernel's descriptions of tracepoints, and fields in raw data. */
#include "unit/test.h"

#include <errno.h>

#include "base/diag.h"
#include "formats/tracepoint_format.h"

#define HEAD                                                                   \
	"name: order\nID: 1874\nformat:\n"                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(declaration, offset, size, sign) \
	"\tfield:" declaration ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #sign ";\n"

static struct tracepoint_format format;

static int parse(const char *text)
{
	struct diag diag = { 0 };
	int result = tracepoint_format_parse(text, strlen(text), &format, &diag);

	assert_int_equal(diag.error, result);
	return result;
}

static void expect_field(uint32_t i, const char *name, uint32_t offset, uint32_t size,
	enum tracepoint_place place, unsigned element_bytes)
{
	assert_true(tracepoint_format_has(&format, i, name));
	assert_int_equal(format.fields[i].offset, offset);
	assert_int_equal(format.fields[i].size, size);
	assert_int_equal(format.fields[i].place, place);
	assert_int_equal(format.fields[i].element_bytes, element_bytes);
}

static void test_fields(void **state)
{
	(void)state;
	assert_int_equal(
		parse(HEAD FIELD("u32 count", 8, 4, 0) FIELD("unsigned long long  size", 12, 8,
			0) FIELD("char name[16]", 20, 16, 1) FIELD("u16 ports[4]", 36, 8,
			0) FIELD("__rel_loc char[] text", 44, 4, 1) FIELD("__rel_loc u8 blob[]", 48,
			4, 1) FIELD("__data_loc s32[] values", 52, 4, 1) FIELD("struct point where",
			56, 12, 1) FIELD("bool done", 68, 1, 0) FIELD("const char * at", 69, 8,
			0) "\nprint fmt: \"field:x\", REC->count\nfield:y\n"),
		0);
	assert_int_equal(format.id, 1874);
	assert_int_equal(format.count, 10);
	expect_field(0, "count", 8, 4, TRACEPOINT_INLINE, 0);
	expect_field(1, "size", 12, 8, TRACEPOINT_INLINE, 0);
	expect_field(2, "name", 20, 16, TRACEPOINT_INLINE, 1);
	expect_field(3, "ports", 36, 8, TRACEPOINT_INLINE, 2);
	expect_field(4, "text", 44, 4, TRACEPOINT_REL_LOC, 1);
	expect_field(5, "blob", 48, 4, TRACEPOINT_REL_LOC, 1);
	expect_field(6, "values", 52, 4, TRACEPOINT_DATA_LOC, 4);
	expect_field(7, "where", 56, 12, TRACEPOINT_INLINE, 1);
	expect_field(8, "done", 68, 1, TRACEPOINT_INLINE, 0);
	expect_field(9, "at", 69, 8, TRACEPOINT_INLINE, 0);
	assert_true(format.fields[2].is_text && format.fields[4].is_text);
	assert_false(format.fields[5].is_text || format.fields[7].is_text);
	assert_true(format.fields[6].is_signed && !format.fields[5].is_signed &&
		    !format.fields[7].is_signed);
	assert_true(format.fields[8].is_bool);
	assert_false(tracepoint_format_has(&format, 10, "at"));
	assert_false(tracepoint_format_has(&format, 0, "coun"));
}

static void test_broken(void **state)
{
	static const char *const cases[] = {
		"",
		"name: x\n",
		"ID: \n",
		"ID: 70000\n",
		"ID: 3x\n",
		"ID: 3\nfield:int a;\n",
		"ID: 3\nfield:int a;\toffset:8;\tsize:4;\n",
		"ID: 3\nfield:int a;\tsize:4;\toffset:8;\tsigned:1;\n",
		"ID: 3\n" FIELD("int a", 99999, 4, 1),
		"ID: 3\n" FIELD("int a", 8, 99999999999, 1),
		"ID: 3\n" FIELD("int a", 65535, 4, 1),
		"ID: 3\n" FIELD("int a", 8, 0, 1),
		"ID: 3\n" FIELD("int a", 8, 4, 2),
		"ID: 3\n" FIELD("int a", -8, 4, 1),
		"ID: 3\n" FIELD("a", 8, 4, 1),
		"ID: 3\n" FIELD("", 8, 4, 1),
		"ID: 3\n" FIELD("[4]", 8, 4, 1),
		"ID: 3\n" FIELD("__rel_loc u8[] a", 8, 2, 1),
		"ID: 3\nfield:int a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parse(cases[i]) != -EBADMSG)
			fail_msg("case %zu was accepted", i);
}

static void test_limits(void **state)
{
	static char text[TRACEPOINT_FORMAT_MAX + 2];
	size_t len = (size_t)snprintf(text, sizeof(text), "ID: 7\n");

	(void)state;
	memset(text + len, '\n', TRACEPOINT_FORMAT_MAX + 1 - len);
	assert_int_equal(parse(text), -EFBIG);
	text[TRACEPOINT_FORMAT_MAX] = '\0';
	assert_int_equal(parse(text), 0);
	for (unsigned i = 0; i < TRACEPOINT_FIELDS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"field:u8 a;offset:%u;size:1;signed:0;\n", i);
	text[len] = '\0';
	assert_int_equal(parse(text), 0);
	assert_int_equal(format.count, TRACEPOINT_FIELDS_MAX);
	snprintf(text + len, sizeof(text) - len, "field:u8 a;offset:1;size:1;signed:0;\n");
	assert_int_equal(parse(text), -E2BIG);
}

/* `size` bytes on the heap, of exact size. */
static const uint8_t *bytes_of(const struct format_field *field, const uint8_t *raw, size_t size,
	size_t *ret_size)
{
	static uint8_t found[32];
	uint8_t *exact = malloc(size);

	memcpy(exact, raw, size);
	const uint8_t *at = format_field_bytes(field, exact, size, ret_size);
	if (at)
		memcpy(found, at, *ret_size);
	free(exact);
	return at ? found : NULL;
}

static void test_bytes_of_fields_stay_inside(void **state)
{
	const struct format_field inside = { .offset = 2, .size = 4 };
	const struct format_field relative = {
		.offset = 0, .size = 4, .place = TRACEPOINT_REL_LOC
	};
	const struct format_field absolute = {
		.offset = 0, .size = 4, .place = TRACEPOINT_DATA_LOC
	};
	/* 3 bytes at 6, which is 2 after the number; 3 bytes at 6 */
	const uint8_t rel[] = { 2, 0, 3, 0, 0xee, 0xee, 'a', 'b', 'c' };
	const uint8_t data[] = { 6, 0, 3, 0, 0xee, 0xee, 'x', 'y', 'z' };
	size_t size;

	(void)state;
	assert_memory_equal(bytes_of(&inside, rel, sizeof(rel), &size), "\3\0\xee\xee", 4);
	assert_int_equal(size, 4);
	assert_null(bytes_of(&inside, rel, 5, &size));
	assert_memory_equal(bytes_of(&relative, rel, sizeof(rel), &size), "abc", 3);
	assert_int_equal(size, 3);
	assert_memory_equal(bytes_of(&absolute, data, sizeof(data), &size), "xyz", 3);
	assert_null(bytes_of(&relative, rel, sizeof(rel) - 1, &size));
	assert_null(bytes_of(&absolute, data, sizeof(data) - 1, &size));
	assert_null(bytes_of(&absolute, data, 3, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_bytes_of_fields_stay_inside),
	};

	return cmocka_run_group_tests_name("tracepoint_format", tests, NULL, NULL);
}
