/* Parses addresses in every accepted form. */
#include "unit/test.h"

#include <errno.h>

#include "base/diag.h"
#include "machine/endpoint.h"

static void check(const char *text, const char *expected)
{
	struct endpoint endpoint;
	struct diag diag = { 0 };
	int result = endpoint_parse(text, "127.0.0.1", 9464, SOCK_STREAM, &endpoint, &diag);

	if (!expected) {
		assert_int_equal(result, -EINVAL);
		return;
	}
	assert_int_equal(result, 0);
	assert_string_equal(endpoint.text, expected);
}

static void test_texts(void **state)
{
	(void)state;
	check("", "127.0.0.1:9464");
	check("80", "127.0.0.1:80");
	check(":80", "127.0.0.1:80");
	check("0", "127.0.0.1:0");
	check("10.1.2.3", "10.1.2.3:9464");
	check("10.1.2.3:1", "10.1.2.3:1");
	check("localhost:1", "127.0.0.1:1");
	check("::1", "[::1]:9464");
	check("[::1]", "[::1]:9464");
	check("[::1]:7", "[::1]:7");
	check("65536", NULL);
	check("10.1.2.3:65536", NULL);
	check("10.1.2.3:", NULL);
	check("10.1.2.3:x", NULL);
	check("[::1", NULL);
	check("[::1]7", NULL);
	check("a:b:c", NULL);
	check("host:1:2", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
