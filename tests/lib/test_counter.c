/*
 * Counters: values of all threads are read; histograms; tags, limits, filters; consumers that start
 * and end.
 */
#include "unit/test.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <spoor/counter.h>

#include "lib/counter/counter_arguments.h"
#include "lib/counter/counter_registry.h"

/*
 * A child that starts the library creates threads, which the thread sanitizer does not support
 * after fork().
 */
#if defined(__SANITIZE_THREAD__)
#define SKIP_IN_CHILD()                                                                       \
	(print_message("skipped: no threads in a forked child under the thread sanitizer\n"), \
		skip())
#else
#define SKIP_IN_CHILD() (void)0
#endif

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* The readings of a listener, the last one of each series. */
struct seen {
	struct {
		char name[256];
		struct spoor_counter_value value;
		double quantile[3];
		double delta_sum;
		uint64_t count_sum;
		unsigned times;
	} series[1200];
	unsigned series_count;
	unsigned intervals;
};

static void see(void *context, const struct spoor_counter_value *value)
{
	struct seen *seen = context;
	char name[256];
	unsigned at = 0;

	size_t length = (size_t)snprintf(name, sizeof(name), "%s\\%s", value->meter, value->name);
	for (size_t i = 0; i < value->tag_count; i++)
		length += (size_t)snprintf(name + length, sizeof(name) - length, ",%s=%s",
			value->tags[i].name, value->tags[i].value);
	while (at < seen->series_count && strcmp(seen->series[at].name, name) != 0)
		at++;
	assert_true(at < 1200);
	seen->series_count += at == seen->series_count;
	strcpy(seen->series[at].name, name);
	seen->series[at].value = *value;
	if (value->quantile_count)
		memcpy(seen->series[at].quantile, value->quantile_values,
			sizeof(seen->series[at].quantile));
	seen->series[at].delta_sum += value->delta;
	seen->series[at].count_sum += value->count;
	seen->series[at].times++;
}

static void see_interval(void *context, uint64_t begin_ns, uint64_t end_ns)
{
	struct seen *seen = context;

	assert_true(end_ns > begin_ns);
	__atomic_fetch_add(&seen->intervals, 1, __ATOMIC_RELEASE);
}

static struct spoor_counter_listener *listen_to(struct seen *seen, const char *meters, uint64_t ms)
{
	struct spoor_counter_listener_options options = { .size = sizeof(options),
		.interval_ns = ms * 1000000,
		.meters = meters,
		.value = see,
		.interval_end = see_interval,
		.context = seen };

	memset(seen, 0, sizeof(*seen));
	struct spoor_counter_listener *listener = spoor_counter_listener_open(&options);
	assert_non_null(listener);
	return listener;
}

static void wait_intervals(struct seen *seen, unsigned more)
{
	unsigned wanted = __atomic_load_n(&seen->intervals, __ATOMIC_ACQUIRE) + more;

	for (int i = 0; i < 5000 && __atomic_load_n(&seen->intervals, __ATOMIC_ACQUIRE) < wanted;
		i++)
		pause_ms(2);
	assert_true(__atomic_load_n(&seen->intervals, __ATOMIC_ACQUIRE) >= wanted);
}

static int series_of(const struct seen *seen, const char *name)
{
	for (unsigned i = 0; i < seen->series_count; i++)
		if (strcmp(seen->series[i].name, name) == 0)
			return (int)i;
	return -1;
}

static double observed;
static double observe(void *context)
{
	double now;

	(void)context;
	__atomic_load(&observed, &now, __ATOMIC_RELAXED);
	return now;
}

