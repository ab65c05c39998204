/* See counters.h. */
#include "counters/counters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "trace/provider_kind.h"

static const struct {
	const char *name;
	const char *title;
	const char *unit;
} derived[DERIVED_COUNT] = {
	[DERIVED_CPU] = { "cpu", "CPU (of one)", "%" },
	[DERIVED_GC_PAUSE] = { "gc-pause", "GC pause", "%" },
	[DERIVED_ALLOCATED] = { "allocated", "allocated", "By/s" },
};

static struct counter_series *add_series(struct counters *counters, const struct counter_id *id,
	enum counter_kind kind)
{
	struct counter_series *series = vec_push(&counters->series);

	if (!series)
		return NULL;
	series->id = *id;
	series->kind = (uint8_t)kind;
	series->value = series->delta = series->rate = series->count = series->sum = NAN;
	return series;
}

int counters_init(struct counters *counters)
{
	*counters = (struct counters){ .derive = true, .cpu_percent = NAN };
	uint32_t provider = strtab_add_z(&counters->strings, provider_name(PROVIDER_SPOOR));

	for (size_t i = 0; i < DERIVED_COUNT; i++) {
		const struct counter_id id = {
			.source = COUNTER_DERIVED,
			.provider = provider,
			.name = strtab_add_z(&counters->strings, derived[i].name),
		};
		struct counter_series *series =
			provider ? add_series(counters, &id, COUNTER_GAUGE) : NULL;
		if (!series) {
			counters_done(counters);
			return -ENOMEM;
		}
		series->title = strtab_add_z(&counters->strings, derived[i].title);
		series->unit = strtab_add_z(&counters->strings, derived[i].unit);
	}
	return 0;
}

void counters_done(struct counters *counters)
{
	vec_done(&counters->series);
	map_done(&counters->index);
	strtab_done(&counters->strings);
}

uint32_t counters_text(struct counters *counters, const char *text, size_t len)
{
	return strtab_add(&counters->strings, text,
		len < COUNTERS_TEXT_MAX ? len : COUNTERS_TEXT_MAX);
}

static uint64_t id_hash(const struct counter_id *id)
{
	const uint32_t words[] = { (uint32_t)id->source, id->provider, id->version, id->name,
		id->tags, (uint32_t)id->instrument_id };

	return hash_bytes(words, sizeof(words));
}

static bool same_id(const struct counter_id *a, const struct counter_id *b)
{
	return a->source == b->source && a->provider == b->provider && a->version == b->version &&
	       a->name == b->name && a->tags == b->tags && a->instrument_id == b->instrument_id;
}

uint32_t counters_series(struct counters *counters, const struct counter_id *id,
	enum counter_kind kind)
{
	uint64_t hash = id_hash(id);

	for (struct map_walk walk = map_find(&counters->index, hash); walk.value; map_next(&walk)) {
		struct counter_series *series = &counters->series.items[walk.value];
		if (same_id(&series->id, id)) {
			series->kind = (uint8_t)kind;
			return walk.value;
		}
	}
	uint32_t index = counters->series.count;

	if (index >= COUNTERS_SERIES_MAX || !map_add(&counters->index, hash, index)) {
		counters->refused++;
		return 0;
	}
	if (!add_series(counters, id, kind)) {
		map_remove(&counters->index, hash, index);
		counters->refused++;
		return 0;
	}
	return index;
}

static struct counter_open *open_of(struct counters *counters, uint32_t index)
{
	struct counter_series *series = &counters->series.items[index];

	if (!series->open.any) {
		memset(&series->open, 0, sizeof(series->open));
		series->open.value = series->open.count = series->open.sum = NAN;
		series->open.any = true;
	}
	series->ended = false;
	return &series->open;
}

void counters_take_value(struct counters *counters, uint32_t series, double value)
{
	open_of(counters, series)->value = value;
}

void counters_take_delta(struct counters *counters, uint32_t series, double delta, double seconds)
{
	struct counter_open *open = open_of(counters, series);

	open->delta += delta;
	open->seconds += seconds;
	open->has_delta = true;
}

static int by_quantile(const void *a, const void *b)
{
	const struct counter_quantile *one = a;
	const struct counter_quantile *other = b;

	return one->quantile < other->quantile ? -1 : one->quantile > other->quantile;
}

