/*
 * Control of one run of a verb: what ends or stops it (signals, keys, the end of its command), its
 * progress line, and the command after "--".
 *
 *   run_control_start(&control, INTERRUPT_CHILD | INTERRUPT_PAUSE, reads_terminal, &diag);
 *   control.command.pid = ...                             once the command runs
 *   while (!control.reason) {
 *           poll_set_add_callers(&set, control.watched, control.watched_count); poll_set_wait(&set);
 *           requests = run_control_take(&control);        after each wait
 *   }
 *   ... close sessions and files ...
 *   code = listen_port_end(&port, &control, ...);         waits for the command (cli/listen_port.h)
 *
 * Signals are caught by cli/interrupt.h, whose rules on a second and a third signal apply. One
 * struct run_control at a time, on the main thread.
 */
#ifndef SPOOR_CLI_RUN_CONTROL_H
#define SPOOR_CLI_RUN_CONTROL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct diag;

#define RUN_PROGRESS_NS UINT64_C(500000000) /* interval of progress lines */
/* the kernel may merge two SIGCHLD, so a caller that waits for the command checks it that often */
#define RUN_REAP_NS UINT64_C(1000000000)

/* The requests of a person or of another process. */
enum run_request {
	RUN_REQUEST_END = 1 << 0,    /* SIGINT, SIGTERM, SIGHUP or Enter */
	RUN_REQUEST_PAUSE = 1 << 1,  /* Ctrl-Z (SIGTSTP) */
	RUN_REQUEST_RESIZE = 1 << 2, /* the terminal has another size (SIGWINCH) */
};

/* How signals that arrive while the command is waited for are treated. */
enum run_wait {
	RUN_WAIT_PASS, /* each is passed to the command; Ctrl-Z stops this program */
	/* the second becomes SIGTERM, the third SIGKILL; Ctrl-Z does not stop this program */
	RUN_WAIT_INSIST,
};

/* A child process that the user named as a command. All zero: none. */
struct run_command {
	uint32_t pid;     /* 0: none, or it does not run yet */
	bool ended;       /* it has ended, and was reaped */
	int status;       /* as waitpid() reports it, once it has ended */
	int exec_code;    /* 127 or 126: it could not be run */
	bool is_timer;    /* only its end counts: its exit code is not that of the run */
	uint64_t user_ns; /* CPU time of the command and its reaped children, once it has ended */
	uint64_t system_ns;
};

struct run_control {
	struct pollfd watched[2]; /* signals, then the terminal */
	size_t watched_count;
	/* why the run ends; NULL while it continues. A verb may set it for its own reasons */
	const char *reason;
	unsigned end_signals; /* number of signals that requested the end */
	int signal;           /* the last of them; 0: none */
	/* the last of them that the terminal did not send to the command as well; 0: none */
	int unsent_signal;
	struct run_command command;
	enum run_wait wait;
};

/*
 * `kinds` is of enum interrupt_kind. `reads_terminal`: Enter ends the run, if standard input is a
 * terminal that this program is in the foreground of. A verb with a command passes false, because
 * the terminal belongs to the command.
 */
int run_control_start(struct run_control *control, unsigned kinds, bool reads_terminal,
	struct diag *diag);

/*
 * Takes the signals and keys that have arrived; the result is of enum run_request. Reaps the
 * command. The first request to end and the end of the command set `reason` if it is NULL.
 */
unsigned run_control_take(struct run_control *control);

/* Reaps an ended command and sets `reason` if NULL, without waiting for SIGCHLD. */
void run_control_reap(struct run_control *control);

/* From now on only requests to end are reported. */
void run_control_watch_end(struct run_control *control);

/* Stops this program as Ctrl-Z does; returns how long. The caller has closed its sessions. */
uint64_t run_control_pause(void);

/* Sends `unsent_signal` to the command once, if both exist. */
void run_control_pass_signal(struct run_control *control);

/*
 * Waits until the command ends. No session is open any more, so the keyboard's signals do not end
 * this program. A second signal that another process sends ends it within INTERRUPT_DEADLINE_MS, so
 * RUN_WAIT_INSIST sends SIGKILL to the command before that.
 */
void run_control_wait(struct run_control *control);

/* Restores the dispositions. Harmless without run_control_start() if watched[0].fd is -1. */
void run_control_end(struct run_control *control);

/* True once, when the command has ended. A pid that is not our child (any more) becomes 0. */
bool run_command_reap(struct run_command *command);

/* Sends a signal to the command if it runs. */
void run_command_signal(const struct run_command *command, int signal);

/*
 * The exit code of a run that ended with `code`. If that is a success, or the command could not be
 * run: the command's code (128 + the signal; 0 while it runs).
 */
int run_control_code(const struct run_control *control, int code);

/* Begins a progress line with the elapsed time: "  01:30  ", from one hour on "  01:00:05  ". */
void run_progress_begin(struct bytes *line, uint64_t elapsed_ns);

/* Prints the line over the previous one on standard error. */
void run_progress_print(struct bytes *line);

/* Erases the progress line. */
void run_progress_clear(void);

#endif