static void test_kinds(void **state)
{
	static struct seen seen;
	struct spoor_meter *meter = spoor_meter_open("Kinds", "2.1");
	struct spoor_counter_options options = {
		.size = sizeof(options), .unit = "By", .description = "Words"
	};
	struct spoor_counter *counter =
		spoor_counter_open(meter, SPOOR_COUNTER, "counter", &options);
	struct spoor_counter *level =
		spoor_counter_open(meter, SPOOR_UP_DOWN_COUNTER, "level", NULL);
	struct spoor_counter *gauge = spoor_counter_open(meter, SPOOR_GAUGE, "gauge", NULL);
	struct spoor_counter *unset = spoor_counter_open(meter, SPOOR_GAUGE, "unset", NULL);
	struct spoor_counter *histogram =
		spoor_counter_open(meter, SPOOR_HISTOGRAM, "histogram", NULL);
	options = (struct spoor_counter_options){ .size = sizeof(options), .observe = observe };
	struct spoor_counter *asked = spoor_counter_open(meter, SPOOR_COUNTER, "asked", &options);

	(void)state;
	spoor_counter_add(counter, 100); /* before the first listener */
	observed = 10;                   /* before the listener's thread begins */
	struct spoor_counter_listener *listener = listen_to(&seen, "Kinds", 50);
	pause_ms(20);
	spoor_counter_add(counter, 7);
	spoor_counter_add(level, 5);
	spoor_counter_add(level, -8);
	spoor_gauge_set(gauge, 2.5);
	for (int i = 1; i <= 1000; i++)
		spoor_histogram_record(histogram, i);
	wait_intervals(&seen, 1);
	__atomic_store(&observed, &(double){ 14 }, __ATOMIC_RELAXED);
	wait_intervals(&seen, 2);
	spoor_counter_listener_close(listener);

	int at = series_of(&seen, "Kinds\\counter");
	assert_true(at >= 0 && seen.series[at].value.value == 107 &&
		    seen.series[at].delta_sum == 7);
	assert_true(seen.series[at].value.kind == SPOOR_COUNTER &&
		    !seen.series[at].value.observable);
	at = series_of(&seen, "Kinds\\level");
	assert_true(at >= 0 && seen.series[at].value.value == -3);
	at = series_of(&seen, "Kinds\\gauge");
	assert_true(at >= 0 && seen.series[at].value.value == 2.5);
	assert_int_equal(series_of(&seen, "Kinds\\unset"), -1);
	at = series_of(&seen, "Kinds\\histogram");
	assert_true(at >= 0 && seen.series[at].count_sum == 1000);
	at = series_of(&seen, "Kinds\\asked");
	assert_true(at >= 0 && seen.series[at].value.value == 14 &&
		    seen.series[at].delta_sum == 4 && seen.series[at].value.observable);
	spoor_counter_close(counter), spoor_counter_close(level), spoor_counter_close(gauge),
		spoor_counter_close(unset);
	spoor_counter_close(histogram), spoor_counter_close(asked);
	spoor_meter_close(meter);
}

static void test_histogram(void **state)
{
	static uint32_t last[HISTOGRAM_BUCKETS];
	struct counter_histogram *h = counter_histogram_new();
	struct counter_reading reading = { 0 };
	double sum = 0;

	(void)state;
	/*
	 * Over twelve orders of magnitude a quantile is right within 1/64 of its value, and the sum
	 * exactly.
	 */
	for (double scale = 1e-6; scale < 1e6; scale *= 10) {
		for (int i = 1; i <= 1000; i++)
			counter_histogram_record(h, 3, i * scale);
		memset(&reading, 0, sizeof(reading));
		counter_histogram_read(h, last, &sum, &reading);
		assert_int_equal(reading.count, 1000);
		assert_true(fabs(reading.sum / (500500 * scale) - 1) < 1e-9);
		assert_true(fabs(reading.mean / (500.5 * scale) - 1) < 1e-9);
		assert_true(fabs(reading.quantile[0] / (500 * scale) - 1) < 1.0 / 63);
		assert_true(fabs(reading.quantile[1] / (950 * scale) - 1) < 1.0 / 63);
		assert_true(fabs(reading.quantile[2] / (990 * scale) - 1) < 1.0 / 63);
		assert_true(fabs(reading.deviation / (288.675 * scale) - 1) < 0.02);
		assert_true(fabs(reading.least / scale - 1) < 1.0 / 63 &&
			    fabs(reading.greatest / (1000 * scale) - 1) < 1.0 / 63);
	}
	/* Values at the limits: not above 0, beyond all buckets, not a number. */
	memset(&reading, 0, sizeof(reading));
	counter_histogram_record(h, 0, NAN);
	counter_histogram_read(h, last, &sum, &reading);
	assert_int_equal(reading.count, 0);
	counter_histogram_record(h, 0, -5);
	counter_histogram_record(h, 0, 0);
	counter_histogram_record(h, 0, 1e300);
	counter_histogram_read(h, last, &sum, &reading);
	assert_int_equal(reading.count, 3);
	assert_true(reading.least == -5 && reading.greatest == 1e300);
	free(h);
}

