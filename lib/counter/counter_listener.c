/* Counters that the program itself reads: a consumer whose readings are passed to a function. */
#include "lib/counter/counter_registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct spoor_counter_listener {
	struct counter_consumer consumer; /* first */
	struct spoor_counter_listener_options options;
	char *filter;
};

static bool listener_wants(struct counter_consumer *consumer,
	const struct registry_instrument *instrument)
{
	return counter_filter_wants(((struct spoor_counter_listener *)consumer)->filter,
		instrument);
}

static void listener_reading(struct counter_consumer *consumer,
	const struct counter_reading *reading, uint64_t elapsed_ns)
{
	struct spoor_counter_listener *listener = (struct spoor_counter_listener *)consumer;
	const struct registry_series *series = reading->series;
	const struct registry_instrument *instrument = series->instrument;
	struct spoor_counter_value value = {
		.size = sizeof(value),
		.meter = instrument->meter->name,
		.meter_version = instrument->meter->version,
		.name = instrument->name,
		.unit = instrument->unit,
		.description = instrument->description,
		.tags = series->tags,
		.tag_count = series->tag_count,
		.kind = instrument->kind,
		.observable = instrument->observe != NULL,
		.interval_ns = elapsed_ns,
		.value = reading->value,
		.delta = reading->has_delta ? reading->delta : 0,
		.count = reading->count,
		.sum = reading->sum,
		.mean = reading->mean,
		.deviation = reading->deviation,
		.least = reading->least,
		.greatest = reading->greatest,
		.quantile_count = reading->count ? COUNTER_QUANTILES : 0,
		.quantiles = counter_quantiles,
		.quantile_values = reading->quantile,
	};

	/*
	 * False for a gauge that was never set, and for an observable instrument without a value.
	 */
	if (reading->has_value && listener->options.value)
		listener->options.value(listener->options.context, &value);
}

static void listener_pass_end(struct counter_consumer *consumer, uint64_t begin_ns, uint64_t end_ns)
{
	struct spoor_counter_listener *listener = (struct spoor_counter_listener *)consumer;

	if (listener->options.interval_end)
		listener->options.interval_end(listener->options.context, begin_ns, end_ns);
}

struct spoor_counter_listener *
spoor_counter_listener_open(const struct spoor_counter_listener_options *options)
{
	struct spoor_counter_listener *listener = options ? calloc(1, sizeof(*listener)) : NULL;
	int error = options ? -ENOMEM : -EINVAL;

	if (listener) {
		memcpy(&listener->options, options,
			options->size < sizeof(*options) ? options->size : sizeof(*options));
		if (listener->options.meters)
			listener->filter = strdup(listener->options.meters);
		listener->consumer = (struct counter_consumer){
			.interval_ns = listener->options.interval_ns ? listener->options.interval_ns
								     : 1000000000u,
			.wants = listener_wants,
			.reading = listener_reading,
			.pass_end = listener_pass_end,
		};
		if (!listener->options.meters || listener->filter)
			error = counter_consumer_add(&listener->consumer);
	}
	if (error < 0) {
		if (listener)
			free(listener->filter);
		free(listener);
		errno = -error;
		return NULL;
	}
	return listener;
}

void spoor_counter_listener_close(struct spoor_counter_listener *listener)
{
	if (!listener)
		return;
	counter_consumer_remove(&listener->consumer);
	free(listener->filter);
	free(listener);
}
