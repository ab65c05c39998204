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
#include "cli/run_control.h"
#include "cli/words.h"
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

int listen_port_offer(struct listen_port *own, const char *verb, struct diag *diag)
{
	const char *folder = getenv("TMPDIR");
	const char *before = getenv(PORTS_VARIABLE);
	cleanup(bytes_done) struct bytes ports = { 0 };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/spoor-%s-%d-%" PRIx64 ".socket",
		folder && *folder ? folder : "/tmp", verb, getpid(),
		clock_monotonic_ns() & 0xffffff); /* a cut one cannot be bound */
	int result = reverse_listen(path, &own->reverse, diag);

	if (result < 0)
		return result;
	/*
	 * A command of root's may change its user; it must reach us then, too, or it would wait for
	 * ever.
	 */
	if (geteuid() == 0)
		(void)chmod(path, 0666);
	if (before && *before)
		bytes_printf(&ports, "%s;", before);
	bytes_text(&ports, path);
	own->ports_before = before ? strdup(before) : NULL;
	if (ports.failed || (before && !own->ports_before) ||
		setenv(PORTS_VARIABLE, bytes_z(&ports), 1) < 0)
		return diag_set(diag, -ENOMEM, "cannot start the command: %m");
	own->offered = true;
	return 0;
}

/* Ours has no use for it. */
static void restore_environment(struct listen_port *own)
{
	if (own->offered && own->ports_before)
		/* no memory: the processes that Spoor starts itself would connect to its port */
		(void)setenv(PORTS_VARIABLE, own->ports_before, 1);
	else if (own->offered)
		(void)unsetenv(PORTS_VARIABLE); /* a name that is none: cannot fail */
	own->offered = false;
	free(own->ports_before);
	own->ports_before = NULL;
}

int listen_port_watch(struct listen_port *own, uint32_t pid, struct diag *diag)
{
	restore_environment(own);
	return own->reverse ? reverse_stand_in(own->reverse, pid, diag) : 0;
}

static int open_for_command(struct listen_port *own, const char *verb, struct diag *diag)
{
	int result = listen_port_offer(own, verb, diag);

	if (result == 0)
		result = record_child_spawn(&own->child, own->command, diag);
	own->child_waits = result == 0;
	return result == 0 ? listen_port_watch(own, own->child.pid, diag) : result;
}

int listen_port_open(struct listen_port *own, const char *verb, const char *port,
	char *const command[], struct diag *diag)
{
	bool connect;

	*own = (struct listen_port){ .command = command };
	if (command)
		return open_for_command(own, verb, diag);
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
	if (!own->child_waits)
		return 0;
	own->child_waits = false;
	int result = record_child_go(&own->child, own->command[0], diag);

	command->pid = result == 0 ? own->child.pid : 0;
	command->exec_code = own->child.exec_code;
	return result;
}

void listen_port_leave(struct listen_port *own)
{
	if (own->reverse && own->child.pid && !own->child_waits)
		reverse_leave(own->reverse);
}

void listen_port_say_missed(const struct listen_port *own)
{
	uint64_t count = own->reverse ? reverse_unplaced(own->reverse) : 0;

	if (count)
		words_say(
			"%s resumed immediately and not observed from the start: the port has places for %u at a time",
			text_put_things((char[TEXT_THINGS_ROOM]){ 0 }, count, "runtime was",
				"runtimes were"),
			REVERSE_PEERS_MAX);
	count = own->reverse ? reverse_missed(own->reverse) : 0;
	if (count)
		words_say(
			"%s resumed while spoor was stopped or hung, and not observed from the start",
			text_put_things((char[TEXT_THINGS_ROOM]){ 0 }, count, "runtime was",
				"runtimes were"));
}

void listen_port_close(struct listen_port *own)
{
	if (own->child_waits)
		record_child_cancel(&own->child);
	own->child_waits = false;
	restore_environment(own);
	reverse_close(own->reverse);
	own->reverse = NULL;
}