enum { ADDERS = 20, ADDS = 200000 };
static struct spoor_counter *shared_counter, *shared_histogram;

static void *adder(void *argument)
{
	(void)argument;
	for (int i = 0; i < ADDS; i++) {
		spoor_counter_add(shared_counter, 1);
		if (i % 10 == 0)
			spoor_histogram_record(shared_histogram, 1 + i % 100);
	}
	return NULL;
}

/*
 * The first interval begins with the listener, also while the collecting thread is busy with
 * another one.
 */
static bool held; /* atomic */

static void hold(void *context, const struct spoor_counter_value *value)
{
	(void)value;
	__atomic_store_n((bool *)context, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		pause_ms(1);
}

static void test_first_interval(void **state)
{
	struct spoor_meter *meter = spoor_meter_open("Exact", NULL);
	struct spoor_counter *adds = spoor_counter_open(meter, SPOOR_COUNTER, "adds", NULL);
	struct spoor_counter *times = spoor_counter_open(meter, SPOOR_HISTOGRAM, "times", NULL);
	static struct seen seen;
	bool in_callback = false;
	struct spoor_counter_listener_options options = { .size = sizeof(options),
		.interval_ns = 10000000,
		.meters = "Exact",
		.value = hold,
		.context = &in_callback };

	(void)state;
	for (int busy = 0; busy < 2; busy++) {
		for (int64_t round = 1; round <= 20; round++) {
			struct spoor_counter_listener *first = NULL;
			__atomic_store_n(&in_callback, false, __ATOMIC_RELAXED);
			__atomic_store_n(&held, busy, __ATOMIC_RELEASE);
			if (busy) {
				first = spoor_counter_listener_open(&options);
				assert_non_null(first);
				for (int i = 0; i < 5000 &&
						!__atomic_load_n(&in_callback, __ATOMIC_ACQUIRE);
					i++)
					pause_ms(1);
				assert_true(__atomic_load_n(&in_callback, __ATOMIC_ACQUIRE));
			}
			spoor_counter_add(adds, 1000);
			spoor_histogram_record(times, 7);
			struct spoor_counter_listener *listener = listen_to(&seen, "Exact", 10);
			spoor_counter_add(adds, round);
			spoor_histogram_record(times, 5);
			spoor_histogram_record(times, 5);
			__atomic_store_n(&held, false, __ATOMIC_RELEASE);
			wait_intervals(&seen, 1);
			spoor_counter_listener_close(first);
			spoor_counter_listener_close(listener);
			assert_true(seen.series[series_of(&seen, "Exact\\adds")].delta_sum ==
				    (double)round);
			assert_int_equal(seen.series[series_of(&seen, "Exact\\times")].count_sum,
				2);
		}
	}
	spoor_meter_close(meter);
}

/*
 * More threads than stripes, while listeners start and end: each listener gets every value exactly
 * once.
 */
static void test_threads(void **state)
{
	static struct seen seen, other;
	struct spoor_meter *meter = spoor_meter_open("Threads", NULL);
	pthread_t threads[ADDERS];

	(void)state;
	shared_counter = spoor_counter_open(meter, SPOOR_COUNTER, "adds", NULL);
	shared_histogram = spoor_counter_open(meter, SPOOR_HISTOGRAM, "values", NULL);
	struct spoor_counter_listener *listener = listen_to(&seen, "Threads", 10);
	pause_ms(30);
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, adder, NULL), 0);
	for (int i = 0; i < 20; i++) {
		struct spoor_counter_listener *short_lived = listen_to(&other, "Threads\\adds", 10);
		pause_ms(i % 5 * 5);
		spoor_counter_listener_close(short_lived);
		assert_int_equal(series_of(&other, "Threads\\values"), -1);
	}
	for (int i = 0; i < ADDERS; i++)
		pthread_join(threads[i], NULL);
	wait_intervals(&seen, 3);
	spoor_counter_listener_close(listener);
	int at = series_of(&seen, "Threads\\adds");
	assert_true(at >= 0 && seen.series[at].delta_sum == (double)ADDERS * ADDS);
	at = series_of(&seen, "Threads\\values");
	assert_true(at >= 0 && seen.series[at].count_sum == ADDERS * ADDS / 10);
	spoor_meter_close(meter);
}

