/*
 * The registry of counters: meters, their instruments, the series of an instrument. Opening,
 * closing and looking up are rare and take the one lock. Adding is inline in
 * include/spoor/counter.h and takes none.
 *
 * Invariants, under the lock: a series is in its instrument's list exactly while its refs are above
 * 0; an instrument is in its meter's list exactly while it has a series; no two series of the
 * process have the same index and birth.
 */
#include "lib/counter/counter_registry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t counter_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct counter_meter *meters;
static uint32_t series_limit;
static uint32_t series_births;
static uint32_t instrument_births;
static uint32_t *free_index;
static uint32_t free_count;
static uint32_t free_capacity;

/* Returned when memory has run out: accepts all values, and no consumer reads it. */
static _Alignas(64) struct spoor_counter counter_nowhere;

__thread unsigned spoor_counter_stripe_;

unsigned spoor_counter_stripe_take_(void)
{
	static unsigned taken;

	/*
	 * A signal handler that interrupts here takes another stripe, and this assignment replaces
	 * it. That is harmless: a stripe may have several threads, and the addition is atomic.
	 */
	spoor_counter_stripe_ =
		__atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED) % SPOOR_COUNTER_STRIPES + 1;
	return spoor_counter_stripe_;
}

void counter_registry_lock(void)
{
	(void)pthread_mutex_lock(&counter_mutex);
}

void counter_registry_unlock(void)
{
	(void)pthread_mutex_unlock(&counter_mutex);
}

struct counter_meter *counter_meter_list(void)
{
	return meters;
}

uint32_t counter_series_limit(void)
{
	return series_limit;
}

