/*
 * Reads the events of counters from payloads laid out as .NET 10.0.12 sends them, each also cut at
 * every byte.
 */
#include "unit/test.h"

#include <errno.h>
#include <math.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/strtab.h"
#include "counters/counter_choice.h"
#include "counters/counter_feed.h"
#include "counters/counters.h"
#include "trace/provider_kind.h"
#include "trace/schema.h"

#define FILETIME_SECOND UINT64_C(10000000)

struct bench {
	struct strtab strings;
	struct counters counters;
	struct counter_choice choice;
	struct counter_feed events;
	struct bytes payload;
};

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct diag diag = { 0 };

	assert_non_null(b);
	assert_int_equal(counters_init(&b->counters), 0);
	assert_int_equal(counter_choice_add(&b->choice,
				 "Shop,Old,Part[wanted],System.Runtime[none]", &diag),
		0);
	b->events = (struct counter_feed){
		.counters = &b->counters,
		.choice = &b->choice,
		.session_id = "SHARED",
		.client_id = "me",
	};
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	counter_feed_done(&b->events);
	counters_done(&b->counters);
	counter_choice_done(&b->choice);
	bytes_done(&b->payload);
	strtab_done(&b->strings);
	free(b);
	return 0;
}

/*
 * Builds a payload: "t:text" a text, "i:5" 32 bits, "l:5" 64 bits, "d:0.5" a double, "f:0.5" a
 * float; NULL ends the list.
 */
static void lay_out(struct bytes *out, const char *const *parts)
{
	bytes_reset(out);
	for (; *parts; parts++) {
		const char *text = *parts + 2;
		float f = (float)atof(text);
		uint32_t bits;
		switch (**parts) {
		case 't':
			bytes_utf16z(out, text, strlen(text), 1000);
			break;
		case 'i':
			bytes_u32(out, (uint32_t)atoi(text));
			break;
		case 'l':
			bytes_u64(out, (uint64_t)atoll(text));
			break;
		case 'd':
			bytes_f64(out, atof(text));
			break;
		default:
			memcpy(&bits, &f, sizeof(bits));
			bytes_u32(out, bits);
		}
	}
}

static int take(struct bench *b, uint32_t id, uint8_t version, const char *const *parts)
{
	struct schema schema = {
		.provider = strtab_add_z(&b->strings, PROVIDER_METRICS_NAME),
		.event_id = id,
		.version = version,
	};

	lay_out(&b->payload, parts);
	/*
	 * No prefix of the payload is accepted as complete. It uses a separate feed, so that no
	 * value is counted twice.
	 */
	struct counters scratch;
	assert_int_equal(counters_init(&scratch), 0);
	struct counter_feed torn = { .counters = &scratch,
		.choice = &b->choice,
		.session_id = "SHARED",
		.client_id = "me",
		.list_all = true };
	for (size_t cut = 0; cut < b->payload.len; cut++) {
		uint8_t *exact = malloc(cut + 1);
		assert_non_null(exact);
		memcpy(exact, b->payload.data, cut);
		int result = counter_feed_take(&torn, &b->strings, &schema, exact, cut);
		/* Of some events only the name of the session is read. */
		assert_true(result == -EBADMSG || result == 0 || id == 3 || (id >= 9 && id <= 15));
		free(exact);
	}
	counter_feed_done(&torn);
	counters_done(&scratch);
	return counter_feed_take(&b->events, &b->strings, &schema, b->payload.data, b->payload.len);
}
#define TAKE_EVENT(b, id, version, ...) \
	take(b, id, version, (const char *const[]){ __VA_ARGS__, NULL })

static void collection(struct bench *b, double seconds)
{
	char begin[32], end[32];
	uint64_t from = UINT64_C(134000000000000000);

	snprintf(begin, sizeof(begin), "l:%llu", (unsigned long long)from);
	snprintf(end, sizeof(end), "l:%llu",
		(unsigned long long)(from + (uint64_t)(seconds * (double)FILETIME_SECOND)));
	assert_int_equal(TAKE_EVENT(b, 2, 0, "t:SHARED", begin, end), 1);
}

static const struct counter_series *series(struct bench *b, const char *name, const char *tags)
{
	for (uint32_t i = 0; i < b->counters.series.count; i++) {
		const struct counter_series *s = &b->counters.series.items[i];
		if (strcmp(strtab_get(&b->counters.strings, s->id.name), name) == 0 &&
			strcmp(strtab_get(&b->counters.strings, s->id.tags), tags) == 0)
			return s;
	}
	return NULL;
}

