/*
 * Counters as rows: a file for dotnet-counters' readers (CSV, JSON), and lines for people.
 *
 * One row a fresh series and interval; a histogram has one a quantile ("Percentile=95" among its
 * tags) and one for the number of its values. Rates are increments per interval of the length on
 * the command line.
 */
#ifndef SPOOR_COUNTERS_COUNTERS_ROWS_H
#define SPOOR_COUNTERS_COUNTERS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

struct bytes;
struct counter_series;
struct counters_view;

struct counters_csv_options {
	bool several;  /* processes: one column more, ",Process" */
	bool terminal; /* control characters of foreign texts are shown, not written */
};

/* "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment". */
void counters_csv_head(const struct counters_csv_options *options, struct bytes *out);
void counters_csv(const struct counters_view *view, const struct counters_csv_options *options,
	struct bytes *out);

/* One JSON object a row. `separator` precedes each; *first leaves out the first one's. */
void counters_json(const struct counters_view *view, const char *separator, bool *first,
	struct bytes *out);

/* {"TargetProcess":...,"StartTime":...,"Events":[ and, at its end, ]} */
void counters_json_head(const char *process, uint64_t utc_ns, struct bytes *out);
extern const char counters_json_tail[];

/* "08:31:07 shop (4711)  CPU  171 %". */
void counters_lines(const struct counters_view *view, struct bytes *out);

/* The rest of a series: the total, the other quantiles, the number a second. */
void counter_add_level(const struct counters_view *view, const struct counter_series *series,
	struct bytes *out);

/* What else there is to say: the total, the other quantiles, how many a second. */
void counter_add_note(const struct counters_view *view, const struct counter_series *series,
	struct bytes *out);

/* "dotnet.gc.collections gen0", "http.server.request.duration p99"; `whole`: with tag keys. */
void counter_add_name(const struct counters_view *view, const struct counter_series *series,
	bool whole, struct bytes *out);

#endif
