/* See port_peer.h. */
#include "target/port_peer.h"

#include <errno.h>
#include <string.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/text.h"
#include "dotnet/eventpipe.h"
#include "dotnet/ipc.h"
#include "dotnet/path_endpoint.h"
#include "dotnet/reverse.h"

/* A process that /proc does not show: the only facts are those that its runtime sent. */
static void read_without_facts(uint32_t pid, struct port_peer *peer)
{
	peer->target = (struct target){ .pid = pid,
		.inner_pid = pid,
		.name = peer->name,
		.program = peer->name,
		.container = "",
		.cgroup = "",
		.command_line = "",
		.runtime_path = "",
		.runtime_version = "",
		.architecture = "",
		.remedy = "",
		.reason = "" };
}

/* By its pid in our pid namespace; `inner_pid` is the pid in its own namespace. */
static void read_by_pid(uint32_t pid, uint32_t inner_pid, unsigned details, struct port_peer *peer)
{
	const struct target_query query = { .pids = &pid, .pid_count = 1, .details = details };

	peer->seen = pid && targets_choose(&query, &peer->targets, NULL) == 0 &&
		     peer->targets.list.count == 1 &&
		     peer->targets.list.items[0].inner_pid == inner_pid;
	if (peer->seen)
		peer->target = peer->targets.list.items[0];
	else
		read_without_facts(inner_pid, peer);
}

void port_peer_read(const struct reverse_peer *facts, unsigned details, struct port_peer *ret_peer)
{
	*ret_peer = (struct port_peer){ .name = "dotnet" };
	read_by_pid(facts->pid, (uint32_t)facts->inner_pid, details, ret_peer);
}

int port_peer_ask(const char *path, unsigned details, struct port_peer *ret_peer, struct diag *diag)
{
	const struct dotnet_endpoint endpoint = path_endpoint(path);
	const struct ipc_request request = { .command = IPC_PROCESS_INFO };
	struct exchange exchange = { 0 };
	struct ipc_process_info info;
	int result = exchange_begin(&exchange, &endpoint, &request, clock_monotonic_ns(), 0, diag);

	*ret_peer = (struct port_peer){ .name = "dotnet" };
	if (result < 0)
		return result;
	if (exchange_run(&exchange, 1, clock_monotonic_ns() + EVENTPIPE_ANSWER_NS, NULL))
		result = diag_set(diag, -ETIMEDOUT, "nobody answers at '%s'", path);
	else if (exchange.state == EXCHANGE_FAILED)
		result = diag_set(diag, exchange.failure, "%s", exchange.text);
	else if (!exchange.ok)
		result =
			diag_set(diag, -EPROTO, "the runtime at '%s' does not say who it is", path);
	else
		result = ipc_decode_process_info(IPC_PROCESS_INFO, exchange.payload,
			exchange.payload_size, &info, diag);
	exchange_done(&exchange);
	if (result < 0)
		return result;
	const char *slash = strrchr(info.command_line, '/');
	const char *name = slash ? slash + 1 : info.command_line;

	text_set(ret_peer->name, "%.*s", (int)strcspn(name, " "), name);
	/*
	 * The process that listens at the path, if its own pid is the one that the runtime reports;
	 * a process that only forwards connections has another.
	 */
	read_by_pid(path_owner(path), (uint32_t)info.pid, details, ret_peer);
	ipc_process_info_done(&info);
	return 0;
}

void port_peer_done(struct port_peer *peer)
{
	targets_done(&peer->targets);
}
