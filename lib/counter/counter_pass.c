/*
 * The thread that reads counters. A pass lists all series under the lock. Then, without the lock,
 * each consumer that is due gets the instruments that were opened and closed, and its readings.
 * During a pass, series on its list are not freed: those that are closed meanwhile wait in `trash`.
 *
 * Invariants, under the lock: `counter_current` is the consumer whose callbacks may run,
 * `observing` the instrument whose `observe` may run; NULL if none. A thread of an older
 * `generation` takes the lock, changes nothing and ends.
 */
#include "lib/counter/counter_registry.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The last values of a series that a consumer has seen. */
struct counter_slot {
	uint32_t birth; /* of the series; 0: none */
	bool seen;
	double value;
	double sum;
	uint32_t *bucket;
};

struct counter_memory {
	struct counter_slot *slot;
	uint32_t slot_count;
	/* instruments that were announced, sorted by id; each is a reference */
	struct registry_instrument **announced;
	uint32_t announced_count;
	uint32_t announced_capacity;
};

static pthread_cond_t counter_wake; /* for the thread: a consumer was added or removed */
/* for other threads: counter_current or observing has changed */
static pthread_cond_t counter_calm;
static bool conditions_ready;
static pthread_t counter_thread;
static bool counter_thread_there;
static uint64_t counter_generation;
static struct counter_consumer *consumers;
static struct counter_consumer *counter_current;
static const struct registry_instrument *observing;
static struct registry_series **pass_list;
static uint32_t pass_count;
static uint32_t pass_capacity;
static bool pass_runs;
static struct registry_series *trash;

