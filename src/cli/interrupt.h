/*
 * Signals that ask a verb to end. Every verb that holds something of another process, or writes a
 * file, uses this module.
 *
 *   interrupt_start(INTERRUPT_CHILD | INTERRUPT_PAUSE, &watched, &diag);
 *   ... poll `watched`, while (interrupt_take(&taken)) look at taken.signal ...
 *   interrupt_pass_on();                     only a command is still waited for, nothing is open
 *   interrupt_end(&watched);                 default actions again
 *
 * SIGINT, SIGTERM and SIGHUP end a verb. The first one makes the descriptor readable, and the verb
 * ends cleanly. The second one does so too, and the verb may skip what takes time. It also starts a
 * deadline: INTERRUPT_DEADLINE_MS later the program dies of that signal, even if its main thread
 * computes or blocks. A third one kills it immediately. Copies of one signal within
 * INTERRUPT_COPY_MS count once, because timeout(1) sends two.
 *
 * The guard process outlives such a death and stops the sessions in the targets. Before it,
 * temporary files are removed and the terminal is restored. A process that was started with SIGHUP
 * ignored (nohup) keeps it ignored. Handlers interrupt system calls that have a timeout (EINTR).
 * One user at a time, on the main thread. Signal handlers can reach static data only, so the state
 * is static.
 */
#ifndef SPOOR_CLI_INTERRUPT_H
#define SPOOR_CLI_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct pollfd;

#define INTERRUPT_DEADLINE_MS 900
#define INTERRUPT_COPY_MS     200

/* Signals that are reported besides those that end a verb. */
enum interrupt_kind {
	INTERRUPT_CHILD = 1 << 0,  /* SIGCHLD */
	INTERRUPT_PAUSE = 1 << 1,  /* SIGTSTP */
	INTERRUPT_RESIZE = 1 << 2, /* SIGWINCH */
};

struct interrupt {
	int signal;
	bool from_keyboard; /* the terminal sent it to the whole foreground process group */
};

int interrupt_start(unsigned kinds, struct pollfd *ret_watched, struct diag *diag);

/* Changes which kinds are reported. Kinds that are left out are discarded, also those that wait. */
void interrupt_watch(unsigned kinds);

/* False: nothing waits. Several signals with the same number may be reported once. */
bool interrupt_take(struct interrupt *ret_taken);

/*
 * Signals of the keyboard belong to a command from now on: they are reported, and never end this
 * program. The deadline of an earlier one is cancelled, because nothing is left to hang. Other
 * signals still start the deadline, so the caller ends the command before it. If the caller gets no
 * CPU until then, the deadline kills the process `command`, and this program only when as much time
 * has passed again. 0: none, also once it was reaped. A third signal is only reported.
 */
void interrupt_pass_on(uint32_t command);

/* Stops this process as Ctrl-Z does, except in an orphaned group; returns when it continues. */
void interrupt_pause(void);

/* Closes the descriptor and restores the dispositions. A running deadline continues. */
void interrupt_end(struct pollfd *watched);

#endif