static void test_meters(void **state)
{
	struct bench *b = *state;

	assert_int_equal(TAKE_EVENT(b, 7, 3, "t:SHARED", "t:Shop", "t:1.2", "t:orders",
				 "t:Counter`1", "t:{order}", "t:Orders taken",
				 "t:", "t:region=north", "t:hash", "i:5", "t:url"),
		1);
	assert_int_equal(TAKE_EVENT(b, 10, 0, "t:SHARED"), 1);
	assert_true(b->events.enumerated);
	collection(b, 1);
	assert_true(b->events.collecting);
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:1.2", "t:orders", "t:{order}",
				 "t:kind=book", "t:50", "t:120", "i:5"),
		1);
	assert_int_equal(TAKE_EVENT(b, 16, 2, "t:SHARED", "t:Shop", "t:1.2", "t:open",
				 "t:", "t:", "t:-2", "t:7", "i:6"),
		1);
	assert_int_equal(TAKE_EVENT(b, 5, 2, "t:SHARED", "t:Shop", "t:1.2", "t:temperature",
				 "t:Cel", "t:", "t:0.003973400000000016", "i:7"),
		1);
	assert_int_equal(TAKE_EVENT(b, 6, 2, "t:SHARED", "t:Shop", "t:1.2", "t:duration", "t:s",
				 "t:", "t:0.5=7.164478302001953E-05;0.95=0.5;0.99=2", "i:10",
				 "d:5.5", "i:8"),
		1);
	assert_int_equal(TAKE_EVENT(b, 3, 0, "t:SHARED", "l:1", "l:2"), 1);
	assert_false(b->events.collecting);
	assert_int_equal(counters_close(&b->counters), 4);

	const struct counter_series *s = series(b, "orders", "kind=book,region=north");
	assert_non_null(s);
	assert_true(s->delta == 50 && s->rate == 50 && s->value == 120 &&
		    s->since == COUNTER_SINCE_EARLIER);
	assert_string_equal(strtab_get(&b->counters.strings, s->description), "Orders taken");
	s = series(b, "open", "");
	assert_true(s->kind == COUNTER_UPDOWN && s->value == 7 && s->rate == -2);
	s = series(b, "temperature", "");
	assert_true(s->kind == COUNTER_GAUGE && s->value == 0.003973400000000016);
	s = series(b, "duration", "");
	assert_int_equal(s->quantile_count, 3);
	assert_true(s->quantiles[0].quantile == 0.5 &&
		    s->quantiles[0].value == 7.164478302001953E-05);
	assert_true(s->count == 10 && s->sum == 5.5 && s->rate == 10);

	/* Another tool halved the interval: two intervals then make one of ours. */
	for (int i = 0; i < 2; i++) {
		collection(b, 0.5);
		TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:1.2", "t:orders", "t:{order}",
			"t:kind=book", i ? "t:30" : "t:10", i ? "t:160" : "t:130", "i:5");
		TAKE_EVENT(b, 6, 2, "t:SHARED", "t:Shop", "t:1.2", "t:duration", "t:s",
			"t:", i ? "t:" : "t:0.5=1", "i:3", "d:1", "i:8");
	}
	assert_int_equal(counters_close(&b->counters), 2);
	s = series(b, "orders", "kind=book,region=north");
	assert_true(s->fresh && s->delta == 40 && s->rate == 40 && s->value == 160 &&
		    s->total == 90);
	s = series(b, "duration", "");
	assert_true(s->count == 6 && s->quantile_count == 1 && s->total == 16 &&
		    s->total_sum == 7.5);
	assert_false(series(b, "open", "")->fresh);

	/*
	 * Quantiles may be in any order: the highest one counts as the last. A counter whose total
	 * equals its first increment started with the session.
	 */
	collection(b, 1);
	TAKE_EVENT(b, 6, 2, "t:SHARED", "t:Shop", "t:1.2", "t:duration", "t:s",
		"t:", "t:0.99=9;0.5=1;0.95=5", "i:3", "d:1", "i:8");
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:1.2", "t:orders", "t:{order}", "t:kind=pen",
		"t:5", "t:5", "i:5");
	assert_int_equal(counters_close(&b->counters), 2);
	s = series(b, "duration", "");
	assert_true(s->quantiles[0].value == 1 && s->quantiles[1].value == 5 &&
		    counter_series_level(s) == 9);
	assert_int_equal(series(b, "orders", "kind=pen,region=north")->since,
		COUNTER_SINCE_SESSION);

	/* The end of an instrument, and a new interval without values. */
	assert_int_equal(TAKE_EVENT(b, 8, 2, "t:SHARED", "t:Shop", "t:1.2", "t:orders",
				 "t:Counter`1", "t:{order}", "t:Orders taken",
				 "t:", "t:region=north", "t:hash", "i:5"),
		1);
	assert_false(counter_series_shows(series(b, "orders", "kind=book,region=north")));
	assert_false(counters_any(&b->counters));
}

