/*
 * The provider System.Diagnostics.Metrics. Events, ids, versions and fields are those of .NET 10,
 * so dotnet-counters and dotnet-monitor read these instruments like those of a .NET program. Unlike
 * in .NET, sessions are independent: they share no interval, and a second client is not refused. So
 * the events that report such conflicts (15, 17) are never sent.
 */
#include "lib/counter/counter_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/counter/counter_arguments.h"
#include "lib/event/field_size.h"
#include "lib/event/payload.h"
#include "lib/event/provider.h"
#include "lib/platform/platform.h"

#define METRICS_MESSAGES   0x1u
#define METRICS_VALUES     0x2u
#define METRICS_PUBLISHING 0x4u

#define METRICS_SERIES_DEFAULT     1000u
#define METRICS_HISTOGRAMS_DEFAULT 20u

static struct spoor_provider metrics_provider;

#define SERIES                                                                           \
	FIELD("sessionId", TEXT), FIELD("meterName", TEXT), FIELD("meterVersion", TEXT), \
		FIELD("instrumentName", TEXT), FIELD("unit", TEXT), FIELD("tags", TEXT)

static const struct spoor_field fields_message[] = { FIELD("Message", TEXT) };
static const struct spoor_field fields_collection[] = { FIELD("sessionId", TEXT),
	FIELD("intervalStartTime", TIME), FIELD("intervalEndTime", TIME) };
static const struct spoor_field fields_rate[] = { SERIES, FIELD("rate", TEXT), FIELD("value", TEXT),
	FIELD("instrumentId", I32) };
static const struct spoor_field fields_gauge[] = { SERIES, FIELD("lastValue", TEXT),
	FIELD("instrumentId", I32) };
static const struct spoor_field fields_histogram[] = { SERIES, FIELD("quantiles", TEXT),
	FIELD("count", I32), FIELD("sum", F64), FIELD("instrumentId", I32) };
static const struct spoor_field fields_instrument[] = { FIELD("sessionId", TEXT),
	FIELD("meterName", TEXT), FIELD("meterVersion", TEXT), FIELD("instrumentName", TEXT),
	FIELD("instrumentType", TEXT), FIELD("unit", TEXT), FIELD("description", TEXT),
	FIELD("instrumentTags", TEXT), FIELD("meterTags", TEXT), FIELD("meterScopeHash", TEXT),
	FIELD("instrumentId", I32), FIELD("meterTelemetrySchemaUrl", TEXT) };
static const struct spoor_field fields_error[] = { FIELD("sessionId", TEXT),
	FIELD("errorMessage", TEXT) };
static const struct spoor_field fields_session[] = { FIELD("sessionId", TEXT) };
static const struct spoor_field fields_version[] = { FIELD("Major", I32), FIELD("Minor", I32),
	FIELD("Patch", I32) };

#define METRICS_EVENT(variable, id_, text, version_, level_, keywords_, list, opcode_) \
	static struct spoor_event variable = { .size = sizeof(struct spoor_event),     \
		.provider = &metrics_provider,                                         \
		.name = text,                                                          \
		.keywords = keywords_,                                                 \
		.fields = list,                                                        \
		.field_count = sizeof(list) / sizeof((list)[0]),                       \
		.id = id_,                                                             \
		.version = version_,                                                   \
		.level = level_,                                                       \
		.opcode = opcode_ }

METRICS_EVENT(event_message, 1, "Message", 0, SPOOR_INFO, METRICS_MESSAGES, fields_message,
	SPOOR_OPCODE_INFO);
METRICS_EVENT(event_collection_start, 2, "CollectionStart", 0, SPOOR_INFO, METRICS_VALUES,
	fields_collection, SPOOR_OPCODE_START);
METRICS_EVENT(event_collection_stop, 3, "CollectionStop", 0, SPOOR_INFO, METRICS_VALUES,
	fields_collection, SPOOR_OPCODE_STOP);
METRICS_EVENT(event_rate, 4, "CounterRateValuePublished", 2, SPOOR_INFO, METRICS_VALUES,
	fields_rate, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_gauge, 5, "GaugeValuePublished", 2, SPOOR_INFO, METRICS_VALUES, fields_gauge,
	SPOOR_OPCODE_INFO);
