/* options.c: every form of an option, and every error (tests/cli has the messages). */
#include "unit/test.h"

#include <unistd.h>

#include "cli/options.h"
#include "cli/verbs.h"

struct values {
	bool all;
	bool quick;
	const char *output;
	struct texts pids;
	uint64_t top;
	uint64_t duration_ns;
	unsigned color;
};

static const struct option table[] = {
	{ 'a', "all", NULL, "all", OPTION_FLAG, INTO(struct values, all) },
	{ 'q', "quick", NULL, "quick", OPTION_FLAG, INTO(struct values, quick) },
	{ 'o', "output", "FILE", "to", OPTION_TEXT, INTO(struct values, output) },
	{ 'p', "pid", "PID", "of", OPTION_TEXTS, INTO(struct values, pids) },
	{ 0, "top", "N", "rows", OPTION_COUNT, INTO(struct values, top) },
	{ 'd', "duration", "DURATION", "long", OPTION_DURATION, INTO(struct values, duration_ns) },
	{ 0, "color", "auto|always|never", "when", OPTION_CHOICE, INTO(struct values, color) },
	{ 0 },
};
static const struct verb verb = { "try", NULL, "", "", table, false };
static const struct verb running_verb = { "try", NULL, "", "", table, true };

#define ARGV_MAX 32

/* Splits the line at spaces and parses the words, which are borrowed from `line`. */
static bool parse_line(char *line, struct values *v, struct arguments *a, int *code)
{
	char *argv[ARGV_MAX + 1] = { 0 };
	int argc = 0;

	for (char *word = strtok(line, " "); word && argc < ARGV_MAX; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(&verb, argc, argv, v, a, code);
}

static void test_all_forms(void **state)
{
	char line[] = "try -aq one --pid 12 --pid=13 -p14 -p 15 -o - --top=7 two -d 1500ms --color "
		      "never -";
	struct values v = { 0 };
	struct arguments a;
	int code = -1;

	(void)state;
	assert_true(parse_line(line, &v, &a, &code));
	assert_true(v.all);
	assert_true(v.quick);
	assert_int_equal(v.pids.list.count, 4);
	assert_string_equal(v.pids.list.items[0], "12");
	assert_string_equal(v.pids.list.items[3], "15");
	assert_string_equal(v.output, "-");
	assert_int_equal(v.top, 7);
	assert_int_equal(v.duration_ns, 1500000000);
	assert_int_equal(v.color, 2);
	assert_int_equal(a.words.count, 3);
	assert_string_equal(a.words.items[1], "two");
	assert_string_equal(a.words.items[2], "-");
	assert_null(a.command);
	options_done(&verb, &v, &a);
}

/*
 * The first word that is no option begins the command; all later words belong to it, also options.
 */
static void test_command_without_dashes(void **state)
{
	char *argv[] = { "try", "-q", "--top", "3", "cmd", "--all", "--", NULL };
	char *dashes[] = { "try", "-q", "--", "-cmd", NULL };
	struct values v = { 0 };
	struct arguments a;
	int code = -1;

	(void)state;
	assert_true(options_parse(&running_verb, 7, argv, &v, &a, &code));
	assert_true(v.quick);
	assert_false(v.all);
	assert_int_equal(v.top, 3);
	assert_int_equal(a.words.count, 0);
	assert_int_equal(a.command_count, 3);
	assert_string_equal(a.command[0], "cmd");
	assert_string_equal(a.command[1], "--all");
	assert_string_equal(a.command[2], "--");
	options_done(&running_verb, &v, &a);
	assert_true(options_parse(&running_verb, 4, dashes, &v, &a, &code));
	assert_int_equal(a.command_count, 1);
	assert_string_equal(a.command[0], "-cmd");
	options_done(&running_verb, &v, &a);
}

static void test_command(void **state)
{
	char *argv[] = { "try", "-q", "--", "cmd", "--all", "-x", "--", NULL };
	struct values v = { .top = 20 };
	struct arguments a;
	int code = -1;

	(void)state;
	assert_true(options_parse(&verb, 7, argv, &v, &a, &code));
	assert_false(v.all);
	assert_int_equal(v.top, 20);
	assert_int_equal(a.command_count, 4);
	assert_string_equal(a.command[0], "cmd");
	assert_string_equal(a.command[3], "--");
	assert_null(a.command[4]);
	options_done(&verb, &v, &a);

	/* A missing or empty command is an error. */
	char *nothing[] = { "try", "--", NULL };
	char *empty[] = { "try", "--", "", NULL };
	code = -1;
	assert_false(options_parse(&verb, 2, nothing, &v, &a, &code));
	assert_int_equal(code, EXIT_MISUSED);
	code = -1;
	assert_false(options_parse(&verb, 3, empty, &v, &a, &code));
	assert_int_equal(code, EXIT_MISUSED);
}

static void test_misuse(void **state)
{
	const char *const lines[] = { "try --outptu x", "try --output", "try -o", "try -z",
		"try -az", "try --all=yes", "try --top", "try --top -1", "try --top 3x",
		"try --top 99999999999999999999", "try -d 5parsecs", "try -d",
		"try --color sometimes", "try --color aut", "try --=", "try ---", "try -p 1 -p",
		"try --al" };
	int kept = dup(STDERR_FILENO);

	(void)state;
	assert_true(kept >= 0);
	assert_non_null(freopen("/dev/null", "w", stderr));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char line[64];
		struct values v = { 0 };
		struct arguments a;
		int code = -1;

		(void)snprintf(line, sizeof(line), "%s", lines[i]);
		assert_false(parse_line(line, &v, &a, &code));
		assert_int_equal(code, EXIT_MISUSED);
	}
	(void)fflush(stderr);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	(void)close(kept);
}

static void test_near(void **state)
{
	(void)state;
	assert_true(option_is_near("reprot", "report"));
	assert_true(option_is_near("rec", "record"));
	assert_true(option_is_near("dur", "duration"));
	assert_false(option_is_near("x", "top"));
	assert_false(option_is_near("flame", "report"));
	assert_false(option_is_near("", "all"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_command_without_dashes),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_near),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
