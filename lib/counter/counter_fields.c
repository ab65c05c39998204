/*
 * A meter as EventCounters: the provider with its name, whose event "EventCounters" carries one
 * reading. It has the two layouts of .NET: a value with its spread ("Mean") and an increment
 * ("Sum"). The event ids are high, so that a provider of the program with the same name may use the
 * ids from 1 up.
 */
#include "lib/counter/counter_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/counter/counter_arguments.h"
#include "lib/event/field_size.h"
#include "lib/event/payload.h"
#include "lib/event/provider.h"

#define EVENT_ID_MEAN 65280u
#define EVENT_ID_SUM  65281u

static const struct spoor_field fields_mean[] = { FIELD("Name", TEXT), FIELD("DisplayName", TEXT),
	FIELD("Mean", F64), FIELD("StandardDeviation", F64), FIELD("Count", I32), FIELD("Min", F64),
	FIELD("Max", F64), FIELD("IntervalSec", F32), FIELD("Series", TEXT),
	FIELD("CounterType", TEXT), FIELD("Metadata", TEXT), FIELD("DisplayUnits", TEXT) };
static const struct spoor_field fields_sum[] = { FIELD("Name", TEXT), FIELD("DisplayName", TEXT),
	FIELD("DisplayRateTimeScale", TEXT), FIELD("Increment", F64), FIELD("IntervalSec", F32),
	FIELD("Metadata", TEXT), FIELD("Series", TEXT), FIELD("CounterType", TEXT),
	FIELD("DisplayUnits", TEXT) };
/* As EventSource writes it: an unnamed object that contains the object "Payload". */
static const struct spoor_field payload_mean[] = { { "Payload", SPOOR_TYPE_STRUCT,
	sizeof(fields_mean) / sizeof(*fields_mean), fields_mean } };
static const struct spoor_field payload_sum[] = { { "Payload", SPOOR_TYPE_STRUCT,
	sizeof(fields_sum) / sizeof(*fields_sum), fields_sum } };
static const struct spoor_field event_mean[] = { { "", SPOOR_TYPE_STRUCT, 1, payload_mean } };
static const struct spoor_field event_sum[] = { { "", SPOOR_TYPE_STRUCT, 1, payload_sum } };

/* The provider of a meter. Exists until the meter and the last session have released it. */
struct meter_provider {
	struct spoor_provider provider;
	struct spoor_event mean;
	struct spoor_event sum;
	struct spoor_event *events[2];
	struct counter_meter *meter;
	uint32_t refs; /* one of the meter, one of each session; atomic */
};

struct events_session {
	struct counter_session base; /* first */
	struct meter_provider *provider;
	char series[40];
};