METRICS_EVENT(event_histogram, 6, "HistogramValuePublished", 2, SPOOR_INFO, METRICS_VALUES,
	fields_histogram, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_begin, 7, "BeginInstrumentReporting", 3, SPOOR_INFO, METRICS_VALUES,
	fields_instrument, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_end, 8, "EndInstrumentReporting", 3, SPOOR_INFO, METRICS_VALUES,
	fields_instrument, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_error, 9, "Error", 0, SPOOR_INFO,
	METRICS_MESSAGES | METRICS_VALUES | METRICS_PUBLISHING, fields_error, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_enumerated, 10, "InitialInstrumentEnumerationComplete", 0, SPOOR_INFO,
	METRICS_VALUES | METRICS_PUBLISHING, fields_session, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_published, 11, "InstrumentPublished", 3, SPOOR_INFO, METRICS_PUBLISHING,
	fields_instrument, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_series_limit, 12, "TimeSeriesLimitReached", 0, SPOOR_INFO, METRICS_VALUES,
	fields_session, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_histogram_limit, 13, "HistogramLimitReached", 0, SPOOR_INFO, METRICS_VALUES,
	fields_session, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_callback_error, 14, "ObservableInstrumentCallbackError", 0, SPOOR_INFO,
	METRICS_VALUES, fields_error, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_up_down, 16, "UpDownCounterRateValuePublished", 2, SPOOR_INFO, METRICS_VALUES,
	fields_rate, SPOOR_OPCODE_INFO);
METRICS_EVENT(event_version, 18, "Version", 0, SPOOR_INFO, METRICS_MESSAGES, fields_version,
	SPOOR_OPCODE_INFO);

static struct spoor_event *const metrics_events[] = { &event_message, &event_collection_start,
	&event_collection_stop, &event_rate, &event_gauge, &event_histogram, &event_begin,
	&event_end, &event_error, &event_enumerated, &event_published, &event_series_limit,
	&event_histogram_limit, &event_callback_error, &event_up_down, &event_version };

struct metrics_session {
	struct counter_session base; /* first */
	char *id;                    /* the name that the tool gave; field 0 of nearly all events */
	char *filter;
	uint64_t keywords;
	uint32_t series_max;
	uint32_t histograms_max;
	/*
	 * Births of the series that count against a limit, in ascending order. Series that were
	 * shown first are shown until the session ends.
	 */
	uint32_t *shown;
	uint32_t shown_count;
	uint32_t shown_room;
	uint32_t histogram_count;
	bool series_limited;
	bool histograms_limited;
};

static struct outbuf *metrics_begin(struct metrics_session *session)
{
	struct outbuf *out = &session->base.payload;

	outbuf_reset(out);
	payload_text(out, session->id);
	return out;
}

static void metrics_fire(struct metrics_session *session, struct spoor_event *event)
{
	counter_session_fire(&session->base, event);
}

static void metrics_error(struct metrics_session *session, struct spoor_event *event,
	const char *sentence)
{
	payload_text(metrics_begin(session), sentence);
	metrics_fire(session, event);
}

/* The names of .NET's classes. */
static const char *metrics_type(const struct registry_instrument *instrument)
{
	switch (instrument->kind) {
	case SPOOR_COUNTER:
		return instrument->observe ? "ObservableCounter`1" : "Counter`1";
	case SPOOR_UP_DOWN_COUNTER:
		return instrument->observe ? "ObservableUpDownCounter`1" : "UpDownCounter`1";
	case SPOOR_GAUGE:
		return instrument->observe ? "ObservableGauge`1" : "Gauge`1";
	default:
		return "Histogram`1";
	}
}

static bool metrics_listens(const struct metrics_session *session,
	const struct registry_instrument *instrument)
{
	return (session->keywords & METRICS_VALUES) && session->filter &&
	       counter_filter_wants(session->filter, instrument);
}

static void metrics_instrument(struct metrics_session *session, struct spoor_event *event,
	const struct registry_instrument *instrument, uint32_t id)
{
	struct outbuf *out = metrics_begin(session);

	payload_text(out, instrument->meter->name);
	payload_text(out, instrument->meter->version);
	payload_text(out, instrument->name);
	payload_text(out, metrics_type(instrument));
	payload_text(out, instrument->unit);
	payload_text(out, instrument->description);
	/* tags of the instrument and of the meter, hash of its scope: not used here */
	payload_text(out, "");
	payload_text(out, "");
	payload_text(out, "");
	payload_u32(out, id);
	payload_text(out, "");
	metrics_fire(session, event);
}

static bool metrics_wants(struct counter_consumer *consumer,
	const struct registry_instrument *instrument)
{
	struct metrics_session *session = (struct metrics_session *)consumer;

	return (session->keywords & METRICS_PUBLISHING) || metrics_listens(session, instrument);
}

static void metrics_instrument_begin(struct counter_consumer *consumer,
	const struct registry_instrument *instrument)
{
	struct metrics_session *session = (struct metrics_session *)consumer;
	bool listens = metrics_listens(session, instrument);

	if (session->keywords & METRICS_PUBLISHING)
		metrics_instrument(session, &event_published, instrument,
			listens ? instrument->id : 0);
	if (listens)
		metrics_instrument(session, &event_begin, instrument, instrument->id);
}

