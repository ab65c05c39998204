/* Sockets of the sinks: nothing waits longer than its deadline, except the resolver. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/forward/forward.h"

#define CONNECT_NS   UINT64_C(5000000000) /* the system's own limit is two minutes */
#define STEP_MS      50
#define RETRY_MS     100u  /* first delay; each failure doubles it */
#define RETRY_MS_MAX 5000u /* longest delay */
#define SEND_BUFFER  (64 << 10)

bool forward_ready(struct spoor_sink *sink, short events, uint64_t deadline_ns)
{
	struct pollfd watch = { .fd = sink->fd, .events = events };

	while (!forward_given_up(sink) && spoor_now_ns() < deadline_ns)
		if (poll(&watch, 1, STEP_MS) > 0)
			return true;
	return false;
}

void forward_sleep(struct spoor_sink *sink, uint64_t until_ns)
{
	while (!forward_given_up(sink) && spoor_now_ns() < until_ns)
		(void)poll(NULL, 0, STEP_MS);
}

void forward_disconnect(struct spoor_sink *sink)
{
	if (sink->fd >= 0)
		(void)close(sink->fd);
	sink->fd = -1;
}

void forward_back_off(struct spoor_sink *sink)
{
	forward_count(&sink->failures, 1);
	sink->retry_ms = sink->retry_ms ? sink->retry_ms * 2 : RETRY_MS;
	if (sink->retry_ms > RETRY_MS_MAX)
		sink->retry_ms = RETRY_MS_MAX;
	sink->retry_ns = spoor_now_ns() + sink->retry_ms * UINT64_C(1000000);
}

void forward_reset_back_off(struct spoor_sink *sink)
{
	sink->retry_ms = 0;
	sink->retry_ns = 0;
}

static bool address_connect(struct spoor_sink *sink, const struct addrinfo *address)
{
	int size = SEND_BUFFER;
	int error = 0;
	socklen_t error_size = sizeof(error);

	sink->fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		address->ai_protocol);
	if (sink->fd < 0)
		return false;
	/* Bytes that are in this buffer when a connection breaks are lost without being counted. */
	(void)setsockopt(sink->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	bool connected = connect(sink->fd, address->ai_addr, address->ai_addrlen) == 0;
	if (!connected && errno == EINPROGRESS)
		connected = forward_ready(sink, POLLOUT, spoor_now_ns() + CONNECT_NS) &&
			    getsockopt(sink->fd, SOL_SOCKET, SO_ERROR, &error, &error_size) == 0 &&
			    !error;
	if (!connected)
		forward_disconnect(sink);
	return connected;
}

bool forward_connect(struct spoor_sink *sink, int type)
{
	struct addrinfo hints = { .ai_socktype = type }, *list = NULL;

	if (sink->fd >= 0)
		return true;
	if (spoor_now_ns() < sink->retry_ns)
		return false;
	if (getaddrinfo(sink->options.host, sink->options.port, &hints, &list) == 0) {
		for (const struct addrinfo *at = list; at && sink->fd < 0; at = at->ai_next)
			(void)address_connect(sink, at);
		freeaddrinfo(list);
	}
	if (sink->fd < 0) {
		forward_back_off(sink);
		return false;
	}
	forward_count(&sink->connections, 1);
	return true;
}
