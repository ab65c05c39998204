/*
 * A command that waits for its events: forked now, exec'd when told, so that recording begins with its first instruction.
 *
 *   record_child_spawn(&child, argv, &diag);
 *   options.scope = RECORD_CHILD, options.pids = &child.pid;  recorder_open(); recorder_start();
 *   record_child_go(&child, argv[0], &diag);                  or record_child_cancel()
 *   waitpid(child.pid, ...) is the caller's
 */
#ifndef SPOOR_PERF_CHILD_H
#define SPOOR_PERF_CHILD_H

#include <stdint.h>

struct diag;

struct record_child {
	uint32_t pid;
	int go_fd;
	int error_fd;
	int exec_code;  /* 127: there is no such command, 126: it cannot be run, as a shell exits; 0: it runs, or was not told to */
};

/*
 * Starts the waiting child. Signals we ignore or block are as usual for it, and it ends when we do before it was told to go. `argv` ends with NULL.
 */
int record_child_spawn(struct record_child *child, char *const argv[], struct diag *diag);

/* Lets it exec. When the command cannot be run: its errno, a sentence, exec_code; the child has been waited for, and pid is 0. */
int record_child_go(struct record_child *child, const char *command, struct diag *diag);

/* Ends a child that was not told to go, and waits for it. */
void record_child_cancel(struct record_child *child);

#endif
