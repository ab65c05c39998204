/*
 * One question to a .NET process and its answer, on a connection of its own, without ever waiting.
 *
 *   struct dotnet_door door = dotnet_target_door(&target);
 *   struct exchange exchange = { 0 };
 *   exchange_begin(&exchange, &door, &request, now_ns, &diag);
 *   each turn:  exchange_poll(&exchange, &fd), poll no longer than until exchange_wake_ns(&exchange);
 *               if (exchange_advance(&exchange, now_ns) == EXCHANGE_ANSWERED) ... exchange.ok, exchange.payload ...
 *   exchange_done(&exchange);
 *
 * exchange_run() is that loop for those who have nothing else to do, for any number at a time. After a successful CollectTracing the
 * connection is the stream: TAKE_FD(exchange.fd).
 *
 * Nothing but a stop is sent to a process that is stopped by a signal: it would be done when it goes on, perhaps long after we have gone.
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
struct pollfd;

/* Where connections come from: a process's own socket, one that is named, or runtimes that connect to ours. */
struct dotnet_door {
	/* A new connection, non-blocking. -EAGAIN: none now, try again soon. Anything else negative is final but for young processes. */
	int (*connect)(void *context, struct diag *diag);
	/* State of the process as /proc tells it; 0 it is gone, '?' not known. */
	char (*state)(void *context);
	void *context;
};

/* The door of a process's own socket. The target is borrowed as long as the door is used. */
struct dotnet_door dotnet_target_door(const struct dotnet_target *target);

enum exchange_state {
	EXCHANGE_NONE,     /* nothing was begun, or exchange_done() was called */
	EXCHANGE_WAITING,  /* for a connection: try again at retry_ns */
	EXCHANGE_SENDING,
	EXCHANGE_HEADER,
	EXCHANGE_PAYLOAD,
	EXCHANGE_FOLLOW,   /* what comes behind the reply of ProcessEnvironment */
	EXCHANGE_ANSWERED, /* ok, payload, error, fd */
	EXCHANGE_FAILED,   /* failure, text */
};

struct exchange {
	enum exchange_state state;
	/* A session that is asked for is guarded from before it exists (guard.h): NULL, or set behind exchange_begin(). */
	struct guard *guard;
	const struct dotnet_target *guard_target;
	uint32_t guard_key;        /* of the connection; 0 none. Who takes fd takes it too */
	uint32_t guard_rounds;
	enum ipc_command command;
	struct dotnet_door door;
	int fd;                    /* -1: none */
	bool ok;                   /* the answer is a success */
	uint32_t error;            /* else the HRESULT */
	uint8_t *payload;          /* of the answer; what follows it, of ProcessEnvironment */
	size_t payload_size;
	int failure;               /* negative errno */
	char text[640];            /* the same as a sentence part; as long as a diagnosis */
	uint64_t progress_ns;      /* when the peer last did something */
	uint64_t retry_ns;
	uint64_t appear_ns;        /* until when a socket that is not there may still come */
	struct bytes out;
	size_t sent;
	size_t got;                /* of the header, then of the payload */
	uint8_t header[IPC_HEADER_SIZE];
};

/*
 * Encodes the request; nothing is sent yet. A process may have its socket only in a while: until `appear_ns` its absence is no failure (0: it is).
 * -EINVAL, -ENOMEM as ipc_encode(). `exchange` is all zero or was ended by exchange_done().
 */
int exchange_begin(struct exchange *exchange, const struct dotnet_door *door,
	const struct ipc_request *request, uint64_t now_ns, uint64_t appear_ns, struct diag *diag);

/* Does what can be done without waiting. */
enum exchange_state exchange_advance(struct exchange *exchange, uint64_t now_ns);

/* Answered, failed, or never begun. */
bool exchange_is_over(const struct exchange *exchange);

/* Once a byte is out the peer may do what was asked; the answer tells. */
bool exchange_is_sent(const struct exchange *exchange);

/* What to wait for: false when there is no descriptor, but a time. */
bool exchange_poll(const struct exchange *exchange, struct pollfd *ret_fd);
uint64_t exchange_wake_ns(const struct exchange *exchange);

/*
 * Advances all until they are over, `until_ns` has come, or `watched` (may be NULL) is ready: its revents are then set. The number of those that are not over.
 * CLOCK_MONOTONIC.
 */
size_t exchange_run(struct exchange *list, size_t count, uint64_t until_ns, struct pollfd *watched);

void exchange_done(struct exchange *exchange);

#endif
