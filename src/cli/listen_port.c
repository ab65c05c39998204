/* See listen_port.h. */
#include "cli/listen_port.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/run_control.h"
#include "dotnet/reverse.h"

#define PORTS_VARIABLE "DOTNET_DiagnosticPorts"

const char *listen_port_misuse(char *const command[], const char *port, bool chosen)
{
	if (command && chosen)
		return "a command and -p, -n or another choice of processes exclude each other";
	if (command && port)
		return "a command has a port of its own; --diagnostic-port is for runtimes that run already";
	if (port && chosen)
		return "--diagnostic-port and -p, -n or another choice of processes exclude each other";
	return NULL;
}

/* "PATH,connect" cut into its parts. */
static bool parse_port(const char *text, char *path, size_t room, bool *ret_connect)
{
	const char *comma = strrchr(text, ',');
	size_t len = strlen(text);

	*ret_connect = false;
	if (comma && (strcmp(comma, ",listen") == 0 || strcmp(comma, ",connect") == 0)) {
		*ret_connect = strcmp(comma, ",connect") == 0;
		len = (size_t)(comma - text);
	}
	if (!len || len >= room)
		return false;
	memcpy(path, text, len);
	path[len] = '\0';
	return true;
}

/* Puts the port into the environment, for the command. */
static int offer_port(const char *before, const char *path, struct diag *diag)
{
	cleanup(bytes_done) struct bytes ports = { 0 };

	if (before && *before)
		bytes_printf(&ports, "%s;", before);
	bytes_text(&ports, path);
	if (ports.failed || setenv(PORTS_VARIABLE, bytes_z(&ports), 1) < 0)
		return diag_set(diag, -ENOMEM, "cannot start the command: %m");
	return 0;
}

static int listen_for_command(struct listen_port *own, const char *verb, struct diag *diag)
{
	const char *folder = getenv("TMPDIR");

	/* a cut path cannot be bound */
	(void)snprintf(own->path, 128, "%s/spoor-%s-%d-%" PRIx64 ".socket",
		folder && *folder ? folder : "/tmp", verb, getpid(),
		clock_monotonic_ns() & 0xffffff);
	int result = reverse_listen(own->path, &own->reverse, diag);

	/* A command of root's may change its user; its runtimes must still reach the port. */
	if (result == 0 && geteuid() == 0)
		(void)chmod(own->path, 0666);
	return result;
}

static int open_for_command(struct listen_port *own, const char *verb, char *const command[],
	struct diag *diag)
{
	const char *variable = getenv(PORTS_VARIABLE);
	cleanup(freep) char *before = variable ? strdup(variable) : NULL;

	if (variable && !before)
		return diag_set(diag, -ENOMEM, "cannot start the command: %m");
	int result = verb ? listen_for_command(own, verb, diag) : 0;

	if (result == 0 && own->reverse)
		result = offer_port(before, own->path, diag);
	if (result == 0)
		result = record_child_spawn(&own->child, command, diag);
	if (own->reverse && before)
		/* no memory: the processes that Spoor starts itself would connect to its port */
		(void)setenv(PORTS_VARIABLE, before, 1);
	else if (own->reverse)
		(void)unsetenv(PORTS_VARIABLE); /* a valid name: cannot fail */
	if (result == 0 && own->reverse)
		result = reverse_stand_in(own->reverse, own->child.pid, diag);
	return result;
}

int listen_port_open(struct listen_port *own, const char *verb, const char *port,
	char *const command[], struct diag *diag)
{
	bool connect;

	*own = (struct listen_port){ 0 };
	if (command)
		return open_for_command(own, verb, command, diag);
	if (!port)
		return 0;
	if (!parse_port(port, own->path, sizeof(own->path), &connect))
		return diag_set(diag, -EINVAL, "'%s' is no path of a socket", port);
	if (!connect)
		return reverse_listen(own->path, &own->reverse, diag);
	own->connect_path = own->path;
	return 0;
}

int listen_port_go(struct listen_port *own, struct run_command *command, struct diag *diag)
{
	int result = record_child_go(&own->child, diag);

	command->pid = own->child.pid;
	command->exec_code = own->child.exec_code;
	return result;
}

static void say_missed(const struct listen_port *own)
{
	uint64_t count = own->reverse ? reverse_unplaced(own->reverse) : 0;

	if (count)
		message_print(
			"%s resumed immediately and not observed from the start: the port has places for %u at a time",
			TEXT_THINGS(count, "runtime was", "runtimes were"), REVERSE_PEERS_MAX);
	count = own->reverse ? reverse_missed(own->reverse) : 0;
	if (count)
		message_print(
			"%s resumed while spoor was stopped or hung, and not observed from the start",
			TEXT_THINGS(count, "runtime was", "runtimes were"));
}

void listen_port_leave(struct listen_port *own, bool quiet)
{
	bool runs = own->child.pid && !own->child.waits;

	if (own->left)
		return;
	own->left = true;
	if (!quiet)
		say_missed(own);
	record_child_cancel(&own->child);
	if (own->reverse && runs)
		reverse_leave(own->reverse);
}

int listen_port_end(struct listen_port *own, struct run_control *control, bool pause, bool quiet,
	int code)
{
	run_control_pass_signal(control);
	if (pause)
		(void)run_control_pause();
	listen_port_leave(own, quiet);
	run_control_wait(control);
	reverse_close(own->reverse);
	own->reverse = NULL;
	code = run_control_code(control, code);
	run_control_end(control);
	return code;
}
