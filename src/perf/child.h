/*
 * A command that waits for its events: forked now, exec'd later, recorded from its first
 * instruction.
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
	/* as in a shell: 127 no such command, 126 cannot be run; 0: runs or not started */
	int exec_code;
};

/*
 * Starts the waiting child, which ignores and blocks no signal and ends if this process does first.
 */
int record_child_spawn(struct record_child *child, char *const argv[], struct diag *diag);

/* Lets the child exec. On failure the child is reaped, pid is 0 and exec_code is set. */
int record_child_go(struct record_child *child, const char *command, struct diag *diag);

/* Ends a child that has not been started, and reaps it. */
void record_child_cancel(struct record_child *child);

#endif