static void test_observables(void **state)
{
	struct bench *b = *state;

	/* The first interval has a value but no rate. */
	collection(b, 1);
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:", "t:seen", "t:s",
				 "t:", "t:", "t:12.5", "i:9"),
		1);
	counters_close(&b->counters);
	const struct counter_series *s = series(b, "seen", "");
	assert_true(counter_series_shows(s) && isnan(s->rate) && isnan(s->delta) &&
		    s->value == 12.5 && s->since == COUNTER_SINCE_PROCESS);
	/* Neither instrument sends values any more. */
	collection(b, 1);
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:", "t:seen", "t:s",
				 "t:", "t:", "t:", "i:9"),
		1);
	counters_close(&b->counters);
	assert_true(series(b, "seen", "")->ended);
	/* The instrument appears again. */
	collection(b, 1);
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:", "t:seen", "t:s", "t:", "t:1", "t:13.5",
		"i:9");
	counters_close(&b->counters);
	assert_true(counter_series_shows(series(b, "seen", "")));
	/* .NET 6 sends no value and no id. */
	collection(b, 1);
	assert_int_equal(
		TAKE_EVENT(b, 4, 0, "t:SHARED", "t:Shop", "t:", "t:old", "t:", "t:", "t:3"), 1);
	assert_int_equal(TAKE_EVENT(b, 6, 0, "t:SHARED", "t:Shop", "t:", "t:oldest",
				 "t:", "t:", "t:0.5=3"),
		1);
	counters_close(&b->counters);
	assert_true(series(b, "old", "")->rate == 3 && !series(b, "old", "")->ended &&
		    isnan(series(b, "old", "")->value));
	assert_true(isnan(series(b, "oldest", "")->count) &&
		    series(b, "oldest", "")->quantile_count == 1);
	/* A counter of the runtime may also decrease. */
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:System.Runtime",
		"t:", "t:dotnet.thread_pool.thread.count", "t:", "t:", "t:", "t:8", "i:20");
	assert_null(series(b, "dotnet.thread_pool.thread.count", "")); /* not selected */
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:System.Runtime", "t:", "t:dotnet.gc.pause.time", "t:s",
		"t:", "t:0.25", "t:8", "i:21");
	collection(b, 1);
	counters_close(&b->counters);
	/* not selected either, but needed for the share of GC pauses */
	s = series(b, "dotnet.gc.pause.time", "");
	assert_true(s->hidden && !counter_series_shows(s));
	assert_true(b->counters.series.items[DERIVED_GC_PAUSE].fresh &&
		    b->counters.series.items[DERIVED_GC_PAUSE].value == 25);
}

/*
 * A process that is observed from its first instruction: the value of a counter after the first
 * interval is also its increase.
 */
static void test_from_start(void **state)
{
	struct bench *b = *state;

	b->events.from_start = true;
	collection(b, 1);
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:", "t:seen", "t:s", "t:", "t:", "t:12.5",
		"i:9");
	TAKE_EVENT(b, 16, 2, "t:SHARED", "t:Shop", "t:", "t:level", "t:", "t:", "t:", "t:3",
		"i:10");
	counters_close(&b->counters);
	assert_true(series(b, "seen", "")->delta == 12.5 && series(b, "seen", "")->value == 12.5);
	assert_true(isnan(series(b, "level", "")->delta));
	/*
	 * From the second interval on the runtime reports the increase. The value of a counter that
	 * appears later may include increases from before it was observed.
	 */
	collection(b, 1);
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:", "t:seen", "t:s", "t:", "t:2", "t:14.5",
		"i:9");
	b->events.from_start = false;
	TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Shop", "t:", "t:late", "t:s", "t:", "t:", "t:7", "i:11");
	counters_close(&b->counters);
	assert_true(series(b, "seen", "")->delta == 2 && series(b, "seen", "")->total == 14.5);
	assert_true(isnan(series(b, "late", "")->delta) && series(b, "late", "")->value == 7);
}

