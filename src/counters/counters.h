/*
 * The counters of one process: a table of series, each with its values in the last interval.
 *
 *   counters_init(&counters);
 *   index = counters_series(&counters, &id);            found or made; 0: the table is full
 *   counters_take_value(&counters, index, ...)           each value that the runtime sends
 *   ...
 *   counters_close(&counters, now_ns);                   our interval is over: series.items[i].value, .rate, ...
 *
 * Intervals: the runtime's interval may differ from ours (another tool may have requested a shorter
 * one). The values that arrive within one of ours are combined: increments and their seconds are
 * added up, of levels the last one counts. So a rate is always increments by the time they took.
 *
 * Bounded: at most COUNTERS_SERIES_MAX series, texts cut at COUNTERS_TEXT_MAX; values of further
 * series are counted in `refused`.
 */
#ifndef SPOOR_COUNTERS_COUNTERS_H
#define SPOOR_COUNTERS_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

#define COUNTERS_SERIES_MAX    20000u
#define COUNTERS_TEXT_MAX      1024u
#define COUNTERS_QUANTILES_MAX 8u
#define COUNTERS_HISTORY       60u

enum counter_source {
	COUNTER_DERIVED, /* worked out of others: CPU, GC pause, allocation rate */
	COUNTER_METER,
	COUNTER_EVENT_SOURCE,
};

enum counter_kind {
	COUNTER_GAUGE,  /* value */
	COUNTER_SUM,    /* delta, rate; value since its start if the runtime sends it */
	COUNTER_UPDOWN, /* the same, may fall: the value counts */
	/* quantiles; count, sum and rate of the interval if the runtime sends them */
	COUNTER_HISTOGRAM,
};

/* From when on the value of a COUNTER_SUM or COUNTER_UPDOWN counts. */
enum counter_since {
	COUNTER_SINCE_UNKNOWN,
	COUNTER_SINCE_PROCESS, /* an observable instrument: the program itself keeps the total */
	/* a runtime adds up from the beginning of its metrics session, which is ours */
	COUNTER_SINCE_SESSION,
	/*
	 * from before our session: another tool's began earlier, or the program counts without any
	 */
	COUNTER_SINCE_EARLIER,
};

/* The rows of COUNTER_DERIVED: counters.series.items[DERIVED_x]. */
enum counter_derived { DERIVED_CPU, DERIVED_GC_PAUSE, DERIVED_ALLOCATED, DERIVED_COUNT };

struct counter_quantile {
	double quantile; /* 0.95 */
	double value;
};

/* The fields that identify a series. Texts are indexes of counters.strings. */
struct counter_id {
	enum counter_source source;
	uint32_t provider;
	uint32_t version;
	uint32_t name;
	uint32_t tags;         /* "key=value,key=value" */
	int32_t instrument_id; /* 0: not known */
};

struct counter_series {
	struct counter_id id;
	uint32_t title; /* for people; 0: its name */
	uint32_t unit;
	uint32_t description;
	uint8_t kind;  /* enum counter_kind */
	uint8_t since; /* enum counter_since */
	bool hidden;   /* not chosen, but another series is derived from it */
	bool ended;
	bool fresh; /* a value arrived in the last interval */
	bool known; /* a value has arrived at some time: the figures below are valid */
	/* Of the last interval in which a value arrived. NAN: not known. */
	double value;
	double delta;
	double rate;  /* a second */
	double count; /* of a histogram, in the interval */
	double sum;
	double seconds; /* that the interval took */
	struct counter_quantile quantiles[COUNTERS_QUANTILES_MAX];
	uint32_t quantile_count;
	/* Since we look. */
	double total;                    /* of delta; of a histogram's count */
	double total_sum;                /* of a histogram's sum */
	float history[COUNTERS_HISTORY]; /* of counter_series_level(), a ring */
	uint8_t history_count;
	uint8_t history_next;
	/* Of the interval that is open. */
	struct counter_open {
		double value, delta, count, sum, seconds;
		struct counter_quantile quantiles[COUNTERS_QUANTILES_MAX];
		uint32_t quantile_count;
		bool any, has_delta;
	} open;
};

struct counters {
	struct strtab strings;
	VEC(struct counter_series) series; /* the first DERIVED_COUNT are the derived ones */
	struct map index;                  /* hash of the id */
	/* of the open interval: how long the Meters' intervals in it were */
	double meter_seconds;
	uint64_t refused; /* new series that had no room */
	bool derive;      /* figures are worked out of others */
	/* CPU time of the process at its last reading; the next field is the time of that */
	uint64_t cpu_ns;
	uint64_t cpu_seen_ns;
	double cpu_percent; /* from these; NAN: not known */
};

int counters_init(struct counters *counters);
void counters_done(struct counters *counters);

uint32_t counters_text(struct counters *counters, const char *text, size_t len);

/* The index of the series, made if it is not there. 0: no room (index 0 is a derived one). */
uint32_t counters_series(struct counters *counters, const struct counter_id *id,
	enum counter_kind kind);

/* The value of a level, or since a counter's start. */
void counters_take_value(struct counters *counters, uint32_t series, double value);

/* An increment within `seconds` (0: within the Meters' interval, see counters_take_interval()). */
void counters_take_delta(struct counters *counters, uint32_t series, double delta, double seconds);

void counters_take_quantiles(struct counters *counters, uint32_t series,
	const struct counter_quantile *quantiles, uint32_t count);
void counters_take_count(struct counters *counters, uint32_t series, double count, double sum);

/* The Meters have begun to report an interval of so many seconds. */
void counters_take_interval(struct counters *counters, double seconds);

/* CPU time that the process has used, from its CPU clock in the kernel. */
void counters_take_cpu(struct counters *counters, uint64_t cpu_ns, uint64_t now_ns);

/* True when a value has arrived since the last counters_close(). */
bool counters_any(const struct counters *counters);

/* Ends the interval; how many series are fresh. */
uint32_t counters_close(struct counters *counters);

/* Every series of a Meter's instrument, or (name 0) of an EventSource, has ended. */
void counters_end_instrument(struct counters *counters, int32_t instrument_id);
void counters_end_event_source(struct counters *counters, uint32_t provider);

/* The one number to draw for a series: a rate, a level, the highest quantile. NAN: none. */
double counter_series_level(const struct counter_series *series);

/*
 * "Counter Name" as dotnet-counters writes it: "CPU Usage (%)", "Exception Count (Count / 1 sec)".
 * `interval_s` of the rates.
 */
struct bytes;
void counters_add_label(const struct counters *counters, const struct counter_series *series,
	double interval_s, struct bytes *out);

/* "since process start"; "" unknown. */
const char *counter_since_words(const struct counter_series *series);

/*
 * The value is a sum since some time, not a level: a COUNTER_SUM, and a COUNTER_UPDOWN whose
 * changes the runtime adds up.
 */
bool counter_series_adds_up(const struct counter_series *series);

/* Whether the table shows it: not hidden, not ended, with a value. */
bool counter_series_shows(const struct counter_series *series);

/* A process's counters, for all outputs. */
struct counters_view {
	const char *process;
	uint32_t pid;
	const char *runtime; /* "10.0.12"; "" not known */
	const char *trouble; /* why there are no more; "" */
	const struct counters *counters;
	uint64_t utc_ns; /* when its interval ended; 0: none has yet */
	double interval_s;
};

#endif
