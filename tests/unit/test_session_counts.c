/* The names of SessionEnd's numbers: each is one number's only, and unknown names are none. */
#include "unit/test.h"

#include "trace/session_counts.h"
#include "trace/spoor_payload.h"

static void test_each_name_is_one_number(void **state)
{
	(void)state;
	for (unsigned id = SESSION_COUNT_UNKNOWN + 1; id < SESSION_COUNTS; id++) {
		const char *name = session_count_name((enum session_count_id)id);
		assert_true(*name);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		assert_int_equal(session_count_of(name), id);
	}
	assert_in_range(SESSION_COUNTS, 1, PAYLOAD_COUNTS_MAX);
}

static void test_unknown_names_are_none(void **state)
{
	(void)state;
	assert_string_equal(session_count_name(SESSION_COUNT_UNKNOWN), "");
	assert_int_equal(session_count_of(""), SESSION_COUNT_UNKNOWN);
	assert_int_equal(session_count_of("sample"), SESSION_COUNT_UNKNOWN);
	assert_int_equal(session_count_of("samples "), SESSION_COUNT_UNKNOWN);
}

/* Files of earlier versions have these names. */
static void test_names_of_earlier_files(void **state)
{
	(void)state;
	assert_int_equal(session_count_of("blocks"), SESSION_COUNT_BLOCKS);
	assert_int_equal(session_count_of("unwound"), SESSION_COUNT_UNWOUND);
	assert_int_equal(session_count_of("unwound_frame_limit"), SESSION_COUNT_UNWOUND_FRAMES);
	assert_int_equal(session_count_of("sampled_from_ns"), SESSION_COUNT_SAMPLED_FROM_NS);
	assert_int_equal(session_count_of("sampled_to_ns"), SESSION_COUNT_SAMPLED_TO_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_name_is_one_number),
		cmocka_unit_test(test_unknown_names_are_none),
		cmocka_unit_test(test_names_of_earlier_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
