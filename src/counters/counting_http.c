/* See counting_http.h. */
#include "counters/counting_http.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "counters/counters_metrics.h"
#include "machine/endpoint.h"

#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT 9464u
#define BACKLOG      16

struct http_peer {
	int fd; /* -1: free */
	uint64_t until_ns;
	char request[COUNTING_HTTP_REQUEST - 1];
	size_t got;
	struct bytes answer;
	size_t sent;
	bool answering;
	/* all of the answer was sent: unread bytes would reset the connection, so they are read */
	bool said;
};

struct counting_http {
	int fd;
	struct endpoint endpoint;
	struct http_peer peers[COUNTING_HTTP_PEERS];
};

int counting_http_open(const char *address, struct counting_http **ret_http, struct diag *diag)
{
	struct counting_http *http = calloc(1, sizeof(*http));
	const int on = 1;

	if (!http)
		return diag_set(diag, -ENOMEM, "out of memory");
	http->fd = -1;
	for (size_t i = 0; i < COUNTING_HTTP_PEERS; i++)
		http->peers[i].fd = -1;
	int result = endpoint_parse(address, DEFAULT_HOST, DEFAULT_PORT, SOCK_STREAM,
		&http->endpoint, diag);

	if (result < 0) {
		counting_http_free(http);
		return result;
	}
	http->fd = socket(http->endpoint.address.ss_family,
		SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (http->fd >= 0)
		/* on failure bind() reports an address in use */
		(void)setsockopt(http->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (http->fd < 0 ||
		bind(http->fd, (struct sockaddr *)&http->endpoint.address, http->endpoint.size) <
			0 ||
		listen(http->fd, BACKLOG) < 0) {
		result = diag_set(diag, -errno, "cannot listen at %s: %m", http->endpoint.text);
		diag_remedy(diag, "choose another one with --prometheus HOST:PORT");
		counting_http_free(http);
		return result;
	}
	socklen_t size = sizeof(http->endpoint.address);

	if (getsockname(http->fd, (struct sockaddr *)&http->endpoint.address, &size) == 0)
		endpoint_describe(&http->endpoint); /* the port that the kernel chose for 0 */
	*ret_http = http;
	return 0;
}

const char *counting_http_address(const struct counting_http *http)
{
	return http->endpoint.text;
}

void counting_http_await(const struct counting_http *http, struct poll_set *set)
{
	size_t open = 0;

	for (size_t i = 0; i < COUNTING_HTTP_PEERS; i++) {
		const struct http_peer *peer = &http->peers[i];
		if (peer->fd < 0)
			continue;
		(void)poll_set_add(set, peer->fd,
			peer->answering && !peer->said ? POLLOUT : POLLIN);
		open++;
	}
	/* While all slots are in use, new connections wait in the kernel's queue. */
	if (open < COUNTING_HTTP_PEERS)
		(void)poll_set_add(set, http->fd, POLLIN);
}

static void leave(struct http_peer *peer)
{
	(void)close(peer->fd); /* nothing to be done about it */
	bytes_done(&peer->answer);
	peer->fd = -1;
}

static void welcome(struct counting_http *http, uint64_t now_ns)
{
	for (size_t i = 0; i < COUNTING_HTTP_PEERS; i++) {
		struct http_peer *peer = &http->peers[i];
		if (peer->fd >= 0)
			continue;
		int fd = accept4(http->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		peer->fd = fd;
		peer->got = peer->sent = 0;
		peer->answering = peer->said = false;
		peer->until_ns = now_ns + COUNTING_HTTP_NS;
	}
}

static void answer(struct bytes *out, const char *status, const char *type,
	const struct bytes *body, bool with_body)
{
	bytes_printf(out,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
		status, type, body->len);
	if (with_body)
		bytes_add(out, body->data, body->len);
}

/* "GET /metrics HTTP/1.1": whether the path, up to a question mark, is that of the page. */
static bool asks_for_page(const char *path, size_t len)
{
	const char *question = memchr(path, '?', len);
	size_t path_len = question ? (size_t)(question - path) : len;

	return path_len == strlen("/metrics") && memcmp(path, "/metrics", path_len) == 0;
}

static bool is_whole(const char *request, size_t size)
{
	return memmem(request, size, "\r\n\r\n", 4) || memmem(request, size, "\n\n", 2);
}

bool counting_http_answer(const char *request, size_t size,
	void (*page)(void *context, struct bytes *out), void *context, struct bytes *out)
{
	const char *line = request;
	size_t len = 0;

	if (!is_whole(request, size)) {
		const struct bytes nothing = { 0 };
		if (size < COUNTING_HTTP_REQUEST - 1)
			return false;
		answer(out, "431 Request Header Fields Too Large", "text/plain", &nothing, false);
		return true;
	}
	/* there is an end, as the request is whole */
	while (line[len] != '\r' && line[len] != '\n')
		len++;
	const char *path = memchr(line, ' ', len);
	const char *version = path ? memchr(path + 1, ' ', len - (size_t)(path + 1 - line)) : NULL;
	bool head = len > 5 && memcmp(line, "HEAD ", 5) == 0;
	struct bytes body = { 0 };
	const char *status = "200 OK";

	if (!version || len - (size_t)(version - line) < 8 || memcmp(version, " HTTP/1.", 8) != 0)
		status = "400 Bad Request";
	else if (!head && memcmp(line, "GET ", 4) != 0)
		status = "405 Method Not Allowed\r\nAllow: GET, HEAD";
	else if (!asks_for_page(path + 1, (size_t)(version - path - 1)))
		status = "404 Not Found";
	if (status[0] == '2')
		page(context, &body);
	else
		bytes_text(&body, "The counters are at /metrics.\n");
	if (body.failed) {
		bytes_done(&body);
		status = "503 Service Unavailable";
	}
	answer(out, status,
		status[0] == '2' ? COUNTERS_PROMETHEUS_TYPE : "text/plain; charset=utf-8", &body,
		!head);
	bytes_done(&body);
	return true;
}

/* False when the peer is to be left. */
static bool advance_peer(struct http_peer *peer, void (*page)(void *context, struct bytes *out),
	void *context)
{
	char rest[1024];

	while (!peer->answering) {
		ssize_t n = read(peer->fd, peer->request + peer->got,
			sizeof(peer->request) - peer->got);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		peer->got += (size_t)n;
		peer->answering = counting_http_answer(peer->request, peer->got, page, context,
			&peer->answer);
	}
	if (peer->answer.failed)
		return false;
	while (peer->sent < peer->answer.len) {
		ssize_t n = send(peer->fd, peer->answer.data + peer->sent,
			peer->answer.len - peer->sent, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		peer->sent += (size_t)n;
	}
	if (!peer->said)
		/* a failure means that the client has closed already */
		(void)shutdown(peer->fd, SHUT_WR);
	peer->said = true;
	for (;;) {
		ssize_t n = read(peer->fd, rest, sizeof(rest));
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
	}
}

void counting_http_advance(struct counting_http *http, uint64_t now_ns,
	void (*page)(void *context, struct bytes *out), void *context)
{
	welcome(http, now_ns);
	for (size_t i = 0; i < COUNTING_HTTP_PEERS; i++) {
		struct http_peer *peer = &http->peers[i];
		if (peer->fd >= 0 &&
			(now_ns >= peer->until_ns || !advance_peer(peer, page, context)))
			leave(peer);
	}
}

void counting_http_free(struct counting_http *http)
{
	if (!http)
		return;
	for (size_t i = 0; i < COUNTING_HTTP_PEERS; i++) {
		if (http->peers[i].fd >= 0)
			leave(&http->peers[i]);
	}
	if (http->fd >= 0)
		(void)close(http->fd); /* as above */
	free(http);
}
