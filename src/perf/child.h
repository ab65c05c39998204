/*
 * A command that waits for its events: forked now, exec'd later, so that the recording begins with
 * its first instruction.
 *
 *   record_child_spawn(&child, argv, &diag);
 *   options.scope = RECORD_CHILD, options.pids = &child.pid;  recorder_open(); recorder_start();
 *   record_child_go(&child, argv[0], &diag);                  or record_child_cancel()
 *   the caller calls waitpid(child.pid, ...)
 */
#ifndef SPOOR_PERF_CHILD_H
#define SPOOR_PERF_CHILD_H

#include <stdint.h>

struct diag;

struct record_child {
	uint32_t pid;
	int go_fd;
	int error_fd;
	/*
	 * as in a shell: 127 the command does not exist, 126 it cannot be run; 0: it runs, or was
	 * not started
	 */
	int exec_code;
};

/*
 * Starts the waiting child. Its signals are not ignored or blocked, whatever this process does with
 * them. It ends if this process ends first. `argv` ends with NULL.
 */
int record_child_spawn(struct record_child *child, char *const argv[], struct diag *diag);

/*
 * Lets the child exec. On failure: returns the errno, with a sentence and exec_code; the child has
 * been reaped, and pid is 0.
 */
int record_child_go(struct record_child *child, const char *command, struct diag *diag);

/* Ends a child that has not been started, and reaps it. */
void record_child_cancel(struct record_child *child);

#endif
