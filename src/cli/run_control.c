/* See run_control.h. */
#include "cli/run_control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/poll_set.h"
#include "cli/interrupt.h"
#include "cli/verbs.h"

#define INSIST_NS (INTERRUPT_DEADLINE_MS * UINT64_C(1000000) / 2)

static bool owns_terminal(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int run_control_start(struct run_control *control, unsigned kinds, bool reads_terminal,
	struct diag *diag)
{
	int result = interrupt_start(kinds, &control->watched[0], diag);

	if (result < 0)
		return result;
	control->watched_count = 1;
	if (reads_terminal && owns_terminal())
		control->watched[control->watched_count++] =
			(struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return 0;
}

static void set_reason(struct run_control *control, const char *reason)
{
	if (!control->reason)
		control->reason = reason;
}

static void take_end_signal(struct run_control *control, const struct interrupt *taken)
{
	control->end_signals++;
	control->signal = taken->signal;
	if (!taken->from_keyboard)
		control->unsent_signal = taken->signal;
	set_reason(control, taken->signal == SIGINT ? "Ctrl-C" : "a signal");
}

/* False: end of input, after which the terminal is not watched. */
static bool take_line(struct run_control *control)
{
	char line[256];

	control->watched[1].revents = 0;
	if (read(STDIN_FILENO, line, sizeof(line)) <= 0) {
		control->watched_count = 1;
		return false;
	}
	set_reason(control, "Enter");
	return true;
}

unsigned run_control_take(struct run_control *control)
{
	struct interrupt taken;
	unsigned requests = 0;

	while (interrupt_take(&taken)) {
		if (taken.signal == SIGCHLD) {
			run_control_reap(control);
		} else if (taken.signal == SIGTSTP) {
			requests |= RUN_REQUEST_PAUSE;
		} else if (taken.signal == SIGWINCH) {
			requests |= RUN_REQUEST_RESIZE;
		} else {
			requests |= RUN_REQUEST_END;
			take_end_signal(control, &taken);
		}
	}
	if (control->watched_count > 1 && control->watched[1].revents && take_line(control))
		requests |= RUN_REQUEST_END;
	control->watched[0].revents = 0;
	return requests;
}

void run_control_reap(struct run_control *control)
{
	if (run_command_reap(&control->command))
		set_reason(control, "the command ended");
}

void run_control_watch_end(struct run_control *control)
{
	interrupt_watch(0);
	control->watched[0].revents = 0;
}

uint64_t run_control_pause(void)
{
	uint64_t begin_ns = clock_monotonic_ns();

	interrupt_pause();
	return clock_monotonic_ns() - begin_ns;
}

void run_control_pass_signal(struct run_control *control)
{
	if (control->unsent_signal)
		run_command_signal(&control->command, control->unsent_signal);
	control->unsent_signal = 0;
}

static bool runs(const struct run_command *command)
{
	return command->pid && !command->ended;
}

/* The n-th signal of RUN_WAIT_INSIST, counted from 1. */
static void insist(const struct run_command *command, unsigned n, const struct interrupt *taken)
{
	if (n >= 3)
		run_command_signal(command, SIGKILL);
	else if (n == 2)
		run_command_signal(command, SIGTERM);
	else if (!taken->from_keyboard)
		run_command_signal(command, taken->signal);
}

void run_control_wait(struct run_control *control)
{
	bool insists = control->wait == RUN_WAIT_INSIST;
	struct run_command *command = &control->command;
	unsigned count = control->signal ? 1 : 0;
	uint64_t kill_ns = UINT64_MAX;
	struct interrupt taken;

	if (!command->pid)
		return;
	interrupt_pass_on(insists ? command->pid : 0);
	if (insists)
		interrupt_watch(INTERRUPT_CHILD);
	while ((void)run_command_reap(command), runs(command)) {
		uint64_t now_ns = clock_monotonic_ns();
		if (now_ns >= kill_ns) {
			run_command_signal(command, SIGKILL);
			kill_ns = UINT64_MAX;
		}
		uint64_t wake_ns = now_ns + RUN_REAP_NS < kill_ns ? now_ns + RUN_REAP_NS : kill_ns;
		/* the marks of the signals are checked in any case */
		(void)poll_one(control->watched[0].fd, POLLIN, clock_left_ms(wake_ns, now_ns));
		while (interrupt_take(&taken)) {
			if (taken.signal == SIGCHLD || taken.signal == SIGWINCH)
				continue;
			if (taken.signal == SIGTSTP) {
				interrupt_pause();
			} else if (insists) {
				insist(command, ++count, &taken);
				if (count >= 2 && !taken.from_keyboard && kill_ns == UINT64_MAX)
					kill_ns = clock_monotonic_ns() + INSIST_NS;
			} else if (!taken.from_keyboard) {
				run_command_signal(command, taken.signal);
			}
		}
	}
	interrupt_pass_on(0);
}

void run_control_end(struct run_control *control)
{
	interrupt_end(&control->watched[0]);
}

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

bool run_command_reap(struct run_command *command)
{
	struct rusage used;
	int status;

	if (!runs(command))
		return false;
	pid_t got = wait4((pid_t)command->pid, &status, WNOHANG, &used);

	if (got < 0 && errno == ECHILD)
		command->pid = 0;
	if (got != (pid_t)command->pid || got <= 0)
		return false;
	command->ended = true;
	command->status = status;
	command->user_ns = timeval_ns(&used.ru_utime);
	command->system_ns = timeval_ns(&used.ru_stime);
	return true;
}

void run_command_signal(const struct run_command *command, int signal)
{
	if (runs(command))
		/* fails only if the command has ended, which wait4() reports */
		(void)kill((pid_t)command->pid, signal);
}

int run_control_code(const struct run_control *control, int code)
{
	const struct run_command *command = &control->command;

	if (command->exec_code)
		return command->exec_code;
	if (code || command->is_timer)
		return code;
	if (!command->ended)
		return EXIT_DONE;
	if (WIFEXITED(command->status))
		return WEXITSTATUS(command->status);
	return WIFSIGNALED(command->status) ? 128 + WTERMSIG(command->status) : EXIT_FAILED;
}

void run_progress_begin(struct bytes *line, uint64_t elapsed_ns)
{
	uint64_t s = elapsed_ns / 1000000000u;

	bytes_text(line, "\r  ");
	if (s >= 3600)
		bytes_printf(line, "%02u:", (unsigned)(s / 3600));
	bytes_printf(line, "%02u:%02u  ", (unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

void run_progress_print(struct bytes *line)
{
	bytes_text(line, "\x1b[K");
	fputs(bytes_z(line), stderr);
	fflush(stderr);
}

void run_progress_clear(void)
{
	fputs("\r\x1b[K", stderr);
}
