/* live_usdt.c: which texts of --usdt name probes. */
#include "unit/test.h"

#include <errno.h>

#include "base/diag.h"
#include "recording/live_usdt.h"

static int check(const char *pattern)
{
	struct diag diag = { 0 };
	int result = live_usdt_check((const char *const[]){ pattern, NULL }, false, &diag);

	assert_int_equal(result < 0, *diag.text != '\0');
	return result;
}

static void test_patterns(void **state)
{
	char many[600] = "";

	(void)state;
	assert_int_equal(check("python"), 0);
	assert_int_equal(check("python:*"), 0);
	assert_int_equal(check("*:function__*,shop:order,libstdcxx"), 0);
	assert_int_equal(check(""), -EINVAL);
	assert_int_equal(check(","), -EINVAL);
	assert_int_equal(check("a,"), -EINVAL);
	assert_int_equal(check(",a"), -EINVAL);
	assert_int_equal(check(":a"), -EINVAL);
	assert_int_equal(check("a:"), -EINVAL);
	assert_int_equal(check("a:b:c"), -EINVAL);
	assert_int_equal(check("a,b:c:d"), -EINVAL);
	memset(many, 'x', sizeof(many) - 1);
	assert_int_equal(check(many), -EINVAL);
	struct diag diag = { 0 };
	assert_int_equal(live_usdt_check((const char *const[]){ "a", NULL }, true, &diag), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
