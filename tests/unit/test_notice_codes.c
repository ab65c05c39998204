/* The codes of notices: words with dashes, each of one notice only, and of no reason. */
#include "unit/test.h"

#include "dotnet/reason.h"
#include "trace/notice_codes.h"

static void test_each_code_is_one_notice(void **state)
{
	(void)state;
	for (unsigned code = 0; code < NOTICE_CODES; code++) {
		const char *word = notice_code_word((enum notice_code)code);
		assert_true(*word);
		assert_int_equal(strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-"),
			strlen(word));
		for (unsigned other = 0; other < code; other++)
			assert_string_not_equal(word, notice_code_word((enum notice_code)other));
		for (unsigned kind = REASON_KIND_NONE; kind < REASON_KIND_COUNT; kind++)
			assert_string_not_equal(word, reason_word((enum reason_kind)kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_code_is_one_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
