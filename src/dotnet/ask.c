/* See ask.h. */
#include "dotnet/ask.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "dotnet/exchange.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "machine/proc.h"

static int explain_failure(uint32_t pid, int failure, const char *text, struct diag *diag)
{
	diag_set(diag, failure, "cannot ask process %u: %s", pid, text);
	if (failure == -EACCES || failure == -EPERM)
		diag_remedy(diag, "run it as that user, or with sudo");
	return failure;
}

/* Nothing is sent to a process that is stopped, so it cannot have answered. */
static int explain_stop(uint32_t pid, struct diag *diag)
{
	diag_set(diag, -ETIMEDOUT,
		"process %u is stopped (by a signal or a debugger), so it does not answer", pid);
	diag_remedy(diag, "kill -CONT %u lets it continue", pid);
	return -ETIMEDOUT;
}

static int explain(const struct exchange *exchange, uint32_t pid, const struct pollfd *watched,
	struct diag *diag)
{
	if (exchange->state == EXCHANGE_FAILED)
		return explain_failure(pid, exchange->failure, exchange->text, diag);
	if (exchange->state != EXCHANGE_ANSWERED) {
		if (watched && watched->revents)
			return diag_set(diag, -EINTR,
				"process %u has not answered yet; what it was asked for may still be done",
				pid);
		if (dotnet_endpoint_is_stopped(&exchange->endpoint))
			return explain_stop(pid, diag);
		return diag_set(diag, -ETIMEDOUT,
			"process %u takes connections, but does not answer", pid);
	}
	if (exchange->error == IPC_ERROR_UNKNOWN_COMMAND)
		return diag_set(diag, -EOPNOTSUPP, "the runtime of process %u is too old for that",
			pid);
	return diag_set(diag, -EIO, "process %u refused: %s", pid,
		ipc_error_words(exchange->error));
}

int ask_process(uint32_t pid, const struct ipc_request *request, uint64_t bound_ns,
	struct pollfd *watched, struct exchange *ret_exchange, struct diag *diag)
{
	struct exchange exchange = { 0 };
	struct dotnet_target port;
	int result = dotnet_target_read(pid, &port, diag);

	if (result < 0)
		return result;
	const struct dotnet_endpoint endpoint = dotnet_target_endpoint(&port);

	result = exchange_begin(&exchange, &endpoint, request, clock_monotonic_ns(), 0, diag);
	if (result < 0)
		return result;
	/* exchange.state, read below, has the result */
	(void)exchange_run(&exchange, 1, clock_monotonic_ns() + bound_ns, watched);
	if (exchange.state != EXCHANGE_ANSWERED || !exchange.ok)
		result = explain(&exchange, pid, watched, diag);
	if (result == 0 || result == -EIO)
		*ret_exchange = exchange;
	else
		exchange_done(&exchange);
	return result;
}

int ask_may(uint32_t pid, struct diag *diag)
{
	struct dotnet_target port;
	struct diag failure = { 0 };
	int result = dotnet_target_read(pid, &port, diag);

	if (result < 0)
		return result;
	int fd = dotnet_port_connect(&port, &failure);

	if (fd >= 0)
		(void)close(fd); /* nothing was written to it */
	/* The queue of its socket is full: there may be room for the later request. */
	return fd >= 0 || fd == -EAGAIN ? 0 : explain_failure(pid, fd, failure.text, diag);
}
