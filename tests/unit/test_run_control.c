/* run_control.c: requests to end and to pause, and the command of a run. */
#include "unit/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "cli/interrupt.h"
#include "cli/run_control.h"

#define LIMIT_NS UINT64_C(60000000000)

static void start(struct run_control *control)
{
	*control = (struct run_control){ 0 };
	assert_int_equal(run_control_start(control,
				 INTERRUPT_CHILD | INTERRUPT_PAUSE | INTERRUPT_RESIZE, false, NULL),
		0);
	assert_int_equal(control->watched_count, 1);
}

/*
 * A command that ends when its standard input does: with `code`, or by SIGKILL if `code` is
 * negative.
 */
static uint32_t start_command(int code, int *ret_input)
{
	sigset_t all, before;
	int input[2];

	/* A signal that arrives before the child has reset its handlers waits until then. */
	sigfillset(&all);
	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &all, &before), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		char byte;
		for (int number = 1; number < SIGRTMIN; number++)
			(void)signal(number, SIG_DFL);
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		(void)close(input[1]);
		while (read(input[0], &byte, 1) > 0)
			;
		if (code < 0)
			(void)raise(SIGKILL);
		_exit(code);
	}
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	(void)close(input[0]);
	*ret_input = input[1];
	return (uint32_t)pid;
}

/* Waits for signals or keys until the run has a reason to end. */
static unsigned wait_for_reason(struct run_control *control)
{
	uint64_t limit_ns = clock_monotonic_ns() + LIMIT_NS;
	unsigned requests = 0;

	while (!control->reason && clock_monotonic_ns() < limit_ns) {
		(void)poll(control->watched, (nfds_t)control->watched_count, 1000);
		requests |= run_control_take(control);
	}
	assert_non_null(control->reason);
	return requests;
}

static void test_signals(void **state)
{
	struct run_control control;

	(void)state;
	start(&control);
	assert_int_equal(run_control_take(&control), 0);
	assert_null(control.reason);

	(void)raise(SIGTSTP); /* reported, but the program is not suspended */
	(void)raise(SIGWINCH);
	assert_int_equal(poll(control.watched, 1, 0), 1);
	assert_int_equal(run_control_take(&control), RUN_REQUEST_PAUSE | RUN_REQUEST_RESIZE);
	assert_null(control.reason);
	assert_int_equal(poll(control.watched, 1, 0), 0);

	(void)raise(SIGINT);
	assert_int_equal(run_control_take(&control), RUN_REQUEST_END);
	assert_string_equal(control.reason, "Ctrl-C");
	assert_int_equal(control.end_signals, 1);
	assert_int_equal(control.signal, SIGINT);
	/* the signal came from a process, so it is not in the command's process group */
	assert_int_equal(control.unsent_signal, SIGINT);
	run_control_end(&control);
	assert_int_equal(control.watched[0].fd, -1);

	/*
	 * An earlier reason is kept; after run_control_watch_end() only signals that end the run
	 * are reported.
	 */
	start(&control);
	control.reason = "the time was up";
	(void)raise(SIGTSTP);
	run_control_watch_end(&control);
	(void)raise(SIGWINCH);
	assert_int_equal(run_control_take(&control), 0);
	(void)raise(SIGTERM);
	assert_int_equal(run_control_take(&control), RUN_REQUEST_END);
	assert_string_equal(control.reason, "the time was up");
	assert_int_equal(control.signal, SIGTERM);
	run_control_end(&control);
}

static void test_command_ends(void **state)
{
	struct run_control control;
	int input;

	(void)state;
	start(&control);
	assert_int_equal(run_control_code(&control, 0), 0); /* no command */
	assert_false(run_command_reap(&control.command));
	run_command_signal(&control.command, SIGTERM);
	run_control_wait(&control);

	control.command.pid = start_command(7, &input);
	run_control_reap(&control);
	assert_null(control.reason); /* it runs */
	assert_int_equal(run_control_code(&control, 0), 0);
	(void)close(input);
	assert_int_equal(wait_for_reason(&control), 0);
	assert_string_equal(control.reason, "the command ended");
	assert_true(control.command.ended);
	assert_int_equal(run_control_code(&control, 0), 7);
	assert_false(run_command_reap(&control.command)); /* only once */

	/* A pid that is not our child. */
	control.command.ended = false;
	assert_false(run_command_reap(&control.command));
	assert_int_equal(control.command.pid, 0);

	control.command = (struct run_command){ .exec_code = 127 };
	assert_int_equal(run_control_code(&control, 0), 127);
	run_control_end(&control);
}