void counters_take_quantiles(struct counters *counters, uint32_t series,
	const struct counter_quantile *quantiles, uint32_t count)
{
	struct counter_open *open = open_of(counters, series);

	if (!count)
		return;
	open->quantile_count = count < COUNTERS_QUANTILES_MAX ? count : COUNTERS_QUANTILES_MAX;
	memcpy(open->quantiles, quantiles, open->quantile_count * sizeof(*quantiles));
	/* the last one is the series' level */
	qsort(open->quantiles, open->quantile_count, sizeof(*quantiles), by_quantile);
}

void counters_take_count(struct counters *counters, uint32_t series, double count, double sum)
{
	struct counter_open *open = open_of(counters, series);

	open->count = isnan(open->count) ? count : open->count + count;
	open->sum = isnan(open->sum) ? sum : open->sum + sum;
}

void counters_take_interval(struct counters *counters, double seconds)
{
	if (seconds > 0 && seconds < 1e9)
		counters->meter_seconds += seconds;
}

void counters_take_cpu(struct counters *counters, uint64_t cpu_ns, uint64_t now_ns)
{
	if (counters->cpu_seen_ns && now_ns > counters->cpu_seen_ns && cpu_ns >= counters->cpu_ns)
		counters->cpu_percent = 100 * (double)(cpu_ns - counters->cpu_ns) /
					(double)(now_ns - counters->cpu_seen_ns);
	counters->cpu_ns = cpu_ns;
	counters->cpu_seen_ns = now_ns;
}

bool counters_any(const struct counters *counters)
{
	for (uint32_t i = DERIVED_COUNT; i < counters->series.count; i++) {
		if (counters->series.items[i].open.any)
			return true;
	}
	return false;
}

double counter_series_level(const struct counter_series *series)
{
	if (series->kind == COUNTER_HISTOGRAM)
		return series->quantile_count ? series->quantiles[series->quantile_count - 1].value
					      : NAN;
	if (series->kind == COUNTER_SUM)
		return series->rate;
	return series->value;
}

static void remember(struct counter_series *series)
{
	series->history[series->history_next] = (float)counter_series_level(series);
	series->history_next = (uint8_t)((series->history_next + 1u) % COUNTERS_HISTORY);
	if (series->history_count < COUNTERS_HISTORY)
		series->history_count++;
}

static void close_series(struct counter_series *series, double meter_seconds)
{
	struct counter_open *open = &series->open;
	bool meter = series->id.source == COUNTER_METER;

	series->fresh = open->any;
	if (!open->any)
		return;
	series->known = true;
	series->seconds = meter ? meter_seconds : open->seconds;
	series->value = open->value;
	series->delta = open->has_delta ? open->delta : NAN;
	series->count = open->count;
	series->sum = open->sum;
	double increments = series->kind == COUNTER_HISTOGRAM ? open->count : series->delta;

	series->rate = series->seconds > 0 ? increments / series->seconds : NAN;
	if (isfinite(increments))
		series->total += increments;
	if (isfinite(open->sum))
		series->total_sum += open->sum;
	series->quantile_count = open->quantile_count;
	memcpy(series->quantiles, open->quantiles, sizeof(series->quantiles));
	open->any = false;
	remember(series);
}

/*
 * The sum of the rates of the series of this name, of all tags; NAN when none is fresh and has one.
 */
static double rate_of(const struct counters *counters, enum counter_source source, const char *name)
{
	double rate = NAN;

	for (uint32_t i = DERIVED_COUNT; i < counters->series.count; i++) {
		const struct counter_series *series = &counters->series.items[i];
		if (!series->fresh || series->id.source != source || isnan(series->rate) ||
			strcmp(strtab_get(&counters->strings, series->id.name), name) != 0 ||
			strcmp(strtab_get(&counters->strings, series->id.provider),
				PROVIDER_SYSTEM_RUNTIME_NAME) != 0)
			continue;
		rate = isnan(rate) ? series->rate : rate + series->rate;
	}
	return rate;
}

