/*
 * Counters: numbers that a program counts about itself, which tools read while it runs.
 *
 * A meter is a named group ("Shop.Orders"). An instrument in it is a number of one kind with a name
 * and a unit. A series is that number for one set of tags. The functions below return a series.
 * Adding to it is a table look-up and one addition to memory that other threads do not use: no
 * lock, no allocation, no system call. Nothing is computed until a consumer exists: dotnet-counters
 * or another tool with its protocol (it reads meters as EventCounters of a provider with the
 * meter's name and as instruments of System.Diagnostics.Metrics), or a listener of the program.
 *
 *     static struct spoor_counter *orders;
 *     orders = spoor_counter_open(spoor_meter_open("Shop.Orders", "1.0"), SPOOR_COUNTER, "orders", NULL);
 *     ...
 *     spoor_counter_add(orders, 1);
 *
 * Rules.
 * - Ownership: a meter and a series exist until they are closed. Names, tags and options are
 *   copied.
 * - Errors: the functions that open and tag counters never return NULL. If memory runs out, a limit
 *   is reached or an argument is wrong, errno is set, and the returned object accepts values that
 *   are not shown. spoor_meter_open() then returns NULL, which spoor_counter_open() accepts.
 *   Functions that add, set and record do not check for NULL; the others do nothing with it.
 * - Threads: all functions may be called from any thread. Opening and closing takes a lock and
 *   allocates; adding, setting and recording does not.
 * - Signal handlers: only spoor_counter_add(), spoor_gauge_set() and spoor_histogram_record() are
 *   safe.
 * - fork(): the child has copies of all meters and series with their values, and continues to count
 *   for itself. Listeners stay with the parent.
 */
#ifndef SPOOR_COUNTER_H
#define SPOOR_COUNTER_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of threads that have memory of their own in a series; further threads share it. */
#define SPOOR_COUNTER_STRIPES 16u

enum spoor_counter_kind {
	SPOOR_COUNTER = 1,     /* only grows; shown as the sum of the interval */
	SPOOR_UP_DOWN_COUNTER, /* grows and shrinks; shown as its current value */
	SPOOR_GAUGE,           /* the last value that was set */
	SPOOR_HISTOGRAM,       /* many values; shown as quantiles, mean, minimum and maximum */
};

struct spoor_tag {
	const char *name;
	const char *value;
};

/*
 * `size` is sizeof(struct spoor_counter_options); members that a later version adds read as 0.
 * Texts are copied.
 */
struct spoor_counter_options {
	size_t size;
	const char *unit; /* "By", "ms", "{order}"; NULL: none */
	const char *description;
	const struct spoor_tag *tags;
	size_t tag_count;
	/*
	 * If not NULL the instrument is observable: the collecting thread calls this function for
	 * its value (for the two counters the total since the start), once per interval and
	 * consumer, without a lock held. NAN means that there is no value now. A histogram cannot
	 * be observable.
	 */
	double (*observe)(void *context);
	void *context;
	/* maximum number of series of this instrument at a time; 0: 1000 */
	uint32_t series_max;
};

struct spoor_meter;

/*
 * The first member of a series. Not for direct use; it is declared here so that adding is inline.
 */
struct spoor_counter {
	struct {
		int64_t value;
		int64_t apart[7];
	} stripe[SPOOR_COUNTER_STRIPES];
};

/*
 * Opens a meter. Two meters of one name are one object. `version` may be NULL. NULL and errno: it has
 * no name, or there is no memory.
 */
SPOOR_API struct spoor_meter *spoor_meter_open(const char *name, const char *version);

/* Closes a meter with all its instruments, once it was closed as often as it was opened. */
SPOOR_API void spoor_meter_close(struct spoor_meter *meter);

/*
 * Opens an instrument and returns its series without further tags. `options` may be NULL. Names of
 * two instruments of one meter should differ. An instrument that is opened again with the same name
 * and kind is the same; of the options of the second call only the tags are used. Never returns
 * NULL.
 */
SPOOR_API struct spoor_counter *spoor_counter_open(struct spoor_meter *meter,
	enum spoor_counter_kind kind, const char *name,
	const struct spoor_counter_options *options);