static void test_wait(void **state)
{
	static const enum run_wait ways[] = { RUN_WAIT_PASS, RUN_WAIT_INSIST };
	struct run_control control;
	int input;

	(void)state;
	for (int i = 0; i < 2; i++) {
		/* The command ends. */
		start(&control);
		control.command.pid = start_command(-1, &input);
		(void)close(input);
		control.wait = ways[i];
		run_control_wait(&control);
		assert_int_equal(run_control_code(&control, 0), 128 + SIGKILL);
		run_control_end(&control);

		/* A signal that arrives during the wait is passed to the command. */
		start(&control);
		control.command.pid = start_command(0, &input);
		(void)raise(SIGHUP);
		control.wait = ways[i];
		run_control_wait(&control);
		assert_int_equal(run_control_code(&control, 0), 128 + SIGHUP);
		run_control_end(&control);
		(void)close(input);
	}
}

static void test_pass_signal(void **state)
{
	struct run_control control;
	int input;

	(void)state;
	start(&control);
	control.command.pid = start_command(0, &input);
	run_control_pass_signal(&control); /* no signal arrived */
	(void)raise(SIGTERM);
	(void)wait_for_reason(&control);
	run_control_pass_signal(&control);
	run_control_wait(&control);
	assert_int_equal(run_control_code(&control, 0), 128 + SIGTERM);
	run_control_end(&control);
	(void)close(input);
}

/* The other end of a terminal types `keys`. The bits of the child's exit code are the results. */
enum found {
	FOUND_TERMINAL = 1,
	FOUND_ENTER = 2,
	FOUND_CTRL_C = 4,
	FOUND_UNSENT = 8,
	FOUND_WATCH_ENDED = 16
};

static int type_keys(const char *keys, bool reads_terminal)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int ready[2];
	int status;
	char byte;

	if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0)
		return -1;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct run_control control = { 0 };
		uint64_t limit_ns = clock_monotonic_ns() + LIMIT_NS;
		int fd = setsid() < 0 ? -1 : open(ptsname(terminal), O_RDWR);
		int found = 0;
		if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0 || dup2(fd, STDIN_FILENO) < 0 ||
			run_control_start(&control, 0, reads_terminal, NULL) < 0)
			_exit(255);
		found |= control.watched_count == 2 ? FOUND_TERMINAL : 0;
		(void)!write(ready[1], "", 1);
		for (size_t count = control.watched_count; !control.reason &&
							   control.watched_count == count &&
							   clock_monotonic_ns() < limit_ns;) {
			(void)poll(control.watched, (nfds_t)count, 1000);
			(void)run_control_take(&control);
			found |= control.watched_count < count ? FOUND_WATCH_ENDED : 0;
		}
		found |= control.reason && strcmp(control.reason, "Enter") == 0 ? FOUND_ENTER : 0;
		found |= control.reason && strcmp(control.reason, "Ctrl-C") == 0 ? FOUND_CTRL_C : 0;
		found |= control.unsent_signal ? FOUND_UNSENT : 0;
		_exit(found);
	}
	(void)close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	assert_int_equal(write(terminal, keys, strlen(keys)), strlen(keys));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(ready[0]);
	(void)close(terminal);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_terminal(void **state)
{
	(void)state;
	int found = type_keys("\n", true);

	if (found < 0)
		skip(); /* no pseudo-terminals are available */
	assert_int_equal(found, FOUND_TERMINAL | FOUND_ENTER);
	/* the terminal sends it to the whole process group */
	assert_int_equal(type_keys("\x03", true), FOUND_TERMINAL | FOUND_CTRL_C);
	assert_int_equal(type_keys("\x04", true), FOUND_TERMINAL | FOUND_WATCH_ENDED);
	assert_int_equal(type_keys("\x03", false), FOUND_CTRL_C);
}

static void check_begin(uint64_t elapsed_ns, const char *expected)
{
	struct bytes line = { 0 };

	run_progress_begin(&line, elapsed_ns);
	assert_string_equal(bytes_z(&line), expected);
	bytes_done(&line);
}

static void test_progress(void **state)
{
	(void)state;
	check_begin(0, "\r  00:00  ");
	check_begin(UINT64_C(90999999999), "\r  01:30  ");
	check_begin(UINT64_C(3599000000000), "\r  59:59  ");
	check_begin(UINT64_C(3605000000000), "\r  01:00:05  ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_command_ends),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_pass_signal),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
