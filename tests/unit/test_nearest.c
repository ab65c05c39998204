/* nearest.c: finds the names that the user may have meant. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/nearest.h"

static void check(const char *wanted, const char *expected)
{
	static const char *const names[] = { "Exception/Start", "Exception/Stop", "GC/Start",
		"GC/Stop", "ExceptionCatch/Start", "Method/LoadVerbose",
		"Microsoft-Windows-DotNETRuntime", "System.Runtime", "Shop.Pricing.Burn(int)",
		"bell\x1b", "Exception/Start", "Kept", "" };
	struct nearest near = { .wanted = wanted };
	struct bytes out = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		nearest_offer(&near, names[i]);
	assert_int_equal(nearest_add(&near, &out), *expected != '\0');
	assert_string_equal(bytes_z(&out), expected);
	bytes_done(&out);
}

static void test_nearest(void **state)
{
	(void)state;
	check("Exception", "'Exception/Start', 'Exception/Stop' or 'ExceptionCatch/Start'");
	check("exception/start", "'Exception/Start' or 'Exception/Stop'");
	check("gc/strat", "'GC/Start' or 'GC/Stop'");
	check("Brun", "'Shop.Pricing.Burn(int)'");
	check("*Brun*", "'Shop.Pricing.Burn(int)'");
	check("DotNetRuntime", "'Microsoft-Windows-DotNETRuntime'");
	check("Sytem.Runtime", "'System.Runtime'");
	check("bel", "'bell\\x1b'");
	check("Nope", "");
	check("Kope", ""); /* 'Kept' differs in half of its letters */
	check("Kapt", "'Kept'");
	check("*", "");
	check("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nearest) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
