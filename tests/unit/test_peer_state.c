/* peer_state.c: what a runtime at Spoor's diagnostics port becomes by each event. */
#include "unit/test.h"

#include "dotnet/peer_state.h"

static void test_events(void **state)
{
	static const struct {
		enum peer_state before;
		enum peer_state resumed;
		enum peer_state forgotten;
	} rows[] = {
		{ PEER_NEW, PEER_RESUMED, PEER_LEFT },
		{ PEER_HELD, PEER_RESUMED, PEER_LEFT },
		{ PEER_RESUMED, PEER_RESUMED, PEER_OVER },
		{ PEER_LEFT, PEER_OVER, PEER_LEFT },
		{ PEER_OVER, PEER_OVER, PEER_OVER },
	};

	(void)state;
	assert_int_equal(peer_state_after(PEER_NEW, PEER_EVENT_RETURN), PEER_HELD);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(rows[i].before, i);
		assert_int_equal(peer_state_after(rows[i].before, PEER_EVENT_RESUME),
			rows[i].resumed);
		assert_int_equal(peer_state_after(rows[i].before, PEER_EVENT_FORGET),
			rows[i].forgotten);
	}
}

/* Both facts survive the other event, so nothing is resumed twice, and no place is lost. */
static void test_facts(void **state)
{
	(void)state;
	for (unsigned s = PEER_NEW; s <= PEER_OVER; s++) {
		enum peer_state resumed = peer_state_after(s, PEER_EVENT_RESUME);
		enum peer_state forgotten = peer_state_after(s, PEER_EVENT_FORGET);
		assert_true(peer_was_resumed(resumed));
		assert_int_equal(peer_was_forgotten(resumed), peer_was_forgotten(s));
		assert_true(peer_was_forgotten(forgotten));
		assert_int_equal(peer_was_resumed(forgotten), peer_was_resumed(s));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_facts),
	};

	return cmocka_run_group_tests_name("peer_state", tests, NULL, NULL);
}