/* A copy of at most COUNTER_NAME_MAX bytes, cut between two characters. */
static char *counter_text(const char *text)
{
	size_t length = text ? strnlen(text, COUNTER_NAME_MAX + 1) : 0;

	if (length > COUNTER_NAME_MAX) {
		length = COUNTER_NAME_MAX;
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	char *copy = malloc(length + 1);
	if (!copy)
		return NULL;
	if (length)
		memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

static bool counter_tags_equal(const struct registry_series *series, const struct spoor_tag *tags,
	size_t count)
{
	if (series->tag_count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(series->tags[i].name, tags[i].name) != 0 ||
			strcmp(series->tags[i].value, tags[i].value) != 0)
			return false;
	return true;
}

static int counter_tags_check(const struct spoor_tag *tags, size_t count)
{
	size_t bytes = 0;

	if (count && !tags)
		return -EINVAL;
	if (count > COUNTER_TAGS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < count; i++) {
		if (!tags[i].name || !tags[i].value || !*tags[i].name)
			return -EINVAL;
		bytes += strlen(tags[i].name) + strlen(tags[i].value) + 2;
		if (bytes > COUNTER_TAGS_MAX * COUNTER_NAME_MAX)
			return -E2BIG;
	}
	return 0;
}

/* Copies the tags and their line, one block each. */
static int counter_tags_copy(struct registry_series *series, const struct spoor_tag *tags,
	size_t count)
{
	size_t bytes = 1;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(tags[i].name) + strlen(tags[i].value) + 2;
	series->tags = malloc(count * sizeof(*tags) + bytes);
	series->tags_text = malloc(bytes);
	if (!series->tags || !series->tags_text)
		return -ENOMEM;
	char *to = (char *)(series->tags + count);
	char *line = series->tags_text;
	for (size_t i = 0; i < count; i++) {
		size_t name = strlen(tags[i].name), value = strlen(tags[i].value);
		series->tags[i].name = memcpy(to, tags[i].name, name + 1);
		series->tags[i].value = memcpy(to + name + 1, tags[i].value, value + 1);
		to += name + value + 2;
		if (i > 0)
			*line++ = ',';
		memcpy(line, tags[i].name, name);
		line[name] = '=';
		memcpy(line + name + 1, tags[i].value, value);
		line += name + 1 + value;
	}
	*line = '\0';
	series->tag_count = (uint32_t)count;
	return 0;
}

static void counter_series_release(struct registry_series *series)
{
	free(series->histogram);
	free(series->tags);
	free(series->tags_text);
	free(series);
}

void counter_series_free(struct registry_series *series)
{
	/*
	 * No memory to store the free index: it is not used again, and its place in the tables of
	 * readers is lost.
	 */
	if (free_count == free_capacity) {
		uint32_t capacity = free_capacity ? free_capacity * 2 : 64;
		uint32_t *grown = realloc(free_index, capacity * sizeof(*grown));
		if (grown) {
			free_index = grown;
			free_capacity = capacity;
		}
	}
	if (free_count < free_capacity)
		free_index[free_count++] = series->index;
	counter_series_release(series);
}

static void counter_meter_unref(struct counter_meter *meter)
{
	if (--meter->refs > 0)
		return;
	free(meter->name);
	free(meter->version);
	free(meter);
}

void counter_instrument_ref(struct registry_instrument *instrument)
{
	instrument->refs++;
}

void counter_instrument_unref(struct registry_instrument *instrument)
{
	if (--instrument->refs > 0)
		return;
	counter_meter_unref(instrument->meter);
	free(instrument->name);
	free(instrument->unit);
	free(instrument->description);
	free(instrument);
}

/* A new series at the end of the instrument's list. The lock is held. */
static struct registry_series *counter_series_new(struct registry_instrument *instrument,
	const struct spoor_tag *tags, size_t count)
{
	struct registry_series *series = aligned_alloc(64, (sizeof(*series) + 63) & ~(size_t)63);

	if (!series)
		return NULL;
	memset(series, 0, sizeof(*series));
	if (counter_tags_copy(series, tags, count) < 0) {
		counter_series_release(series);
		return NULL;
	}
	if (instrument->kind == SPOOR_HISTOGRAM) {
		series->histogram = counter_histogram_new();
		if (!series->histogram) {
			counter_series_release(series);
			return NULL;
		}
	}
	if (instrument->kind == SPOOR_GAUGE) {
		double none = NAN; /* until the first value is set */
		memcpy(&series->counter.stripe[0].value, &none, sizeof(none));
	}
	series->index = free_count > 0 ? free_index[--free_count] : series_limit++;
	series->birth = ++series_births;
	series->refs = 1;
	series->instrument = instrument;
	counter_instrument_ref(instrument);
	instrument->series_count++;
	struct registry_series **end = &instrument->series;
	while (*end)
		end = &(*end)->next;
	*end = series;
	return series;
}

/* Finds or makes the series with these tags. The lock is held. */
static struct registry_series *counter_series_get(struct registry_instrument *instrument,
	const struct spoor_tag *tags, size_t count)
{
	static const struct spoor_tag overflow_tag = { "otel.metric.overflow", "true" };
	struct registry_series *series;

	for (series = instrument->series; series; series = series->next)
		if (counter_tags_equal(series, tags, count)) {
			series->refs++;
			return series;
		}
	if (instrument->series_count >= instrument->series_max) {
		if (instrument->overflow) {
			instrument->overflow->refs++;
			return instrument->overflow;
		}
		tags = &overflow_tag;
		count = 1;
	}
	series = counter_series_new(instrument, tags, count);
	if (series && tags == &overflow_tag)
		instrument->overflow = series;
	return series;
}

static struct spoor_counter *counter_give(struct registry_series *series, int error)
{
	if (series)
		return &series->counter;
	errno = error;
	return &counter_nowhere;
}

struct spoor_meter *spoor_meter_open(const char *name, const char *version)
{
	struct counter_meter *meter;

	if (!name || !*name) {
		errno = EINVAL;
		return NULL;
	}
	counter_fork_arrange();
	counter_registry_lock();
	for (meter = meters; meter; meter = meter->next)
		if (strncmp(meter->name, name, COUNTER_NAME_MAX) == 0) {
			meter->opened++;
			counter_registry_unlock();
			return (struct spoor_meter *)meter;
		}
	meter = calloc(1, sizeof(*meter));
	if (meter) {
		meter->name = counter_text(name);
		meter->version = counter_text(version);
		meter->refs = 1;
		meter->opened = 1;
	}
	if (!meter || !meter->name || !meter->version) {
		if (meter)
			counter_meter_unref(meter);
		counter_registry_unlock();
		errno = ENOMEM;
		return NULL;
	}
	struct counter_meter **end = &meters;
	while (*end)
		end = &(*end)->next;
	*end = meter;
	counter_registry_unlock();
	counter_meter_opened(meter);
	return (struct spoor_meter *)meter;
}

/* Removes an instrument from its meter. The lock is held. */
static void counter_instrument_close(struct registry_instrument *instrument)
{
	for (struct registry_instrument **at = &instrument->meter->instruments; *at;
		at = &(*at)->next)
		if (*at == instrument) {
			*at = instrument->next;
			break;
		}
	instrument->next = NULL;
	instrument->closed = true;
}

/*
 * Removes a series from its instrument, and the instrument with its last series. The lock is held.
 */
static void counter_series_close(struct registry_series *series)
{
	struct registry_instrument *instrument = series->instrument;

	for (struct registry_series **at = &instrument->series; *at; at = &(*at)->next)
		if (*at == series) {
			*at = series->next;
			break;
		}
	series->next = NULL;
	if (instrument->overflow == series)
		instrument->overflow = NULL;
	instrument->series_count--;
	if (!instrument->series)
		counter_instrument_close(instrument);
	/* If a pass has the series on its list, the pass frees it at its end. */
	if (!counter_pass_keep(series)) {
		counter_instrument_unref(instrument);
		counter_series_free(series);
	}
}

void spoor_meter_close(struct spoor_meter *handle)
{
	struct counter_meter *meter = (struct counter_meter *)handle;

	if (!meter)
		return;
	counter_registry_lock();
	if (--meter->opened > 0) {
		counter_registry_unlock();
		return;
	}
	for (struct counter_meter **at = &meters; *at; at = &(*at)->next)
		if (*at == meter) {
			*at = meter->next;
			break;
		}
	while (meter->instruments) {
		struct registry_instrument *instrument = meter->instruments;
		counter_instrument_ref(instrument);
		while (instrument->series)
			counter_series_close(instrument->series);
		counter_observe_wait(instrument);
		counter_instrument_unref(instrument);
	}
	counter_registry_unlock();
	/* References of consumers end with the consumers. */
	counter_meter_closed(meter);
	counter_registry_lock();
	counter_meter_unref(meter);
	counter_registry_unlock();
}

struct spoor_counter *spoor_counter_open(struct spoor_meter *handle, enum spoor_counter_kind kind,
	const char *name, const struct spoor_counter_options *options)
{
	struct counter_meter *meter = (struct counter_meter *)handle;
	struct spoor_counter_options given = { 0 };
	struct registry_instrument *instrument;

	if (options)
		memcpy(&given, options,
			options->size < sizeof(given) ? options->size : sizeof(given));
	if (!meter || !name || !*name || kind < SPOOR_COUNTER || kind > SPOOR_HISTOGRAM ||
		(given.observe && kind == SPOOR_HISTOGRAM))
		return counter_give(NULL, EINVAL);
	int error = counter_tags_check(given.tags, given.tag_count);
	if (error < 0)
		return counter_give(NULL, -error);

	counter_registry_lock();
	for (instrument = meter->instruments; instrument; instrument = instrument->next)
		if (instrument->kind == kind &&
			strncmp(instrument->name, name, COUNTER_NAME_MAX) == 0)
			break;
	if (!instrument) {
		instrument = calloc(1, sizeof(*instrument));
		if (!instrument) {
			counter_registry_unlock();
			return counter_give(NULL, ENOMEM);
		}
		*instrument = (struct registry_instrument){
			.meter = meter,
			.name = counter_text(name),
			.unit = counter_text(given.unit),
			.description = counter_text(given.description),
			.kind = kind,
			.observe = given.observe,
			.context = given.context,
			.series_max = given.series_max ? given.series_max : COUNTER_SERIES_DEFAULT,
			.id = ++instrument_births,
		};
		meter->refs++;
		if (instrument->name && instrument->unit && instrument->description) {
			struct registry_instrument **end = &meter->instruments;
			while (*end)
				end = &(*end)->next;
			*end = instrument;
		}
	}
	/* Keeps the instrument if the next step fails: an instrument without a series is freed. */
	counter_instrument_ref(instrument);
	struct registry_series *series = NULL;
	if (instrument->name && instrument->unit && instrument->description)
		series = counter_series_get(instrument, given.tags, given.tag_count);
	if (!series && !instrument->series)
		counter_instrument_close(instrument);
	counter_instrument_unref(instrument);
	counter_registry_unlock();
	return counter_give(series, ENOMEM);
}

struct spoor_counter *spoor_counter_tagged(struct spoor_counter *counter,
	const struct spoor_tag *tags, size_t tag_count)
{
	int error = counter ? counter_tags_check(tags, tag_count) : -EINVAL;

	if (error < 0)
		return counter_give(NULL, -error);
	if (counter == &counter_nowhere)
		return counter_give(NULL, ENOMEM);
	counter_registry_lock();
	struct registry_series *series =
		counter_series_get(((struct registry_series *)counter)->instrument, tags,
			tag_count);
	counter_registry_unlock();
	return counter_give(series, ENOMEM);
}

void spoor_counter_close(struct spoor_counter *counter)
{
	struct registry_series *series = (struct registry_series *)counter;

	if (!counter || counter == &counter_nowhere)
		return;
	counter_registry_lock();
	if (--series->refs == 0) {
		struct registry_instrument *instrument = series->instrument;
		counter_instrument_ref(instrument);
		counter_series_close(series);
		if (instrument->closed)
			counter_observe_wait(instrument);
		counter_instrument_unref(instrument);
	}
	counter_registry_unlock();
}

void spoor_histogram_record(struct spoor_counter *counter, double value)
{
	unsigned stripe = spoor_counter_stripe_;

	if (counter == &counter_nowhere)
		return;
	if (__builtin_expect(stripe == 0, 0))
		stripe = spoor_counter_stripe_take_();
	struct counter_histogram *histogram = ((struct registry_series *)counter)->histogram;
	if (histogram)
		counter_histogram_record(histogram, stripe - 1, value);
}