static void metrics_instrument_end(struct counter_consumer *consumer,
	const struct registry_instrument *instrument)
{
	struct metrics_session *session = (struct metrics_session *)consumer;

	if (metrics_listens(session, instrument))
		metrics_instrument(session, &event_end, instrument, instrument->id);
}

static void metrics_announced(struct counter_consumer *consumer)
{
	struct metrics_session *session = (struct metrics_session *)consumer;

	(void)metrics_begin(session);
	metrics_fire(session, &event_enumerated);
}

static void metrics_collection(struct counter_consumer *consumer, struct spoor_event *event,
	uint64_t begin_ns, uint64_t end_ns)
{
	struct metrics_session *session = (struct metrics_session *)consumer;
	uint64_t utc_ns = platform_utc_ns(), now_ns = platform_now_ns();

	if (!(session->keywords & METRICS_VALUES))
		return;
	struct outbuf *out = metrics_begin(session);
	payload_u64(out, spoor_time_of((int64_t)(utc_ns - (now_ns - begin_ns))));
	payload_u64(out, spoor_time_of((int64_t)(utc_ns - (now_ns - end_ns))));
	metrics_fire(session, event);
}

static void metrics_pass_begin(struct counter_consumer *consumer, uint64_t begin_ns,
	uint64_t end_ns)
{
	metrics_collection(consumer, &event_collection_start, begin_ns, end_ns);
}

static void metrics_pass_end(struct counter_consumer *consumer, uint64_t begin_ns, uint64_t end_ns)
{
	metrics_collection(consumer, &event_collection_stop, begin_ns, end_ns);
}

/* Is this series within the limit that the tool has set? */
static bool metrics_room(struct metrics_session *session, const struct registry_series *series)
{
	uint32_t low = 0, high = session->shown_count;
	bool histogram = series->histogram != NULL;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (session->shown[middle] < series->birth)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < session->shown_count && session->shown[low] == series->birth)
		return true;
	if (histogram && session->histogram_count >= session->histograms_max) {
		if (!session->histograms_limited) {
			session->histograms_limited = true;
			(void)metrics_begin(session);
			metrics_fire(session, &event_histogram_limit);
		}
		return false;
	}
	if (session->shown_count >= session->series_max) {
		if (!session->series_limited) {
			session->series_limited = true;
			(void)metrics_begin(session);
			metrics_fire(session, &event_series_limit);
		}
		return false;
	}
	if (session->shown_count == session->shown_room) {
		uint32_t room = session->shown_room ? session->shown_room * 2 : 64;
		uint32_t *grown = realloc(session->shown, room * sizeof(*grown));
		if (!grown)
			return false;
		session->shown = grown;
		session->shown_room = room;
	}
	memmove(session->shown + low + 1, session->shown + low,
		(session->shown_count - low) * sizeof(*session->shown));
	session->shown[low] = series->birth;
	session->shown_count++;
	session->histogram_count += histogram;
	return true;
}

static void payload_number(struct outbuf *out, bool there, double value)
{
	char text[ARGUMENT_NUMBER_MAX] = "";

	if (there)
		argument_print(value, text);
	payload_text(out, text);
}

static void metrics_quantiles(struct outbuf *out, const struct counter_reading *reading)
{
	char text[COUNTER_QUANTILES * 2 * ARGUMENT_NUMBER_MAX] = "";
	size_t length = 0;

	for (unsigned i = 0; i < COUNTER_QUANTILES && reading->count; i++) {
		char quantile[ARGUMENT_NUMBER_MAX], value[ARGUMENT_NUMBER_MAX];
		argument_print(counter_quantiles[i], quantile);
		argument_print(reading->quantile[i], value);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s=%s",
			i ? ";" : "", quantile, value);
	}
	payload_text(out, text);
}

static void metrics_reading(struct counter_consumer *consumer,
	const struct counter_reading *reading, uint64_t elapsed_ns)
{
	struct metrics_session *session = (struct metrics_session *)consumer;
	const struct registry_series *series = reading->series;
	const struct registry_instrument *instrument = series->instrument;
	struct spoor_event *event;

	(void)elapsed_ns;
	if (!metrics_listens(session, instrument) || !metrics_room(session, series))
		return;
	struct outbuf *out = metrics_begin(session);
	payload_text(out, instrument->meter->name);
	payload_text(out, instrument->meter->version);
	payload_text(out, instrument->name);
	payload_text(out, instrument->unit);
	payload_text(out, series->tags_text);
	switch (instrument->kind) {
	case SPOOR_HISTOGRAM:
		event = &event_histogram;
		metrics_quantiles(out, reading);
		payload_u32(out, reading->count < INT32_MAX ? (uint32_t)reading->count : INT32_MAX);
		payload_f64(out, reading->sum);
		break;
	case SPOOR_GAUGE:
		event = &event_gauge;
		payload_number(out, reading->has_value, reading->value);
		break;
	default:
		event = instrument->kind == SPOOR_COUNTER ? &event_rate : &event_up_down;
		payload_number(out, reading->has_delta, reading->delta);
		payload_number(out, reading->has_value, reading->value);
		break;
	}
	payload_u32(out, instrument->id);
	metrics_fire(session, event);
}

