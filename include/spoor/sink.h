/*
 * Sinks: the program sends its own counters (and to Graphite, its events) to a metrics server.
 *
 *   spoor_sink_graphite()   Graphite's plain text protocol over TCP: a line for each number
 *   spoor_sink_statsd()     StatsD over UDP, tags as DogStatsD writes them
 *   spoor_sink_otlp()       OpenTelemetry: OTLP/HTTP with JSON, one POST for each interval
 *
 *     struct spoor_sink_options options = { .size = sizeof(options), .host = "localhost", .prefix = "shop" };
 *     struct spoor_sink *sink;
 *     int error = spoor_sink_graphite(&options, &sink);
 *     ...
 *     spoor_sink_close(sink, NULL);
 *
 * Each sink has a thread that waits for the network; the program's threads and the library's never
 * do. The server may be started later; a broken connection is opened again, at most every 5 s. What
 * the server has not taken waits in bounded memory; beyond that it is lost and counted: after
 * spoor_sink_close(), offered is sent + lost, and events + events_lost is the number of events fired
 * for the sink. "Sent" means that the kernel has taken it (Graphite, StatsD: neither protocol has an
 * acknowledgement) or that the server has confirmed it (OTLP).
 *
 * What is sent:
 *
 *   Graphite  PREFIX.Meter.Instrument;tag=value: counters their total, gauges their value; a histogram as .count .mean .p50 .p95 .p99 of the interval;
 *             events as PREFIX.Provider.Event.Field for each number and boolean, also inside structs, or as PREFIX.Provider.Event 1
 *   StatsD    PREFIX.Meter.Instrument:5|c|#tag:value, a counter's change; the others as gauges; a histogram as .count (a counter) and gauges as above
 *   OTLP      a counter as a cumulative sum, the others as gauges; a histogram as a summary of the interval with its quantiles; meters are scopes
 *
 * The functions return 0 or a negative errno, and may be called from any thread between
 * spoor_start() and spoor_stop(), except in signal handlers. In the child of fork() a sink sends
 * nothing, and spoor_sink_close() returns immediately.
 */
#ifndef SPOOR_SINK_H
#define SPOOR_SINK_H

#include <spoor/counter.h>
#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * `size` is sizeof(struct spoor_sink_options); members that a later version adds read as 0.
 * Everything is copied.
 */
struct spoor_sink_options {
	size_t size;
	const char *host; /* NULL: "localhost" */
	const char *port; /* NULL: Graphite "2003", StatsD "8125", OTLP "4318" */
	/* Graphite, StatsD: the first part of every name, such as "shop.host1"; NULL: none */
	const char *prefix;
	const char *meters;   /* struct spoor_counter_listener_options; NULL: all */
	uint32_t interval_ms; /* between two values of a counter; 0: 1000; at least 10 */
	uint32_t close_ms;    /* the time spoor_sink_close() has to send the rest; 0: 5000 */
	size_t buffer_bytes;  /* for what is not sent; Graphite: also for events; 0: 4 MiB */
	/* Graphite: the events to send; with other sinks -EINVAL */
	const struct spoor_want *wants;
	size_t want_count;
	/* OTLP: the resource, such as "service.name"; StatsD: tags of every line */
	const struct spoor_tag *tags;
	size_t tag_count;
	const char *path; /* OTLP; NULL: "/v1/metrics" */
	/* OTLP: more header lines, each with its "\r\n" ("Authorization: ...\r\n"); NULL: none */
	const char *headers;
};

struct spoor_sink;

SPOOR_API int spoor_sink_graphite(const struct spoor_sink_options *options,
	struct spoor_sink **ret_sink);
SPOOR_API int spoor_sink_statsd(const struct spoor_sink_options *options,
	struct spoor_sink **ret_sink);
SPOOR_API int spoor_sink_otlp(const struct spoor_sink_options *options,
	struct spoor_sink **ret_sink);

struct spoor_sink_counts {
	size_t size;
	uint64_t events;      /* Graphite: events that were turned into lines */
	uint64_t events_lost; /* Graphite: found no room in the buffer */
	uint64_t offered;     /* lines (Graphite, StatsD) or data points (OTLP) */
	uint64_t sent;
	uint64_t lost;        /* no room, refused by the server, or not sent at the end */
	uint64_t connections; /* that were opened */
	uint64_t failures;    /* connections and requests that failed */
};

/* ret_counts->size must be set. */
SPOOR_API void spoor_sink_count(const struct spoor_sink *sink,
	struct spoor_sink_counts *ret_counts);

/*
 * Sends the rest for at most close_ms, and frees the sink. ret_counts may be NULL; its size must be
 * set.
 */
SPOOR_API void spoor_sink_close(struct spoor_sink *sink, struct spoor_sink_counts *ret_counts);

#ifdef __cplusplus
}
#endif

#endif
