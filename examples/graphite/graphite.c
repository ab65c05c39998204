#include "graphite.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OUT_BYTES    (64u << 10)  /* buffer for lines not yet sent */
#define VALUES_BYTES (256u << 10) /* buffer for lines of counters, from listener to sender thread */
#define LINE_MAX_    1024u
#define SEND_BUFFER  (64 << 10)
#define RETRY_MS     100u  /* first delay; each failure doubles it */
#define RETRY_MS_MAX 5000u /* longest delay */

struct graphite {
	struct graphite_options options;
	struct spoor_session *session;
	struct spoor_counter_listener *listener;
	pthread_t thread;
	uint64_t deadline_ns; /* 0: not closing; atomic */
	struct graphite_counts counts;

	/* Used by the sender thread only. */
	char out[OUT_BYTES];
	size_t whole; /* end of the last line that the socket accepted completely */
	size_t sent;  /* end of the bytes that the socket accepted */
	size_t end;   /* end of the lines in `out` */
	int fd;
	uint64_t retry_ns;
	uint32_t retry_ms;

	pthread_mutex_t lock; /* protects the members below */
	char values[VALUES_BYTES];
	size_t values_end;
	uint64_t values_lost;
};

/* ---- The socket ---- */

static bool given_up(const struct graphite *g)
{
	uint64_t deadline = __atomic_load_n(&g->deadline_ns, __ATOMIC_ACQUIRE);

	return deadline && spoor_now_ns() >= deadline;
}

static void disconnect(struct graphite *g)
{
	(void)close(g->fd);
	g->fd = -1;
	g->sent = g->whole;
}

static void reach(struct graphite *g)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	int size = SEND_BUFFER;

	if (spoor_now_ns() < g->retry_ns) {
		(void)poll(NULL, 0, 20);
		return;
	}
	if (getaddrinfo(g->options.host, g->options.port, &hints, &list) == 0) {
		for (struct addrinfo *at = list; at && g->fd < 0; at = at->ai_next) {
			int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC,
				at->ai_protocol);

			if (fd < 0)
				continue;
			(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
			if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
				g->fd = fd;
			else
				(void)close(fd);
		}
		freeaddrinfo(list);
	}
	if (g->fd >= 0) {
		g->counts.connections++;
		g->retry_ms = 0;
		return;
	}
	g->retry_ms = g->retry_ms ? g->retry_ms * 2 : RETRY_MS;
	if (g->retry_ms > RETRY_MS_MAX)
		g->retry_ms = RETRY_MS_MAX;
	g->retry_ns = spoor_now_ns() + g->retry_ms * UINT64_C(1000000);
}

/*
 * Sends until `room` bytes are free in `out`. With room 0, sends only as much as the socket accepts
 * without waiting. False: the time limit of graphite_close() is over.
 */
static bool push(struct graphite *g, size_t room)
{
	for (;;) {
		char ignored;

		if (g->end == g->sent)
			g->whole = g->sent = g->end = 0;
		if (room && OUT_BYTES - (g->end - g->whole) >= room) {
			memmove(g->out, g->out + g->whole, g->end - g->whole);
			g->sent -= g->whole;
			g->end -= g->whole;
			g->whole = 0;
			return true;
		}
		if (g->end == g->sent)
			return true;
		if (given_up(g))
			return false;
		if (g->fd < 0) {
			reach(g);
			if (g->fd < 0 && !room)
				return true;
			continue;
		}
		/* Graphite sends no data; end of file means that it has closed the connection. */
		if (recv(g->fd, &ignored, 1, MSG_DONTWAIT) == 0) {
			disconnect(g);
			continue;
		}
		ssize_t n = send(g->fd, g->out + g->sent, g->end - g->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			for (size_t i = g->sent; i < g->sent + (size_t)n; i++)
				if (g->out[i] == '\n') {
					g->counts.lines_sent++;
					g->whole = i + 1;
				}
			g->sent += (size_t)n;
		} else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			if (!room)
				return true;
			struct pollfd wait = { .fd = g->fd, .events = POLLOUT };
			(void)poll(&wait, 1, 100);
		} else if (n < 0 && errno != EINTR) {
			disconnect(g);
		}
	}
}

/* ---- Lines ---- */

/*
 * Replaces the characters that Graphite's protocol uses (; = space) and other special ones by '_'.
 * Dots remain: they make a tree of names.
 */
