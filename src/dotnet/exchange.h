/*
 * One request to a .NET process and its reply, on a separate connection, without ever blocking.
 *
 *   struct dotnet_endpoint endpoint = dotnet_target_endpoint(&target); struct exchange exchange = { 0 };
 *   exchange_begin(&exchange, &endpoint, &request, now_ns, &diag);
 *   each turn:  exchange_await(&exchange, &set); poll_set_wait(&set);
 *               if (exchange_advance(&exchange, now_ns) == EXCHANGE_ANSWERED) ... exchange.ok, exchange.payload ...
 *   exchange_done(&exchange);
 *
 * exchange_run() is that loop for callers without a poll loop; it takes any number of exchanges.
 * After a successful CollectTracing the connection is the stream: TAKE_FD(exchange.fd).
 *
 * No request but StopTracing is sent to a process that is stopped by a signal: the runtime would
 * execute it when the process continues, perhaps long after Spoor has exited.
 */
#ifndef SPOOR_DOTNET_EXCHANGE_H
#define SPOOR_DOTNET_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "dotnet/ipc.h"

struct diag;
struct dotnet_target;
struct guard;
struct poll_set;
struct pollfd;

/* How to connect to a runtime: a diagnostics socket, a named one, or Spoor's listen port. */
struct dotnet_endpoint {
	/* Non-blocking. -EAGAIN: try again. A missing socket is final only after appear_ns. */
	int (*connect)(void *context, struct diag *diag);
	/* State from /proc/PID/stat; 0: it has exited, '?': unknown. */
	char (*state)(void *context);
	void *context;
	/*
	 * As connect(); `made` gets the socket before it connects. From then on a runtime waits for
	 * the request, so the guard must have the socket by then. NULL: connect() is used.
	 */
	int (*connect_announced)(void *context, void (*made)(void *made_context, int fd),
		void *made_context, struct diag *diag);
};

/* The diagnostics socket of a process. The target is borrowed. */
struct dotnet_endpoint dotnet_target_endpoint(const struct dotnet_target *target);

/* Whether the process runs, and whether a signal has stopped it. An unknown state is neither end nor stop. */
bool dotnet_endpoint_is_alive(const struct dotnet_endpoint *endpoint);
bool dotnet_endpoint_is_stopped(const struct dotnet_endpoint *endpoint);

enum exchange_state {
	EXCHANGE_NONE,    /* nothing was begun, or exchange_done() was called */
	EXCHANGE_WAITING, /* for a connection: try again at retry_ns */
	EXCHANGE_SENDING,
	EXCHANGE_HEADER,
	EXCHANGE_PAYLOAD,
	EXCHANGE_FOLLOW,   /* the bytes that follow the reply to ProcessEnvironment */
	EXCHANGE_ANSWERED, /* ok, payload, error, fd */
	EXCHANGE_FAILED,   /* failure, text */
};

struct exchange {
	enum exchange_state state;
	/*
	 * Has the connection from before its request is sent, because a runtime serves no other
	 * request until it has read that one. Set after exchange_begin(), or NULL.
	 */
	struct guard *guard;
	const struct dotnet_target *guard_target; /* of CollectTracing only */
	/* the guard's key of the connection, taken over together with fd; 0: none */
	uint32_t guard_key;
	uint32_t guard_rounds;
	enum ipc_command command;
	/* A descriptor that is sent after the request, with one byte; 0: none. Set after exchange_begin(). Borrowed. */
	int pass_fd;
	struct dotnet_endpoint endpoint;
	int fd;           /* -1: none */
	bool ok;          /* the answer is a success */
	uint32_t error;   /* else the HRESULT */
	uint8_t *payload; /* of the answer; what follows it, of ProcessEnvironment */
	size_t payload_size;
	int failure;          /* negative errno */
	char text[640];       /* the same as a sentence part; as long as a diagnosis */
	uint64_t progress_ns; /* when the peer last did something */
	uint64_t retry_ns;
	uint64_t appear_ns; /* until then a missing socket may still appear */
	struct bytes out;
	size_t sent;
	size_t got; /* of the header, then of the payload */
	uint8_t header[IPC_HEADER_SIZE];
};

/*
 * Encodes the request; nothing is sent yet. A process may have its socket only in a while: until
 * `appear_ns` its absence is no failure (0: it is). -EINVAL, -ENOMEM as ipc_encode(). `exchange` is
 * all zero or was ended by exchange_done().
 */
int exchange_begin(struct exchange *exchange, const struct dotnet_endpoint *endpoint,
	const struct ipc_request *request, uint64_t now_ns, uint64_t appear_ns, struct diag *diag);

/* Takes all steps that need no waiting. */
enum exchange_state exchange_advance(struct exchange *exchange, uint64_t now_ns);

/* Answered, failed, or never begun. */
bool exchange_is_over(const struct exchange *exchange);

/* A byte of the request was sent: the runtime may execute it. */
bool exchange_is_sent(const struct exchange *exchange);

/* Adds what it waits for: a descriptor, or a time; nothing if it is over. */
void exchange_await(const struct exchange *exchange, struct poll_set *set);

/*
 * Advances all until they are over, `until_ns` has come, or `watched` (may be NULL) is ready: its
 * revents are then set. The number of those that are not over. CLOCK_MONOTONIC.
 */
size_t exchange_run(struct exchange *list, size_t count, uint64_t until_ns, struct pollfd *watched);

void exchange_done(struct exchange *exchange);

#endif
