/* counted_state.c: the legal transitions of a counted process, and no others. */
#include "unit/test.h"

#include "counters/counted_state.h"

enum { STATE_COUNT = COUNTED_FAILED + 1 };

static const struct transition {
	enum counted_state from;
	enum counted_state to;
} legal[] = {
	/* a session from the begin, and one that waits for the runtime's start */
	{ COUNTED_NEW, COUNTED_OPENING },
	{ COUNTED_NEW, COUNTED_HELD },
	{ COUNTED_HELD, COUNTED_DELAYED },
	{ COUNTED_DELAYED, COUNTED_OPENING },
	{ COUNTED_OPENING, COUNTED_RUNNING },
	/* with another tool's limits */
	{ COUNTED_RUNNING, COUNTED_REOPENING },
	{ COUNTED_REOPENING, COUNTED_OPENING },
	/* counting_stop() */
	{ COUNTED_HELD, COUNTED_ENDED },
	{ COUNTED_DELAYED, COUNTED_ENDED },
	{ COUNTED_OPENING, COUNTED_STOPPING },
	{ COUNTED_RUNNING, COUNTED_STOPPING },
	{ COUNTED_REOPENING, COUNTED_STOPPING },
	{ COUNTED_STOPPING, COUNTED_ENDED },
	/* the process ends, or its session cannot be opened or read */
	{ COUNTED_OPENING, COUNTED_ENDED },
	{ COUNTED_RUNNING, COUNTED_ENDED },
	{ COUNTED_REOPENING, COUNTED_ENDED },
	{ COUNTED_DELAYED, COUNTED_FAILED },
	{ COUNTED_OPENING, COUNTED_FAILED },
	{ COUNTED_RUNNING, COUNTED_FAILED },
	{ COUNTED_REOPENING, COUNTED_FAILED },
	{ COUNTED_STOPPING, COUNTED_FAILED },
};

static bool is_legal(enum counted_state from, enum counted_state to)
{
	for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
		if (legal[i].from == from && legal[i].to == to)
			return true;
	return false;
}

static void test_transitions(void **state)
{
	(void)state;
	for (unsigned from = 0; from < STATE_COUNT; from++)
		for (unsigned to = 0; to < STATE_COUNT; to++)
			assert_int_equal(counted_may_enter(from, to), is_legal(from, to));
}

static void test_groups(void **state)
{
	(void)state;
	for (unsigned s = 0; s < STATE_COUNT; s++) {
		assert_int_equal(counted_awaits_start(s),
			s == COUNTED_HELD || s == COUNTED_DELAYED);
		assert_int_equal(counted_is_running(s),
			s == COUNTED_RUNNING || s == COUNTED_REOPENING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests_name("counted_state", tests, NULL, NULL);
}
