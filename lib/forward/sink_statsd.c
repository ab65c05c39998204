/*
 * StatsD: lines "NAME:VALUE|TYPE|#TAGS" in UDP datagrams. A datagram that the socket does not take
 * immediately is lost: an old value is worth nothing.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/forward/forward.h"

#define DATAGRAM_BYTES 1432u /* what Ethernet carries in one packet */
#define SEND_NS        UINT64_C(100000000)

/* ---- Lines; on the collecting thread ---- */

static void add_tags(struct forward_text *line, const struct spoor_tag *tags, size_t count,
	bool *any)
{
	for (size_t i = 0; i < count; i++) {
		forward_add(line, *any ? "," : "|#", *any ? 1 : 2);
		forward_name(line, tags[i].name);
		forward_add(line, ":", 1);
		forward_name(line, tags[i].value);
		*any = true;
	}
}

static void add_line(struct spoor_sink *sink, const struct spoor_counter_value *value,
	const char *suffix, double number, const char *type)
{
	struct forward_text line = { 0 };
	struct forward_number digits;
	bool any = false;

	if (!isfinite(number))
		return;
	forward_name(&line, sink->options.prefix);
	if (line.size)
		forward_add(&line, ".", 1);
	forward_name(&line, value->meter);
	forward_add(&line, ".", 1);
	forward_name(&line, value->name);
	forward_print(&line, "%s:%s|%s", suffix, forward_number(&digits, number), type);
	add_tags(&line, sink->options.tags, sink->options.tag_count, &any);
	add_tags(&line, value->tags, value->tag_count, &any);
	forward_add(&line, "\n", 1);
	if (sink->building.size && sink->building.size + line.size > DATAGRAM_BYTES)
		forward_queue(sink);
	if (line.failed)
		sink->building.failed = true;
	else
		forward_add(&sink->building, line.data, line.size);
	sink->building_points++;
	free(line.data);
}

/* A gauge with a sign is a change; so a negative value is set by way of 0. */
static void add_gauge(struct spoor_sink *sink, const struct spoor_counter_value *value,
	const char *suffix, double number)
{
	if (number < 0)
		add_line(sink, value, suffix, 0, "g");
	add_line(sink, value, suffix, number, "g");
}

static void statsd_value(struct spoor_sink *sink, const struct spoor_counter_value *value)
{
	static const char *const quantiles[] = { ".p50", ".p95", ".p99" };

	if (value->kind == SPOOR_COUNTER) {
		if (value->delta != 0)
			add_line(sink, value, "", value->delta, "c");
		return;
	}
	if (value->kind != SPOOR_HISTOGRAM) {
		add_gauge(sink, value, "", value->value);
		return;
	}
	if (!value->count)
		return;
	add_line(sink, value, ".count", (double)value->count, "c");
	add_gauge(sink, value, ".mean", value->mean);
	for (size_t i = 0;
		i < value->quantile_count && i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		add_gauge(sink, value, quantiles[i], value->quantile_values[i]);
}

/* ---- Datagrams ---- */

static bool datagram_send(struct spoor_sink *sink, const struct forward_message *message)
{
	if (!forward_connect(sink, SOCK_DGRAM))
		return false;
	for (int i = 0; i < 2; i++) {
		ssize_t n = send(sink->fd, message->data, message->size, MSG_NOSIGNAL);
		if (n == (ssize_t)message->size) {
			forward_reset_back_off(sink);
			return true;
		}
		if (errno == EAGAIN || errno == ENOBUFS) {
			(void)forward_ready(sink, POLLOUT, spoor_now_ns() + SEND_NS);
			continue;
		}
		/* An earlier datagram was not received; it counted as sent, so this one does not. */
		forward_count(&sink->failures, 1);
		return false;
	}
	return false;
}

static void statsd_run(struct spoor_sink *sink)
{
	struct forward_message *message;

	while ((message = forward_take(sink, UINT32_MAX))) {
		bool sent = !forward_given_up(sink) && datagram_send(sink, message);
		forward_count(sent ? &sink->sent : &sink->lost, message->points);
		forward_message_free(message);
	}
}

int spoor_sink_statsd(const struct spoor_sink_options *options, struct spoor_sink **ret_sink)
{
	static const struct forward_ops ops = {
		.port = "8125",
		.value = statsd_value,
		.interval_end = forward_queue,
		.run = statsd_run,
	};

	return forward_open(&ops, options, ret_sink);
}
