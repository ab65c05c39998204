/*
 * The start of one run of a verb: a command that is held until it is observed, and the listen port
 * that its .NET runtimes (those of its children as well) connect to before their first instruction;
 * or the port that --diagnostic-port names.
 *
 *   listen_port_open(&port, "trace", values.port, args.command, &diag);  without a command and a port: opens nothing
 *   ... listen at port.reverse, or connect to port.connect_path ...
 *   listen_port_go(&port, &control.command, &diag);    the command executes its first instruction
 *   ... close sessions and files ...
 *   code = listen_port_end(&port, &control, pause, quiet, code);     waits for the command
 *
 * The end resumes every suspended runtime, also after a failure. If this program is killed, a
 * helper process resumes the runtimes of the command (reverse_stand_in()).
 */
#ifndef SPOOR_CLI_LISTEN_PORT_H
#define SPOOR_CLI_LISTEN_PORT_H

#include <stdbool.h>

#include "cli/options.h"
#include "perf/child.h"

struct diag;
struct reverse;
struct run_command;
struct run_control;

struct listen_port_values {
	const char *port; /* of --diagnostic-port or --dport */
	unsigned resume;  /* enum yes_no */
	bool child_io;
};

/* The rows of a verb's option table that fill the listen_port_values `field` of `type`. */
#define LISTEN_PORT_OPTIONS(type, field)                                                           \
	{ 0, "diagnostic-port", "PATH[,listen|connect]",                                           \
		"observe the runtimes that connect to this socket, or the one that listens there", \
		OPTION_TEXT, INTO(type, field.port) },                                             \
		{ 0, "dport", "PATH[,listen|connect]", "as --diagnostic-port", OPTION_TEXT,        \
			INTO(type, field.port) },                                                  \
		{ 0, "resume-runtime", "true|false",                                               \
			"resume waiting runtimes once they are observed (true)", OPTION_CHOICE,    \
			INTO(type, field.resume) },                                                \
	{                                                                                          \
		0, "show-child-io", NULL, "accepted; a command's output is always shown",          \
			OPTION_FLAG, INTO(type, field.child_io)                                    \
	}

struct listen_port {
	struct reverse *reverse;  /* NULL: none */
	const char *connect_path; /* where a runtime listens; NULL: none */
	struct record_child child;
	bool left; /* listen_port_leave() was called */
	char path[4096];
};

/* Why these options cannot be combined, as a sentence; NULL: they can. */
const char *listen_port_misuse(char *const command[], const char *port, bool chosen);

/*
 * `port` is the option's text, `command` ends with NULL; at most one of them is given. `verb` names
 * the socket of the command's port; NULL: the command gets no port. -EINVAL: the text is no path.
 */
int listen_port_open(struct listen_port *own, const char *verb, const char *port,
	char *const command[], struct diag *diag);

/* Starts the command, if one waits, and reports it in `command`. Negative: it could not be run. */
int listen_port_go(struct listen_port *own, struct run_command *command, struct diag *diag);

/*
 * Ends a command that was not started; later runtimes of a started one are resumed immediately. Prints,
 * unless `quiet`, how many were resumed without being observed from the start, and why. A second call
 * has no effect.
 */
void listen_port_leave(struct listen_port *own, bool quiet);

/*
 * The end of a run whose sessions are closed: passes on the signal that ended it, stops this
 * program if `pause` (Ctrl-Z), leaves the port as above, waits for the command, resumes all runtimes,
 * and closes the port. Returns `code`, or the command's exit code as run_control_code().
 */
int listen_port_end(struct listen_port *own, struct run_control *control, bool pause, bool quiet,
	int code);

#endif
