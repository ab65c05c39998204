/*
 * OpenTelemetry: one POST with ExportMetricsServiceRequest in JSON for each interval, over plain
 * HTTP (to a collector on this machine or in this network). A request that the server does not
 * answer, or answers with 429, 502, 503 or 504, is sent again later; other refusals lose it.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/forward/forward.h"

#define ANSWER_BYTES_MAX (64u << 10)
#define REQUEST_NS       UINT64_C(10000000000) /* from the connection to the end of the answer */

/* ---- The request; on the collecting thread ---- */

/* The length of the UTF-8 character at `c`; 0: none, or not allowed. */
static size_t character(const unsigned char *c)
{
	size_t size = *c < 0x80 ? 1 : *c >= 0xc2 && *c < 0xe0 ? 2 : (*c & 0xf0) == 0xe0 ? 3 : 0;

	if (*c >= 0xf0 && *c < 0xf5)
		size = 4;
	for (size_t i = 1; i < size; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
		(*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f))
		return 0;
	return size;
}

static void add_string(struct forward_text *text, const char *string)
{
	forward_add(text, "\"", 1);
	for (const unsigned char *c = (const unsigned char *)string; *c;) {
		size_t size = character(c);
		if (!size)
			forward_add(text, "\\ufffd", 6);
		else if (*c < ' ' || *c == '"' || *c == '\\')
			forward_print(text, "\\u%04x", *c);
		else
			forward_add(text, (const char *)c, size);
		c += size ? size : 1;
	}
	forward_add(text, "\"", 1);
}

static void add_key(struct forward_text *text, const char *key, const char *string)
{
	forward_print(text, "\"%s\":", key);
	add_string(text, string);
}

static void add_attributes(struct forward_text *text, const struct spoor_tag *tags, size_t count)
{
	forward_add(text, "\"attributes\":[", 14);
	for (size_t i = 0; i < count; i++) {
		forward_print(text, "%s{", i ? "," : "");
		add_key(text, "key", tags[i].name);
		forward_add(text, ",\"value\":{", 10);
		add_key(text, "stringValue", tags[i].value);
		forward_add(text, "}}", 2);
	}
	forward_add(text, "]", 1);
}

static void add_number(struct forward_text *text, const char *key, double value)
{
	struct forward_number number;

	forward_print(text, ",\"%s\":%s", key, forward_number(&number, value));
}

/*
 * building_state: the meter and the instrument's name of the last data point, as pointers to texts
 * that live as long as the interval; values of an instrument come one after another.
 */
static void add_head(struct spoor_sink *sink, const struct spoor_counter_value *value)
{
	static const char *const begins[] = {
		[SPOOR_COUNTER] = "\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,",
		[SPOOR_UP_DOWN_COUNTER] = "\"gauge\":{",
		[SPOOR_GAUGE] = "\"gauge\":{",
		[SPOOR_HISTOGRAM] = "\"summary\":{",
	};
	struct forward_text *text = &sink->building;
	bool same_meter = sink->building_state[0] == value->meter;

	if (!text->size) {
		forward_add(text, "{\"resourceMetrics\":[{\"resource\":{", 33);
		add_attributes(text, sink->options.tags, sink->options.tag_count);
		forward_add(text, "},\"scopeMetrics\":[", 18);
	} else if (same_meter && sink->building_state[1] == value->name) {
		forward_add(text, ",", 1);
		return;
	} else {
		forward_add(text, "]}}", 3);
		forward_print(text, "%s", same_meter ? "," : "]},");
	}
	if (!same_meter) {
		forward_add(text, "{\"scope\":{", 10);
		add_key(text, "name", value->meter);
		forward_add(text, ",", 1);
		add_key(text, "version", value->meter_version);
		forward_add(text, "},\"metrics\":[", 13);
	}
	forward_add(text, "{", 1);
	add_key(text, "name", value->name);
	forward_add(text, ",", 1);
	add_key(text, "description", value->description);
	forward_add(text, ",", 1);
	add_key(text, "unit", value->unit);
	forward_print(text, ",%s\"dataPoints\":[", begins[value->kind]);
	sink->building_state[0] = value->meter;
	sink->building_state[1] = value->name;
}

static void otlp_value(struct spoor_sink *sink, const struct spoor_counter_value *value)
{
	struct forward_text *text = &sink->building;
	uint64_t now = forward_unix_ns(spoor_now_ns());
	/* A sum counts from the start of the sink; a summary is of its interval. */
	uint64_t from =
		value->kind == SPOOR_COUNTER ? sink->opened_unix_ns : now - value->interval_ns;

	if (value->kind == SPOOR_HISTOGRAM ? !value->count : !isfinite(value->value))
		return;
	add_head(sink, value);
	forward_add(text, "{", 1);
	add_attributes(text, value->tags, value->tag_count);
	forward_print(text, ",\"startTimeUnixNano\":\"%llu\",\"timeUnixNano\":\"%llu\"",
		(unsigned long long)from, (unsigned long long)now);
	if (value->kind == SPOOR_HISTOGRAM) {
		forward_print(text, ",\"count\":\"%llu\"", (unsigned long long)value->count);
		add_number(text, "sum", isfinite(value->sum) ? value->sum : 0);
		forward_add(text, ",\"quantileValues\":[", 19);
		for (size_t i = 0; i < value->quantile_count; i++) {
			forward_print(text, "%s{\"quantile\":", i ? "," : "");
			struct forward_number number;
			forward_print(text, "%s", forward_number(&number, value->quantiles[i]));
			add_number(text, "value", value->quantile_values[i]);
			forward_add(text, "}", 1);
		}
		forward_add(text, "]", 1);
	} else {
		add_number(text, "asDouble", value->value);
	}
	forward_add(text, "}", 1);
	sink->building_points++;
}

