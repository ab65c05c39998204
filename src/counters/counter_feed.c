/* See counter_feed.h. */
#include "counters/counter_feed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/strtab.h"
#include "base/text.h"
#include "counters/counter_choice.h"
#include "counters/counters.h"
#include "trace/provider_kind.h"
#include "trace/schema.h"

#define NUMBER_ROOM     64u
#define FILETIME_SECOND 1e7

/* The ids of System.Diagnostics.Metrics. */
enum {
	METRICS_COLLECTION_START = 2,
	METRICS_COLLECTION_STOP = 3,
	METRICS_COUNTER_VALUE = 4,
	METRICS_GAUGE_VALUE = 5,
	METRICS_HISTOGRAM_VALUE = 6,
	METRICS_BEGIN_INSTRUMENT = 7,
	METRICS_END_INSTRUMENT = 8,
	METRICS_ERROR = 9,
	METRICS_ENUMERATED = 10,
	METRICS_PUBLISHED = 11,
	METRICS_SERIES_LIMIT = 12,
	METRICS_HISTOGRAM_LIMIT = 13,
	METRICS_CALLBACK_ERROR = 14,
	METRICS_BUSY = 15,
	METRICS_UPDOWN_VALUE = 16,
	METRICS_OTHERS_RULE = 17,
};

/* The texts of an event of values, in order; of an instrument the first seven and three more. */
enum { METER, VERSION, NAME, UNIT, TAGS, NUMBER, NUMBER_2 };
enum { OF_TYPE = 3, OF_UNIT, OF_DESCRIPTION, OF_TAGS, OF_METER_TAGS };

static bool read_text(struct cursor *c, struct bytes *out)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	bytes_reset(out);
	if (text)
		text_add_utf16(out, text, units);
	return text;
}

static bool is_text(struct bytes *text, const char *expected)
{
	return text->len == strlen(expected) &&
	       (!text->len || memcmp(text->data, expected, text->len) == 0);
}

static uint32_t intern(struct counter_feed *e, const struct bytes *text)
{
	return text->len ? counters_text(e->counters, (const char *)text->data, text->len) : 0;
}

/* A number as the invariant culture writes it. NAN for an empty or a broken one. */
static double read_number(const char *text, size_t len)
{
	char room[NUMBER_ROOM];
	char *end;

	if (!len || len >= sizeof(room))
		return NAN;
	memcpy(room, text, len);
	room[len] = '\0';
	double value = strtod(room, &end);

	return end == room || *end ? NAN : value;
}

static double number_of(const struct bytes *text)
{
	return read_number((const char *)text->data, text->len);
}

/* "0.5=7.1E-05;0.95=..." */
static uint32_t read_quantiles(const struct bytes *text,
	struct counter_quantile out[COUNTERS_QUANTILES_MAX])
{
	const char *at = (const char *)text->data;
	size_t left = text->len;
	uint32_t count = 0;

	while (left && count < COUNTERS_QUANTILES_MAX) {
		const char *semicolon = memchr(at, ';', left);
		size_t len = semicolon ? (size_t)(semicolon - at) : left;
		const char *equals = memchr(at, '=', len);
		if (equals) {
			size_t name = (size_t)(equals - at);
			const struct counter_quantile quantile = {
				.quantile = read_number(at, name),
				.value = read_number(equals + 1, len - name - 1),
			};
			if (quantile.quantile >= 0 && quantile.quantile <= 1 &&
				isfinite(quantile.value))
				out[count++] = quantile;
		}
		if (!semicolon)
			break;
		at += len + 1;
		left -= len + 1;
	}
	return count;
}

/* ---- instruments ---- */

static struct counter_instrument *instrument_of(struct counter_feed *e, int32_t id)
{
	uint32_t index = id ? map_get(&e->by_id, (uint32_t)id) : 0;

	return index ? &e->instruments.items[index - 1] : NULL;
}

