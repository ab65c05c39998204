/* See interrupt.h. The handler sets the mark before the descriptor becomes readable. */
#include "cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "cli/terminal.h"
#include "machine/output_file.h"

enum mark { MARK_NONE, MARK_SENT, MARK_KEYBOARD };

/* In order of reporting. The first ENDER_COUNT end a verb; SIGALRM is the deadline's. */
static const struct {
	int signal;
	unsigned kind;
} watched_signals[] = {
	{ SIGINT, 0 },
	{ SIGTERM, 0 },
	{ SIGHUP, 0 },
	{ SIGCHLD, INTERRUPT_CHILD },
	{ SIGTSTP, INTERRUPT_PAUSE },
	{ SIGWINCH, INTERRUPT_RESIZE },
};

enum { ENDER_COUNT = 3, SIGNAL_COUNT = sizeof(watched_signals) / sizeof(watched_signals[0]) };

static struct {
	int event_fd; /* valid while `owner` is set */
	/* 0: not started. A forked child is not the owner: its copy of the handler does nothing */
	pid_t owner;
	volatile sig_atomic_t marks[SIGNAL_COUNT];
	volatile sig_atomic_t kinds;
	volatile sig_atomic_t passes_on;
	volatile sig_atomic_t asked;           /* signals that ended something, without copies */
	volatile sig_atomic_t deadline_signal; /* 0: no deadline runs */
	volatile sig_atomic_t deadline_is_keyboards;
	pid_t deadline_owner;
	volatile pid_t command; /* what a deadline kills before this program; 0: none */
	int last_signal;
	uint64_t last_ns;
	struct sigaction before[SIGNAL_COUNT];
} state;

static _Noreturn void die(int number)
{
	sigset_t set;

	output_file_abandon();
	terminal_abandon();
	(void)signal(number, SIG_DFL); /* a valid signal, as below */
	sigemptyset(&set);
	sigaddset(&set, number);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(number);
	_exit(128 + number);
}

static void set_deadline(void)
{
	const struct itimerval deadline = { .it_value = {
						    .tv_usec = INTERRUPT_DEADLINE_MS * 1000 } };

	(void)setitimer(ITIMER_REAL, &deadline, NULL); /* a valid time: cannot fail */
}

static void on_deadline(int number)
{
	int error = errno;
	pid_t command = state.command;

	(void)number;
	if (!state.deadline_signal || state.deadline_owner != getpid())
		return;
	if (!command)
		die(state.deadline_signal);
	state.command = 0;
	(void)kill(command, SIGKILL); /* fails only if it has ended */
	set_deadline();
	errno = error;
}

/* False: a copy of the one before. */
static bool count_ender(int number, bool keyboard)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool soon = state.asked && now_ns < state.last_ns + INTERRUPT_COPY_MS * UINT64_C(1000000);
	bool copy = soon && number == state.last_signal;

	if (!soon) {
		state.last_ns = now_ns;
		state.asked++;
		if (state.asked > 2 && !state.passes_on)
			die(number);
		if (state.asked == 2) {
			state.deadline_signal = number;
			state.deadline_is_keyboards = keyboard;
			set_deadline();
		}
	}
	state.last_signal = number;
	return !copy;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int error = errno;
	uint64_t one = 1;
	bool keyboard = info->si_code == SI_KERNEL;
	int i = 0;

	(void)context;
	while (i < SIGNAL_COUNT - 1 && watched_signals[i].signal != number)
		i++;
	bool wanted = state.owner == getpid() &&
		      (i < ENDER_COUNT || (watched_signals[i].kind & (unsigned)state.kinds));

	if (wanted && i < ENDER_COUNT && !(state.passes_on && keyboard))
		wanted = count_ender(number, keyboard);
	if (wanted) {
		state.marks[i] = keyboard ? MARK_KEYBOARD : MARK_SENT;
		/* a full counter is readable already */
		(void)!write(state.event_fd, &one, sizeof(one));
	}
	errno = error;
}

static void handle(int number, struct sigaction *ret_before)
{
	struct sigaction action = { .sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART };

	sigfillset(&action.sa_mask);
	/* valid arguments: cannot fail, as elsewhere here */
	(void)sigaction(number, &action, ret_before);
}

/* Only these signals are touched, so that a mask that was inherited cannot block them. */
static void unblock(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNAL_COUNT; i++)
		sigaddset(&set, watched_signals[i].signal);
	sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int interrupt_start(unsigned kinds, struct pollfd *ret_watched, struct diag *diag)
{
	struct sigaction deadline = { .sa_handler = on_deadline };
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot watch signals: %m");
	for (int i = 0; i < SIGNAL_COUNT; i++)
		state.marks[i] = MARK_NONE;
	state.event_fd = fd;
	state.asked = state.passes_on = 0;
	state.deadline_signal = 0;
	state.command = 0;
	state.kinds = (int)kinds;
	state.owner = state.deadline_owner = getpid();
	sigfillset(&deadline.sa_mask);
	(void)sigaction(SIGALRM, &deadline, NULL);
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		handle(watched_signals[i].signal, &state.before[i]);
		if (watched_signals[i].signal == SIGHUP && state.before[i].sa_handler == SIG_IGN)
			(void)sigaction(SIGHUP, &state.before[i], NULL);
	}
	unblock();
	*ret_watched = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

void interrupt_watch(unsigned kinds)
{
	state.kinds = (int)kinds;
	for (int i = ENDER_COUNT; i < SIGNAL_COUNT; i++)
		if (!(watched_signals[i].kind & kinds))
			state.marks[i] = MARK_NONE;
	for (int i = 0; i < SIGNAL_COUNT; i++)
		if (state.marks[i])
			return;
	/* A signal between the two lines is marked, and the next interrupt_take() finds it. */
	uint64_t count;
	(void)!read(state.event_fd, &count, sizeof(count)); /* empty: as wanted */
}

bool interrupt_take(struct interrupt *ret_taken)
{
	uint64_t count;

	if (!state.owner)
		return false;
	(void)!read(state.event_fd, &count, sizeof(count)); /* empty: the marks decide */
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		sig_atomic_t mark =
			__atomic_exchange_n(&state.marks[i], MARK_NONE, __ATOMIC_SEQ_CST);
		if (!mark)
			continue;
		*ret_taken = (struct interrupt){ .signal = watched_signals[i].signal,
			.from_keyboard = mark == MARK_KEYBOARD };
		return true;
	}
	return false;
}

void interrupt_pass_on(uint32_t command)
{
	state.command = (pid_t)command;
	state.passes_on = 1;
	if (state.deadline_is_keyboards)
		state.deadline_signal = 0;
}

void interrupt_pause(void)
{
	struct sigaction handled;
	struct sigaction stop = { .sa_handler = SIG_DFL };

	(void)sigaction(SIGTSTP, &stop, &handled);
	(void)raise(SIGTSTP); /* returns when we continue */
	(void)sigaction(SIGTSTP, &handled, NULL);
}

void interrupt_end(struct pollfd *watched)
{
	if (!state.owner || watched->fd < 0)
		return;
	for (int i = 0; i < SIGNAL_COUNT; i++)
		(void)sigaction(watched_signals[i].signal, &state.before[i], NULL);
	state.owner = 0;
	closep(&watched->fd);
	watched->fd = -1;
}
