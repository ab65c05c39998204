/*
 * late_providers.c: separates the providers with EventCounters from the others, keeps their order,
 * and loses none.
 */
#include "unit/test.h"

#include <unistd.h>

#include "dotnet/ipc.h"
#include "tracing/late_providers.h"

static void test_split(void **state)
{
	const struct ipc_provider all[] = {
		{ .name = "System.Runtime", .arguments = "EventCounterIntervalSec=1", .level = 4 },
		{ .name = "Microsoft-Windows-DotNETRuntime", .keywords = 0x10, .level = 5 },
		{ .name = "Shop", .arguments = "Filter=all", .keywords = 3 },
		{ .name = "Shop-Counters",
			.arguments = "Filter=all;EventCounterIntervalSec=0.5",
			.keywords = 7 },
	};
	struct late_providers split;

	(void)state;
	assert_int_equal(late_providers_split(&split, all, 4), 0);
	assert_int_equal(split.early_count, 2);
	assert_string_equal(split.early[0].name, "Microsoft-Windows-DotNETRuntime");
	assert_int_equal(split.early[0].level, 5);
	assert_string_equal(split.early[1].name, "Shop");
	assert_string_equal(split.early[1].arguments, "Filter=all");
	assert_int_equal(split.late_count, 2);
	assert_string_equal(split.late[0].name, "System.Runtime");
	assert_string_equal(split.late[1].name, "Shop-Counters");
	assert_int_equal(split.late[1].keywords, 7);
	late_providers_done(&split);
	assert_null(split.early);
}

static void test_all_of_one_kind(void **state)
{
	const struct ipc_provider counters = { .name = "System.Runtime",
		.arguments = "EventCounterIntervalSec=1" };
	const struct ipc_provider plain = { .name = "Shop" };
	struct late_providers split;

	(void)state;
	assert_int_equal(late_providers_split(&split, &counters, 1), 0);
	assert_int_equal(split.early_count, 0);
	assert_null(split.early);
	assert_int_equal(split.late_count, 1);
	late_providers_done(&split);
	assert_int_equal(late_providers_split(&split, &plain, 1), 0);
	assert_int_equal(split.late_count, 0);
	assert_null(split.late);
	assert_int_equal(split.early_count, 1);
	late_providers_done(&split);
}

/* This process is not a runtime, so no runtime has started in it. */
static void test_no_runtime(void **state)
{
	(void)state;
	assert_false(late_providers_has_begun((uint32_t)getpid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_all_of_one_kind),
		cmocka_unit_test(test_no_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