static size_t put_path(char *line, size_t at, const char *text)
{
	for (; *text && at < LINE_MAX_ / 2; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
			     c == '_' || c == '-' || c == '.';

		line[at++] = plain ? (char)c : '_';
	}
	line[at] = 0;
	return at;
}

static uint64_t wall_seconds(uint64_t time_ns)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return (now_ns - (spoor_now_ns() - time_ns)) / 1000000000;
}

static void put_line(struct graphite *g, const char *path, const char *value, uint64_t seconds)
{
	if (!push(g, LINE_MAX_)) {
		g->counts.lines_lost++;
		return;
	}
	g->end += (size_t)snprintf(g->out + g->end, LINE_MAX_, "%s %s %llu\n", path, value,
		(unsigned long long)seconds);
}

static bool value_text(const struct spoor_value *value, char text[32])
{
	switch (value->type) {
	case SPOOR_TYPE_BOOLEAN:
	case SPOOR_TYPE_U8:
	case SPOOR_TYPE_U16:
	case SPOOR_TYPE_U32:
	case SPOOR_TYPE_U64:
		(void)snprintf(text, 32, "%llu", (unsigned long long)value->u64);
		return true;
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_I64:
		(void)snprintf(text, 32, "%lld", (long long)value->i64);
		return true;
	case SPOOR_TYPE_F32:
	case SPOOR_TYPE_F64:
		(void)snprintf(text, 32, "%.17g", value->f64);
		return isfinite(value->f64);
	default:
		return false;
	}
}

/*
 * Appends the field's name to the path at offset `at`, and puts a line for a number, or the lines of
 * a struct's fields. Returns the number of lines.
 */
static unsigned put_value(struct graphite *g, char *path, size_t at,
	const struct spoor_value *value, uint64_t seconds)
{
	char text[32];
	unsigned lines = 0;

	path[at++] = '.';
	at = put_path(path, at, value->field->name);
	if (value->is_array)
		return 0;
	if (value->type == SPOOR_TYPE_STRUCT) {
		struct spoor_value inner;
		size_t position = 0, offset = 0;

		while (spoor_value_next(value, &position, &offset, &inner) == 1)
			lines += put_value(g, path, at, &inner, seconds);
		return lines;
	}
	if (!value_text(value, text))
		return 0;
	put_line(g, path, text, seconds);
	return 1;
}

static void put_event(struct graphite *g, const struct spoor_event_view *event)
{
	char path[LINE_MAX_];
	size_t at = put_path(path, 0, g->options.prefix), position = 0;
	uint64_t seconds = wall_seconds(event->time_ns);
	struct spoor_value value;
	unsigned lines = 0;

	path[at++] = '.';
	at = put_path(path, at, event->info->provider);
	path[at++] = '.';
	at = put_path(path, at, event->info->name);
	while (spoor_event_next_field(event, &position, &value) == 1)
		lines += put_value(g, path, at, &value, seconds);
	if (!lines) {
		path[at] = 0;
		put_line(g, path, "1", seconds);
	}
}

/* ---- Counters: their listener runs on the collecting thread, which must not wait ---- */

static void keep_line(struct graphite *g, const char *path, const char *suffix, const char *tags,
	double value, uint64_t seconds)
{
	char line[LINE_MAX_ + 128];

	if (!isfinite(value))
		return;
	size_t size = (size_t)snprintf(line, sizeof(line), "%s%s%s %.17g %llu\n", path, suffix,
		tags, value, (unsigned long long)seconds);
	(void)pthread_mutex_lock(&g->lock);
	if (size < LINE_MAX_ && g->values_end + size <= VALUES_BYTES) {
		memcpy(g->values + g->values_end, line, size);
		g->values_end += size;
	} else {
		g->values_lost++;
	}
	(void)pthread_mutex_unlock(&g->lock);
}

