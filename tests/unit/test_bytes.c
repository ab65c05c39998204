/* bytes.c and cursor.h: values read back as written; after a read past the end all reads fail. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/cursor.h"

static void test_roundtrip(void **state)
{
	static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX - 1,
		UINT64_MAX };
	static const int64_t signed_values[] = { 0, -1, 1, INT64_MIN, INT64_MAX, -64, 64 };
	struct bytes b = { 0 };

	(void)state;
	for (size_t i = 0; i < 9; i++)
		bytes_varuint(&b, values[i]);
	for (size_t i = 0; i < 7; i++)
		bytes_varint(&b, signed_values[i]);
	bytes_u8(&b, 0xab);
	bytes_u16(&b, 0xabcd);
	bytes_u32(&b, 0xabcdef01);
	bytes_u64(&b, 0xabcdef0123456789);
	bytes_set_u16(&b, b.len - 8, 0x1111);

	struct cursor c = cursor_of(b.data, b.len);
	for (size_t i = 0; i < 9; i++)
		assert_true(cursor_varuint(&c) == values[i]);
	for (size_t i = 0; i < 7; i++)
		assert_true(cursor_varint(&c) == signed_values[i]);
	assert_int_equal(cursor_u8(&c), 0xab);
	assert_int_equal(cursor_u16(&c), 0xabcd);
	assert_true(cursor_u32(&c) == 0xabcdef01);
	assert_true(cursor_u64(&c) == 0xabcdef0123451111);
	assert_false(c.short_read);
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(cursor_u8(&c), 0);
	assert_true(c.short_read);
	bytes_done(&b);
}

static void test_malformed(void **state)
{
	static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff };
	static const uint8_t beyond_64[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x02 };
	static const uint8_t beyond_32[] = { 0xff, 0xff, 0xff, 0xff, 0x1f };
	struct cursor c = cursor_of(endless, sizeof(endless));
	size_t len;

	(void)state;
	assert_int_equal(cursor_varuint(&c), 0);
	assert_true(c.short_read);
	c = cursor_of(beyond_64, sizeof(beyond_64));
	(void)cursor_varuint(&c);
	assert_true(c.short_read);
	c = cursor_of(beyond_32, sizeof(beyond_32));
	(void)cursor_varuint32(&c);
	assert_true(c.short_read);
	c = cursor_of("abc", 3);
	assert_null(cursor_stringz(&c, &len));
	assert_true(c.short_read);
	c = cursor_of("a\0b\0\0\0z", 7);
	assert_non_null(cursor_utf16z(&c, &len));
	assert_int_equal(len, 2);
	assert_int_equal(cursor_left(&c), 1);
	assert_null(cursor_utf16z(&c, &len));
	struct cursor sub = cursor_of("abcd", 4);
	struct cursor inner = cursor_sub(&sub, 9);
	assert_true(inner.short_read && sub.short_read);
}

static void test_printf(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	for (int i = 0; i < 300; i++)
		bytes_printf(&b, "%d,", i);
	assert_int_equal(strlen(bytes_z(&b)), b.len);
	assert_int_equal(memcmp(b.data, "0,1,2,", 6), 0);
	bytes_done(&b);
}

static void test_decimal(void **state)
{
	static const struct {
		uint64_t value;
		unsigned digits_least;
		const char *text;
	} cases[] = {
		{ 0, 0, "0" },
		{ 0, 1, "0" },
		{ 7, 2, "07" },
		{ 123, 2, "123" },
		{ 45, 9, "000000045" },
		{ UINT64_MAX, 1, "18446744073709551615" },
		{ 1, 20, "00000000000000000001" },
		{ 10000000000, 1, "10000000000" },
	};
	struct bytes b = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bytes_reset(&b);
		bytes_decimal(&b, cases[i].value, cases[i].digits_least);
		assert_string_equal(bytes_z(&b), cases[i].text);
	}
	bytes_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roundtrip),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_printf),
		cmocka_unit_test(test_decimal),
	};

	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
