/* The words of losses: each is one source's or unit's only, and unknown words are none. */
#include "unit/test.h"

#include "trace/loss_words.h"

static void test_each_word_is_one_source(void **state)
{
	(void)state;
	for (unsigned source = LOSS_SOURCE_OTHER + 1; source < LOSS_SOURCES; source++) {
		const char *word = loss_source_word((enum loss_source)source);
		assert_true(*word);
		assert_int_equal(loss_source_of(word), source);
	}
	for (unsigned unit = LOSS_UNIT_OTHER + 1; unit < LOSS_UNITS; unit++) {
		const char *word = loss_unit_word((enum loss_unit)unit);
		assert_true(*word);
		assert_int_equal(loss_unit_of(word), unit);
	}
}

static void test_unknown_words_are_none(void **state)
{
	(void)state;
	assert_string_equal(loss_source_word(LOSS_SOURCE_OTHER), "");
	assert_string_equal(loss_unit_word(LOSS_UNIT_OTHER), "");
	assert_int_equal(loss_source_of(""), LOSS_SOURCE_OTHER);
	assert_int_equal(loss_source_of("rings"), LOSS_SOURCE_OTHER);
	assert_int_equal(loss_unit_of("bytes"), LOSS_UNIT_OTHER);
}

/* Files of earlier versions have these words. */
static void test_words_of_earlier_files(void **state)
{
	(void)state;
	assert_int_equal(loss_source_of("ring"), LOSS_RING);
	assert_int_equal(loss_source_of("late"), LOSS_LATE);
	assert_int_equal(loss_source_of("user-events"), LOSS_USER_EVENTS);
	assert_int_equal(loss_unit_of("samples"), LOSS_SAMPLES);
	assert_int_equal(loss_unit_of("system calls"), LOSS_SYSTEM_CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_word_is_one_source),
		cmocka_unit_test(test_unknown_words_are_none),
		cmocka_unit_test(test_words_of_earlier_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
