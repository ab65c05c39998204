/* See held_runtime.h. */
#include "dotnet/held_runtime.h"

#include "dotnet/ipc.h"
#include "dotnet/reverse.h"

struct held_runtime held_runtime_of(struct reverse *reverse, uint32_t peer)
{
	return (struct held_runtime){
		.reverse = reverse,
		.peer = peer,
		.endpoint = reverse_endpoint(reverse, peer),
		.waits = true,
	};
}

void held_runtime_resume(struct held_runtime *held, uint64_t now_ns)
{
	const struct ipc_request request = { .command = IPC_RESUME_RUNTIME };

	if (!held->waits || held_runtime_is_resuming(held))
		return;
	if (exchange_begin(&held->resume, &held->endpoint, &request, now_ns, 0, NULL) < 0)
		/* no memory: the release of the whole port is its last chance */
		held->waits = false;
	else
		reverse_resumed(held->reverse, held->peer);
}

void held_runtime_advance(struct held_runtime *held, uint64_t now_ns)
{
	if (!held_runtime_is_resuming(held))
		return;
	(void)exchange_advance(&held->resume, now_ns); /* its state shows a failure */
	if (!exchange_is_over(&held->resume))
		return;
	/* The connection was lost: the runtime connects again, and is resumed again. */
	held->waits = held->resume.state == EXCHANGE_FAILED &&
		      held->endpoint.state(held->endpoint.context);
	exchange_done(&held->resume);
}

bool held_runtime_is_resuming(const struct held_runtime *held)
{
	return held->resume.state != EXCHANGE_NONE;
}

void held_runtime_await(const struct held_runtime *held, struct poll_set *set)
{
	exchange_await(&held->resume, set);
}

void held_runtime_done(struct held_runtime *held)
{
	exchange_done(&held->resume);
	held->waits = false;
	if (held->reverse)
		reverse_forget(held->reverse, held->peer);
	held->reverse = NULL;
}
