/* Parses lists of counters in every accepted form, and finds which counters they select. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "counters/counter_choice.h"

static void test_lists(void **state)
{
	struct counter_choice choice = { 0 };
	struct diag diag = { 0 };
	struct bytes meters = { 0 };

	(void)state;
	assert_int_equal(counter_choice_add(&choice,
				 "System.Runtime[cpu-usage, gc-heap-size],Shop.Orders", &diag),
		0);
	assert_int_equal(counter_choice_add(&choice, "EventCounters\\Shop-Counters,Shop.*", &diag),
		0);
	assert_int_equal(choice.providers.count, 4);
	assert_string_equal(choice.providers.items[0].counters.items[1], "gc-heap-size");
	counter_choice_add_meters(&choice, &meters);
	assert_string_equal(bytes_z(&meters), "System.Runtime,Shop.Orders,Shop.*");

	assert_true(counter_choice_has_instrument(&choice, "Shop.Orders", "anything"));
	assert_true(counter_choice_has_instrument(&choice, "Shop.Prices", "anything"));
	assert_false(counter_choice_has_instrument(&choice, "Shop", "anything"));
	assert_false(counter_choice_has_instrument(&choice, "System.Runtime",
		"dotnet.gc.pause.time"));
	assert_false(counter_choice_has_instrument(&choice, "Shop-Counters", "anything"));
	/* EventCounters that are named explicitly are read although a Meter exists. */
	assert_true(counter_choice_has_event_counter(&choice, "System.Runtime", "cpu-usage", true));
	assert_false(counter_choice_has_event_counter(&choice, "System.Runtime", "alloc-rate",
		false));
	assert_true(counter_choice_has_event_counter(&choice, "Shop.Orders", "x", false));
	assert_false(counter_choice_has_event_counter(&choice, "Shop.Orders", "x", true));
	assert_true(counter_choice_has_event_counter(&choice, "Shop-Counters", "x", true));
	assert_true(counter_choice_has_provider(&choice, "Shop.Prices"));
	assert_false(counter_choice_has_provider(&choice, "System.Net.Http"));

	/* A whole provider includes some of its counters, in any order of the two. */
	assert_int_equal(counter_choice_add(&choice, "System.Runtime", &diag), 0);
	assert_int_equal(counter_choice_add(&choice, "Shop.Orders[only]", &diag), 0);
	assert_int_equal(choice.providers.count, 4);
	assert_true(counter_choice_has_instrument(&choice, "System.Runtime",
		"dotnet.gc.pause.time"));
	assert_true(counter_choice_has_instrument(&choice, "Shop.Orders", "anything"));
	bytes_done(&meters);
	counter_choice_done(&choice);
}

static void test_refused(void **state)
{
	static const char *const lists[] = { "", ",", "A,", ",A", "A[", "A[b", "A[]", "A[b,]",
		"A[b]x", "A]", "A;B", "A=B", "A\"B", "A[b[c]", "A\nB", " ", "[a]" };
	char text[3000];

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct counter_choice choice = { 0 };
		struct diag diag = { 0 };
		assert_int_equal(counter_choice_add(&choice, lists[i], &diag), -EINVAL);
		assert_true(diag.text[0]);
		counter_choice_done(&choice);
	}
	struct counter_choice choice = { 0 };
	struct diag diag = { 0 };

	memset(text, 'a', sizeof(text));
	text[COUNTER_TEXT_MAX] = '\0';
	assert_int_equal(counter_choice_add(&choice, text, &diag), 0);
	text[COUNTER_TEXT_MAX] = 'a';
	text[COUNTER_TEXT_MAX + 1] = '\0';
	assert_int_equal(counter_choice_add(&choice, text, &diag), -EINVAL);
	counter_choice_done(&choice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
