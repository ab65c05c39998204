/* event_patterns.c: which events the patterns of an option name. (test_live_usdt.c has which patterns are malformed.) */
#include "unit/test.h"

#include "recording/event_patterns.h"

static void test_names(void **state)
{
	static const char *const patterns[] = { "shop:order*,My_?pp", "*:exact", "", NULL };
	static const char *const none[] = { NULL };

	(void)state;
	assert_true(event_patterns_have(patterns, "shop", "order"));
	assert_true(event_patterns_have(patterns, "shop", "orders"));
	assert_false(event_patterns_have(patterns, "shop", "reorder"));
	assert_false(event_patterns_have(patterns, "shops", "order"));
	assert_true(event_patterns_have(patterns, "My_App", "anything"));
	assert_false(event_patterns_have(patterns, "My_Shop", "anything"));
	assert_true(event_patterns_have(patterns, "any", "exact"));
	/* whether the provider may have such events */
	assert_true(event_patterns_have(patterns, "any", NULL));
	assert_false(event_patterns_have((const char *const[]){ "shop:order", NULL }, "other",
		NULL));
	assert_false(event_patterns_have(none, "shop", "order"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("event_patterns", tests, NULL, NULL);
}