static uint64_t counter_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int counter_conditions_make(void)
{
	pthread_condattr_t attributes;

	if (conditions_ready)
		return 0;
	if (pthread_condattr_init(&attributes))
		return -ENOMEM;
	int error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (!error)
		error = pthread_cond_init(&counter_wake, &attributes);
	if (!error)
		error = pthread_cond_init(&counter_calm, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	conditions_ready = !error;
	return -error;
}

bool counter_thread_is_self(void)
{
	counter_registry_lock();
	bool self = counter_thread_there && pthread_equal(pthread_self(), counter_thread);
	counter_registry_unlock();
	return self;
}

bool counter_pass_keep(struct registry_series *series)
{
	if (!pass_runs)
		return false;
	series->next = trash;
	trash = series;
	return true;
}

void counter_observe_wait(const struct registry_instrument *instrument)
{
	/* Called by `observe` itself, which is responsible for its own memory. */
	if (counter_thread_there && pthread_equal(pthread_self(), counter_thread))
		return;
	while (observing == instrument)
		(void)pthread_cond_wait(&counter_calm, &counter_mutex);
}

/* Does one name match one item of a filter: equal, or equal up to a star? */
static bool counter_pattern_fits(const char *pattern, size_t length, const char *name)
{
	if (length > 0 && pattern[length - 1] == '*')
		return strncmp(pattern, name, length - 1) == 0;
	return strncmp(pattern, name, length) == 0 && name[length] == '\0';
}

bool counter_filter_wants(const char *filter, const struct registry_instrument *instrument)
{
	if (!filter)
		return true;
	while (*filter) {
		size_t length = strcspn(filter, ",;\r\n");
		const char *end = filter + length;
		while (filter < end && *filter == ' ')
			filter++;
		while (end > filter && end[-1] == ' ')
			end--;
		const char *slash = memchr(filter, '\\', (size_t)(end - filter));
		if (slash ? counter_pattern_fits(filter, (size_t)(slash - filter),
				    instrument->meter->name) &&
					counter_pattern_fits(slash + 1, (size_t)(end - slash - 1),
						instrument->name)
			  : end > filter && counter_pattern_fits(filter, (size_t)(end - filter),
						    instrument->meter->name))
			return true;
		filter += strcspn(filter, ",;\r\n");
		filter += *filter != '\0';
	}
	return false;
}

/*
 * Lists all series in the order of meters, instruments and series. The lock is held. False: no
 * memory.
 */
static bool counter_pass_list(void)
{
	pass_count = 0;
	for (struct counter_meter *meter = counter_meter_list(); meter; meter = meter->next)
		for (struct registry_instrument *instrument = meter->instruments; instrument;
			instrument = instrument->next)
			for (struct registry_series *series = instrument->series; series;
				series = series->next) {
				if (pass_count == pass_capacity) {
					uint32_t capacity = pass_capacity ? pass_capacity * 2 : 256;
					struct registry_series **grown =
						realloc(pass_list, capacity * sizeof(*grown));
					if (!grown)
						return false;
					pass_list = grown;
					pass_capacity = capacity;
				}
				pass_list[pass_count++] = series;
			}
	return true;
}

/* The index of an id among the announced instruments, or where to insert it. */
static uint32_t counter_announced_place(const struct counter_memory *memory, uint32_t id)
{
	uint32_t low = 0, high = memory->announced_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (memory->announced[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds an instrument to the announced ones; false: it was announced already, or no memory. */
static bool counter_announced_add(struct counter_memory *memory,
	struct registry_instrument *instrument)
{
	uint32_t place = counter_announced_place(memory, instrument->id);

	if (place < memory->announced_count && memory->announced[place] == instrument)
		return false;
	if (memory->announced_count == memory->announced_capacity) {
		uint32_t capacity =
			memory->announced_capacity ? memory->announced_capacity * 2 : 64;
		struct registry_instrument **grown =
			realloc(memory->announced, capacity * sizeof(*grown));
		if (!grown)
			return false;
		memory->announced = grown;
		memory->announced_capacity = capacity;
	}
	memmove(memory->announced + place + 1, memory->announced + place,
		(memory->announced_count - place) * sizeof(*memory->announced));
	memory->announced[place] = instrument;
	memory->announced_count++;
	counter_registry_lock();
	counter_instrument_ref(instrument);
	counter_registry_unlock();
	return true;
}

/* Announces to a consumer that instruments were closed. */
static void counter_announced_sweep(struct counter_consumer *consumer)
{
	struct counter_memory *memory = consumer->memory;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < memory->announced_count; i++) {
		struct registry_instrument *instrument = memory->announced[i];
		counter_registry_lock();
		bool closed = instrument->closed;
		counter_registry_unlock();
		if (!closed) {
			memory->announced[kept++] = instrument;
			continue;
		}
		if (consumer->instrument_end)
			consumer->instrument_end(consumer, instrument);
		counter_registry_lock();
		counter_instrument_unref(instrument);
		counter_registry_unlock();
	}
	memory->announced_count = kept;
}

/* The slot of a series, made when it is first seen; NULL: no memory. */
static struct counter_slot *counter_slot_get(struct counter_memory *memory,
	const struct registry_series *series)
{
	if (series->index >= memory->slot_count) {
		uint32_t count = series->index + 64;
		struct counter_slot *grown = realloc(memory->slot, count * sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + memory->slot_count, 0,
			(count - memory->slot_count) * sizeof(*grown));
		memory->slot = grown;
		memory->slot_count = count;
	}
	struct counter_slot *slot = &memory->slot[series->index];
	if (slot->birth != series->birth) {
		free(slot->bucket);
		*slot = (struct counter_slot){ .birth = series->birth };
	}
	if (series->histogram && !slot->bucket) {
		slot->bucket = calloc(HISTOGRAM_BUCKETS, sizeof(*slot->bucket));
		if (!slot->bucket)
			return NULL;
	}
	return slot;
}

static int64_t counter_sum(const struct registry_series *series)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SPOOR_COUNTER_STRIPES; i++)
		sum += (uint64_t)__atomic_load_n(&series->counter.stripe[i].value,
			__ATOMIC_RELAXED);
	return (int64_t)sum;
}

static double counter_gauge(const struct registry_series *series)
{
	int64_t bits = __atomic_load_n(&series->counter.stripe[0].value, __ATOMIC_RELAXED);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Calls an observable instrument; NAN: it has no value, or was closed. */
static double counter_observe(struct registry_instrument *instrument)
{
	double value = NAN;

	counter_registry_lock();
	bool ask = !instrument->closed;
	observing = ask ? instrument : NULL;
	counter_registry_unlock();
	if (!ask)
		return value;
	value = instrument->observe(instrument->context);
	counter_registry_lock();
	observing = NULL;
	(void)pthread_cond_broadcast(&counter_calm);
	counter_registry_unlock();
	return value;
}

static void counter_read(const struct registry_series *series, struct counter_slot *slot,
	struct counter_reading *ret_reading)
{
	struct registry_instrument *instrument = series->instrument;
	struct counter_reading reading = { .series = series };

	if (series->histogram) {
		counter_histogram_read(series->histogram, slot->bucket, &slot->sum, &reading);
		reading.has_value = true;
	} else {
		if (instrument->observe)
			reading.value = counter_observe(instrument);
		else if (instrument->kind == SPOOR_GAUGE)
			reading.value = counter_gauge(series);
		else
			reading.value = (double)counter_sum(series);
		reading.has_value = !isnan(reading.value);
		/*
		 * The sums of a new series start at 0. An observable instrument has no difference
		 * in its first interval.
		 */
		reading.has_delta = reading.has_value && (slot->seen || !instrument->observe);
		if (reading.has_delta)
			reading.delta = reading.value - slot->value;
		if (reading.has_value) {
			slot->value = reading.value;
			slot->seen = true;
		}
	}
	*ret_reading = reading;
}

static bool counter_consumer_has_ended(const struct counter_consumer *consumer)
{
	return __atomic_load_n(&consumer->ended, __ATOMIC_RELAXED);
}

/*
 * One pass of one consumer, without the lock. The consumer stays valid: counter_consumer_remove()
 * waits for `counter_current`.
 */
static void counter_consumer_run(struct counter_consumer *consumer, uint64_t now_ns)
{
	struct counter_memory *memory = consumer->memory;
	bool first = !consumer->announced;
	uint64_t begin_ns = consumer->begin_ns;

	counter_announced_sweep(consumer);
	if (!first && consumer->pass_begin)
		consumer->pass_begin(consumer, begin_ns, now_ns);
	for (uint32_t i = 0; i < pass_count && !counter_consumer_has_ended(consumer); i++) {
		struct registry_series *series = pass_list[i];
		struct counter_slot *slot;
		struct counter_reading reading;

		if (consumer->wants && !consumer->wants(consumer, series->instrument))
			continue;
		slot = counter_slot_get(memory, series);
		if (!slot) {
			if (consumer->failed)
				consumer->failed(consumer,
					"no memory for a time series: it is not shown");
			continue;
		}
		if (counter_announced_add(memory, series->instrument) && consumer->instrument_begin)
			consumer->instrument_begin(consumer, series->instrument);
		/*
		 * The first pass only stores the current values and calls no observable instrument.
		 */
		if (first && series->instrument->observe)
			continue;
		counter_read(series, slot, &reading);
		if (!first)
			consumer->reading(consumer, &reading, now_ns - begin_ns);
	}
	if (first && consumer->instruments_announced && !counter_consumer_has_ended(consumer))
		consumer->instruments_announced(consumer);
	if (!first && consumer->pass_end && !counter_consumer_has_ended(consumer))
		consumer->pass_end(consumer, begin_ns, now_ns);
	consumer->announced = true;
	consumer->begin_ns = now_ns;
}

/* Under the lock. */
static void counter_memory_free(struct counter_memory *memory)
{
	for (uint32_t i = 0; i < memory->slot_count; i++)
		free(memory->slot[i].bucket);
	for (uint32_t i = 0; i < memory->announced_count; i++)
		counter_instrument_unref(memory->announced[i]);
	free(memory->slot);
	free(memory->announced);
	free(memory);
}

/*
 * Removes a consumer from the list and frees the memory that the thread has for it. The lock is
 * held.
 */
static void counter_consumer_unlink(struct counter_consumer *consumer)
{
	struct counter_memory *memory = consumer->memory;

	for (struct counter_consumer **at = &consumers; *at; at = &(*at)->next)
		if (*at == consumer) {
			*at = consumer->next;
			break;
		}
	if (memory)
		counter_memory_free(memory);
	consumer->memory = NULL;
}

/* The consumer that is due first, if it is due now. The lock is held. */
static struct counter_consumer *counter_consumer_next(uint64_t now_ns, uint64_t *ret_due_ns)
{
	struct counter_consumer *next = NULL;

	for (struct counter_consumer *consumer = consumers; consumer; consumer = consumer->next)
		if (!consumer->ended && (!next || consumer->due_ns < next->due_ns))
			next = consumer;
	*ret_due_ns = next ? next->due_ns : UINT64_MAX;
	return next && next->due_ns <= now_ns ? next : NULL;
}

/* A retired consumer whose last callback is due. The lock is held. */
static struct counter_consumer *counter_consumer_retired(void)
{
	for (struct counter_consumer *consumer = consumers; consumer; consumer = consumer->next)
		if (consumer->ended && consumer->retired)
			return consumer;
	return NULL;
}

static void counter_trash_empty(void)
{
	while (trash) {
		struct registry_series *series = trash;
		trash = series->next;
		counter_instrument_unref(series->instrument);
		counter_series_free(series);
	}
}

static void *counter_thread_main(void *argument)
{
	uint64_t generation = (uint64_t)(uintptr_t)argument;

	counter_registry_lock();
	while (generation == counter_generation) {
		uint64_t now_ns = counter_now_ns(), due_ns;
		struct counter_consumer *consumer = counter_consumer_retired();
		if (consumer) {
			counter_consumer_unlink(consumer);
			counter_registry_unlock();
			consumer->retired(consumer);
			counter_registry_lock();
			(void)pthread_cond_broadcast(&counter_calm);
			continue;
		}
		consumer = counter_consumer_next(now_ns, &due_ns);
		if (!consumer) {
			struct timespec until = { .tv_sec = (time_t)(due_ns / 1000000000u),
				.tv_nsec = (long)(due_ns % 1000000000u) };
			if (due_ns == UINT64_MAX)
				(void)pthread_cond_wait(&counter_wake, &counter_mutex);
			else
				(void)pthread_cond_timedwait(&counter_wake, &counter_mutex, &until);
			continue;
		}
		bool listed = counter_pass_list();
		counter_current = consumer;
		pass_runs = true;
		counter_registry_unlock();

		if (listed)
			counter_consumer_run(consumer, now_ns);
		else if (consumer->failed)
			consumer->failed(consumer,
				"no memory for the list of time series: an interval is left out");

		counter_registry_lock();
		pass_runs = false;
		counter_current = NULL;
		counter_trash_empty();
		/* If a pass took longer than an interval, the missed intervals are skipped. */
		consumer->due_ns += consumer->interval_ns;
		if (consumer->due_ns <= now_ns)
			consumer->due_ns = now_ns + consumer->interval_ns;
		if (consumer->ended && !consumer->retired)
			counter_consumer_unlink(consumer);
		(void)pthread_cond_broadcast(&counter_calm);
	}
	counter_registry_unlock();
	return NULL;
}

/* Under the lock. */
static int counter_thread_start(void)
{
	sigset_t all, before;

	/* All signals are blocked: the program does not expect a handler to run on this thread. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&counter_thread, NULL, counter_thread_main,
		(void *)(uintptr_t)counter_generation);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	counter_thread_there = !error;
	return -error;
}

/*
 * Stores the current values of all series for a consumer without begin callbacks: its first
 * interval begins here, independent of the collecting thread. Observable instruments are not
 * called. The lock is held. False: no memory.
 */
static bool counter_baseline(struct counter_consumer *consumer)
{
	struct counter_reading reading;

	for (struct counter_meter *meter = counter_meter_list(); meter; meter = meter->next)
		for (struct registry_instrument *instrument = meter->instruments; instrument;
			instrument = instrument->next) {
			if (instrument->observe ||
				(consumer->wants && !consumer->wants(consumer, instrument)))
				continue;
			for (struct registry_series *series = instrument->series; series;
				series = series->next) {
				struct counter_slot *slot =
					counter_slot_get(consumer->memory, series);
				if (!slot)
					return false;
				counter_read(series, slot, &reading);
			}
		}
	return true;
}

int counter_consumer_add(struct counter_consumer *consumer)
{
	int error;

	consumer->memory = calloc(1, sizeof(*consumer->memory));
	if (!consumer->memory)
		return -ENOMEM;
	if (consumer->interval_ns < COUNTER_INTERVAL_MIN)
		consumer->interval_ns = COUNTER_INTERVAL_MIN;
	if (consumer->interval_ns > COUNTER_INTERVAL_MAX)
		consumer->interval_ns = COUNTER_INTERVAL_MAX;
	counter_fork_arrange();
	counter_registry_lock();
	error = counter_conditions_make();
	bool silent = !consumer->instrument_begin && !consumer->instruments_announced;
	if (!error && silent && !counter_baseline(consumer))
		error = -ENOMEM;
	if (!error && !counter_thread_there)
		error = counter_thread_start();
	if (error) {
		counter_memory_free(consumer->memory);
		consumer->memory = NULL;
		counter_registry_unlock();
		return error;
	}
	consumer->announced = silent;
	consumer->ended = false;
	consumer->begin_ns = counter_now_ns();
	consumer->due_ns = consumer->begin_ns + (silent ? consumer->interval_ns : 0);
	consumer->next = consumers;
	consumers = consumer;
	(void)pthread_cond_broadcast(&counter_wake);
	counter_registry_unlock();
	return 0;
}

/* Unlocks the registry. Without a consumer the thread ends, and is waited for if `may_join`. */
static void unlock_and_join(bool may_join)
{
	bool join = may_join && counter_thread_there && !consumers;
	pthread_t ended = counter_thread;

	if (join) {
		counter_generation++;
		counter_thread_there = false;
		(void)pthread_cond_broadcast(&counter_wake);
	}
	counter_registry_unlock();
	if (join)
		(void)pthread_join(ended, NULL);
}

void counter_consumer_remove(struct counter_consumer *consumer)
{
	counter_registry_lock();
	if (!consumer->memory) { /* it was never added, or belongs to the parent process */
		counter_registry_unlock();
		return;
	}
	bool self = counter_thread_there && pthread_equal(pthread_self(), counter_thread);
	__atomic_store_n(&consumer->ended, true, __ATOMIC_RELAXED);
	if (self && counter_current == consumer) {
		counter_registry_unlock();
		return;
	}
	while (counter_current == consumer)
		(void)pthread_cond_wait(&counter_calm, &counter_mutex);
	counter_consumer_unlink(consumer);
	unlock_and_join(!self);
}

void counter_consumer_retire(struct counter_consumer *consumer)
{
	counter_registry_lock();
	__atomic_store_n(&consumer->ended, true, __ATOMIC_RELAXED);
	(void)pthread_cond_broadcast(&counter_wake);
	counter_registry_unlock();
}

void counter_thread_end(void)
{
	counter_registry_lock();
	while (counter_thread_there && counter_consumer_retired())
		(void)pthread_cond_wait(&counter_calm, &counter_mutex);
	unlock_and_join(true);
}

static void counter_fork_prepare(void)
{
	counter_registry_lock();
}

static void counter_fork_parent(void)
{
	counter_registry_unlock();
}

static void counter_fork_child(void)
{
	/*
	 * The thread is in the parent only. The memory of the pass that it may have been making is
	 * lost.
	 */
	counter_generation++;
	counter_thread_there = false;
	conditions_ready = false;
	counter_current = NULL;
	observing = NULL;
	pass_runs = false;
	pass_list = NULL;
	pass_count = 0;
	pass_capacity = 0;
	trash = NULL;
	for (struct counter_consumer *consumer = consumers; consumer; consumer = consumer->next)
		consumer->memory = NULL;
	consumers = NULL;
	counter_registry_unlock();
}

static void counter_fork_once(void)
{
	(void)pthread_atfork(counter_fork_prepare, counter_fork_parent, counter_fork_child);
}

void counter_fork_arrange(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, counter_fork_once);
}