static void meter_provider_unref(struct meter_provider *provider)
{
	if (__atomic_sub_fetch(&provider->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(provider);
}

static bool events_want(struct counter_consumer *consumer,
	const struct registry_instrument *instrument)
{
	return instrument->meter == ((struct events_session *)consumer)->provider->meter;
}

/*
 * Tags as "name:value,name:value". A comma or colon inside a tag would make the reader reject all
 * tags.
 */
static void events_metadata(struct outbuf *out, const struct registry_series *series)
{
	char text[4096];
	size_t length = 0;

	for (uint32_t i = 0; i < series->tag_count && length + 4 < sizeof(text); i++) {
		const char *const parts[2] = { series->tags[i].name, series->tags[i].value };
		if (i > 0)
			text[length++] = ',';
		for (unsigned part = 0; part < 2; part++) {
			for (const char *c = parts[part]; *c && length + 3 < sizeof(text); c++)
				text[length++] = *c == ',' ? ';' : *c == ':' ? '.' : *c;
			if (part == 0)
				text[length++] = ':';
		}
	}
	payload_text_of(out, text, length);
}

static void events_reading(struct counter_consumer *consumer, const struct counter_reading *reading,
	uint64_t elapsed_ns)
{
	struct events_session *session = (struct events_session *)consumer;
	const struct registry_series *series = reading->series;
	const struct registry_instrument *instrument = series->instrument;
	struct outbuf *out = &session->base.payload;
	const char *shown = *instrument->description ? instrument->description : instrument->name;
	float seconds = (float)((double)elapsed_ns / 1e9);
	bool histogram = instrument->kind == SPOOR_HISTOGRAM;

	if (!reading->has_value)
		return;
	outbuf_reset(out);
	payload_text(out, instrument->name);
	payload_text(out, shown);
	if (instrument->kind == SPOOR_COUNTER) {
		payload_text(out, "");
		payload_f64(out, reading->has_delta ? reading->delta : 0);
		payload_f32(out, seconds);
		events_metadata(out, series);
		payload_text(out, session->series);
		payload_text(out, "Sum");
		payload_text(out, instrument->unit);
		counter_session_fire(&session->base, &session->provider->sum);
		return;
	}
	bool empty = histogram && !reading->count;
	payload_f64(out, histogram ? reading->mean : reading->value);
	payload_f64(out, histogram ? reading->deviation : 0);
	payload_u32(out, !histogram                   ? 1
			 : reading->count < INT32_MAX ? (uint32_t)reading->count
						      : INT32_MAX);
	payload_f64(out, empty ? INFINITY : histogram ? reading->least : reading->value);
	payload_f64(out, empty ? -INFINITY : histogram ? reading->greatest : reading->value);
	payload_f32(out, seconds);
	payload_text(out, session->series);
	payload_text(out, "Mean");
	events_metadata(out, series);
	payload_text(out, instrument->unit);
	counter_session_fire(&session->base, &session->provider->mean);
}

static void events_release(struct counter_session *base)
{
	struct events_session *session = (struct events_session *)base;

	meter_provider_unref(session->provider);
	free(session);
}

static void events_enable(const struct spoor_enable *what, void *context)
{
	struct meter_provider *provider = context;
	double seconds = 0;

	counter_session_end(what->session_id, provider);
	char *interval =
		what->enabled ? argument_find(what->arguments, "EventCounterIntervalSec") : NULL;
	bool wanted = interval && argument_number(interval, &seconds) && seconds > 0;
	free(interval);
	if (!wanted)
		return;
	struct events_session *session = calloc(1, sizeof(*session));
	if (!session)
		return;
	seconds = seconds < 0.01 ? 0.01 : seconds > 86400 ? 86400 : seconds;
	session->base.session_id = what->session_id;
	session->base.owner = provider;
	session->base.release = events_release;
	session->provider = provider;
	(void)__atomic_add_fetch(&provider->refs, 1, __ATOMIC_ACQ_REL);
	(void)snprintf(session->series, sizeof(session->series), "Interval=%u",
		(unsigned)(seconds * 1000 + 0.5));
	session->base.consumer = (struct counter_consumer){
		.interval_ns = (uint64_t)(seconds * 1e9),
		.wants = events_want,
		.reading = events_reading,
	};
	(void)counter_session_start(&session->base);
}

void counter_meter_opened(struct counter_meter *meter)
{
	struct meter_provider *provider = calloc(1, sizeof(*provider));

	/* Without it the meter still works for listeners and for System.Diagnostics.Metrics. */
	if (!provider)
		return;
	provider->refs = 1;
	provider->meter = meter;
	provider->mean = (struct spoor_event){ .size = sizeof(provider->mean),
		.provider = &provider->provider,
		.name = "EventCounters",
		.fields = event_mean,
		.field_count = 1,
		.id = EVENT_ID_MEAN,
		.level = SPOOR_ALWAYS };
	provider->sum = (struct spoor_event){ .size = sizeof(provider->sum),
		.provider = &provider->provider,
		.name = "EventCounters",
		.fields = event_sum,
		.field_count = 1,
		.id = EVENT_ID_SUM,
		.level = SPOOR_ALWAYS };
	provider->events[0] = &provider->mean;
	provider->events[1] = &provider->sum;
	provider->provider = (struct spoor_provider){
		.size = sizeof(provider->provider),
		.name = meter->name,
		.events = provider->events,
		.events_end = provider->events + 2,
		.enable = events_enable,
		.enable_context = provider,
	};
	meter->provider = provider;
	(void)registry_add_unlogged(&provider->provider);
}

void counter_meter_closed(struct counter_meter *meter)
{
	struct meter_provider *provider = meter->provider;

	if (!provider)
		return;
	spoor_provider_unregister(&provider->provider);
	counter_session_end(0, provider);
	meter_provider_unref(provider);
}
