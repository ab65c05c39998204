/* See exchange.h. */
#include "dotnet/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "dotnet/guard.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "machine/descriptors.h"
#include "machine/proc.h"

#define RETRY_NS UINT64_C(50000000)
/* open at a time while a session is stopped: the socket, folders on the way to it */
#define STOP_FDS 4u

static int target_connect(void *context, struct diag *diag)
{
	return dotnet_port_connect(context, diag);
}

static int target_connect_announced(void *context, dotnet_socket_fn *made, void *made_context,
	struct diag *diag)
{
	return dotnet_port_connect_announced(context, made, made_context, diag);
}

static char target_state(void *context)
{
	return dotnet_target_state(context);
}

struct dotnet_endpoint dotnet_target_endpoint(const struct dotnet_target *target)
{
	return (struct dotnet_endpoint){
		.connect = target_connect,
		.connect_announced = target_connect_announced,
		.state = target_state,
		.context = (void *)(uintptr_t)target, /* both only read it */
	};
}

bool dotnet_endpoint_is_alive(const struct dotnet_endpoint *endpoint)
{
	char state = endpoint->state(endpoint->context);

	return state && !proc_state_has_ended(state);
}

bool dotnet_endpoint_is_stopped(const struct dotnet_endpoint *endpoint)
{
	return proc_state_is_stopped(endpoint->state(endpoint->context));
}

int exchange_begin(struct exchange *exchange, const struct dotnet_endpoint *endpoint,
	const struct ipc_request *request, uint64_t now_ns, uint64_t appear_ns, struct diag *diag)
{
	exchange_done(exchange);
	int r = ipc_encode(request, &exchange->out, diag);

	if (r < 0)
		return r;
	exchange->state = EXCHANGE_WAITING;
	exchange->command = request->command;
	exchange->endpoint = *endpoint;
	exchange->progress_ns = now_ns;
	exchange->retry_ns = now_ns;
	exchange->appear_ns = appear_ns;
	return 0;
}

bool exchange_is_over(const struct exchange *exchange)
{
	return exchange->state == EXCHANGE_NONE || exchange->state >= EXCHANGE_ANSWERED;
}

bool exchange_is_sent(const struct exchange *exchange)
{
	return exchange->state >= EXCHANGE_SENDING && exchange->sent > 0;
}

static void fail(struct exchange *exchange, int failure, const char *text)
{
	guard_remove(exchange->guard, exchange->guard_key);
	exchange->guard_key = 0;
	if (exchange->fd >= 0)
		close(exchange->fd);
	exchange->fd = -1;
	exchange->state = EXCHANGE_FAILED;
	exchange->failure = failure;
	text_set(exchange->text, "%s", text); /* as long as a diagnosis */
}

/* The guard has the socket from here on. It sends a StopTracing for CollectTracing only. */
static void guard_socket(void *context, int fd)
{
	static const struct dotnet_target none;
	struct exchange *exchange = context;
	bool collects = ipc_is_collect(exchange->command);

	if (!exchange->guard || exchange->guard_key)
		return;
	exchange->guard_rounds = guard_rounds(exchange->guard);
	exchange->guard_key =
		guard_add(exchange->guard, fd, collects ? exchange->guard_target : &none);
}

static int connect_guarded(struct exchange *exchange, struct diag *diag)
{
	const struct dotnet_endpoint *endpoint = &exchange->endpoint;
	int fd = endpoint->connect_announced ? endpoint->connect_announced(endpoint->context,
						       guard_socket, exchange, diag)
					     : endpoint->connect(endpoint->context, diag);

	if (fd >= 0) {
		guard_socket(exchange, fd);
	} else {
		guard_remove(exchange->guard, exchange->guard_key);
		exchange->guard_key = 0;
	}
	return fd;
}

/* True if the state has changed, here and in the functions below. */
static bool try_connect(struct exchange *exchange, uint64_t now_ns)
{
	struct diag diag = { 0 };
	char state = exchange->endpoint.state(exchange->endpoint.context);

	if (now_ns < exchange->retry_ns)
		return false;
	if (exchange->command != IPC_STOP_TRACING && proc_state_is_stopped(state)) {
		exchange->retry_ns = now_ns + RETRY_NS;
		return false;
	}
	int fd = connect_guarded(exchange, &diag);

	/* No session unless descriptors for its StopTracing are left. */
	if (fd >= 0 && ipc_is_collect(exchange->command) && !descriptors_are_free(STOP_FDS)) {
		guard_remove(exchange->guard, exchange->guard_key);
		exchange->guard_key = 0;
		close(fd);
		fd = -EMFILE;
	}
	if (fd >= 0) {
		exchange->fd = fd;
		exchange->state = EXCHANGE_SENDING;
		return true;
	}
	bool alive = state && !proc_state_has_ended(state);
	bool young =
		(fd == -ENOENT || fd == -ECONNREFUSED) && now_ns < exchange->appear_ns && alive;
	/* Spoor lacks descriptors or memory for now, and StopTracing must still be sent. */
	bool poor = (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) &&
		    exchange->command == IPC_STOP_TRACING;
	if (fd == -EAGAIN || young || poor) {
		exchange->retry_ns = now_ns + RETRY_NS;
		return false;
	}
	if (fd == -EMFILE)
		descriptors_explain(diag.text, sizeof(diag.text));
	fail(exchange, fd, diag.text);
	return true;
}

/* The runtime reads it before it answers. Returns what sendmsg() does. */
static ssize_t send_descriptor(const struct exchange *exchange)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = { .msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.room) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &exchange->pass_fd, sizeof(int));
	return sendmsg(exchange->fd, &message, MSG_NOSIGNAL);
}

