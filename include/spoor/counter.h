/*
 * Counters: numbers that a program keeps about itself, read while it runs.
 *
 * A meter is a named group ("Shop.Orders"); an instrument in it is a number of one kind with a name and a unit; a series is that number for one
 * set of tags. What a call gives is a series. Adding to it is a table look-up and one addition to memory that other threads do not touch: no lock,
 * no allocation, no system call, safe in a signal handler. Nothing is computed until somebody asks: dotnet-counters or any tool that speaks its
 * protocol (as EventCounters of a provider of the meter's name and as instruments of System.Diagnostics.Metrics), or a listener of the program itself.
 *
 *     static struct spoor_counter *orders;
 *     orders = spoor_counter_open(spoor_meter_open("Shop.Orders", "1.0"), SPOOR_COUNTER, "orders", NULL);
 *     ...
 *     spoor_counter_add(orders, 1);
 *
 * Who owns what: a meter and a series live until they are closed. Opening never returns NULL: when memory runs out, or a limit is reached, errno
 * says so and what comes back takes values that nobody reads.
 */
#ifndef SPOOR_COUNTER_H
#define SPOOR_COUNTER_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of its own for so many threads at once; more than that share. */
#define SPOOR_COUNTER_STRIPES 16u

enum spoor_counter_kind {
	SPOOR_COUNTER = 1,      /* only grows; shown as what was added in the interval */
	SPOOR_UP_DOWN_COUNTER,  /* grows and shrinks; shown as where it stands */
	SPOOR_GAUGE,            /* the last value set */
	SPOOR_HISTOGRAM,        /* many values, of which quantiles, mean, least and greatest are shown */
};

struct spoor_tag {
	const char *name;
	const char *value;
};

/* `size` is sizeof(struct spoor_counter_options); what a later version adds reads as 0. Texts are copied. */
struct spoor_counter_options {
	size_t size;
	const char *unit;         /* "By", "ms", "{order}"; NULL: none */
	const char *description;
	const struct spoor_tag *tags;
	size_t tag_count;
	/*
	 * When not NULL the instrument is observable: it is asked for its value (absolute since the start for the two counters) on the thread that
	 * collects, once an interval and consumer, never under a lock. NAN stands for no value now. A histogram cannot be observable.
	 */
	double (*observe)(void *context);
	void *context;
	uint32_t series_max;      /* series of this instrument at once; 0: 1000 */
};

struct spoor_meter;

/* The first member of a series. Not for direct use; it is here so that adding is inline. */
struct spoor_counter {
	struct {
		int64_t value;
		int64_t apart[7];
	} stripe[SPOOR_COUNTER_STRIPES];
};

/* Two meters of one name are one: the second call gives the first again. `version` may be NULL. Any thread. */
SPOOR_API struct spoor_meter *spoor_meter_open(const char *name, const char *version);

/* Closes it when it was closed as often as opened, with all that is in it. */
SPOOR_API void spoor_meter_close(struct spoor_meter *meter);

/*
 * An instrument and its series without further tags. `options` may be NULL. Names of two instruments of one meter should differ; an instrument
 * opened again with the same name and kind is the same, and `options` of the second call count for nothing but their tags. Any thread.
 */
SPOOR_API struct spoor_counter *spoor_counter_open(struct spoor_meter *meter, enum spoor_counter_kind kind,
	const char *name, const struct spoor_counter_options *options);

/*
 * The series of the same instrument with these tags in place of its own: look it up once and keep it, not on the hot path. The same tags give
 * the same series. Over the limit: one series for all further ones, tagged otel.metric.overflow=true. Any thread.
 */
SPOOR_API struct spoor_counter *spoor_counter_tagged(struct spoor_counter *counter, const struct spoor_tag *tags,
	size_t tag_count);

/* Ends a series, once it was closed as often as given out; nothing may add to it any more. When this returns `observe` is not running and will not again. */
SPOOR_API void spoor_counter_close(struct spoor_counter *counter);

/* This thread's stripe plus 1; 0 before its first value. */
extern SPOOR_API __thread unsigned spoor_counter_stripe_;
SPOOR_API unsigned spoor_counter_stripe_take_(void);

/* Adds to a counter; to SPOOR_COUNTER no negative amount. Any thread, signal handlers, both sides of a fork. */
static inline void spoor_counter_add(struct spoor_counter *counter, int64_t amount)
{
	unsigned stripe = spoor_counter_stripe_;

	if (__builtin_expect(stripe == 0, 0))
		stripe = spoor_counter_stripe_take_();
	(void)__atomic_fetch_add(&counter->stripe[stripe - 1].value, amount, __ATOMIC_RELAXED);
}

/* Sets a gauge. Any thread, signal handlers. */
static inline void spoor_gauge_set(struct spoor_counter *counter, double value)
{
	int64_t bits;

	__builtin_memcpy(&bits, &value, sizeof(bits));
	__atomic_store_n(&counter->stripe[0].value, bits, __ATOMIC_RELAXED);
}

/*
 * Adds a value to a histogram; NAN is ignored. Values from 2^-34 to 2^47 are told apart by 1/32 of their size, what is below (and all that is not
 * above 0) and what is above count as one value each. Any thread, signal handlers.
 */
SPOOR_API void spoor_histogram_record(struct spoor_counter *counter, double value);

/* What one series did in one interval, as a listener gets it. */
struct spoor_counter_value {
	size_t size;
	const char *meter;
	const char *meter_version;  /* "" for none, like all texts here */
	const char *name;
	const char *unit;
	const char *description;
	const struct spoor_tag *tags;
	size_t tag_count;
	enum spoor_counter_kind kind;
	int observable;
	uint64_t interval_ns;       /* as it was, not as it was asked for */
	double value;               /* counters: since the start; gauge: the last */
	double delta;               /* counters: in this interval */
	/* A histogram's interval; count 0: nothing came, and the rest is 0. */
	uint64_t count;
	double sum, mean, deviation, least, greatest;
	size_t quantile_count;
	const double *quantiles;        /* 0.5, 0.95, 0.99 */
	const double *quantile_values;
};

struct spoor_counter_listener;

struct spoor_counter_listener_options {
	size_t size;
	uint64_t interval_ns;       /* 0: one second; not below 10 ms */
	/* Which: "Meter", "Meter\\Instrument", "Prefix*", "*", separated by commas; NULL: all. */
	const char *meters;
	/* Called on the thread that collects, never under a lock; other consumers wait meanwhile. It may open and close counters, and not its own listener. */
	void (*value)(void *context, const struct spoor_counter_value *value);
	/* Behind the last value of an interval; may be NULL. */
	void (*interval_end)(void *context, uint64_t begin_ns, uint64_t end_ns);
	void *context;
};

/*
 * NULL with errno when it cannot be. The first interval begins in this call: what was added before it is in no delta, what is added after it in the first;
 * what other threads add meanwhile may be in either.
 */
SPOOR_API struct spoor_counter_listener *spoor_counter_listener_open(const struct spoor_counter_listener_options *options);

/* When this returns no callback is running and none will come. */
SPOOR_API void spoor_counter_listener_close(struct spoor_counter_listener *listener);

#ifdef __cplusplus
}
#endif

#endif
