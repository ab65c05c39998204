/*
 * The implementation of include/spoor/counter.h: the registry of meters, instruments and series,
 * and the thread that reads them for all consumers.
 *
 * One lock guards the registry. It is never held while a function of the program runs: the
 * collecting thread makes a list of all series under the lock, and calls `observe` and the
 * consumers without it. Series on the list are freed at the end of the pass.
 *
 * A consumer is a session that enables EventCounters, a session that enables
 * System.Diagnostics.Metrics, or a listener of the program. Each has an interval and the last
 * values it has seen, so consumers are independent of each other. The thread exists while a
 * consumer exists.
 */
#ifndef SPOOR_LIB_COUNTER_COUNTER_REGISTRY_H
#define SPOOR_LIB_COUNTER_COUNTER_REGISTRY_H

#include <pthread.h>
#include <stdbool.h>

#include <spoor/counter.h>

#define COUNTER_SERIES_DEFAULT 1000u
#define COUNTER_NAME_MAX       1024u /* bytes of a name, unit or description; longer ones are cut */
#define COUNTER_TAGS_MAX       32u
#define COUNTER_INTERVAL_MIN   10000000u /* 10 ms */
#define COUNTER_INTERVAL_MAX   86400000000000u
#define COUNTER_QUANTILES      3u

/*
 * Buckets of a histogram: 0 for all values that are not above 0, then 32 for each power of two from
 * 2^-34 to 2^46, one for all larger values. 10 KiB.
 */
#define HISTOGRAM_EXPONENT_MIN (-34)
#define HISTOGRAM_EXPONENT_MAX 46
#define HISTOGRAM_PARTS        32u
#define HISTOGRAM_BUCKETS \
	(2u + (HISTOGRAM_EXPONENT_MAX - HISTOGRAM_EXPONENT_MIN + 1) * HISTOGRAM_PARTS)

struct counter_histogram {
	/* The stripes of the series are not used; these sums are. As bits of a double. */
	struct {
		uint64_t sum;
		uint64_t apart[7];
	} stripe[SPOOR_COUNTER_STRIPES];
	/* of all values so far, as bits of a double: the values of an interval are within these */
	uint64_t least;
	uint64_t greatest;
	uint32_t bucket[HISTOGRAM_BUCKETS];
};

struct counter_meter {
	struct counter_meter *next;
	char *name;
	char *version;
	uint32_t opened; /* how often it was opened and not closed */
	uint32_t refs;   /* one while it is open, and one of each instrument */
	struct registry_instrument *instruments;
	void *provider; /* struct meter_provider of counter_fields.c */
};

struct registry_instrument {
	struct registry_instrument *next;
	struct counter_meter *meter;
	char *name;
	char *unit;
	char *description;
	enum spoor_counter_kind kind;
	double (*observe)(void *context);
	void *context;
	uint32_t id; /* from 1 up; not used again */
	uint32_t series_max;
	uint32_t series_count;
	struct registry_series *series;
	struct registry_series *overflow;
	/* of its open series, and of consumers to which it was announced */
	uint32_t refs;
	bool closed;
};

struct registry_series {
	struct spoor_counter counter; /* first: the public pointer points to this structure */
	struct registry_series *next;
	struct registry_instrument *instrument;
	struct counter_histogram *histogram;
	struct spoor_tag *tags; /* one block, with their texts */
	uint32_t tag_count;
	char *tags_text; /* "k=v,k=v" */
	/* below counter_series_limit; a free index is used again with a new `birth` */
	uint32_t index;
	uint32_t birth;
	uint32_t refs;
};

/* One series in one interval. */
struct counter_reading {
	const struct registry_series *series;
	double value;
	double delta;
	bool has_value; /* an observable instrument has returned one */
	bool has_delta; /* not in the first interval of an observable instrument */
	uint64_t count;
	double sum, mean, deviation, least, greatest;
	double quantile[COUNTER_QUANTILES];
};

extern const double counter_quantiles[COUNTER_QUANTILES];

/* The lock itself, for threads that wait on a condition with it. */
extern pthread_mutex_t counter_mutex;

void counter_registry_lock(void);
void counter_registry_unlock(void);

/* Under the lock. */
struct counter_meter *counter_meter_list(void);