static void take_value(void *context, const struct spoor_counter_value *value)
{
	static const char *const quantiles[] = { ".p50", ".p95", ".p99" };
	struct graphite *g = context;
	char path[LINE_MAX_], tags[LINE_MAX_];
	size_t at = put_path(path, 0, g->options.prefix), tag_at = 0;
	uint64_t seconds = wall_seconds(spoor_now_ns());

	path[at++] = '.';
	at = put_path(path, at, value->meter);
	path[at++] = '.';
	(void)put_path(path, at, value->name);
	tags[0] = 0;
	for (size_t i = 0; i < value->tag_count && tag_at < LINE_MAX_ / 2; i++) {
		tags[tag_at++] = ';';
		tag_at = put_path(tags, tag_at, value->tags[i].name);
		tags[tag_at++] = '=';
		tag_at = put_path(tags, tag_at, value->tags[i].value);
	}
	if (value->kind != SPOOR_HISTOGRAM) {
		keep_line(g, path, "", tags, value->value, seconds);
		return;
	}
	keep_line(g, path, ".count", tags, (double)value->count, seconds);
	if (!value->count)
		return;
	keep_line(g, path, ".mean", tags, value->mean, seconds);
	for (size_t i = 0;
		i < value->quantile_count && i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		keep_line(g, path, quantiles[i], tags, value->quantile_values[i], seconds);
}

static void send_values(struct graphite *g)
{
	char *copy = NULL;
	size_t size = 0;

	(void)pthread_mutex_lock(&g->lock);
	if (g->values_end && (copy = malloc(g->values_end))) {
		size = g->values_end;
		memcpy(copy, g->values, size);
		g->values_end = 0;
	}
	(void)pthread_mutex_unlock(&g->lock);
	for (size_t at = 0; at < size;) {
		size_t length =
			(size_t)((char *)memchr(copy + at, '\n', size - at) - (copy + at)) + 1;

		if (push(g, LINE_MAX_)) {
			memcpy(g->out + g->end, copy + at, length);
			g->end += length;
		} else {
			g->counts.lines_lost++;
		}
		at += length;
	}
	free(copy);
}

/* ---- The thread ---- */

static void *carry(void *context)
{
	struct graphite *g = context;
	struct spoor_event_view event = { .size = sizeof(event) };
	int r;

	while ((r = spoor_listener_read(g->session, &event, 50)) >= 0) {
		if (r == 1) {
			g->counts.events++;
			put_event(g, &event);
		}
		if (r == 0 || g->end - g->whole > OUT_BYTES / 2) {
			send_values(g);
			(void)push(g, 0);
		}
	}
	send_values(g);
	(void)push(g, OUT_BYTES);
	for (size_t i = g->whole; i < g->end; i++)
		g->counts.lines_lost += g->out[i] == '\n';
	if (g->fd >= 0)
		(void)close(g->fd);
	return NULL;
}

int graphite_open(const struct graphite_options *options, struct graphite **ret_graphite)
{
	struct graphite *g = calloc(1, sizeof(*g));
	struct spoor_session_options session = { .size = sizeof(session),
		.wants = options->wants,
		.want_count = options->want_count,
		.buffer_bytes = options->buffer_bytes };
	struct spoor_counter_listener_options counters = { .size = sizeof(counters),
		.interval_ns =
			(options->interval_ms ? options->interval_ms : 1000) * UINT64_C(1000000),
		.meters = options->meters,
		.value = take_value,
		.context = g };
	int r;

	if (!g)
		return -ENOMEM;
	g->options = *options;
	g->fd = -1;
	(void)pthread_mutex_init(&g->lock, NULL);
	r = spoor_session_start_listener(&session, &g->session);
	if (r < 0)
		goto failed;
	g->listener = spoor_counter_listener_open(&counters);
	if (!g->listener) {
		r = -errno;
		goto failed;
	}
	r = -pthread_create(&g->thread, NULL, carry, g);
	if (r < 0)
		goto failed;
	*ret_graphite = g;
	return 0;
failed:
	if (g->listener)
		spoor_counter_listener_close(g->listener);
	if (g->session) {
		(void)spoor_session_stop(g->session);
		spoor_session_free(g->session);
	}
	(void)pthread_mutex_destroy(&g->lock);
	free(g);
	return r;
}

void graphite_close(struct graphite *g, struct graphite_counts *ret_counts)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_counter_listener_close(g->listener);
	__atomic_store_n(&g->deadline_ns,
		spoor_now_ns() +
			(g->options.close_ms ? g->options.close_ms : 5000) * UINT64_C(1000000),
		__ATOMIC_RELEASE);
	(void)spoor_session_stop(g->session);
	(void)pthread_join(g->thread, NULL);
	spoor_session_count(g->session, &counts);
	g->counts.events_lost = counts.lost;
	g->counts.lines_lost += g->values_lost;
	if (ret_counts)
		*ret_counts = g->counts;
	spoor_session_free(g->session);
	(void)pthread_mutex_destroy(&g->lock);
	free(g);
}
