/*
 * What stands behind include/spoor/counter.h: the registry of meters, instruments and series, and the one thread that reads them for all consumers.
 *
 * One lock guards the registry. It is never held while foreign code runs: the collecting thread makes a list of what is there under the lock, keeps what is on
 * it alive by a pass (what is closed meanwhile is freed at the pass's end), and calls `observe` and the consumers without the lock.
 *
 * A consumer is a session that wants EventCounters, one that wants System.Diagnostics.Metrics, or a listener of the program. Each has an interval and
 * its own memory of what it last saw, so that consumers never disturb one another. The thread is there while there is a consumer.
 */
#ifndef SPOOR_LIB_COUNTER_COUNTER_REGISTRY_H
#define SPOOR_LIB_COUNTER_COUNTER_REGISTRY_H

#include <pthread.h>
#include <stdbool.h>

#include <spoor/counter.h>

#define COUNTER_SERIES_DEFAULT 1000u
#define COUNTER_NAME_MAX       1024u /* bytes of a name, unit, description; longer ones are cut */
#define COUNTER_TAGS_MAX       32u
#define COUNTER_INTERVAL_MIN   10000000u /* 10 ms */
#define COUNTER_INTERVAL_MAX   86400000000000u
#define COUNTER_QUANTILES      3u

/*
 * Buckets of a histogram: 0 for all that is not above 0, then 32 for each power of two from 2^-34 to 2^46, one for all above. 10 KiB.
 */
#define HISTOGRAM_EXPONENT_MIN (-34)
#define HISTOGRAM_EXPONENT_MAX 46
#define HISTOGRAM_PARTS        32u
#define HISTOGRAM_BUCKETS      (2u + (HISTOGRAM_EXPONENT_MAX - HISTOGRAM_EXPONENT_MIN + 1) * HISTOGRAM_PARTS)

struct counter_histogram {
	/* The stripes of the series hold nothing; the sums do. As bits of a double. */
	struct {
		uint64_t sum;
		uint64_t apart[7];
	} stripe[SPOOR_COUNTER_STRIPES];
	uint64_t least;  /* of all time, as bits of a double: the ends of an interval's values never lie outside */
	uint64_t greatest;
	uint32_t bucket[HISTOGRAM_BUCKETS];
};

struct counter_meter {
	struct counter_meter *next;
	char *name;
	char *version;
	uint32_t opened;              /* as often as opened and not closed */
	uint32_t refs;                /* while it is open, and by its instruments */
	struct counter_instrument *instruments;
	void *provider;               /* counter_session.c's */
};

struct counter_instrument {
	struct counter_instrument *next;
	struct counter_meter *meter;
	char *name;
	char *unit;
	char *description;
	enum spoor_counter_kind kind;
	double (*observe)(void *context);
	void *context;
	uint32_t id;                  /* 1 and up, never used again */
	uint32_t series_max;
	uint32_t series_count;
	struct counter_series *series;
	struct counter_series *overflow;
	uint32_t refs;                /* by its series while they are open, by consumers that told of it */
	bool closed;
};

struct counter_series {
	struct spoor_counter counter; /* first: the caller's pointer is ours */
	struct counter_series *next;
	struct counter_instrument *instrument;
	struct counter_histogram *histogram;
	struct spoor_tag *tags;       /* one block with their texts */
	uint32_t tag_count;
	char *tags_text;              /* "k=v,k=v" */
	uint32_t index;               /* below counter_series_limit; a free one is used again with a new `birth` */
	uint32_t birth;
	uint32_t refs;
};

/* One series in one interval. */
struct counter_reading {
	const struct counter_series *series;
	double value;
	double delta;
	bool has_value;    /* observable: it gave one */
	bool has_delta;    /* not in an observable's first interval */
	uint64_t count;
	double sum, mean, deviation, least, greatest;
	double quantile[COUNTER_QUANTILES];
};

extern const double counter_quantiles[COUNTER_QUANTILES];

/* The lock itself, for who must wait while letting go of it. */
extern pthread_mutex_t counter_mutex;