/* A consumer. Its owner sets the first members; the others belong to the collecting thread. */
struct counter_consumer {
	uint64_t interval_ns;
	/* Called with the lock held; must not call functions of the program. */
	bool (*wants)(struct counter_consumer *consumer,
		const struct registry_instrument *instrument);
	/* Called on the collecting thread, without the lock. All but `reading` may be NULL. */
	void (*pass_begin)(struct counter_consumer *consumer, uint64_t begin_ns, uint64_t end_ns);
	void (*instrument_begin)(struct counter_consumer *consumer,
		const struct registry_instrument *instrument);
	void (*instrument_end)(struct counter_consumer *consumer,
		const struct registry_instrument *instrument);
	void (*instruments_announced)(struct counter_consumer *consumer);
	void (*reading)(struct counter_consumer *consumer, const struct counter_reading *reading,
		uint64_t elapsed_ns);
	void (*pass_end)(struct counter_consumer *consumer, uint64_t begin_ns, uint64_t end_ns);
	void (*failed)(struct counter_consumer *consumer, const char *sentence);
	/* The last call, after counter_consumer_retire(); may free the consumer. */
	void (*retired)(struct counter_consumer *consumer);

	struct counter_consumer *next;
	struct counter_memory *memory;
	uint64_t begin_ns;
	uint64_t due_ns;
	bool announced; /* the instruments that existed at its start were announced */
	bool ended;
};

/*
 * Starts to read for a consumer, which the caller keeps until counter_consumer_remove() has
 * returned. The first pass, with all begin callbacks and no readings, follows without delay; the
 * first readings follow one interval later. A consumer without begin callbacks has no such pass:
 * the current values are stored before this returns. 0, -ENOMEM, -EAGAIN (no thread).
 */
int counter_consumer_add(struct counter_consumer *consumer);

/*
 * After the return no callback of the consumer is running and none will be called. On the
 * collecting thread itself (from a callback) it is only marked, and removed at the end of the pass.
 */
void counter_consumer_remove(struct counter_consumer *consumer);

/*
 * As counter_consumer_remove(), without waiting, for threads that must not wait: the last callback,
 * `retired`, follows on the collecting thread.
 */
void counter_consumer_retire(struct counter_consumer *consumer);

/*
 * Ends the thread if only retired consumers are left, after their last callbacks. Waits; not on the
 * collecting thread.
 */
void counter_thread_end(void);

/* Is this the collecting thread? */
bool counter_thread_is_self(void);

/*
 * A filter is a list of "*", "Prefix*", "Meter", "Meter\\Instrument", separated by commas,
 * semicolons or line ends. NULL: all.
 */
bool counter_filter_wants(const char *filter, const struct registry_instrument *instrument);

/* For the registry itself: references, and what is freed with the last one. The lock is held. */
void counter_instrument_ref(struct registry_instrument *instrument);
void counter_instrument_unref(struct registry_instrument *instrument);
/* True: a pass has the series on its list and frees it at its end. */
bool counter_pass_keep(struct registry_series *series);
/* Waits until `observe` of a closed instrument is not running; releases the lock meanwhile. */
void counter_observe_wait(const struct registry_instrument *instrument);

/*
 * counter_fields.c: a meter was opened or closed, and so is the provider with its name. Called
 * without the lock.
 */
void counter_meter_opened(struct counter_meter *meter);
void counter_meter_closed(struct counter_meter *meter);

/* Limits of the indexes used so far. The lock is held. */
uint32_t counter_series_limit(void);

/* Frees a series that was removed from the registry. The lock is held. */
void counter_series_free(struct registry_series *series);

/* counter_histogram.c */
struct counter_histogram *counter_histogram_new(void);
void counter_histogram_record(struct counter_histogram *h, unsigned stripe, double value);
/*
 * The counts since `last` (HISTOGRAM_BUCKETS, and the sum in last_sum), which are set to the
 * current ones.
 */
void counter_histogram_read(const struct counter_histogram *h, uint32_t *last, double *last_sum,
	struct counter_reading *ret_reading);

/* Arranges once that a child of fork() starts with the parent's registry and no consumer. */
void counter_fork_arrange(void);

#endif
