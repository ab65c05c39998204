/*
 * The listen port of one run of a verb: of a command, whose .NET runtimes start suspended and
 * connect to it (those of its children as well), or the port that --diagnostic-port names.
 *
 *   listen_port_open(&port, "trace", values.port, args.command, &diag);     without a command and a port: opens nothing
 *   ... listen at port.reverse, or connect to port.connect_path ...
 *   listen_port_go(&port, &control.command, &diag);          the command executes its first instruction
 *   listen_port_leave(&port);                                at the end, after our sessions: runtimes that connect from now on are resumed
 *   run_control_wait(&control, RUN_WAIT_PASS);
 *   listen_port_close(&port);
 *
 * listen_port_close() resumes every suspended runtime, also after a failure.
 */
#ifndef SPOOR_CLI_LISTEN_PORT_H
#define SPOOR_CLI_LISTEN_PORT_H

#include <stdbool.h>

#include "perf/child.h"

struct diag;
struct reverse;
struct run_command;

struct listen_port {
	struct reverse *reverse;  /* NULL: none */
	const char *connect_path; /* where a runtime listens; NULL: none */
	char *const *command;     /* borrowed; NULL: none */
	struct record_child child;
	bool child_waits;   /* for listen_port_go() */
	bool offered;       /* the port is in our environment */
	char *ports_before; /* the variable's value before; NULL: it was not set */
	char path[4096];
};

/*
 * Why a command, the option's text and a choice of processes cannot be combined, as a sentence;
 * NULL: they can.
 */
const char *listen_port_misuse(char *const command[], const char *port, bool chosen);

/*
 * `port` is the option's text, `command` ends with NULL; at most one of them is given. -EINVAL: the
 * text is not a path.
 */
int listen_port_open(struct listen_port *own, const char *verb, const char *port,
	char *const command[], struct diag *diag);

/*
 * For a caller that starts the command itself, between these two calls: they set the port in the
 * environment and restore it. After listen_port_watch() the runtimes of that process are resumed even
 * if this program is killed.
 */
int listen_port_offer(struct listen_port *own, const char *verb, struct diag *diag);
int listen_port_watch(struct listen_port *own, uint32_t pid, struct diag *diag);

/*
 * Starts the command, if there is one, and sets command->pid. On failure: returns its errno, writes
 * a sentence, and sets command->exec_code; the child has been reaped.
 */
int listen_port_go(struct listen_port *own, struct run_command *command, struct diag *diag);

/*
 * After listen_port_go(): runtimes of the command that connect from now on are resumed immediately.
 * Without a command it does nothing.
 */
void listen_port_leave(struct listen_port *own);

/*
 * Prints how many runtimes were resumed without being observed from the start, and why; nothing if
 * there were none.
 */
void listen_port_say_missed(const struct listen_port *own);

void listen_port_close(struct listen_port *own);

#endif