static void test_others(void **state)
{
	struct bench *b = *state;

	/* Values of another session, of other Meters, and of a counter that was not selected. */
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:other", "t:Shop", "t:", "t:orders",
				 "t:", "t:", "t:1", "t:1", "i:1"),
		0);
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Theirs", "t:", "t:orders",
				 "t:", "t:", "t:1", "t:1", "i:1"),
		0);
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Part", "t:", "t:other",
				 "t:", "t:", "t:1", "t:1", "i:1"),
		0);
	assert_int_equal(TAKE_EVENT(b, 4, 2, "t:SHARED", "t:Part", "t:", "t:wanted",
				 "t:", "t:", "t:1", "t:1", "i:1"),
		1);
	/* A conflict concerns us only if it names our session. */
	assert_int_equal(TAKE_EVENT(b, 17, 0, "t:another", "t:7", "t:10", "t:1000", "t:1000",
				 "t:0.5", "t:1"),
		0);
	assert_int_equal(b->events.trouble, 0);
	assert_int_equal(
		TAKE_EVENT(b, 17, 0, "t:me", "t:7", "t:10", "t:1000", "t:900", "t:0.5", "t:1"), 1);
	assert_int_equal(b->events.trouble, COUNTER_TROUBLE_OTHERS_RULE);
	assert_int_equal(b->events.expected_max_histograms, 7);
	assert_int_equal(b->events.expected_max_time_series, 1000);
	assert_true(b->events.expected_interval_s == 0.5);
	assert_int_equal(TAKE_EVENT(b, 17, 0, "t:me", "t:x", "t:10", "t:1000", "t:900", "t:0",
				 "t:1"),
		-EBADMSG);
	assert_int_equal(TAKE_EVENT(b, 15, 0, "t:SHARED"), 0);
	assert_int_equal(TAKE_EVENT(b, 15, 0, "t:f3b7"), 1);
	assert_int_equal(TAKE_EVENT(b, 12, 0, "t:SHARED"), 1);
	assert_int_equal(TAKE_EVENT(b, 13, 0, "t:SHARED"), 1);
	assert_int_equal(TAKE_EVENT(b, 9, 0, "t:SHARED", "t:it broke\x1b[2J"), 1);
	assert_int_equal(b->events.trouble,
		COUNTER_TROUBLE_OTHERS_RULE | COUNTER_TROUBLE_BUSY | COUNTER_TROUBLE_SERIES |
			COUNTER_TROUBLE_HISTOGRAMS | COUNTER_TROUBLE_ERROR);
	assert_null(strchr(b->events.message, '\x1b'));
}

static void add_field(struct bench *b, struct schema *schema, const char *name,
	enum field_type type, uint16_t depth)
{
	struct field *field = vec_push(&schema->fields);

	assert_non_null(field);
	*field = (struct field){
		.name = strtab_add_z(&b->strings, name), .type = (uint8_t)type, .depth = depth
	};
}

/* The two layouts of System.Runtime in .NET 10. */
static void make_schema(struct bench *b, const char *provider, bool rate, struct schema *schema)
{
	*schema = (struct schema){
		.provider = strtab_add_z(&b->strings, provider),
		.name = strtab_add_z(&b->strings, "EventCounters"),
		.event_id = rate ? 157 : 156,
	};
	add_field(b, schema, "", FIELD_OBJECT, 0);
	add_field(b, schema, "Name", FIELD_TEXT16, 1);
	add_field(b, schema, "DisplayName", FIELD_TEXT16, 1);
	if (rate) {
		add_field(b, schema, "DisplayRateTimeScale", FIELD_TEXT16, 1);
		add_field(b, schema, "Increment", FIELD_F64, 1);
		add_field(b, schema, "IntervalSec", FIELD_F32, 1);
		add_field(b, schema, "Metadata", FIELD_TEXT16, 1);
		add_field(b, schema, "Series", FIELD_TEXT16, 1);
		add_field(b, schema, "CounterType", FIELD_TEXT16, 1);
		add_field(b, schema, "DisplayUnits", FIELD_TEXT16, 1);
		return;
	}
	add_field(b, schema, "Mean", FIELD_F64, 1);
	add_field(b, schema, "StandardDeviation", FIELD_F64, 1);
	add_field(b, schema, "Count", FIELD_I32, 1);
	add_field(b, schema, "Min", FIELD_F64, 1);
	add_field(b, schema, "Max", FIELD_F64, 1);
	add_field(b, schema, "IntervalSec", FIELD_F32, 1);
	add_field(b, schema, "Series", FIELD_TEXT16, 1);
	add_field(b, schema, "CounterType", FIELD_TEXT16, 1);
	add_field(b, schema, "Metadata", FIELD_TEXT16, 1);
	add_field(b, schema, "DisplayUnits", FIELD_TEXT16, 1);
}

