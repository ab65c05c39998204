/* See runtime_client.h. */
#include "dotnet/runtime_client.h"

#include <errno.h>

#include "base/poll_set.h"
#include "dotnet/guard.h"

void runtime_client_init(struct runtime_client *client, const struct dotnet_endpoint *endpoint,
	const struct dotnet_target *target, struct guard *guard)
{
	*client = (struct runtime_client){
		.endpoint = endpoint ? *endpoint : dotnet_target_endpoint(target),
		.target = target,
		.guard = target ? guard : NULL,
	};
	client->guard_rounds = guard_rounds(client->guard);
}

int runtime_client_open(struct runtime_client *client, const struct eventpipe_options *options,
	const struct eventpipe_handler *handler, uint64_t now_ns, struct eventpipe **ret_session)
{
	struct eventpipe_options own = *options;

	own.guard = client->guard;
	own.target = client->target;
	own.queue = &client->queue;
	if (!vec_reserve(&client->sessions, 1))
		return -ENOMEM;
	int result = eventpipe_new(&client->endpoint, &own, handler, now_ns, ret_session);

	if (result == 0)
		(void)vec_add(&client->sessions, *ret_session); /* has room */
	return result;
}

void runtime_client_close(struct runtime_client *client, struct eventpipe **session)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < client->sessions.count; i++)
		if (client->sessions.items[i] != *session)
			client->sessions.items[kept++] = client->sessions.items[i];
	client->sessions.count = kept;
	eventpipe_free(*session);
	*session = NULL;
}

void runtime_client_await(const struct runtime_client *client, struct poll_set *set)
{
	for (uint32_t i = 0; i < client->sessions.count; i++)
		eventpipe_await(client->sessions.items[i], set);
}

void runtime_client_advance(struct runtime_client *client, uint64_t now_ns)
{
	for (uint32_t i = 0; i < client->sessions.count; i++)
		(void)eventpipe_advance(client->sessions.items[i], now_ns); /* it keeps its state */
}

uint64_t runtime_client_turn(struct runtime_client *client, struct poll_set *set,
	struct pollfd *watched, size_t watched_count)
{
	runtime_client_await(client, set);
	poll_set_add_callers(set, watched, watched_count);
	uint64_t now_ns = poll_set_wait(set);

	guard_beat(client->guard, now_ns);
	runtime_client_advance(client, now_ns);
	return now_ns;
}

void runtime_client_stop(struct runtime_client *client, uint64_t now_ns)
{
	for (uint32_t i = 0; i < client->sessions.count; i++)
		eventpipe_stop(client->sessions.items[i], now_ns);
}

bool runtime_client_is_over(const struct runtime_client *client)
{
	for (uint32_t i = 0; i < client->sessions.count; i++)
		if (eventpipe_state(client->sessions.items[i]) != EVENTPIPE_ENDED)
			return false;
	return true;
}

bool runtime_client_is_asking(const struct runtime_client *client)
{
	for (uint32_t i = 0; i < client->sessions.count; i++)
		if (eventpipe_is_asking(client->sessions.items[i]))
			return true;
	return false;
}

uint64_t runtime_client_heard_ns(const struct runtime_client *client)
{
	uint64_t latest_ns = 0;

	for (uint32_t i = 0; i < client->sessions.count; i++) {
		uint64_t heard_ns = eventpipe_heard_ns(client->sessions.items[i]);
		if (heard_ns > latest_ns)
			latest_ns = heard_ns;
	}
	return latest_ns;
}

bool runtime_client_is_guarded_off(const struct runtime_client *client)
{
	return guard_rounds(client->guard) != client->guard_rounds;
}

void runtime_client_done(struct runtime_client *client)
{
	vec_each(session, &client->sessions)
		eventpipe_free(*session);
	vec_done(&client->sessions);
}
