/* The options of a Session event: each member and word is read, and nothing else. */
#include "unit/test.h"

#include <string.h>

#include "trace/session_options.h"

static struct session_options read(const char *json)
{
	struct session_options options;

	session_options_read(json, strlen(json), &options);
	return options;
}

static void test_words(void **state)
{
	struct session_options options = read(
		"{\"scope\":\"threads\",\"pids\":[1,2],\"event\":\"thread-clocks\",\"call_graph\":\"dwarf\"}");

	(void)state;
	assert_int_equal(options.scope, SESSION_THREADS);
	assert_int_equal(options.sampling, SESSION_THREAD_CLOCKS);
	assert_int_equal(options.call_graph, SESSION_DWARF);
	assert_int_equal(read("{\"scope\":\"galaxy\"}").scope, SESSION_UNKNOWN);
	assert_null(session_value_word(SESSION_UNKNOWN));
#define SESSION_VALUE(member, enumerator, word)                                          \
	assert_string_equal(session_value_word(enumerator), (word));                     \
	assert_int_equal(read("{\"a\":[{}],\"" NAME_##member "\":\"" word "\"}").member, \
		enumerator);
#define NAME_scope      "scope"
#define NAME_sampling   "event"
#define NAME_call_graph "call_graph"
#include "trace/session_options.def"
}

static void test_flags(void **state)
{
	(void)state;
#define SESSION_FLAG(member, name)                                                      \
	assert_int_equal(read("{\"" name "\":true}").member, SESSION_YES);              \
	assert_int_equal(read("{ \"" name "\" :\n false }").member, SESSION_NO);        \
	assert_int_equal(read("{\"" name "\":\"true\"}").member, SESSION_NOT_SAID);     \
	assert_int_equal(read("{\"x\":{\"" name "\":true}}").member, SESSION_NOT_SAID); \
	assert_int_equal(read("{\"" name "\":12}").member, SESSION_NOT_SAID);           \
	assert_int_equal(read("{\"x\":\"" name "\",\"y\":true}").member, SESSION_NOT_SAID);
#include "trace/session_options.def"
}

/* The text of an option may have the name of another, and quotes. */
static void test_texts(void **state)
{
	struct session_options options = read(
		"{\"providers\":\"\\\"scope\\\":\\\"threads\\\"\",\"usdt\":[\"scope\",\"threads\"],\"names\":true}");

	(void)state;
	assert_int_equal(options.scope, SESSION_UNKNOWN);
	assert_int_equal(options.names, SESSION_YES);
}

static void test_malformed(void **state)
{
	static const char *const texts[] = { "", "{", "\"", "\"scope",
		"{\"scope\":", "{\"scope\":\"", "{\"scope\":\"thr", "\\", "{\"a\\", "]]]]{{{",
		":::,,,", "{\"scope\"\"threads\"}", "{true:\"threads\"}" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(read(texts[i]).scope, SESSION_UNKNOWN);
	/* An end without a begin does not hide what follows. */
	assert_int_equal(read("}}{\"scope\":\"machine\"}").scope, SESSION_MACHINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
