/* thread_state.c: the state that /proc has for a thread, and for this thread. */
#include "unit/test.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/proc.h"
#include "machine/thread_state.h"

static bool parse(const char *text, struct proc_thread_state *state)
{
	return thread_state_parse_syscall(text, strlen(text), state);
}

static void test_syscall(void **unused)
{
	struct proc_thread_state state = { 0 };

	(void)unused;
	assert_true(parse("202 0x7f01 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd5e0a1c30 0x7f3a2b1c0d9e\n",
		&state));
	assert_int_equal(state.syscall, 202);
	assert_true(state.arguments[0] == 0x7f01 && state.arguments[5] == 0xffffffff);
	assert_true(state.sp == UINT64_C(0x7ffd5e0a1c30) && state.pc == UINT64_C(0x7f3a2b1c0d9e));
	assert_true(parse("running\n", &state));
	assert_int_equal(state.syscall, -1);
	assert_true(state.sp == 0 && state.pc == 0);
	assert_true(parse("-1 0x7ffd5e0a1c30 0x7f3a2b1c0d9e\n", &state));
	assert_int_equal(state.syscall, -1);
	assert_true(state.pc == UINT64_C(0x7f3a2b1c0d9e));
	assert_false(parse("", &state));
	assert_false(parse("202", &state));
	assert_false(parse("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7", &state));
	assert_false(parse("99999999999 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8", &state));
	assert_false(parse("1 0x11111111111111111 0x2 0x3 0x4 0x5 0x6 0x7 0x8", &state));
	assert_int_equal(state.syscall, -1);
}

static void test_stack(void **unused)
{
	static const char text[] =
		"[<0>] futex_do_wait+0x3c/0x70\n[<0>] 0xffffffff81\nrubbish\n[<0>] do_x+0x1/0x2 [module]\n[<0>] last+0x1/0x9";
	char out[64];

	(void)unused;
	thread_state_parse_stack(text, sizeof(text) - 1, out, sizeof(out));
	assert_string_equal(out, "futex_do_wait\ndo_x\nlast\n");
	/* room for the first, not for the next */
	thread_state_parse_stack(text, sizeof(text) - 1, out, 16);
	assert_string_equal(out, "futex_do_wait\n");
	thread_state_parse_stack(text, 0, out, sizeof(out));
	assert_string_equal(out, "");
	thread_state_parse_stack("]", 1, out, sizeof(out));
	assert_string_equal(out, "");
}

static uint64_t switches(const char *text)
{
	return thread_state_parse_switches(text, strlen(text));
}

static void test_switches(void **unused)
{
	(void)unused;
	assert_true(
		switches(
			"Name:\tx\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n") ==
		42);
	assert_true(switches("voluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2") == 42);
	/* one of the two alone is not enough */
	assert_true(switches("voluntary_ctxt_switches:\t40\n") == 0);
	assert_true(switches("voluntary_ctxt_switches:\t\nnonvoluntary_ctxt_switches:\t2\n") == 0);
	assert_true(switches("") == 0);
}

/* Its state was read first: the file that was read after it shows whether it has begun to wait. */
static void test_runs(void **unused)
{
	struct proc_thread_state state = { .state = 'R', .syscall = -1, .name = "" };

	(void)unused;
	assert_true(thread_state_runs(&state));
	state.sp = 0x7ffe0000;
	assert_false(thread_state_runs(&state));
	state.sp = 0;
	strcpy(state.function, "anon_pipe_read");
	assert_false(thread_state_runs(&state));
	state.function[0] = '\0';
	strcpy(state.kernel, "anon_pipe_read\n");
	assert_false(thread_state_runs(&state));
	state.kernel[0] = '\0';
	state.state = 'S';
	assert_false(thread_state_runs(&state));
}

static void test_ourselves(void **unused)
{
	struct proc_reader proc;
	struct proc_thread_state state;
	uint32_t pid = (uint32_t)getpid();

	(void)unused;
	assert_int_equal(proc_open(&proc, NULL), 0);
	assert_int_equal(thread_state_read(&proc, pid, pid, &state), 0);
	assert_int_equal(state.thread.tid, pid);
	assert_string_equal(state.thread.comm, "test_thread_sta"); /* the kernel cuts the name */
	assert_int_equal(state.state, 'R');
	/* reading the file is the system call that it reports */
	if (!state.denied && state.syscall >= 0) {
		assert_int_equal(state.syscall, SYS_read);
		assert_string_equal(state.name, "read");
	}
	assert_int_equal(thread_state_read(&proc, pid, 0x3fffffff, &state), -ESRCH);
	proc_close(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syscall),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_ourselves),
	};

	return cmocka_run_group_tests_name("thread_state", tests, NULL, NULL);
}