/* Events of runtimes before .NET 8 carry no instrument id: equal names mean the same instrument. */
static struct counter_instrument *find_instrument(struct counter_feed *e,
	const struct counter_instrument *wanted)
{
	if (wanted->id)
		return instrument_of(e, wanted->id);
	vec_each(each, &e->instruments) {
		if (!each->id && each->meter == wanted->meter && each->version == wanted->version &&
			each->name == wanted->name && each->tags == wanted->tags)
			return each;
	}
	return NULL;
}

/*
 * Keeps a new instrument, or updates a known one: when another client joins a session, the runtime
 * sends the events of all its instruments again.
 */
static int keep_instrument(struct counter_feed *e, const struct counter_instrument *instrument)
{
	struct counter_instrument *known = find_instrument(e, instrument);

	if (known) {
		*known = *instrument;
		return 1;
	}
	if (e->instruments.count >= COUNTER_INSTRUMENTS_MAX)
		return 1;
	if (!vec_add(&e->instruments, *instrument))
		return -ENOMEM;
	if (instrument->id && !map_put(&e->by_id, (uint32_t)instrument->id, e->instruments.count))
		return -ENOMEM;
	return 1;
}

static void join(struct bytes *list, const struct bytes *more)
{
	if (list->len && more->len)
		bytes_text(list, ",");
	bytes_add(list, more->data, more->len);
}

/* Events 7, 8, 11: meter, version, instrument, type, unit, description, [tags, ..., [id]]. */
static int take_instrument(struct counter_feed *e, const struct schema *schema, struct cursor *c)
{
	struct counter_instrument instrument = { 0 };

	for (size_t i = 0; i <= OF_DESCRIPTION; i++)
		(void)read_text(c, &e->texts[i]); /* c->short_read is checked below */
	bytes_reset(&e->texts[OF_TAGS]);
	if (schema->version >= 1) {
		(void)read_text(c, &e->texts[OF_TAGS]);
		(void)read_text(c, &e->texts[OF_METER_TAGS]);
		/* the hash of the meter's scope: not used */
		(void)read_text(c, &e->texts[OF_METER_TAGS + 1]);
		join(&e->texts[OF_TAGS], &e->texts[OF_METER_TAGS]);
	}
	if (schema->version >= 2)
		instrument.id = (int32_t)cursor_u32(c);
	if (schema->version >= 3)
		(void)read_text(c, &e->texts[OF_METER_TAGS]); /* the address of its schema */
	if (c->short_read)
		return -EBADMSG;
	if (!e->list_all && !counter_choice_has_provider(e->choice, bytes_z(&e->texts[METER])))
		return 0;
	instrument.meter = intern(e, &e->texts[METER]);
	instrument.version = intern(e, &e->texts[VERSION]);
	instrument.name = intern(e, &e->texts[NAME]);
	instrument.type = intern(e, &e->texts[OF_TYPE]);
	instrument.unit = intern(e, &e->texts[OF_UNIT]);
	instrument.description = intern(e, &e->texts[OF_DESCRIPTION]);
	instrument.tags = intern(e, &e->texts[OF_TAGS]);
	instrument.ended = schema->event_id == METRICS_END_INSTRUMENT;
	if (instrument.ended) {
		counters_end_instrument(e->counters, instrument.id);
		return find_instrument(e, &instrument) ? keep_instrument(e, &instrument) : 1;
	}
	/* What its EventSource of the same name has said so far is said better from here on. */
	if (instrument.meter && schema->event_id == METRICS_BEGIN_INSTRUMENT &&
		!map_get(&e->meters, instrument.meter)) {
		if (!map_put(&e->meters, instrument.meter, 1))
			return -ENOMEM;
		counters_end_event_source(e->counters, instrument.meter);
	}
	return keep_instrument(e, &instrument);
}

/* ---- values of Meters ---- */

/* The runtime sends no tags of the instrument with its values. */
static uint32_t tags_of(struct counter_feed *e, const struct counter_instrument *instrument)
{
	if (instrument && instrument->tags) {
		const char *more = strtab_get(&e->counters->strings, instrument->tags);
		if (e->texts[TAGS].len)
			bytes_text(&e->texts[TAGS], ",");
		bytes_text(&e->texts[TAGS], more);
	}
	return intern(e, &e->texts[TAGS]);
}

