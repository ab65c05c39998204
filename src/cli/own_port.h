/*
 * A diagnostics port of ours for one run of a verb: that of a command, which starts suspended together with all that it starts, or the one that --diagnostic-port
 * names.
 *
 *   own_port_open(&port, "trace", values.port, args.command, &diag);     neither: nothing is opened
 *   ... port.reverse is listened at, port.connect_path connected to; watch SIGCHLD ...
 *   own_port_go(&port, &diag);                            the command runs its first instruction
 *   own_port_reap(&port)                                  at each SIGCHLD: true when the command has ended
 *   own_port_wait(&port, signal_fd);                      at the end, once our sessions are over: until the command ends
 *   code = own_port_code(&port);  own_port_close(&port);
 *
 * The caller has called interrupt_start() with INTERRUPT_CHILD. Whatever fails after own_port_open(): own_port_close() resumes every runtime that waits.
 */
#ifndef SPOOR_CLI_OWN_PORT_H
#define SPOOR_CLI_OWN_PORT_H

#include <stdbool.h>

#include "perf/child.h"

struct diag;
struct reverse;

struct own_port {
	struct reverse *reverse;   /* NULL: none */
	const char *connect_path;  /* where a runtime listens; NULL: none */
	char *const *command;      /* borrowed; NULL: none */
	struct record_child child;
	bool child_waits;          /* it was not told to go yet */
	bool child_reaped;
	int child_status;
	bool offered;              /* it is in our environment */
	char *ports_before;        /* what that had; NULL: nothing */
	char path[4096];
};

/* What does not go together of a command, the option's text and a choice of processes, as a sentence; NULL nothing. */
const char *own_port_misuse(char *const command[], const char *port, bool chosen);

/* `port` is the option's text, `command` ends with NULL; at most one of them is given. -EINVAL: the text is no path. */
int own_port_open(struct own_port *own, const char *verb, const char *port, char *const command[], struct diag *diag);

/*
 * For a caller that starts the command itself: what it starts between these two calls has the port in its environment. From own_port_watch() on the runtimes of that process
 * are resumed when we are killed.
 */
int own_port_offer(struct own_port *own, const char *verb, struct diag *diag);
int own_port_watch(struct own_port *own, uint32_t pid, struct diag *diag);

/* Without a command nothing. When it cannot be run: its errno, a sentence, and there is no child any more. */
int own_port_go(struct own_port *own, struct diag *diag);

/* True once, when the command has ended. */
bool own_port_reap(struct own_port *own);

/* To the command, if it still runs. */
void own_port_signal(struct own_port *own, int signal);

/*
 * Waits for the command's end. `signal_fd` is that of interrupt_start(), with INTERRUPT_CHILD. Signals are passed on to it, except those of the keyboard, which the whole process group gets. Runtimes that connect to the
 * port meanwhile are resumed immediately.
 */
void own_port_wait(struct own_port *own, int signal_fd);

/* The command's exit code, 128 + N for signal N; 127 or 126 when it could not be run, whatever else failed; 0 without one. */
int own_port_code(const struct own_port *own);

/* How many runtimes were resumed without being observed from the start, and why, if there were any. */
void own_port_say_missed(const struct own_port *own);

void own_port_close(struct own_port *own);

#endif
