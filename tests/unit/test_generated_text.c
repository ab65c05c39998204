/* Texts of generated code in ETW's layout: a counted text ends at its length in bytes, and nothing after it is read. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include <spoor/generated.h>

/* Puts the first `length` bytes of a text, which has no zero and no byte after it; returns the units. */
static size_t put(const char *text, size_t length, uint16_t *units, size_t room)
{
	char *exact = malloc(length ? length : 1);
	uint8_t *begin = (uint8_t *)units;

	assert_non_null(exact);
	memcpy(exact, text, length);
	const uint8_t *end =
		spoor_generated_put_etw_text16(begin, begin + room * sizeof(*units), exact, length);
	free(exact);
	return (size_t)(end - begin) / sizeof(*units);
}

static void test_counted(void **state)
{
	uint16_t units[16];
	const uint16_t accent[] = { 'h', 0xe9, 0 };
	const uint16_t cut[] = { 'h', 0xfffd };
	const uint16_t beyond[] = { 0xd83d, 0xde00, 0, 0 };

	(void)state;
	assert_int_equal(put("h\xc3\xa9llo", 3, units, 16), 3);
	assert_memory_equal(units, accent, sizeof(accent));
	assert_int_equal(put("h\xc3\xa9llo", 2, units, 16), 2);
	assert_memory_equal(units, cut, sizeof(cut));
	assert_int_equal(put("\xf0\x9f\x98\x80!", 4, units, 16), 4);
	assert_memory_equal(units, beyond, sizeof(beyond));
	assert_int_equal(put("", 0, units, 16), 0);
	/* too little room */
	assert_int_equal(put("abcd", 4, units, 2), 2);
}

static void test_whole(void **state)
{
	uint16_t units[16];
	uint8_t *begin = (uint8_t *)units;
	const uint16_t expected[] = { 'h', 0xe9, 'l', 0 };

	(void)state;
	const uint8_t *end = spoor_generated_put_etw_text16(begin, begin + sizeof(units),
		"h\xc3\xa9l", SPOOR_GENERATED_WHOLE);
	assert_int_equal(end - begin, sizeof(expected));
	assert_memory_equal(units, expected, sizeof(expected));
	assert_int_equal(spoor_generated_etw_text16_size("h\xc3\xa9l", SPOOR_GENERATED_WHOLE),
		sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
