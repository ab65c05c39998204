/* See counting_push.h. */
#include "counters/counting_push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "machine/endpoint.h"

#define GRAPHITE_PORT 2003u
#define STATSD_PORT   8125u
#define DATAGRAM_MAX  1400u /* fits an Ethernet frame */
#define RETRY_NS      UINT64_C(1000000000)
#define RETRY_MOST_NS UINT64_C(30000000000)
#define CONNECT_NS    UINT64_C(10000000000)
#define COMPACT_BYTES 65536u

struct counting_push {
	enum counting_push_kind kind;
	struct endpoint endpoint;
	int fd; /* -1: not connected */
	bool connected;
	struct bytes queue;
	size_t sent; /* of the queue */
	/* begin of the first line that was not sent completely; at most `sent` */
	size_t line;
	uint64_t retry_ns; /* when to connect again */
	uint64_t pause_ns;
	uint64_t until_ns; /* deadline of the connect */
	uint64_t dropped;
	char problem[160];
};

int counting_push_open(enum counting_push_kind kind, const char *address,
	struct counting_push **ret_push, struct diag *diag)
{
	struct counting_push *push = calloc(1, sizeof(*push));
	bool udp = kind == COUNTING_PUSH_STATSD;

	if (!push)
		return diag_set(diag, -ENOMEM, "out of memory");
	push->kind = kind;
	push->fd = -1;
	push->pause_ns = RETRY_NS;
	int result = endpoint_parse(address, "127.0.0.1", udp ? STATSD_PORT : GRAPHITE_PORT,
		udp ? SOCK_DGRAM : SOCK_STREAM, &push->endpoint, diag);

	if (result < 0) {
		counting_push_free(push);
		return result;
	}
	*ret_push = push;
	return 0;
}

const char *counting_push_address(const struct counting_push *push)
{
	return push->endpoint.text;
}

/* The bytes before `end` are done with. */
static void forget(struct counting_push *push, size_t end)
{
	memmove(push->queue.data, push->queue.data + end, push->queue.len - end);
	push->queue.len -= end;
	push->sent -= end;
	push->line -= end;
}

/* Drops the oldest lines, whole ones, that are not on their way. */
static void make_room(struct counting_push *push, size_t size)
{
	size_t begin = push->sent;
	size_t end = begin;

	if (push->line < begin) {
		/* The one on its way is finished first. */
		const uint8_t *newline =
			memchr(push->queue.data + begin, '\n', push->queue.len - begin);
		begin = end = newline ? (size_t)(newline - push->queue.data) + 1 : push->queue.len;
	}
	while (end < push->queue.len &&
		push->queue.len - (end - begin) + size > COUNTING_PUSH_QUEUE) {
		const uint8_t *newline =
			memchr(push->queue.data + end, '\n', push->queue.len - end);
		end = newline ? (size_t)(newline - push->queue.data) + 1 : push->queue.len;
		push->dropped++;
	}
	memmove(push->queue.data + begin, push->queue.data + end, push->queue.len - end);
	push->queue.len -= end - begin;
}

void counting_push_add(struct counting_push *push, const void *lines, size_t size, uint64_t now_ns)
{
	if (!size || size > COUNTING_PUSH_QUEUE)
		return;
	if (push->line >= COMPACT_BYTES)
		forget(push, push->line);
	if (push->queue.len + size > COUNTING_PUSH_QUEUE)
		make_room(push, size);
	bytes_add(&push->queue, lines, size);
	push->queue.failed = false; /* without memory these are lost, later ones need not be */
	counting_push_advance(push, now_ns);
}

static void give_up(struct counting_push *push, int error, uint64_t now_ns)
{
	const char *words = strerrordesc_np(error);

	text_set(push->problem, "%s", words ? words : "it cannot be reached");
	if (push->fd >= 0)
		(void)close(push->fd); /* nothing to be done about it */
	push->fd = -1;
	push->connected = false;
	push->sent = push->line; /* a line that was cut is sent again, whole */
	push->retry_ns = now_ns + push->pause_ns;
	push->pause_ns = push->pause_ns * 2 < RETRY_MOST_NS ? push->pause_ns * 2 : RETRY_MOST_NS;
}

