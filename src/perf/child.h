/*
 * A command that waits for its events: forked now, exec'd later, recorded from its first
 * instruction.
 *
 *   record_child_spawn(&child, argv, &diag);
 *   options.scope = RECORD_CHILD, options.pids = &child.pid;  recorder_open(); recorder_start();
 *   record_child_go(&child, &diag);                           or record_child_cancel()
 *   the caller calls waitpid(child.pid, ...)
 */
#ifndef SPOOR_PERF_CHILD_H
#define SPOOR_PERF_CHILD_H

#include <stdbool.h>
#include <stdint.h>

struct diag;

struct record_child {
	uint32_t pid;
	bool waits;       /* spawned, and neither started nor cancelled */
	const char *name; /* argv[0], borrowed */
	int go_fd;
	int error_fd;
	/* as in a shell: 127 no such command, 126 cannot be run; 0: runs or not started */
	int exec_code;
};

/*
 * Starts the waiting child, which ignores and blocks no signal and ends if this process does first.
 */
int record_child_spawn(struct record_child *child, char *const argv[], struct diag *diag);

/* The file that it will execute, as execvp() finds it; the caller frees it. NULL: there is none, or no memory. */
char *record_child_path(const struct record_child *child);

/* Lets a waiting child exec. On failure it is reaped, pid is 0 and exec_code is set. */
int record_child_go(struct record_child *child, struct diag *diag);

/* Kills and reaps a child that was not released yet. Does nothing for one that runs. */
void record_child_cancel(struct record_child *child);

#endif