/*
 * Returns the series of the same instrument with these tags in place of its own. Not for the hot
 * path: call it once and keep the result. The same tags return the same series. Beyond series_max
 * all further tags share one series, tagged otel.metric.overflow=true. Never returns NULL.
 */
SPOOR_API struct spoor_counter *spoor_counter_tagged(struct spoor_counter *counter,
	const struct spoor_tag *tags, size_t tag_count);

/*
 * Closes a series, once it was closed as often as it was opened. No thread may add to it
 * afterwards. After the return `observe` is not running and is not called again.
 */
SPOOR_API void spoor_counter_close(struct spoor_counter *counter);

/* The calling thread's stripe plus 1; 0 before its first value. */
extern SPOOR_API __thread unsigned spoor_counter_stripe_;
SPOOR_API unsigned spoor_counter_stripe_take_(void);

/*
 * Adds to a counter; a SPOOR_COUNTER takes no negative amount. Any thread, signal handlers, both
 * sides of a fork.
 */
static inline void spoor_counter_add(struct spoor_counter *counter, int64_t amount)
{
	unsigned stripe = spoor_counter_stripe_;

	if (__builtin_expect(stripe == 0, 0))
		stripe = spoor_counter_stripe_take_();
	(void)__atomic_fetch_add(&counter->stripe[stripe - 1].value, amount, __ATOMIC_RELAXED);
}

/* Sets a gauge. Any thread, signal handlers, both sides of a fork. */
static inline void spoor_gauge_set(struct spoor_counter *counter, double value)
{
	int64_t bits;

	__builtin_memcpy(&bits, &value, sizeof(bits));
	__atomic_store_n(&counter->stripe[0].value, bits, __ATOMIC_RELAXED);
}

/*
 * Adds a value to a histogram; NAN is ignored. Values from 2^-34 to 2^47 are stored with a
 * precision of 1/32. Smaller values (also 0 and negative ones) count as one value, larger ones as
 * another. Any thread, signal handlers, both sides of a fork.
 */
SPOOR_API void spoor_histogram_record(struct spoor_counter *counter, double value);

/* One series in one interval, as a listener gets it. All pointers are borrowed during the call. */
struct spoor_counter_value {
	size_t size;
	const char *meter;
	const char *meter_version; /* "" if not set, like all texts here */
	const char *name;
	const char *unit;
	const char *description;
	const struct spoor_tag *tags;
	size_t tag_count;
	enum spoor_counter_kind kind;
	int observable;
	/* the measured length, which may differ from the requested one */
	uint64_t interval_ns;
	double value; /* counters: the total since the start; gauge: the last value */
	double delta; /* counters: the change in this interval */
	/* A histogram's interval. If count is 0 there was no value, and the other members are 0. */
	uint64_t count;
	double sum, mean, deviation, least, greatest;
	size_t quantile_count;
	const double *quantiles; /* 0.5, 0.95, 0.99 */
	const double *quantile_values;
};

struct spoor_counter_listener;

struct spoor_counter_listener_options {
	size_t size;
	uint64_t interval_ns; /* 0: one second; at least 10 ms */
	/* Names separated by commas: "Meter", "Meter\\Instrument", "Prefix*", "*"; NULL: all. */
	const char *meters;
	/*
	 * Called on the collecting thread, without a lock held; other consumers wait until it
	 * returns. It may open and close counters, but not close its own listener.
	 */
	void (*value)(void *context, const struct spoor_counter_value *value);
	/* Called after the last value of an interval; may be NULL. */
	void (*interval_end)(void *context, uint64_t begin_ns, uint64_t end_ns);
	void *context;
};

/*
 * Opens a listener. NULL and errno if it fails. The first interval begins during this call: values
 * added before the call are in no delta, values added after the return are in the first; values
 * that other threads add during the call may be in either.
 */
SPOOR_API struct spoor_counter_listener *
spoor_counter_listener_open(const struct spoor_counter_listener_options *options);

/* Closes a listener. After the return no callback is running and none will be called. */
SPOOR_API void spoor_counter_listener_close(struct spoor_counter_listener *listener);

#ifdef __cplusplus
}
#endif

#endif
