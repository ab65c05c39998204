/*
 * Counters as collectors take them: Prometheus (a page that is fetched), Graphite (lines of its
 * plaintext protocol) and StatsD (datagrams).
 *
 * Names: Prometheus has
 * dotnet_gc_pause_time_seconds_total{process="shop",pid="4711",meter="System.Runtime"}; Graphite
 * and StatsD spoor.HOST.PROCESS.System_Runtime.dotnet.gc.pause.time, followed by the tags' values.
 * Counters are totals in Prometheus, rates a second in Graphite, increments in StatsD.
 */
#ifndef SPOOR_COUNTERS_COUNTERS_METRICS_H
#define SPOOR_COUNTERS_COUNTERS_METRICS_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;
struct counters_view;

#define COUNTERS_PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* All series of all processes; those with the same metric name follow one another. */
void counters_prometheus(const struct counters_view *views, size_t count, struct bytes *out);

/* The last interval's values. `host`: the machine; `with_pid`: several processes of this name. */
void counters_graphite(const struct counters_view *view, const char *host, bool with_pid,
	struct bytes *out);
void counters_statsd(const struct counters_view *view, const char *host, bool with_pid,
	struct bytes *out);

#endif