static double level_of(const struct counters *counters, const char *name)
{
	for (uint32_t i = DERIVED_COUNT; i < counters->series.count; i++) {
		const struct counter_series *series = &counters->series.items[i];
		if (series->fresh && series->id.source == COUNTER_EVENT_SOURCE &&
			strcmp(strtab_get(&counters->strings, series->id.name), name) == 0 &&
			strcmp(strtab_get(&counters->strings, series->id.provider),
				PROVIDER_SYSTEM_RUNTIME_NAME) == 0)
			return series->value;
	}
	return NAN;
}

/*
 * CPU as the kernel has it, which knows it to the nanosecond and for every runtime. time-in-gc is
 * the share of the time since the last collection but one, not of the interval: taken where there
 * is nothing better.
 */
static void derive(struct counters *counters)
{
	double cpu = counters->cpu_percent;
	double pause = rate_of(counters, COUNTER_METER, "dotnet.gc.pause.time") * 100;
	double allocated = rate_of(counters, COUNTER_METER, "dotnet.gc.heap.total_allocated");

	if (isnan(cpu))
		cpu = rate_of(counters, COUNTER_METER, "dotnet.process.cpu.time") * 100;
	if (isnan(pause))
		pause = rate_of(counters, COUNTER_EVENT_SOURCE, "total-pause-time-by-gc") / 10;
	if (isnan(pause))
		pause = level_of(counters, "time-in-gc");
	if (isnan(allocated))
		allocated = rate_of(counters, COUNTER_EVENT_SOURCE, "alloc-rate");
	const double values[DERIVED_COUNT] = {
		[DERIVED_CPU] = cpu,
		[DERIVED_GC_PAUSE] = pause,
		[DERIVED_ALLOCATED] = allocated,
	};

	for (size_t i = 0; i < DERIVED_COUNT; i++) {
		struct counter_series *series = &counters->series.items[i];
		series->fresh = !isnan(values[i]);
		if (!series->fresh)
			continue;
		series->known = true;
		series->value = values[i];
		remember(series);
	}
}

uint32_t counters_close(struct counters *counters)
{
	uint32_t fresh = 0;

	for (uint32_t i = DERIVED_COUNT; i < counters->series.count; i++) {
		close_series(&counters->series.items[i], counters->meter_seconds);
		fresh += counters->series.items[i].fresh;
	}
	counters->meter_seconds = 0;
	if (counters->derive && fresh)
		derive(counters);
	else
		for (size_t i = 0; i < DERIVED_COUNT; i++)
			counters->series.items[i].fresh = false;
	return fresh;
}

void counters_end_instrument(struct counters *counters, int32_t instrument_id)
{
	for (uint32_t i = DERIVED_COUNT; instrument_id && i < counters->series.count; i++) {
		struct counter_series *series = &counters->series.items[i];
		if (series->id.source == COUNTER_METER && series->id.instrument_id == instrument_id)
			series->ended = true;
	}
}

void counters_end_event_source(struct counters *counters, uint32_t provider)
{
	for (uint32_t i = DERIVED_COUNT; i < counters->series.count; i++) {
		struct counter_series *series = &counters->series.items[i];
		if (series->id.source == COUNTER_EVENT_SOURCE && series->id.provider == provider) {
			series->ended = true;
			series->open.any = false;
		}
	}
}

const char *counter_since_words(const struct counter_series *series)
{
	static const char *const words[] = {
		[COUNTER_SINCE_UNKNOWN] = "",
		[COUNTER_SINCE_PROCESS] = "since process start",
		[COUNTER_SINCE_SESSION] = "since session start",
		[COUNTER_SINCE_EARLIER] = "since before the session",
	};

	return words[series->since];
}

bool counter_series_adds_up(const struct counter_series *series)
{
	return series->kind == COUNTER_SUM ||
	       (series->kind == COUNTER_UPDOWN && series->since > COUNTER_SINCE_PROCESS);
}

bool counter_series_shows(const struct counter_series *series)
{
	return series->known && !series->hidden && !series->ended;
}

void counters_add_label(const struct counters *counters, const struct counter_series *series,
	double interval_s, struct bytes *out)
{
	const char *unit = strtab_get(&counters->strings, series->unit);

	bytes_text(out,
		strtab_get(&counters->strings, series->title ? series->title : series->id.name));
	if (series->kind == COUNTER_SUM)
		bytes_printf(out, " (%s / %g sec)", *unit ? unit : "Count", interval_s);
	else if (*unit)
		bytes_printf(out, " (%s)", unit);
}