/* Instruments that the runtime publishes as counters although their values rise and fall. */
static bool is_level(struct counter_feed *e)
{
	return is_text(&e->texts[METER], PROVIDER_SYSTEM_RUNTIME_NAME) &&
	       (is_text(&e->texts[NAME], "dotnet.thread_pool.thread.count") ||
		       is_text(&e->texts[NAME], "dotnet.thread_pool.queue.length"));
}

static uint32_t series_of(struct counter_feed *e, int32_t instrument_id, enum counter_kind kind)
{
	struct counters *counters = e->counters;
	const struct counter_instrument *instrument = instrument_of(e, instrument_id);
	const struct counter_id id = {
		.source = COUNTER_METER,
		.provider = intern(e, &e->texts[METER]),
		.version = intern(e, &e->texts[VERSION]),
		.name = intern(e, &e->texts[NAME]),
		.tags = tags_of(e, instrument),
		.instrument_id = instrument_id,
	};
	uint32_t index = counters_series(counters, &id, kind);

	if (index && !counters->series.items[index].known) {
		counters->series.items[index].unit = intern(e, &e->texts[UNIT]);
		if (instrument)
			counters->series.items[index].description = instrument->description;
	}
	return index;
}

static bool is_needed(const struct counters *counters, const char *meter, const char *name)
{
	static const char *const needed[] = { "dotnet.process.cpu.time", "dotnet.gc.pause.time",
		"dotnet.gc.heap.total_allocated" };

	for (size_t i = 0; counters->derive && strcmp(meter, PROVIDER_SYSTEM_RUNTIME_NAME) == 0 &&
			   i < sizeof(needed) / sizeof(needed[0]);
		i++) {
		if (strcmp(name, needed[i]) == 0)
			return true;
	}
	return false;
}

/*
 * An observable instrument reports a total since the program's start; its first interval has a
 * value and no rate. For any other instrument the runtime adds up the increments since the metrics
 * session began: the first total that we see equals the increment, unless another tool began the
 * session earlier. Without an id, or when the instrument's first event was missed, its type is
 * unknown, and these numbers decide.
 */
static enum counter_since since_of(struct counter_feed *e, int32_t id, double delta, double value)
{
	const struct counter_instrument *instrument = instrument_of(e, id);
	const char *type = instrument ? strtab_get(&e->counters->strings, instrument->type) : "";

	if (isnan(value))
		return COUNTER_SINCE_UNKNOWN;
	if (isnan(delta) || strncmp(type, "Observable", 10) == 0)
		return COUNTER_SINCE_PROCESS;
	return delta == value ? COUNTER_SINCE_SESSION
	       : *type        ? COUNTER_SINCE_EARLIER
			      : COUNTER_SINCE_UNKNOWN;
}

/*
 * Counters and gauges: meter, version, instrument, unit, tags, rate or last value, [value], [id].
 * No value: an observable instrument that reports nothing any more. (No rate but a value: its first
 * interval.)
 */
static int take_value(struct counter_feed *e, const struct schema *schema, struct cursor *c,
	bool wanted)
{
	bool gauge = schema->event_id == METRICS_GAUGE_VALUE;
	enum counter_kind kind = gauge ? COUNTER_GAUGE
				 : schema->event_id == METRICS_UPDOWN_VALUE || is_level(e)
					 ? COUNTER_UPDOWN
					 : COUNTER_SUM;
	int32_t id = 0;

	bytes_reset(&e->texts[NUMBER_2]);
	(void)read_text(c, &e->texts[NUMBER]); /* c->short_read is checked below */
	if (!gauge && schema->version >= 1)
		(void)read_text(c, &e->texts[NUMBER_2]);
	if (schema->version >= 2)
		id = (int32_t)cursor_u32(c);
	if (c->short_read)
		return -EBADMSG;
	double first = number_of(&e->texts[NUMBER]);
	double second = number_of(&e->texts[NUMBER_2]);
	uint32_t index = series_of(e, id, kind);

	if (!index)
		return 1;
	e->counters->series.items[index].hidden = !wanted;
	if (!gauge && !e->counters->series.items[index].known &&
		!e->counters->series.items[index].open.any)
		e->counters->series.items[index].since = (uint8_t)since_of(e, id, first, second);
	if (e->from_start && kind == COUNTER_SUM && isnan(first) &&
		!e->counters->series.items[index].known)
		first = second;
	if (!gauge && !isnan(first))
		counters_take_delta(e->counters, index, first, 0);
	if (!isnan(gauge ? first : second))
		counters_take_value(e->counters, index, gauge ? first : second);
	else if (gauge || schema->version >= 1 || isnan(first))
		e->counters->series.items[index].ended = true;
	return 1;
}

