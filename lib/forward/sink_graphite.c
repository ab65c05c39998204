/*
 * Graphite: lines "PATH VALUE SECONDS" over TCP. The thread turns events into lines as fast as the
 * socket takes them; when Graphite is slow or down, it waits, and the session's buffer fills. A
 * partly sent line is sent again whole after the connection broke.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/forward/forward.h"

#define OUT_BYTES   (64u << 10)
#define LINE_MAX_   1024u /* longer lines are lost */
#define QUEUE_BYTES (64u << 10)
#define READ_MS     500u
#define UNSENT_MS   50u

/* Of the sink's thread. */
struct graphite {
	struct spoor_sink *sink;
	char out[OUT_BYTES];
	size_t whole; /* end of the last line that the socket accepted completely */
	size_t sent;  /* end of the bytes that the socket accepted */
	size_t end;   /* end of the lines in `out` */
	struct forward_text line;
};

/* ---- Sending ---- */

static void broken(struct graphite *g)
{
	forward_disconnect(g->sink);
	forward_back_off(g->sink);
	g->sent = g->whole;
}

/* Sends what the socket takes now. False: it is not connected, or takes nothing. */
static bool send_some(struct graphite *g)
{
	struct spoor_sink *sink = g->sink;
	uint64_t lines = 0;
	char ignored;

	if (!forward_connect(sink, SOCK_STREAM))
		return false;
	/* Graphite sends no data; end of file means that it has closed the connection. */
	if (recv(sink->fd, &ignored, 1, MSG_DONTWAIT) == 0) {
		broken(g);
		return false;
	}
	ssize_t n = send(sink->fd, g->out + g->sent, g->end - g->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		broken(g);
	if (n <= 0)
		return false;
	forward_reset_back_off(sink);
	for (size_t i = g->sent; i < g->sent + (size_t)n; i++)
		if (g->out[i] == '\n') {
			lines++;
			g->whole = i + 1;
		}
	g->sent += (size_t)n;
	forward_count(&sink->sent, lines);
	return true;
}

/*
 * Sends until `room` bytes are free in `out`. With room 0, sends only as much as the socket accepts
 * without waiting. False: the sink has given up.
 */
static bool push(struct graphite *g, size_t room)
{
	for (;;) {
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
		if (forward_given_up(g->sink))
			return false;
		if (send_some(g))
			continue;
		if (!room)
			return true;
		if (g->sink->fd >= 0)
			(void)forward_ready(g->sink, POLLOUT, UINT64_MAX);
		else
			forward_sleep(g->sink, g->sink->retry_ns);
	}
}

/* One whole line. */
static void put(struct graphite *g, const char *line, size_t size)
{
	if (size > LINE_MAX_ || !push(g, LINE_MAX_)) {
		forward_count(&g->sink->lost, 1);
		return;
	}
	memcpy(g->out + g->end, line, size);
	g->end += size;
}

/* ---- Lines ---- */

static void line_prefix(const struct spoor_sink *sink, struct forward_text *line)
{
	line->size = 0;
	line->failed = false;
	forward_name(line, sink->options.prefix);
	if (line->size)
		forward_add(line, ".", 1);
}

static bool value_text(const struct spoor_value *value, struct forward_number *number,
	const char **ret_text)
{
	switch (value->type) {
	case SPOOR_TYPE_BOOLEAN:
	case SPOOR_TYPE_U8:
	case SPOOR_TYPE_U16:
	case SPOOR_TYPE_U32:
	case SPOOR_TYPE_U64:
		*ret_text = forward_number(number, (double)value->u64);
		return true;
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_I64:
		*ret_text = forward_number(number, (double)value->i64);
		return true;
	case SPOOR_TYPE_F32:
	case SPOOR_TYPE_F64:
		*ret_text = forward_number(number, value->f64);
		return isfinite(value->f64);
	default:
		return false;
	}
}

/*
 * Appends the field's name to the path in `line`, and puts a line for a number, or the lines of a
 * struct's fields. Returns the number of lines.
 */
static unsigned put_value(struct graphite *g, const struct spoor_value *value, uint64_t seconds)
{
	struct forward_text *line = &g->line;
	struct forward_number number;
	size_t before = line->size;
	const char *text;
	unsigned lines = 0;

	forward_add(line, ".", 1);
	forward_name(line, value->field->name);
	if (!value->is_array && value->type == SPOOR_TYPE_STRUCT) {
		struct spoor_value inner;
		size_t position = 0, offset = 0;

		while (spoor_value_next(value, &position, &offset, &inner) == 1)
			lines += put_value(g, &inner, seconds);
	} else if (!value->is_array && value_text(value, &number, &text)) {
		forward_print(line, " %s %llu\n", text, (unsigned long long)seconds);
		put(g, line->data, line->size);
		lines = 1;
	}
	line->size = before;
	return lines;
}

static void put_event(struct graphite *g, const struct spoor_event_view *event)
{
	uint64_t seconds = forward_unix_ns(event->time_ns) / 1000000000;
	struct spoor_value value;
	size_t position = 0;
	unsigned lines = 0;

	line_prefix(g->sink, &g->line);
	forward_name(&g->line, event->info->provider);
	forward_add(&g->line, ".", 1);
	forward_name(&g->line, event->info->name);
	while (spoor_event_next_field(event, &position, &value) == 1)
		lines += put_value(g, &value, seconds);
	if (!lines) {
		forward_print(&g->line, " 1 %llu\n", (unsigned long long)seconds);
		put(g, g->line.data, g->line.size);
		lines = 1;
	}
	forward_count(&g->sink->events, 1);
	forward_count(&g->sink->offered, lines);
}

/* ---- Counters; on the collecting thread ---- */

static void add_line(struct spoor_sink *sink, const struct spoor_counter_value *value,
	const char *suffix, double number)
{
	struct forward_text *text = &sink->building;
	struct forward_text line = { 0 };
	struct forward_number digits;

	if (!isfinite(number))
		return;
	line_prefix(sink, &line);
	forward_name(&line, value->meter);
	forward_add(&line, ".", 1);
	forward_name(&line, value->name);
	forward_add(&line, suffix, strlen(suffix));
	for (size_t i = 0; i < value->tag_count; i++) {
		forward_add(&line, ";", 1);
		forward_name(&line, value->tags[i].name);
		forward_add(&line, "=", 1);
		forward_name(&line, value->tags[i].value);
	}
	forward_print(&line, " %s %llu\n", forward_number(&digits, number),
		(unsigned long long)(forward_unix_ns(spoor_now_ns()) / 1000000000));
	if (line.failed)
		text->failed = true;
	else
		forward_add(text, line.data, line.size);
	free(line.data);
	sink->building_points++;
	if (text->size >= QUEUE_BYTES)
		forward_queue(sink);
}

static void graphite_value(struct spoor_sink *sink, const struct spoor_counter_value *value)
{
	static const char *const quantiles[] = { ".p50", ".p95", ".p99" };

	if (value->kind != SPOOR_HISTOGRAM) {
		add_line(sink, value, "", value->value);
		return;
	}
	add_line(sink, value, ".count", (double)value->count);
	if (!value->count)
		return;
	add_line(sink, value, ".mean", value->mean);
	for (size_t i = 0;
		i < value->quantile_count && i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		add_line(sink, value, quantiles[i], value->quantile_values[i]);
}

/* ---- The thread ---- */

static void put_messages(struct graphite *g, uint32_t timeout_ms)
{
	struct forward_message *message;

	while ((message = forward_take(g->sink, timeout_ms))) {
		for (size_t at = 0; at < message->size;) {
			const char *line = message->data + at;
			size_t size =
				(size_t)((const char *)memchr(line, '\n', message->size - at) -
					 line) +
				1;
			put(g, line, size);
			at += size;
		}
		forward_message_free(message);
		timeout_ms = 0;
	}
}

static void graphite_run(struct spoor_sink *sink)
{
	struct graphite *g = calloc(1, sizeof(*g));
	struct spoor_event_view event = { .size = sizeof(event) };
	int r = 0;

	if (!g)
		return; /* everything is lost, and counted at the end */
	g->sink = sink;
	while (sink->session ? r >= 0 : !forward_closing(sink)) {
		bool unsent = g->end != g->whole;
		if (sink->session)
			r = spoor_listener_read(sink->session, &event,
				unsent ? UNSENT_MS : READ_MS);
		if (r == 1)
			put_event(g, &event);
		if (r == 1 && g->end - g->whole <= OUT_BYTES / 2)
			continue;
		put_messages(g, sink->session ? 0 : unsent ? UNSENT_MS : UINT32_MAX);
		(void)push(g, 0);
	}
	put_messages(g, 0);
	(void)push(g, OUT_BYTES);
	forward_disconnect(sink);
	free(g->line.data);
	free(g);
}

int spoor_sink_graphite(const struct spoor_sink_options *options, struct spoor_sink **ret_sink)
{
	static const struct forward_ops ops = {
		.port = "2003",
		.events = true,
		.value = graphite_value,
		.interval_end = forward_queue,
		.run = graphite_run,
	};

	return forward_open(&ops, options, ret_sink);
}
