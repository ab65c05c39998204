/*
 * Fills a table of series from the counter events of a runtime.
 *
 *   struct counter_feed events = { .counters = &counters, .choice = &choice, .session_id =
 *   "SHARED", .client_id = "..." }; for each event of the stream:
 *           counter_feed_take(&events, &strings, schema, payload, size);
 *   counter_feed_done(&events)
 *
 * Two kinds of events: "EventCounters" of any EventSource, which describe themselves and are read
 * by the names of their fields; and those of System.Diagnostics.Metrics, read by their ids. In a
 * shared metrics session each client receives the instruments of all clients, and their errors too:
 * events of other sessions and counters that are not chosen are ignored.
 *
 * A Meter is preferred to an EventSource of the same name, which has the same values with less
 * detail.
 *
 * Layouts: checked against .NET 8.0.31, 9.0.20 and 10.0.12.
 */
#ifndef SPOOR_COUNTERS_COUNTER_FEED_H
#define SPOOR_COUNTERS_COUNTER_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"

struct counter_choice;
struct counters;
struct schema;
struct strtab;

#define METRICS_KEYWORD_VALUES  UINT64_C(0x2)
#define METRICS_KEYWORD_PUBLISH UINT64_C(0x4)
#define COUNTER_INSTRUMENTS_MAX 20000u

/* An instrument of a Meter. Texts are indexes of counters.strings. */
struct counter_instrument {
	int32_t id; /* 0: not known */
	uint32_t meter;
	uint32_t version;
	uint32_t name;
	uint32_t type; /* "Histogram", ... */
	uint32_t unit;
	uint32_t description;
	uint32_t tags; /* of the meter and the instrument together */
	bool ended;
};

/* Problems that the runtime's metrics session has reported. */
enum counter_trouble {
	COUNTER_TROUBLE_ERROR = 1 << 0, /* Error: the session is over; `message` */
	/* another tool has the only session: no data of Meters */
	COUNTER_TROUBLE_BUSY = 1 << 1,
	/* a shared session with other limits runs: with `expected` we can join it */
	COUNTER_TROUBLE_OTHERS_RULE = 1 << 2,
	COUNTER_TROUBLE_SERIES = 1 << 3, /* the limit of time series was reached: incomplete */
	COUNTER_TROUBLE_HISTOGRAMS = 1 << 4,
	/* an observable instrument of the program failed; `message` */
	COUNTER_TROUBLE_CALLBACK = 1 << 5,
};

struct counter_feed {
	struct counters *counters;
	const struct counter_choice *choice;
	const char *session_id;
	const char *client_id;
	VEC(struct counter_instrument) instruments;
	struct map by_id; /* id to index + 1 */
	/* names (indexes of counters.strings) of those that have instruments */
	struct map meters;
	/* enum counter_trouble; the caller clears it after reporting it */
	unsigned trouble;
	char message[256];
	uint32_t expected_max_histograms;
	uint32_t expected_max_time_series;
	double expected_interval_s;
	bool enumerated; /* InitialInstrumentEnumerationComplete */
	/* between CollectionStart and CollectionStop: the interval's values are being sent */
	bool collecting;
	/* until the caller clears it: totals are of this interval, as the process has just begun */
	bool from_start;
	bool list_all;          /* keep every instrument that is published, chosen or not */
	uint64_t taken;         /* values */
	struct bytes texts[10]; /* the fields of the present event */
};

/*
 * 1: used. 0: not a chosen counter. -EBADMSG: the payload is truncated. -ENOMEM. `strings` is the
 * table of the schema's names.
 */
int counter_feed_take(struct counter_feed *events, const struct strtab *strings,
	const struct schema *schema, const uint8_t *payload, size_t size);

void counter_feed_done(struct counter_feed *events);

#endif