/* meter, version, instrument, unit, tags, quantiles, [count i32, sum f64], [id]. */
static int take_histogram(struct counter_feed *e, const struct schema *schema, struct cursor *c,
	bool wanted)
{
	struct counter_quantile quantiles[COUNTERS_QUANTILES_MAX];
	bool counted = schema->version >= 1;
	int32_t id = 0;

	(void)read_text(c, &e->texts[NUMBER]); /* c->short_read is checked below */
	int32_t count = counted ? (int32_t)cursor_u32(c) : 0;
	uint64_t bits = counted ? cursor_u64(c) : 0;
	double sum;

	if (schema->version >= 2)
		id = (int32_t)cursor_u32(c);
	if (c->short_read)
		return -EBADMSG;
	memcpy(&sum, &bits, sizeof(sum));
	uint32_t index = series_of(e, id, COUNTER_HISTOGRAM);

	if (!index)
		return 1;
	e->counters->series.items[index].hidden = !wanted;
	counters_take_quantiles(e->counters, index, quantiles,
		read_quantiles(&e->texts[NUMBER], quantiles));
	if (counted)
		counters_take_count(e->counters, index, count, sum);
	return 1;
}

static int take_measurement(struct counter_feed *e, const struct schema *schema, struct cursor *c)
{
	for (size_t i = 0; i <= TAGS; i++)
		(void)read_text(c, &e->texts[i]); /* c->short_read is checked below */
	if (c->short_read)
		return -EBADMSG;
	const char *meter = bytes_z(&e->texts[METER]);
	const char *name = bytes_z(&e->texts[NAME]);
	bool wanted = counter_choice_has_instrument(e->choice, meter, name);

	if (!wanted && !is_needed(e->counters, meter, name))
		return 0;
	e->taken++;
	return schema->event_id == METRICS_HISTOGRAM_VALUE ? take_histogram(e, schema, c, wanted)
							   : take_value(e, schema, c, wanted);
}

/* ---- errors of the metrics session ---- */

static void keep_message(struct counter_feed *e, struct bytes *text)
{
	/* cut if it is long */
	(void)text_make_safe(bytes_z(text), text->len, e->message, sizeof(e->message));
}

/* Both events begin with an id: the running session's, or that of the client with other limits. */
static int take_conflict(struct counter_feed *e, const struct schema *schema, struct cursor *c)
{
	if (!read_text(c, &e->texts[0]))
		return -EBADMSG;
	if (schema->event_id == METRICS_BUSY) {
		if (is_text(&e->texts[0], e->session_id))
			return 0;
		keep_message(e, &e->texts[0]);
		e->trouble |= COUNTER_TROUBLE_BUSY;
		return 1;
	}
	if (!is_text(&e->texts[0], e->client_id))
		return 0;
	/* Expected and actual, each as text: histograms, time series, interval. */
	for (size_t i = 1; i <= 6; i++)
		(void)read_text(c, &e->texts[i]); /* c->short_read is checked below */
	double histograms = number_of(&e->texts[1]);
	double series = number_of(&e->texts[3]);
	double interval_s = number_of(&e->texts[5]);

	if (c->short_read || !(histograms >= 0 && histograms <= UINT32_MAX) ||
		!(series >= 0 && series <= UINT32_MAX) || !(interval_s > 0 && interval_s < 1e9))
		return -EBADMSG;
	e->expected_max_histograms = (uint32_t)histograms;
	e->expected_max_time_series = (uint32_t)series;
	e->expected_interval_s = interval_s;
	e->trouble |= COUNTER_TROUBLE_OTHERS_RULE;
	return 1;
}

