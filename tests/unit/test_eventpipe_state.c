/* eventpipe_state.c: an EventPipe session only advances, and none is over without StopTracing or a reason. */
#include "unit/test.h"

#include "dotnet/eventpipe_state.h"

static void test_each_pair(void **state)
{
	/* Row: the state; column: the state after it. */
	static const char *const may[SESSION_STATE_COUNT] = {
		[SESSION_NONE] = ".o....",
		[SESSION_OPEN] = "..d.x.",
		[SESSION_STOP_DUE] = "...sxa",
		[SESSION_STOP_SENT] = "....xa",
		[SESSION_OVER] = "......",
		[SESSION_ACKNOWLEDGED] = "......",
	};

	(void)state;
	for (unsigned from = 0; from < SESSION_STATE_COUNT; from++)
		for (unsigned to = 0; to < SESSION_STATE_COUNT; to++)
			assert_int_equal(session_state_may_follow(from, to), may[from][to] != '.');
}

/* Each state but the first leads to an end, and nothing leads out of it. */
static void test_every_session_can_end(void **state)
{
	(void)state;
	for (unsigned from = SESSION_OPEN; from < SESSION_STATE_COUNT; from++) {
		bool leads = false;
		for (unsigned to = 0; to < SESSION_STATE_COUNT; to++)
			leads |= session_state_may_follow(from, to) && session_state_is_over(to);
		assert_int_equal(leads, !session_state_is_over(from));
	}
	assert_false(session_state_is_over(SESSION_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_pair),
		cmocka_unit_test(test_every_session_can_end),
	};

	return cmocka_run_group_tests_name("eventpipe_state", tests, NULL, NULL);
}