static void test_tags(void **state)
{
	static struct seen seen;
	struct spoor_meter *meter = spoor_meter_open("Tags", NULL);
	struct spoor_counter_options options = { .size = sizeof(options), .series_max = 5 };
	struct spoor_counter *base = spoor_counter_open(meter, SPOOR_COUNTER, "tagged", &options),
			     *series[10];
	const struct spoor_tag get = { "method", "GET" }, bad = { "", "x" };

	(void)state;
	assert_ptr_equal(spoor_counter_tagged(base, &get, 1), spoor_counter_tagged(base, &get, 1));
	assert_ptr_equal(spoor_counter_open(meter, SPOOR_COUNTER, "tagged", NULL), base);
	assert_ptr_equal(spoor_meter_open("Tags", NULL), meter);
	for (int i = 0; i < 10; i++) {
		char value[16];
		snprintf(value, sizeof(value), "%d", i);
		struct spoor_tag tags[2] = { get, { "n", value } };
		series[i] = spoor_counter_tagged(base, tags, 2);
		spoor_counter_add(series[i], 1);
	}
	/* One series without tags, one with GET, three of the ten, and one for the other seven. */
	assert_ptr_equal(series[3], series[9]);
	assert_ptr_not_equal(series[2], series[3]);
	errno = 0;
	struct spoor_counter *nowhere = spoor_counter_tagged(base, &bad, 1);
	assert_int_equal(errno, EINVAL);
	spoor_counter_add(nowhere, 1); /* harmless */
	spoor_histogram_record(nowhere, 1);
	spoor_counter_close(nowhere);
	struct spoor_counter_listener *listener = listen_to(&seen, "Tag*", 20);
	wait_intervals(&seen, 2);
	spoor_counter_listener_close(listener);
	assert_int_equal(seen.series_count, 6);
	assert_true(series_of(&seen, "Tags\\tagged,method=GET,n=2") >= 0);
	int at = series_of(&seen, "Tags\\tagged,otel.metric.overflow=true");
	assert_true(at >= 0 && seen.series[at].value.value == 7);

	/*
	 * A closed series is no longer shown; the meter, opened twice, ends with its second close.
	 */
	spoor_counter_close(series[2]);
	spoor_meter_close(meter);
	listener = listen_to(&seen, "Tags\\tagged", 20);
	wait_intervals(&seen, 2);
	assert_int_equal(series_of(&seen, "Tags\\tagged,method=GET,n=2"), -1);
	assert_int_equal(seen.series_count, 5);
	spoor_meter_close(meter);
	wait_intervals(&seen, 2);
	unsigned times = seen.series[0].times;
	wait_intervals(&seen, 2);
	spoor_counter_listener_close(listener);
	assert_int_equal(seen.series[0].times, times);
}

static int observing_now, observed_after_close; /* atomic */
static bool observe_closed;

static double observe_slowly(void *context)
{
	(void)context;
	__atomic_fetch_add(&observing_now, 1, __ATOMIC_RELAXED);
	pause_ms(5);
	if (__atomic_load_n(&observe_closed, __ATOMIC_RELAXED))
		__atomic_fetch_add(&observed_after_close, 1, __ATOMIC_RELAXED);
	return 1;
}