static int take_metrics(struct counter_feed *e, const struct schema *schema, struct cursor *c)
{
	if (schema->event_id == METRICS_BUSY || schema->event_id == METRICS_OTHERS_RULE)
		return take_conflict(e, schema, c);
	if (schema->event_id < METRICS_COLLECTION_START || schema->event_id > METRICS_UPDOWN_VALUE)
		return 0;
	if (!read_text(c, &e->texts[0]))
		return -EBADMSG;
	if (!is_text(&e->texts[0], e->session_id))
		return 0;
	switch (schema->event_id) {
	case METRICS_COLLECTION_START: {
		uint64_t begin = cursor_u64(c);
		uint64_t end = cursor_u64(c);
		if (c->short_read)
			return -EBADMSG;
		if (end > begin)
			counters_take_interval(e->counters,
				(double)(end - begin) / FILETIME_SECOND);
		e->collecting = true;
		return 1;
	}
	case METRICS_COLLECTION_STOP:
		e->collecting = false;
		return 1;
	case METRICS_COUNTER_VALUE:
	case METRICS_GAUGE_VALUE:
	case METRICS_HISTOGRAM_VALUE:
	case METRICS_UPDOWN_VALUE:
		return take_measurement(e, schema, c);
	case METRICS_BEGIN_INSTRUMENT:
	case METRICS_END_INSTRUMENT:
	case METRICS_PUBLISHED:
		return take_instrument(e, schema, c);
	case METRICS_ENUMERATED:
		e->enumerated = true;
		return 1;
	case METRICS_SERIES_LIMIT:
		e->trouble |= COUNTER_TROUBLE_SERIES;
		return 1;
	case METRICS_HISTOGRAM_LIMIT:
		e->trouble |= COUNTER_TROUBLE_HISTOGRAMS;
		return 1;
	case METRICS_ERROR:
	case METRICS_CALLBACK_ERROR:
		if (!read_text(c, &e->texts[1]))
			return -EBADMSG;
		keep_message(e, &e->texts[1]);
		e->trouble |= schema->event_id == METRICS_ERROR ? COUNTER_TROUBLE_ERROR
								: COUNTER_TROUBLE_CALLBACK;
		return 1;
	default:
		return 0;
	}
}

/* ---- EventCounters ---- */

struct event_counter {
	double mean, increment, seconds;
	bool has_mean, has_increment;
};

enum { EC_NAME, EC_TITLE, EC_UNIT, EC_TYPE, EC_METADATA, EC_OTHER };

static double read_f32(struct cursor *c)
{
	uint32_t bits = cursor_u32(c);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return (double)value;
}

static double read_f64(struct cursor *c)
{
	uint64_t bits = cursor_u64(c);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void keep_number(struct event_counter *out, const char *name, double value)
{
	if (strcmp(name, "Mean") == 0) {
		out->mean = value;
		out->has_mean = true;
	} else if (strcmp(name, "Increment") == 0) {
		out->increment = value;
		out->has_increment = true;
	} else if (strcmp(name, "IntervalSec") == 0) {
		out->seconds = value;
	}
}

static struct bytes *place_of(struct counter_feed *e, const char *name)
{
	static const char *const names[] = {
		[EC_NAME] = "Name",
		[EC_TITLE] = "DisplayName",
		[EC_UNIT] = "DisplayUnits",
		[EC_TYPE] = "CounterType",
		[EC_METADATA] = "Metadata",
	};

	for (size_t i = 0; i < EC_OTHER; i++) {
		if (strcmp(name, names[i]) == 0)
			return &e->texts[i];
	}
	return &e->texts[EC_OTHER];
}

/*
 * Reads the fields in their order; those of the object that holds them all follow it in the schema.
 */
static int read_fields(struct counter_feed *e, const struct strtab *strings,
	const struct schema *schema, struct cursor *c, struct event_counter *out)
{
	vec_each(field, &schema->fields) {
		const char *name = strtab_get(strings, field->name);
		switch (field->type) {
		case FIELD_OBJECT:
			break;
		case FIELD_TEXT16:
			(void)read_text(c, place_of(e, name)); /* c->short_read is checked below */
			break;
		case FIELD_F64:
			keep_number(out, name, read_f64(c));
			break;
		case FIELD_F32:
			keep_number(out, name, read_f32(c));
			break;
		case FIELD_I32:
		case FIELD_U32:
		case FIELD_BOOL:
			cursor_skip(c, 4);
			break;
		case FIELD_I64:
		case FIELD_U64:
			cursor_skip(c, 8);
			break;
		default:
			return 0; /* not the event it seems to be */
		}
	}
	return c->short_read ? -EBADMSG : 1;
}

/* "key:value,key:value" as Meters' tags are written; one pair without a colon: there are none. */
static uint32_t metadata_tags(struct counter_feed *e)
{
	struct bytes *text = &e->texts[EC_METADATA];
	bool in_key = true;

	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] == ',' && in_key)
			return 0;
		if (text->data[i] == ':' && in_key) {
			text->data[i] = '=';
			in_key = false;
		} else if (text->data[i] == ',') {
			in_key = true;
		}
	}
	return in_key ? 0 : intern(e, text);
}

