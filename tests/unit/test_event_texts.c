/* Texts of events: each distinct one has one index, whatever came between, and no more than the limit are kept. */
#include "unit/test.h"

#include "analysis/event_texts.h"
#include "base/bytes.h"

static uint32_t add(struct event_texts *texts, const char *text)
{
	struct bytes units = { 0 };
	uint32_t index;

	bytes_utf16z(&units, text, strlen(text), 1000);
	assert_int_equal(event_texts_add(texts, units.data, units.len / 2 - 1, &index), 0);
	bytes_done(&units);
	return index;
}

/* More texts than are remembered as recent ones, again and again, of which many look alike. */
static void test_indexes(void **state)
{
	struct event_texts texts = { 0 };
	char text[64];

	(void)state;
	assert_int_equal(add(&texts, ""), 0);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 300; i++) {
			snprintf(text, sizeof(text), "%u%.*sException", i, (int)(i % 7), "System.");
			uint32_t index = add(&texts, text);
			assert_int_equal(index, i + 1);
			assert_string_equal(event_texts_get(&texts, index), text);
		}
	}
	assert_false(texts.overflows);
	event_texts_done(&texts);
}

static void test_short(void **state)
{
	static const char *const all[] = { "a", "b", "ab", "ba", "abc", "abcd", "xabcd", "yabcd" };
	struct event_texts texts = { .most = 6 };

	(void)state;
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(add(&texts, all[i]), i < 6 ? i + 1 : 0);
	assert_true(texts.overflows);
	event_texts_done(&texts);
}

/* The first ones are kept; the others have no index, also where their ends are those of kept ones. */
static void test_most(void **state)
{
	struct event_texts texts = { .most = 100 };
	char text[32];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 2000; i++) {
			snprintf(text, sizeof(text), "told %u", i);
			assert_int_equal(add(&texts, text), i < 100 ? i + 1 : 0);
		}
		assert_int_equal(add(&texts, "TOLD 42"), 0);
	}
	assert_true(texts.overflows);
	assert_int_equal(texts.texts.count, 100);
	event_texts_done(&texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_indexes),
		cmocka_unit_test(test_short), cmocka_unit_test(test_most) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
