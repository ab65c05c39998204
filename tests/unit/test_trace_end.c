/* trace_end.c: which reason ends a trace when several hold, and that each has its words. */
#include "unit/test.h"

#include "cli/trace_end.h"

static void test_reasons(void **state)
{
	(void)state;
	assert_null(trace_end_reason(TRACE_CONTINUES));
	for (unsigned end = TRACE_TIME_UP; end <= TRACE_PAUSED_RAW; end++)
		assert_true(*trace_end_reason(end));
	assert_string_equal(trace_end_reason(TRACE_TIME_UP), "the time was up");
}

static void test_order(void **state)
{
	(void)state;
	assert_int_equal(trace_end_of(false, false, true, 1), TRACE_CONTINUES);
	assert_int_equal(trace_end_of(false, false, true, 0), TRACE_TARGETS_ENDED);
	assert_int_equal(trace_end_of(false, true, true, 0), TRACE_STOPPING_EVENT);
	assert_int_equal(trace_end_of(false, true, false, 0), TRACE_OUTPUT_CLOSED);
	assert_int_equal(trace_end_of(true, true, false, 0), TRACE_TIME_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests_name("trace_end", tests, NULL, NULL);
}
