/* tracepoint.c: the kernel's descriptions of tracepoints. */
#include "unit/test.h"

#include <errno.h>

#include "perf/tracepoint.h"

#define SWITCH                                                                   \
	"name: sched_switch\nID: 318\nformat:\n"                                 \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n" \
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"          \
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"              \
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"             \
	"\nprint fmt: \"prev_pid=%d\", REC->prev_pid\n"

static int parse(const char *text, const char *name, struct tracepoint_field *ret_field,
	struct tracepoint *ret_tracepoint)
{
	*ret_field = (struct tracepoint_field){ .name = name };
	return tracepoint_parse(text, ret_field, 1, ret_tracepoint);
}

static void test_fields(void **state)
{
	struct tracepoint_field field;
	struct tracepoint tracepoint;
	uint8_t raw[40] = { [24] = 0x39, [25] = 0x30, [32] = 0xff, [39] = 1 };

	(void)state;
	assert_int_equal(parse(SWITCH, "prev_state", &field, &tracepoint), 0);
	assert_int_equal(tracepoint.id, 318);
	assert_int_equal(field.offset, 32);
	assert_int_equal(field.size, 8);
	assert_int_equal(tracepoint_value(&field, raw, sizeof(raw)), 0x01000000000000ff);
	assert_int_equal(tracepoint_value(&field, raw, sizeof(raw) - 1), 0);
	assert_int_equal(parse(SWITCH, "prev_pid", &field, &tracepoint), 0);
	assert_int_equal(tracepoint_value(&field, raw, sizeof(raw)), 12345);
}

static void test_broken(void **state)
{
	static const struct {
		const char *text;
		const char *name;
	} cases[] = {
		{ "", "prev_pid" },
		{ "name: x\n", "prev_pid" },
		{ SWITCH, "pid" },       /* the end of another name */
		{ SWITCH, "prev_comm" }, /* an array */
		{ SWITCH, "prev_prio" },
		{ "\nID: x\nfield:int a;\toffset:8;\tsize:4;", "a" },
		{ "\nID: 70000\nfield:int a;\toffset:8;\tsize:4;", "a" },
		{ "\nID: 3\nfield:int a;\toffset:8;\tsize:3;", "a" },
		{ "\nID: 3\nfield:int a;\toffset:9999999999;\tsize:4;", "a" },
		{ "\nID: 3\nfield:int a;\tsize:4;", "a" },
		{ "\nID: 3\nfield:int a;\noffset:8;\tsize:4;", "a" },
	};
	struct tracepoint_field field;
	struct tracepoint tracepoint;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parse(cases[i].text, cases[i].name, &field, &tracepoint) != -EBADMSG)
			fail_msg("case %zu was accepted", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests_name("tracepoint", tests, NULL, NULL);
}