static bool send_request(struct exchange *exchange)
{
	size_t left = exchange->out.len - exchange->sent;
	ssize_t n =
		left ? send(exchange->fd, exchange->out.data + exchange->sent, left, MSG_NOSIGNAL)
		     : send_descriptor(exchange);

	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return false;
		/* A runtime that does not know the request has answered it, and does not wait for a descriptor. */
		if (!left)
			exchange->state = EXCHANGE_HEADER;
		else
			fail(exchange, -errno, reason_text(REASON_CLOSED_ASKED));
		return true;
	}
	if (left)
		exchange->sent += (size_t)n;
	if (!left || (exchange->sent == exchange->out.len && !exchange->pass_fd))
		exchange->state = EXCHANGE_HEADER;
	return true;
}

static bool make_room(struct exchange *exchange, size_t size)
{
	uint8_t *payload = realloc(exchange->payload, size + 1);

	if (!payload) {
		fail(exchange, -ENOMEM, "no memory for its answer");
		return false;
	}
	exchange->payload = payload;
	exchange->payload_size = size;
	exchange->got = 0;
	return true;
}

static void take_header(struct exchange *exchange)
{
	struct diag diag = { 0 };
	size_t size;
	int r = ipc_decode_header(exchange->header, &size, &exchange->ok, &diag);

	if (r < 0)
		fail(exchange, r, diag.text);
	else if (make_room(exchange, size))
		exchange->state = EXCHANGE_PAYLOAD;
}

static void take_payload(struct exchange *exchange)
{
	struct diag diag = { 0 };
	size_t follow;
	int r = 0;

	if (!exchange->ok) {
		r = ipc_decode_error(exchange->payload, exchange->payload_size, &exchange->error,
			&diag);
	} else if (exchange->command == IPC_PROCESS_ENVIRONMENT &&
		   exchange->state == EXCHANGE_PAYLOAD) {
		r = ipc_decode_environment_size(exchange->payload, exchange->payload_size, &follow,
			&diag);
		if (r == 0) {
			if (make_room(exchange, follow))
				exchange->state = EXCHANGE_FOLLOW;
			return;
		}
	}
	if (r < 0)
		fail(exchange, r, diag.text);
	else
		exchange->state = EXCHANGE_ANSWERED;
}

/* Reads only the reply: what follows the reply to CollectTracing is the stream. */
static bool receive(struct exchange *exchange, uint64_t now_ns)
{
	bool header = exchange->state == EXCHANGE_HEADER;
	uint8_t *to = header ? exchange->header : exchange->payload;
	size_t size = header ? IPC_HEADER_SIZE : exchange->payload_size;

	if (exchange->got < size) {
		ssize_t n = recv(exchange->fd, to + exchange->got, size - exchange->got, 0);
		int error = errno;
		if (exchange->guard && guard_rounds(exchange->guard) != exchange->guard_rounds) {
			/* The guard has read some: there is a gap before these bytes. */
			fail(exchange, -ECANCELED, reason_text(REASON_READER_STOPPED));
			return true;
		}
		if (n < 0 && (error == EAGAIN || error == EINTR))
			return false;
		if (n <= 0) {
			fail(exchange, n < 0 ? -error : -ECONNRESET,
				reason_text(REASON_CLOSED_ANSWERING));
			return true;
		}
		exchange->got += (size_t)n;
		/* Header and payload must each arrive whole within a time limit. */
		if (exchange->got == size)
			exchange->progress_ns = now_ns;
	}
	if (exchange->got < size)
		return true;
	if (header)
		take_header(exchange);
	else
		take_payload(exchange);
	return true;
}

enum exchange_state exchange_advance(struct exchange *exchange, uint64_t now_ns)
{
	bool again = true;

	while (again) {
		switch (exchange->state) {
		case EXCHANGE_WAITING:
			again = try_connect(exchange, now_ns);
			break;
		case EXCHANGE_SENDING:
			again = send_request(exchange);
			break;
		case EXCHANGE_HEADER:
		case EXCHANGE_PAYLOAD:
		case EXCHANGE_FOLLOW:
			again = receive(exchange, now_ns);
			break;
		case EXCHANGE_NONE:
		case EXCHANGE_ANSWERED:
		case EXCHANGE_FAILED:
			again = false;
			break;
		}
	}
	return exchange->state;
}

void exchange_await(const struct exchange *exchange, struct poll_set *set)
{
	if (exchange->state == EXCHANGE_WAITING)
		poll_set_wake(set, exchange->retry_ns);
	else if (!exchange_is_over(exchange))
		(void)poll_set_add(set, exchange->fd,
			exchange->state == EXCHANGE_SENDING ? POLLOUT : POLLIN);
}

size_t exchange_run(struct exchange *list, size_t count, uint64_t until_ns, struct pollfd *watched)
{
	struct poll_set set = { 0 };
	uint64_t now_ns = clock_monotonic_ns();
	size_t left;

	for (;;) {
		left = 0;
		poll_set_begin(&set, until_ns);
		for (size_t i = 0; i < count; i++) {
			(void)exchange_advance(&list[i], now_ns); /* its state shows a failure */
			left += !exchange_is_over(&list[i]);
			exchange_await(&list[i], &set);
		}
		if (!left || now_ns >= until_ns)
			break;
		poll_set_add_callers(&set, watched, watched ? 1 : 0);
		now_ns = poll_set_wait(&set);
		if (watched && watched->revents)
			break;
	}
	poll_set_done(&set);
	return left;
}

void exchange_done(struct exchange *exchange)
{
	guard_remove(exchange->guard, exchange->guard_key);
	if (exchange->state != EXCHANGE_NONE && exchange->fd >= 0)
		close(exchange->fd);
	free(exchange->payload);
	bytes_done(&exchange->out);
	memset(exchange, 0, sizeof(*exchange));
	exchange->fd = -1;
}