static void metrics_failed(struct counter_consumer *consumer, const char *sentence)
{
	metrics_error((struct metrics_session *)consumer, &event_callback_error, sentence);
}

static void metrics_release(struct counter_session *base)
{
	struct metrics_session *session = (struct metrics_session *)base;

	free(session->id);
	free(session->filter);
	free(session->shown);
	free(session);
}

/*
 * Reads a limit such as "1000", between 1 and 10 million; a missing or malformed one is the
 * default.
 */
static uint32_t metrics_limit(const char *arguments, const char *key, uint32_t usual)
{
	char *text = argument_find(arguments, key);
	double value;
	bool given = text && argument_number(text, &value) && value >= 1;

	free(text);
	return !given ? usual : value > 1e7 ? 10000000u : (uint32_t)value;
}

static void metrics_enable(const struct spoor_enable *what, void *context)
{
	struct metrics_session *session;
	double seconds = 1;

	(void)context;
	/* The session has new arguments: its consumer ends and another one starts. */
	counter_session_end(what->session_id, &metrics_provider);
	/*
	 * A session that enables every provider does not want metrics: sessions for metrics name
	 * the instruments.
	 */
	if (!what->enabled || !what->arguments || what->level < SPOOR_INFO ||
		!(what->keywords & (METRICS_VALUES | METRICS_PUBLISHING | METRICS_MESSAGES)))
		return;
	session = calloc(1, sizeof(*session));
	if (!session)
		return;
	session->base.session_id = what->session_id;
	session->base.owner = &metrics_provider;
	session->base.release = metrics_release;
	session->keywords = what->keywords;
	session->id = argument_find(what->arguments, "SessionId");
	session->filter = argument_find(what->arguments, "Metrics");
	session->series_max =
		metrics_limit(what->arguments, "MaxTimeSeries", METRICS_SERIES_DEFAULT);
	session->histograms_max =
		metrics_limit(what->arguments, "MaxHistograms", METRICS_HISTOGRAMS_DEFAULT);
	if (!session->id) {
		char id[40];
		(void)snprintf(id, sizeof(id), "spoor-%llu", (unsigned long long)what->session_id);
		session->id = strdup(id);
		if (!session->id) {
			metrics_release(&session->base);
			return;
		}
	}
	if (session->keywords & METRICS_MESSAGES) {
		outbuf_reset(&session->base.payload);
		payload_u32(&session->base.payload, 10);
		payload_u32(&session->base.payload, 0);
		payload_u32(&session->base.payload, 0);
		metrics_fire(session, &event_version);
	}
	char *refresh = argument_find(what->arguments, "RefreshInterval");
	if (refresh && !argument_number(refresh, &seconds))
		metrics_error(session, &event_error, "RefreshInterval is not a number of seconds");
	free(refresh);
	seconds = seconds < 0.1 ? 0.1 : seconds > 86400 ? 86400 : seconds;
	session->base.consumer = (struct counter_consumer){
		.interval_ns = (uint64_t)(seconds * 1e9),
		.wants = metrics_wants,
		.pass_begin = metrics_pass_begin,
		.instrument_begin = metrics_instrument_begin,
		.instrument_end = metrics_instrument_end,
		.instruments_announced = metrics_announced,
		.reading = metrics_reading,
		.pass_end = metrics_pass_end,
		.failed = metrics_failed,
	};
	(void)counter_session_start(&session->base);
}

int counter_metrics_start(void)
{
	metrics_provider.size = sizeof(metrics_provider);
	metrics_provider.name = "System.Diagnostics.Metrics";
	metrics_provider.events = metrics_events;
	metrics_provider.events_end =
		metrics_events + sizeof(metrics_events) / sizeof(metrics_events[0]);
	metrics_provider.enable = metrics_enable;
	return registry_add_unlogged(&metrics_provider);
}

void counter_metrics_stop(void)
{
	spoor_provider_unregister(&metrics_provider);
	counter_session_end(0, &metrics_provider);
}