/* After close returns, `observe` is not running and is not called again. */
static void test_close_waits(void **state)
{
	static struct seen seen;
	struct spoor_counter_options options = { .size = sizeof(options),
		.observe = observe_slowly };
	struct spoor_counter_listener *listener = listen_to(&seen, NULL, 10);

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct spoor_meter *meter = spoor_meter_open("Close", NULL);
		__atomic_store_n(&observe_closed, false, __ATOMIC_RELAXED);
		struct spoor_counter *counter =
			spoor_counter_open(meter, SPOOR_GAUGE, "slow", &options);
		pause_ms(5 + i);
		if (i % 2)
			spoor_counter_close(counter);
		else
			spoor_meter_close(meter);
		__atomic_store_n(&observe_closed, true, __ATOMIC_RELAXED);
		pause_ms(12);
		if (i % 2)
			spoor_meter_close(meter);
	}
	spoor_counter_listener_close(listener);
	assert_true(observing_now > 5);
	assert_int_equal(observed_after_close, 0);
}

/*
 * The child continues to count, and its own listeners work; the parent's thread is not in the
 * child.
 */
static void test_fork(void **state)
{
	static struct seen seen, child_seen;
	struct spoor_meter *meter = spoor_meter_open("Fork", NULL);
	struct spoor_counter *counter = spoor_counter_open(meter, SPOOR_COUNTER, "forked", NULL);
	struct spoor_counter_listener *listener = listen_to(&seen, "Fork", 10);

	(void)state;
	SKIP_IN_CHILD();
	spoor_counter_add(counter, 1);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();
		if (child == 0) {
			spoor_counter_add(counter, 41);
			struct spoor_counter_listener *own = listen_to(&child_seen, "Fork", 10);
			wait_intervals(&child_seen, 2);
			spoor_counter_listener_close(own);
			int at = series_of(&child_seen, "Fork\\forked");
			_exit(at >= 0 && child_seen.series[at].value.value == 42 ? 0 : 1);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	wait_intervals(&seen, 2);
	spoor_counter_listener_close(listener);
	int at = series_of(&seen, "Fork\\forked");
	assert_true(at >= 0 && seen.series[at].value.value == 1);
	spoor_meter_close(meter);
}

static void test_arguments(void **state)
{
	static const struct {
		const char *arguments, *key, *value;
	} cases[] = {
		{ "a=1;b=2", "b", "2" },
		{ "a=1;b=2", "c", NULL },
		{ "", "a", NULL },
		{ NULL, "a", NULL },
		{ "a", "a", "" },
		{ "a=\"x;y=z\";b=2", "a", "x;y=z" },
		{ "a=\"x;y=z\";b=2", "b", "2" },
		{ "\"a;b\"=3", "a;b", "3" },
		{ "a=\"open", "a", "open" },
		{ ";;=;a=1", "a", "1" },
		{ "ab=1;a=2", "a", "2" },
		{ "EventCounterIntervalSec=1", "EventCounterIntervalSec", "1" },
	};
	static const struct {
		double value;
		const char *text;
	} numbers[] = { { 0, "0" }, { 1, "1" }, { -1.5, "-1.5" }, { 0.1, "0.1" },
		{ 1.0 / 3, "0.3333333333333333" }, { 1e300, "1E+300" },
		{ 123456789012345678.0, "1.2345678901234568E+17" },
		{ 7.164478302001953e-05, "7.164478302001953E-05" } };
	char text[ARGUMENT_NUMBER_MAX];
	double value;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *found = argument_find(cases[i].arguments, cases[i].key);
		if (cases[i].value)
			assert_string_equal(found, cases[i].value);
		else
			assert_null(found);
		free(found);
	}
	for (int locale = 0; locale < 2; locale++) {
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			argument_print(numbers[i].value, text);
			assert_string_equal(text, numbers[i].text);
		}
		assert_true(argument_number("0.25", &value) && value == 0.25);
		assert_true(argument_number("+12", &value) && value == 12);
		assert_false(argument_number("", &value) || argument_number("x", &value) ||
			     argument_number("1,5", &value) || argument_number("1.2.3", &value) ||
			     argument_number(".", &value) || argument_number("-1", &value));
		/* A locale with a decimal comma, if it is installed. */
		if (!setlocale(LC_ALL, "de_DE.UTF-8"))
			break;
	}
	setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_first_interval),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_close_waits),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