static void connect_to(struct counting_push *push, uint64_t now_ns)
{
	int type = push->kind == COUNTING_PUSH_STATSD ? SOCK_DGRAM : SOCK_STREAM;

	push->fd = socket(push->endpoint.address.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	push->until_ns = now_ns + CONNECT_NS;
	if (push->fd < 0)
		give_up(push, errno, now_ns);
	else if (connect(push->fd, (struct sockaddr *)&push->endpoint.address,
			 push->endpoint.size) == 0)
		push->connected = true;
	else if (errno != EINPROGRESS)
		give_up(push, errno, now_ns);
}

/* Checks whether a connection in progress was established. */
static void finish_connect(struct counting_push *push, uint64_t now_ns)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll_one(push->fd, POLLOUT, 0)) {
		if (getsockopt(push->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
			error = errno;
		if (error)
			give_up(push, error, now_ns);
		else
			push->connected = true;
	} else if (now_ns >= push->until_ns) {
		give_up(push, ETIMEDOUT, now_ns);
	}
}

/* The size of the next send: all of the queue for Graphite, one datagram's lines for StatsD. */
static size_t next_size(const struct counting_push *push)
{
	const uint8_t *at = push->queue.data + push->sent;
	size_t left = push->queue.len - push->sent;
	size_t size = 0;

	if (push->kind == COUNTING_PUSH_GRAPHITE)
		return left;
	while (size < left) {
		const uint8_t *newline = memchr(at + size, '\n', left - size);
		size_t line = newline ? (size_t)(newline - (at + size)) + 1 : left - size;
		if (size && size + line > DATAGRAM_MAX)
			break;
		size += line;
	}
	return size;
}

static void send_lines(struct counting_push *push, uint64_t now_ns)
{
	while (push->sent < push->queue.len) {
		ssize_t n = send(push->fd, push->queue.data + push->sent, next_size(push),
			MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0 && push->kind == COUNTING_PUSH_STATSD && errno == ECONNREFUSED)
			/* the error is of an earlier datagram; this one was not sent yet */
			continue;
		if (n < 0) {
			give_up(push, errno, now_ns);
			return;
		}
		push->sent += (size_t)n;
		for (size_t i = push->sent; i > push->line; i--) {
			if (push->queue.data[i - 1] == '\n') {
				push->line = i;
				break;
			}
		}
		push->pause_ns = RETRY_NS;
		push->problem[0] = '\0';
	}
	forget(push, push->line);
}

/* Collectors send nothing: a read returns bytes to ignore, or the end of the connection. */
static bool has_ended(const struct counting_push *push)
{
	char byte[256];
	ssize_t n;

	if (push->kind == COUNTING_PUSH_STATSD)
		return false;
	do
		n = recv(push->fd, byte, sizeof(byte), MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || (errno != EAGAIN && errno != EINTR);
}

void counting_push_advance(struct counting_push *push, uint64_t now_ns)
{
	if (push->fd < 0 && push->sent < push->queue.len && now_ns >= push->retry_ns)
		connect_to(push, now_ns);
	if (push->fd >= 0 && !push->connected)
		finish_connect(push, now_ns);
	if (push->connected && has_ended(push))
		give_up(push, ECONNRESET, now_ns);
	if (push->connected)
		send_lines(push, now_ns);
}

void counting_push_await(const struct counting_push *push, struct poll_set *set)
{
	bool waits = push->sent < push->queue.len;

	if (push->fd >= 0)
		(void)poll_set_add(set, push->fd,
			(short)(POLLIN | (!push->connected || waits ? POLLOUT : 0)));
	else if (waits)
		poll_set_wake(set, push->retry_ns);
	if (push->fd >= 0 && !push->connected)
		poll_set_wake(set, push->until_ns);
}

bool counting_push_is_empty(const struct counting_push *push)
{
	return push->sent == push->queue.len;
}

const char *counting_push_problem(const struct counting_push *push)
{
	return push->problem[0] ? push->problem : NULL;
}

uint64_t counting_push_dropped(const struct counting_push *push)
{
	return push->dropped;
}

void counting_push_free(struct counting_push *push)
{
	if (!push)
		return;
	if (push->fd >= 0)
		(void)close(push->fd); /* nothing to be done about it */
	bytes_done(&push->queue);
	free(push);
}