void counter_registry_lock(void);
void counter_registry_unlock(void);

/* Under the lock. */
struct counter_meter *counter_meter_list(void);

/* A consumer; filled by its owner, the rest is the collecting thread's. */
struct counter_consumer {
	uint64_t interval_ns;
	/* Under the lock; no foreign code. */
	bool (*wants)(struct counter_consumer *consumer, const struct counter_instrument *instrument);
	/* On the collecting thread, without the lock. All but `reading` may be NULL. */
	void (*pass_begin)(struct counter_consumer *consumer, uint64_t begin_ns, uint64_t end_ns);
	void (*instrument_begin)(struct counter_consumer *consumer, const struct counter_instrument *instrument);
	void (*instrument_end)(struct counter_consumer *consumer, const struct counter_instrument *instrument);
	void (*instruments_told)(struct counter_consumer *consumer);
	void (*reading)(struct counter_consumer *consumer, const struct counter_reading *reading, uint64_t elapsed_ns);
	void (*pass_end)(struct counter_consumer *consumer, uint64_t begin_ns, uint64_t end_ns);
	void (*failed)(struct counter_consumer *consumer, const char *sentence);
	/* The last call, after counter_consumer_retire(); may free it. */
	void (*retired)(struct counter_consumer *consumer);

	struct counter_consumer *next;
	struct counter_memory *memory;
	uint64_t begin_ns;
	uint64_t due_ns;
	bool told;         /* of the instruments that were there at its start */
	bool gone;
};

/*
 * Starts to read for it; the caller keeps the struct until counter_consumer_remove() has returned. Its first pass, with all begin calls and no readings, comes at
 * once, the first readings one interval later. One without begin calls has no such pass: where counters stood is noted before this returns. 0, -ENOMEM,
 * -EAGAIN (no thread).
 */
int counter_consumer_add(struct counter_consumer *consumer);

/*
 * When this returns no callback of it runs and none will come. On the collecting thread itself (from a callback) it only marks it: the rest
 * is done at the end of the pass.
 */
void counter_consumer_remove(struct counter_consumer *consumer);

/* The same without waiting, for threads that must not: its last callback, `retired`, comes soon, on the collecting thread. */
void counter_consumer_retire(struct counter_consumer *consumer);

/* Ends the thread when no consumer is left but retired ones, and sees them off. Waits; not on the thread itself. */
void counter_thread_end(void);

/* Whether this is the collecting thread. */
bool counter_thread_is_self(void);

/* "*", "Prefix*", "Meter", "Meter\\Instrument" in a list separated by commas, semicolons or line ends. NULL: all. */
bool counter_filter_wants(const char *filter, const struct counter_instrument *instrument);

/* The registry's own: what of a series is freed, and when. Under the lock. */
void counter_instrument_ref(struct counter_instrument *instrument);
void counter_instrument_unref(struct counter_instrument *instrument);
/* True when a pass has the series on its list: it then frees it at its end. */
bool counter_pass_keep(struct counter_series *series);
/* Waits until `observe` of a closed instrument is not running; lets go of the lock meanwhile. */
void counter_observe_wait(const struct counter_instrument *instrument);

/* counter_session.c: a meter has come, or goes, with the provider of its name. Without the lock. */
void counter_meter_opened(struct counter_meter *meter);
void counter_meter_closed(struct counter_meter *meter);

/* Limits of the indexes handed out so far. Under the lock. */
uint32_t counter_series_limit(void);

/* Frees a series that left the registry. Under the lock. */
void counter_series_free(struct counter_series *series);

/* counter_histogram.c */
struct counter_histogram *counter_histogram_new(void);
void counter_histogram_record(struct counter_histogram *h, unsigned stripe, double value);
/* What came since `last` (HISTOGRAM_BUCKETS and, in last_sum, the sum), which is moved on. */
void counter_histogram_read(const struct counter_histogram *h, uint32_t *last, double *last_sum,
	struct counter_reading *ret_reading);

/* Children of a fork begin with the registry as it is and no consumer. The first call arranges for it. */
void counter_fork_arrange(void);

#endif