static int take_with(struct bench *b, const struct schema *schema, const char *const *parts)
{
	lay_out(&b->payload, parts);
	for (size_t cut = 0; cut < b->payload.len; cut++)
		assert_int_equal(counter_feed_take(&b->events, &b->strings, schema, b->payload.data,
					 cut),
			-EBADMSG);
	return counter_feed_take(&b->events, &b->strings, schema, b->payload.data, b->payload.len);
}
#define TAKE_COUNTER(b, schema, ...) \
	take_with(b, schema, (const char *const[]){ __VA_ARGS__, NULL })

static void test_event_counters(void **state)
{
	struct bench *b = *state;
	struct schema rate, gauge, runtime;

	make_schema(b, "Old", true, &rate);
	make_schema(b, "Old", false, &gauge);
	make_schema(b, "System.Runtime", true, &runtime);
	/*
	 * Three events in one of our intervals. A change of the interval caused the middle one,
	 * which covers no time.
	 */
	assert_int_equal(TAKE_COUNTER(b, &rate, "t:alloc-rate", "t:Allocation Rate", "t:00:00:01",
				 "d:100", "f:0.5", "t:", "t:Interval=500", "t:Sum", "t:B"),
		1);
	assert_int_equal(TAKE_COUNTER(b, &rate, "t:alloc-rate", "t:Allocation Rate", "t:00:00:01",
				 "d:0", "f:0", "t:", "t:Interval=500", "t:Sum", "t:B"),
		1);
	assert_int_equal(TAKE_COUNTER(b, &rate, "t:alloc-rate", "t:Allocation Rate", "t:00:00:01",
				 "d:50", "f:0.25", "t:", "t:Interval=500", "t:Sum", "t:B"),
		1);
	assert_int_equal(TAKE_COUNTER(b, &gauge, "t:load", "t:Load", "d:2.5", "d:0", "i:3", "d:1",
				 "d:4", "f:1", "t:Interval=1000", "t:Mean",
				 "t:place:north,kind:big", "t:%"),
		1);
	assert_int_equal(TAKE_COUNTER(b, &gauge, "t:bad", "t:Bad", "d:1", "d:0", "i:3", "d:1",
				 "d:4", "f:1", "t:Interval=1000", "t:Mean", "t:place:north,broken",
				 "t:%"),
		1);
	assert_int_equal(counters_close(&b->counters), 3);
	const struct counter_series *s = series(b, "alloc-rate", "");
	assert_true(s->kind == COUNTER_SUM && s->delta == 150 && s->rate == 200 && isnan(s->value));
	struct bytes label = { 0 };
	counters_add_label(&b->counters, s, 1, &label);
	assert_string_equal(bytes_z(&label), "Allocation Rate (B / 1 sec)");
	bytes_done(&label);
	s = series(b, "load", "place=north,kind=big");
	assert_true(s && s->kind == COUNTER_GAUGE && s->value == 2.5);
	assert_non_null(series(b, "bad", "")); /* a pair without a value, so there are no tags */
	/* An interval of zero length has no rate. */
	TAKE_COUNTER(b, &rate, "t:alloc-rate", "t:Allocation Rate", "t:00:00:01", "d:5", "f:0",
		"t:", "t:Interval=500", "t:Sum", "t:B");
	counters_close(&b->counters);
	assert_true(isnan(series(b, "alloc-rate", "")->rate));
	/* A Meter of the same name replaces the EventCounter from its first event on. */
	TAKE_COUNTER(b, &rate, "t:alloc-rate", "t:Allocation Rate", "t:00:00:01", "d:5", "f:1",
		"t:", "t:Interval=500", "t:Sum", "t:B");
	assert_int_equal(TAKE_EVENT(b, 7, 3, "t:SHARED", "t:Old", "t:", "t:x", "t:Counter`1",
				 "t:", "t:", "t:", "t:", "t:", "i:5", "t:"),
		1);
	assert_false(counter_series_shows(series(b, "alloc-rate", "")));
	assert_int_equal(TAKE_COUNTER(b, &rate, "t:alloc-rate", "t:Allocation Rate", "t:00:00:01",
				 "d:5", "f:1", "t:", "t:Interval=500", "t:Sum", "t:B"),
		0);
	assert_false(counters_any(&b->counters));
	assert_int_equal(TAKE_COUNTER(b, &runtime, "t:alloc-rate", "t:Allocation Rate",
				 "t:00:00:01", "d:5", "f:1", "t:", "t:Interval=500", "t:Sum",
				 "t:B"),
		0);
	schema_done(&rate);
	schema_done(&gauge);
	schema_done(&runtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_meters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_observables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_from_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_event_counters, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
