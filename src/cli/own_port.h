/*
 * A diagnostics port of ours for one run of a verb: that of a command, which starts suspended together with all that it starts, or the one that --diagnostic-port
 * names.
 *
 *   own_port_open(&port, "trace", values.port, args.command, &diag);     neither: nothing is opened
 *   ... port.reverse is listened at, port.connect_path connected to; watch SIGCHLD ...
 *   own_port_go(&port, &diag);                            the command runs its first instruction
 *   own_port_reap(&port)                                  at each SIGCHLD: true when the command has ended
 *   own_port_wait(&port, signal_fd);                      at the end, once our sessions are over: the command may go on as long as it likes
 *   code = own_port_code(&port);  own_port_close(&port);
 *
 * The caller's SIGCHLD and the signals it ends by are blocked and read from a signalfd. Whatever fails after own_port_open(): own_port_close() leaves nobody waiting.
 */
#ifndef SPOOR_CLI_OWN_PORT_H
#define SPOOR_CLI_OWN_PORT_H

#include <stdbool.h>

#include "record/child.h"

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
	char path[4096];
};

/* What does not go together of a command, the option's text and a choice of processes, as a sentence; NULL nothing. */
const char *own_port_misuse(char *const command[], const char *port, bool chosen);

/* `port` is the option's text, `command` ends with NULL; at most one of them is given. -EINVAL: the text is no path. */
int own_port_open(struct own_port *own, const char *verb, const char *port, char *const command[], struct diag *diag);

/* Without a command nothing. When it cannot be run: its errno, a sentence, and there is no child any more. */
int own_port_go(struct own_port *own, struct diag *diag);

/* True once, when the command has ended. */
bool own_port_reap(struct own_port *own);

/* To the command, if it still runs. */
void own_port_signal(struct own_port *own, int signal);

/* Ctrl-Z, once nothing of ours is open: stops this process, and comes back when it goes on. SIGTSTP is blocked. */
void own_port_stop_too(void);

/*
 * Waits for the command's end. What comes at `signal_fd` is passed on to it unless it came from the keyboard, which is the whole group's; runtimes that come to the
 * port meanwhile are let go on at once.
 */
void own_port_wait(struct own_port *own, int signal_fd);

/* The command's exit code, 128 + N for signal N; 0 without one. */
int own_port_code(const struct own_port *own);

void own_port_close(struct own_port *own);

#endif
