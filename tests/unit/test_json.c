/* json.c and diag.c: output for programs and for the user is valid with any names. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/json.h"

static void test_object(void **state)
{
	struct bytes out = { 0 };
	struct json j = { .out = &out };

	(void)state;
	json_object(&j, NULL);
	json_u64(&j, "samples", 12);
	json_array(&j, "names");
	json_z(&j, NULL, "a\"b\\c\n\x01\xff");
	json_f64(&j, NULL, 1.0 / 0.0);
	json_end(&j);
	json_object(&j, "empty");
	json_end(&j);
	json_bool(&j, "yes", true);
	json_i64(&j, "below", -3);
	json_end(&j);
	assert_string_equal(bytes_z(&out),
		"{\"samples\":12,\"names\":[\"a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd\",null],\"empty\":{},"
		"\"yes\":true,\"below\":-3}");
	bytes_done(&out);
}

static void test_diag(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	diag_context(&diag, "nothing failed");
	assert_string_equal(diag.text, "");
	assert_int_equal(diag_set(&diag, -ENOENT, "cannot open '%s': %m", "a\nb"), -ENOENT);
	assert_string_equal(diag.text, "cannot open 'a\\nb': No such file or directory");
	assert_int_equal(diag_set(&diag, -EIO, "later"), -EIO);
	assert_int_equal(diag.error, -ENOENT);
	diag_remedy(&diag, "create it");
	diag_remedy(&diag, "or not");
	assert_string_equal(diag.remedy, "create it");
	diag_context(&diag, "recording");
	assert_string_equal(diag.text, "recording: cannot open 'a\\nb': No such file or directory");
	assert_int_equal(diag_set(NULL, -EIO, "unheard"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_object),
		cmocka_unit_test(test_diag),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
