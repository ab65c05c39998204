/*
 * The EventPipe sessions of one .NET process. Every session of Spoor is opened here: by `record`
 * (recording/dotnet_client.h), `trace`, `counters`, `heap`, `stacks` and `forward`.
 *
 *   runtime_client_init(&client, &endpoint, &target, guard);
 *   runtime_client_open(&client, &options, &handler, now_ns, &pipe);      any number of sessions
 *   each turn:  runtime_client_await(&client, &set); poll_set_wait(&set);
 *               runtime_client_advance(&client, now_ns);   more often does no harm
 *   at the end: runtime_client_stop(&client, now_ns);  the same turns, until runtime_client_is_over()
 *   always:     runtime_client_done(&client);
 *
 * The client owns its sessions and has them guarded. A session is opened, read, stopped and given up
 * as dotnet/eventpipe.h promises; one request of a process is under way at a time, since a runtime
 * serves only one. All zero is a client without a session, which every function but the opening
 * accepts. A client that has a session is not moved. Times are CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef SPOOR_DOTNET_RUNTIME_CLIENT_H
#define SPOOR_DOTNET_RUNTIME_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "dotnet/eventpipe.h"
#include "dotnet/exchange.h"

struct dotnet_target;
struct guard;
struct poll_set;
struct pollfd;

struct runtime_client {
	struct dotnet_endpoint endpoint;
	const struct dotnet_target *target; /* of the guard, borrowed; NULL: it cannot connect */
	struct guard *guard;                /* borrowed; NULL: none */
	uint32_t guard_rounds;              /* that were over when the client began */
	struct eventpipe_queue queue;
	VEC(struct eventpipe *) sessions;
};

/*
 * `endpoint` NULL: the target's own socket. `target` NULL: its pid is not of our namespace, so its
 * sessions have no guard. `guard` may be NULL. The context of the endpoint is borrowed.
 */
void runtime_client_init(struct runtime_client *client, const struct dotnet_endpoint *endpoint,
	const struct dotnet_target *target, struct guard *guard);

/*
 * Opens a session as eventpipe_new(); the client sets guard, target and queue of the options. The
 * session belongs to the client until runtime_client_close(). -ENOMEM.
 */
int runtime_client_open(struct runtime_client *client, const struct eventpipe_options *options,
	const struct eventpipe_handler *handler, uint64_t now_ns, struct eventpipe **ret_session);

/* Frees a session, as eventpipe_free(), and sets the pointer to NULL; it may be NULL already. */
void runtime_client_close(struct runtime_client *client, struct eventpipe **session);

/* Adds what the sessions wait for. */
void runtime_client_await(const struct runtime_client *client, struct poll_set *set);

/* One turn of each session, whose state shows what it did. */
void runtime_client_advance(struct runtime_client *client, uint64_t now_ns);

/*
 * A turn of a loop that has this client alone: waits for its sessions, for `watched` (borrowed), and as
 * long as the set says that the caller has begun. Beats the guard. Returns the time.
 */
uint64_t runtime_client_turn(struct runtime_client *client, struct poll_set *set,
	struct pollfd *watched, size_t watched_count);

/* Begins the end of all sessions. */
void runtime_client_stop(struct runtime_client *client, uint64_t now_ns);

/* No session is open, or opens. */
bool runtime_client_is_over(const struct runtime_client *client);

/* A request is under way, or is due. */
bool runtime_client_is_asking(const struct runtime_client *client);

/* When the process last sent something, or was asked something; 0: never. */
uint64_t runtime_client_heard_ns(const struct runtime_client *client);

/* The guard has ended the sessions, because this process did not run. */
bool runtime_client_is_guarded_off(const struct runtime_client *client);

/* Frees all sessions, as runtime_client_close(). */
void runtime_client_done(struct runtime_client *client);

#endif
