/*
 * A session whose nettrace stream goes into a socket (or a pipe). Bytes that the peer has not read
 * are buffered, up to the session's buffer; beyond that events are lost, or threads wait, as the
 * policy says. If the peer closes the connection, the session ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/pipe/own_events.h"
#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"
#include "lib/sink/nettrace4.h"
#include "lib/sink/sinks.h"

#define FLUSH_NS   UINT64_C(100000000)
#define PUSH_BYTES (256u << 10)

struct socket_sink {
	struct sink sink;
	struct session *session;
	struct nettrace4 *encoder;
	struct outbuf out;
	size_t sent; /* bytes of `out` that were sent */
	uint64_t sent_ever;
	size_t buffer_bytes;
	struct loop_watch watch;
	uint64_t flushed_ns;
	bool is_socket;
	bool ended;
	int failed;
};

static struct socket_sink *of(struct sink *sink)
{
	return (struct socket_sink *)(void *)sink;
}

static size_t waiting(const struct socket_sink *socket)
{
	return socket->out.size - socket->sent;
}

/* Sends as many bytes as the peer has room for. */
static void push(struct socket_sink *socket)
{
	while (!socket->failed && waiting(socket)) {
		const uint8_t *data = socket->out.data + socket->sent;
		ssize_t n = socket->is_socket ? send(socket->watch.fd, data, waiting(socket),
							MSG_DONTWAIT | MSG_NOSIGNAL)
					      : write(socket->watch.fd, data, waiting(socket));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n <= 0) {
			socket->failed = n < 0 ? -errno : -EPIPE;
			break;
		}
		socket->sent += (size_t)n;
		socket->sent_ever += (size_t)n;
	}
	if (socket->out.failed)
		socket->failed = -ENOMEM;
	if (!waiting(socket)) {
		outbuf_reset(&socket->out);
		socket->sent = 0;
	} else if (socket->sent > socket->out.size / 2) {
		memmove(socket->out.data, socket->out.data + socket->sent, waiting(socket));
		socket->out.size -= socket->sent;
		socket->sent = 0;
	}
	socket->watch.events = waiting(socket) ? POLLOUT : 0;
}

static void socket_ready(struct loop_watch *watch, short revents)
{
	struct socket_sink *socket =
		(struct socket_sink *)(void *)((char *)watch - offsetof(struct socket_sink, watch));

	if (revents & POLLOUT)
		push(socket);
	if ((revents & (POLLHUP | POLLERR | POLLNVAL)) && !socket->failed)
		socket->failed = -EPIPE;
	if (socket->failed)
		loop_watch_remove(watch); /* reported by socket_turn() */
}

static int socket_begin(struct sink *sink, struct session *session)
{
	struct socket_sink *socket = of(sink);
	int r;

	socket->session = session;
	r = nettrace4_begin(socket->encoder);
	if (r == 0)
		r = own_event_process_info(session);
	if (r == 0)
		r = nettrace4_flush(socket->encoder);
	if (r)
		return r;
	loop_watch_add(&socket->watch);
	push(socket);
	return 0;
}

static int socket_event(struct sink *sink, const struct pipe_event *event)
{
	struct socket_sink *socket = of(sink);

	if (socket->failed)
		return -ENOBUFS;
	if (waiting(socket) + nettrace4_pending(socket->encoder) >= socket->buffer_bytes &&
		socket->session->config.options.policy != SPOOR_BLOCK)
		return -ENOBUFS;
	return nettrace4_event(socket->encoder, event);
}

static bool socket_full(struct sink *sink)
{
	return waiting(of(sink)) >= of(sink)->buffer_bytes;
}

/* Writes a sequence point, or the end of the stream. */
static int point(struct socket_sink *socket, uint64_t time_ns,
	int (*write_point)(struct nettrace4 *encoder, uint64_t time_ns, const struct outbuf *rows))
{
	struct outbuf rows = { 0 };
	int r = 0;

	if (socket->session->has_unknown && write_point == nettrace4_end)
		r = point(socket, time_ns, nettrace4_point);
	if (r == 0)
		r = session_point_rows(socket->session, &rows);
	if (r == 0)
		r = write_point(socket->encoder, time_ns, &rows);
	outbuf_done(&rows);
	return r;
}

static int socket_turn(struct sink *sink, uint64_t now_ns, uint64_t watermark_ns, unsigned flags)
{
	struct socket_sink *socket = of(sink);
	bool due = (flags & SINK_FLUSH) || now_ns - socket->flushed_ns >= FLUSH_NS;
	int r = socket->failed;

	if (r)
		return r;
	if (nettrace4_wants_point(socket->encoder) || socket->session->has_unknown ||
		(due && (flags & SINK_IDLE) && nettrace4_since_point(socket->encoder)))
		r = point(socket, watermark_ns, nettrace4_point);
	else if (due)
		r = nettrace4_flush(socket->encoder);
	if (due)
		socket->flushed_ns = now_ns;
	if (r == 0 && (due || waiting(socket) >= PUSH_BYTES))
		push(socket);
	r = r ? r : socket->failed;
	return r ? r : nettrace4_pending(socket->encoder) || nettrace4_since_point(socket->encoder);
}

static int socket_end(struct sink *sink, bool aborted)
{
	struct socket_sink *socket = of(sink);

	if (!socket->ended && !socket->failed) {
		socket->ended = true;
		socket->failed = point(socket, pipe_watermark_ns(), nettrace4_end);
	}
	if (!socket->failed && !aborted) {
		push(socket);
		if (!socket->failed && waiting(socket))
			return 1;
	}
	loop_watch_remove(&socket->watch);
	platform_close(socket->watch.fd);
	socket->watch.fd = -1;
	return aborted && !socket->failed && waiting(socket) ? -ETIMEDOUT : socket->failed;
}

static void socket_free(struct sink *sink)
{
	struct socket_sink *socket = of(sink);

	platform_close(socket->watch.fd);
	nettrace4_free(socket->encoder);
	outbuf_done(&socket->out);
	free(socket);
}

static void socket_child(struct sink *sink)
{
	platform_close(of(sink)->watch.fd);
	of(sink)->watch.fd = -1;
}

static const struct session_sink_ops socket_ops = {
	.name = "socket",
	.takes_own = true,
	.begin = socket_begin,
	.event = socket_event,
	.full = socket_full,
	.turn = socket_turn,
	.end = socket_end,
	.free = socket_free,
	.child = socket_child,
};

int sink_socket_new(int fd, size_t buffer_bytes, struct sink **ret_sink)
{
	struct socket_sink *new = calloc(1, sizeof(*new));
	int type;
	socklen_t size = sizeof(type);

	if (new)
		new->encoder = nettrace4_new(&new->out);
	if (!new || !new->encoder) {
		platform_close(fd);
		free(new);
		return -ENOMEM;
	}
	nettrace4_collect_code(new->encoder);
	new->sink.ops = &socket_ops;
	new->watch = (struct loop_watch){ .fd = fd, .ready = socket_ready };
	new->buffer_bytes = buffer_bytes ? buffer_bytes : 64u << 20;
	new->is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	*ret_sink = &new->sink;
	return 0;
}

uint64_t sink_socket_sent(const struct sink *sink)
{
	return ((const struct socket_sink *)(const void *)sink)->sent_ever;
}