static void otlp_interval_end(struct spoor_sink *sink)
{
	if (sink->building.size)
		forward_add(&sink->building, "]}}]}]}]}", 9);
	sink->building_state[0] = sink->building_state[1] = NULL;
	forward_queue(sink);
}

/* ---- HTTP ---- */

static bool send_all(struct spoor_sink *sink, const char *data, size_t size, uint64_t deadline_ns)
{
	while (size) {
		ssize_t n = send(sink->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN && forward_ready(sink, POLLOUT, deadline_ns))
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* Is the answer complete? The server may leave the connection open nevertheless. */
static bool answer_complete(const char *answer, size_t size)
{
	const char *body = strstr(answer, "\r\n\r\n");

	if (!body)
		return false;
	body += 4;
	for (const char *line = strstr(answer, "\r\n"); line && line + 4 < body;
		line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, "Content-Length:", 15) == 0)
			return size - (size_t)(body - answer) >= strtoul(line + 17, NULL, 10);
		if (strncasecmp(line + 2, "Transfer-Encoding:", 18) == 0)
			return strstr(body, "0\r\n\r\n") != NULL;
	}
	return false; /* until the end of the connection */
}

/* Reads the answer into a text that the caller frees; its status, or 0: none. */
static int answer_read(struct spoor_sink *sink, struct forward_text *answer, uint64_t deadline_ns)
{
	char buffer[4096];

	while (answer->size < ANSWER_BYTES_MAX &&
		!(answer->size && answer_complete(answer->data, answer->size)) &&
		forward_ready(sink, POLLIN, deadline_ns)) {
		ssize_t n = recv(sink->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		forward_add(answer, buffer, (size_t)n);
	}
	if (answer->size < 12 || answer->failed || strncmp(answer->data, "HTTP/1.", 7) != 0)
		return 0;
	return (int)strtol(answer->data + 9, NULL, 10);
}

/* The data points that a server has refused although its status is 200. */
static uint64_t rejected(const struct forward_text *answer)
{
	static const char name[] = "\"rejectedDataPoints\"";
	const char *at = answer->size ? strstr(answer->data, name) : NULL;

	if (!at)
		return 0;
	at += sizeof(name) - 1;
	at += strspn(at, " \t\r\n:\"");
	return strtoull(at, NULL, 10);
}

enum outcome {
	OUTCOME_TAKEN,
	OUTCOME_REFUSED,
	OUTCOME_LATER,
};

static enum outcome post(struct spoor_sink *sink, const struct forward_message *message)
{
	struct forward_text head = { 0 }, answer = { 0 };
	enum outcome outcome = OUTCOME_LATER;
	uint64_t deadline = spoor_now_ns() + REQUEST_NS;
	int status = 0;

	if (!forward_connect(sink, SOCK_STREAM))
		return OUTCOME_LATER; /* it has backed off */
	forward_print(&head,
		"POST %s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: libspoor\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n",
		sink->options.path, sink->options.host, sink->options.port, message->size,
		sink->options.headers);
	if (!head.failed && send_all(sink, head.data, head.size, deadline) &&
		send_all(sink, message->data, message->size, deadline))
		status = answer_read(sink, &answer, deadline);
	forward_disconnect(sink);
	if (status >= 200 && status < 300) {
		uint64_t lost = rejected(&answer);
		if (lost > message->points)
			lost = message->points;
		forward_count(&sink->sent, message->points - lost);
		forward_count(&sink->lost, lost);
		forward_reset_back_off(sink);
		outcome = OUTCOME_TAKEN;
	} else if (status && status != 429 && status != 502 && status != 503 && status != 504) {
		forward_count(&sink->failures, 1);
		forward_count(&sink->lost, message->points);
		outcome = OUTCOME_REFUSED;
	} else {
		forward_back_off(sink);
	}
	free(head.data);
	free(answer.data);
	return outcome;
}

static void otlp_run(struct spoor_sink *sink)
{
	struct forward_message *message;

	while ((message = forward_take(sink, UINT32_MAX))) {
		while (!forward_given_up(sink) && post(sink, message) == OUTCOME_LATER)
			forward_sleep(sink, sink->retry_ns);
		forward_message_free(message); /* if not sent: counted at the end */
	}
}

int spoor_sink_otlp(const struct spoor_sink_options *options, struct spoor_sink **ret_sink)
{
	static const struct forward_ops ops = {
		.port = "4318",
		.value = otlp_value,
		.interval_end = otlp_interval_end,
		.run = otlp_run,
	};

	return forward_open(&ops, options, ret_sink);
}