static int take_event_counter(struct counter_feed *e, const struct strtab *strings,
	const struct schema *schema, struct cursor *c)
{
	struct counters *counters = e->counters;
	const char *provider = strtab_get(strings, schema->provider);
	struct event_counter counter = { 0 };

	for (size_t i = 0; i <= EC_OTHER; i++)
		bytes_reset(&e->texts[i]);
	int result = read_fields(e, strings, schema, c, &counter);

	if (result <= 0)
		return result;
	bool sum = is_text(&e->texts[EC_TYPE], "Sum");

	if (!e->texts[EC_NAME].len || (sum ? !counter.has_increment : !counter.has_mean))
		return 0;
	struct counter_id id = {
		.source = COUNTER_EVENT_SOURCE,
		.provider = counters_text(counters, provider, strlen(provider)),
	};
	bool meter = map_get(&e->meters, id.provider) != 0;

	if (!counter_choice_has_event_counter(e->choice, provider, bytes_z(&e->texts[EC_NAME]),
		    meter))
		return 0;
	e->taken++;
	id.name = intern(e, &e->texts[EC_NAME]);
	id.tags = metadata_tags(e);
	uint32_t index = counters_series(counters, &id, sum ? COUNTER_SUM : COUNTER_GAUGE);

	if (!index)
		return 1;
	struct counter_series *series = &counters->series.items[index];

	if (!series->known) {
		series->title = intern(e, &e->texts[EC_TITLE]);
		series->unit = intern(e, &e->texts[EC_UNIT]);
	}
	/* The switch to another interval makes an event of no time. */
	double seconds = counter.seconds > 0 && counter.seconds < 1e9 ? counter.seconds : 0;

	if (sum)
		counters_take_delta(counters, index, counter.increment, seconds);
	else if (isfinite(counter.mean))
		counters_take_value(counters, index, counter.mean);
	return 1;
}

int counter_feed_take(struct counter_feed *events, const struct strtab *strings,
	const struct schema *schema, const uint8_t *payload, size_t size)
{
	struct cursor c = cursor_of(payload, size);
	int result = 0;

	if (strcmp(strtab_get(strings, schema->provider), PROVIDER_METRICS_NAME) == 0)
		result = take_metrics(events, schema, &c);
	else if (strcmp(strtab_get(strings, schema->name), EVENT_COUNTERS_NAME) == 0)
		result = take_event_counter(events, strings, schema, &c);
	for (size_t i = 0; i < sizeof(events->texts) / sizeof(events->texts[0]); i++) {
		if (events->texts[i].failed)
			result = -ENOMEM;
	}
	return result;
}

void counter_feed_done(struct counter_feed *events)
{
	for (size_t i = 0; i < sizeof(events->texts) / sizeof(events->texts[0]); i++)
		bytes_done(&events->texts[i]);
	vec_done(&events->instruments);
	map_done(&events->by_id);
	map_done(&events->meters);
}
