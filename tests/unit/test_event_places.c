/* From events and samples to facts: rates, the user's own method, and which rows are judged. */
#include "unit/test.h"

#include <math.h>

#include "analysis/answers.h"
#include "analysis/profile.h"
#include "analysis/recording.h"
#include "analysis/top.h"
#include "base/bytes.h"
#include "diagnose/facts.h"
#include "diagnose/facts_gather.h"
#include "diagnose/observation_events.h"
#include "trace/clr_event.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "unit/sample_trace.h"

struct fixture {
	struct trace trace;
	struct profile profile;
	struct answers answers;
	struct symbolmap names;
	struct report report;
	struct facts facts;
	struct observation_events looks; /* none */
};

/* An exception of this type, thrown in Burn, which Main called. */
static void throw(struct fixture * f, uint64_t at_ms, const char *type)
{
	const uint64_t frames[] = { JIT + 8, JIT + 0x208, LIBC + 8 };
	struct bytes payload = { 0 };
	struct schema *schema = vec_push(&f->trace.schemas);

	*schema = (struct schema){
		.provider_kind = PROVIDER_CLR, .event_id = CLR_ID_ExceptionThrown, .version = 1
	};
	bytes_utf16z(&payload, type, strlen(type), 100);
	bytes_utf16z(&payload, "no", 2, 100);
	bytes_u64(&payload, JIT + 8);
	bytes_u32(&payload, 0);
	bytes_u16(&payload, 0);
	bytes_u16(&payload, 0);
	const struct event event = { .time_ns = BEGIN_NS + at_ms * 1000000,
		.thread_index = trace_thread(&f->trace, 4711, 4711),
		.stack_index = stack_table_intern(&f->trace.stacks, frames, 3),
		.schema_index = f->trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len };
	assert_int_equal(answers_event(&f->answers, &event), 0);
	bytes_done(&payload);
}

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	sample_trace(&f->trace);
	f->profile.trace = &f->trace;
	f->answers = (struct answers){
		.trace = &f->trace, .filter = &f->profile.filter, .wanted = ANSWERS_ALL
	};
}

static void gather(struct fixture *f)
{
	assert_int_equal(symbolmap_init(&f->names, &f->trace, METHOD_NAME_SHORT), 0);
	assert_int_equal(answers_find(&f->answers, &f->names), 0);
	assert_int_equal(profile_name(&f->profile, &f->names), 0);
	assert_int_equal(recording_describe(&f->report, &f->trace, &f->names, &f->profile), 0);
	assert_int_equal(answers_finish(&f->answers, &f->profile, &f->names, f->report.duration_ns),
		0);
	assert_int_equal(top_count(&f->report, &f->profile, &f->names, TOP_SELF), 0);
	assert_int_equal(facts_gather(&f->facts, &f->profile, &f->report, &f->answers, &f->looks),
		0);
}

static void tear_down(struct fixture *f)
{
	facts_done(&f->facts);
	answers_done(&f->answers);
	report_done(&f->report);
	symbolmap_done(&f->names);
	profile_done(&f->profile);
	trace_done(&f->trace);
}

static const char *text_of(const struct fixture *f, uint32_t text)
{
	return strtab_get(&f->facts.texts, text);
}

static void test_exceptions(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	for (unsigned i = 0; i < 150; i++)
		throw(&f, i, i < 100 ? "System.FormatException" : "System.Exception");
	gather(&f);
	/* Without a filter only the .NET process is judged. */
	assert_int_equal(f.facts.processes.count, 1);
	const struct process_facts *shop = facts_find(&f.facts, 4711);
	assert_non_null(shop);
	assert_true(shop->numbers[FACT_exceptions] == 150);
	assert_true(shop->numbers[FACT_exception_rate] > 149 &&
		    shop->numbers[FACT_exception_rate] < 151);
	assert_string_equal(text_of(&f, shop->words[WORD_exception_type]),
		"System.FormatException");
	assert_string_equal(text_of(&f, shop->words[WORD_exception_remedy]), "parse with TryParse");
	assert_string_equal(text_of(&f, shop->places[PLACE_thrower].method), "Shop.Pricing.Burn");
	assert_int_equal(shop->places[PLACE_thrower].frame_count, 3);
	tear_down(&f);
}

/* A collection for this reason, triggered in the method at `address`, which Main called. */
static void trigger(struct fixture *f, uint64_t at_ms, uint32_t reason, uint64_t address)
{
	const uint64_t frames[] = { LIBC + 8, address, JIT + 0x208 };
	struct bytes payload = { 0 };
	struct schema *schema = vec_push(&f->trace.schemas);

	*schema = (struct schema){
		.provider_kind = PROVIDER_CLR, .event_id = CLR_ID_GCTriggered, .version = 0
	};
	bytes_u32(&payload, reason);
	bytes_u16(&payload, 0);
	const struct event event = { .time_ns = BEGIN_NS + at_ms * 1000000,
		.thread_index = trace_thread(&f->trace, 4711, 4711),
		.stack_index = stack_table_intern(&f->trace.stacks, frames, 3),
		.schema_index = f->trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len };
	assert_int_equal(answers_event(&f->answers, &event), 0);
	bytes_done(&payload);
}

/* The method that induces collections comes from the stacks of the events, not from the samples. */
static void test_triggers(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	for (unsigned i = 0; i < 20; i++)
		trigger(&f, i, 0, JIT + 0x208); /* for small objects */
	for (unsigned i = 0; i < 5; i++)
		trigger(&f, 100 + i, 1, JIT + 8); /* induced */
	gather(&f);
	const struct process_facts *shop = facts_find(&f.facts, 4711);
	assert_string_equal(text_of(&f, shop->places[PLACE_collector].method), "Shop.Pricing.Burn");
	tear_down(&f);
}

/* 100 objects of a megabyte, sampled within 10 ms of a second. */
static void test_burst(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	struct schema *schema = vec_push(&f.trace.schemas);
	*schema = (struct schema){
		.provider_kind = PROVIDER_CLR, .event_id = CLR_ID_GCAllocationTick, .version = 2
	};
	for (unsigned i = 0; i < 100; i++) {
		struct bytes payload = { 0 };
		bytes_u32(&payload, 1000000);
		bytes_u32(&payload, 1); /* large */
		bytes_u16(&payload, 0);
		bytes_u64(&payload, 1000000);
		bytes_u64(&payload, 0);
		bytes_utf16z(&payload, "Shop.Row[]", 10, 100);
		const struct event event = { .time_ns = BEGIN_NS + UINT64_C(500000000) +
							i * UINT64_C(100000),
			.thread_index = trace_thread(&f.trace, 4711, 4711),
			.schema_index = f.trace.schemas.count - 1,
			.payload = payload.data,
			.payload_size = (uint32_t)payload.len };
		assert_int_equal(answers_event(&f.answers, &event), 0);
		bytes_done(&payload);
	}
	gather(&f);
	/* The rate is that of the recording, not of the time between the first and the last. */
	const struct process_facts *shop = facts_find(&f.facts, 4711);
	assert_true(shop->numbers[FACT_span] == 1);
	assert_true(shop->numbers[FACT_allocation_rate] == 1e8);
	assert_true(shop->numbers[FACT_large_byte_rate] == 1e8);
	tear_down(&f);
}

/* Native code in a process with methods, by callers that frame pointers do not give. */
static void test_callers(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_mapping(&f.trace, trace_find_process(&f.trace, 4711), 9, LIBC + 0x1000000,
		"/app/libpack.so");
	sample_add(&f.profile, 4711, 4711, 600, 9, STACK(LIBC + 0x1000008));
	gather(&f);
	assert_int_equal(facts_find(&f.facts, 4711)->words[WORD_callers], 0);
	tear_down(&f);

	set_up(&f);
	trace_set_options(&f.trace, "{\"call_graph\":\"fp\"}");
	sample_mapping(&f.trace, trace_find_process(&f.trace, 4711), 9, LIBC + 0x1000000,
		"/app/libpack.so");
	sample_add(&f.profile, 4711, 4711, 600, 9, STACK(LIBC + 0x1000008));
	gather(&f);
	assert_string_equal(text_of(&f, facts_find(&f.facts, 4711)->words[WORD_callers]),
		"--call-graph auto");
	tear_down(&f);
}

/* 18 samples: 8 in Burn; of the others the framework's code, memory copies and stubs count for Main. */
static void test_samples(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	gather(&f);
	const struct process_facts *shop = facts_find(&f.facts, 4711);
	assert_string_equal(text_of(&f, shop->places[PLACE_hot].method), "Shop.Pricing.Burn");
	assert_true(shop->numbers[FACT_hot_share] > 0.44 && shop->numbers[FACT_hot_share] < 0.45);
	assert_true(shop->numbers[FACT_runtime_share] > 0.11 &&
		    shop->numbers[FACT_runtime_share] < 0.12);
	assert_false(shop->known[FACT_exception_rate]);
	tear_down(&f);
}

static void test_chosen(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	assert_true(vec_add(&f.profile.filter.pids, 4802));
	gather(&f);
	assert_int_equal(f.facts.processes.count, 1);
	/* A native program's own function is its method. */
	const struct process_facts *other = facts_find(&f.facts, 4802);
	assert_non_null(other);
	assert_true(other->numbers[FACT_hot_share] == 1);
	vec_done(&f.profile.filter.pids);
	tear_down(&f);
}

/* Of the CPU time of one whole second, which this process shared for a fifth of it. */
static void test_others(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	sample_add(&f.profile, 4802, 4802, 700, 100, STACK(LIBC + 8));
	f.trace.processes.items[trace_find_process(&f.trace, 4711)].end_ns =
		BEGIN_NS + UINT64_C(200000000);
	gather(&f);
	const struct process_facts *shop = facts_find(&f.facts, 4711);
	double others = shop->numbers[FACT_others_share];
	assert_true(shop->known[FACT_others_share]);
	assert_true(others > 0.50 && others < 0.52);
	tear_down(&f);
}

/* A native program's code without symbols is no method of the user. */
static void test_unnamed(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_add(&f.profile, 4802, 4802, 600, 9, STACK(LIBC + 0x5008));
	assert_true(vec_add(&f.profile.filter.pids, 4802));
	gather(&f);
	const struct process_facts *other = facts_find(&f.facts, 4802);
	assert_non_null(other);
	assert_true(other->numbers[FACT_native_share] == 1);
	assert_true(other->numbers[FACT_hot_share] == 0);
	assert_true(other->words[WORD_unnamed] != 0);
	vec_done(&f.profile.filter.pids);
	tear_down(&f);
}

/* Collections that leave these sizes, in MB; returns by how many MB the heap grew. */
static double growths_of(const unsigned *sizes, uint32_t count, double *ret_growth)
{
	struct fixture f;

	set_up(&f);
	sample_fill(&f.profile);
	gather(&f);
	struct collections *collections = &f.answers.collections;
	collections->trace = &f.trace;
	const struct collections_process process = { .process = trace_find_process(&f.trace, 4711),
		.row_count = count };
	for (uint32_t i = 0; i < count; i++) {
		const struct collection row = { .process = process.process,
			.heap_bytes = sizes[i] * UINT64_C(1000000),
			.has_stats = true };
		assert_true(vec_add(&collections->rows, row));
	}
	assert_true(vec_add(&collections->processes, process));
	facts_done(&f.facts);
	f.facts = (struct facts){ 0 };
	assert_int_equal(facts_gather(&f.facts, &f.profile, &f.report, &f.answers, &f.looks), 0);
	const struct process_facts *row = facts_find(&f.facts, 4711);
	double sure = row->numbers[FACT_heap_growth_sure] / 1e6;
	if (ret_growth)
		*ret_growth = row->numbers[FACT_heap_growth] / 1e6;
	tear_down(&f);
	return sure;
}

static double growth_of(const unsigned *sizes, uint32_t count)
{
	return growths_of(sizes, count, NULL);
}

/* Of 300 ms of CPU time a third was used in collections; half of the pauses were induced. */
static void test_collector_cpu(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	sample_fill(&f.profile);
	gather(&f);
	uint32_t shop = trace_find_process(&f.trace, 4711);
	f.answers.collections.trace = &f.trace;
	const struct collection rows[] = { { .process = shop, .reason = 0, .pause_ns = 5000000 },
		{ .process = shop, .reason = 1, .pause_ns = 5000000 } };
	assert_true(vec_add(&f.answers.collections.rows, rows[0]));
	assert_true(vec_add(&f.answers.collections.rows, rows[1]));
	const struct collections_process process = { .process = shop, .row_count = 2 };
	assert_true(vec_add(&f.answers.collections.processes, process));
	const struct collector_cpu_process cpu = {
		.process = shop, .all_ns = 300000000, .pauses_ns = 10000000, .threads_ns = 90000000
	};
	assert_true(vec_add(&f.answers.collector_cpu.processes, cpu));
	facts_done(&f.facts);
	f.facts = (struct facts){ 0 };
	assert_int_equal(facts_gather(&f.facts, &f.profile, &f.report, &f.answers, &f.looks), 0);
	const struct process_facts *row = facts_find(&f.facts, 4711);
	assert_true(fabs(row->numbers[FACT_gc_cpu_share] - 1.0 / 3) < 1e-9);
	assert_true(fabs(row->numbers[FACT_pressure_cpu_share] - 1.0 / 6) < 1e-9);
	tear_down(&f);
}

/* The mean of calls of which `ended_ms` have ended and some have lasted for `unfinished_ms` so far. */
static double mean_of_calls(uint64_t ended_ms, uint32_t ended, uint64_t unfinished_ms,
	uint32_t unfinished)
{
	struct fixture f;

	set_up(&f);
	sample_fill(&f.profile);
	gather(&f);
	struct calls *calls = &f.answers.calls;
	uint32_t shop = trace_find_process(&f.trace, 4711);
	struct call_row row = { .process = shop,
		.kind = ACTIVITY_HTTP,
		.target = strtab_add_z(&calls->targets, "http://bank:80"),
		.unfinished = unfinished,
		.unfinished_ns = unfinished_ms * 1000000 };
	for (uint32_t i = 0; i < ended; i++)
		durations_add(&row.durations, 0, ended_ms * 1000000 / ended);
	assert_true(vec_add(&calls->rows, row));
	const struct calls_process process = { .process = shop, .row_count = 1, .count = ended };
	assert_true(vec_add(&calls->processes, process));
	f.answers.to_ns = f.answers.from_ns + UINT64_C(5000000000);
	facts_done(&f.facts);
	f.facts = (struct facts){ 0 };
	assert_int_equal(facts_gather(&f.facts, &f.profile, &f.report, &f.answers, &f.looks), 0);
	double mean_s = facts_find(&f.facts, 4711)->numbers[FACT_dependency_mean];
	tear_down(&f);
	return mean_s;
}

static void test_calls_that_have_not_ended(void **state)
{
	(void)state;
	/* Of a call that began shortly before the end, it is not known how long it takes. */
	assert_true(fabs(mean_of_calls(4000, 4, 10, 1) - 1) < 1e-6);
	/* Those that hang count. */
	assert_true(fabs(mean_of_calls(10, 1, 8990, 2) - 3) < 1e-6);
	assert_true(fabs(mean_of_calls(0, 0, 8000, 2) - 4) < 1e-6);
}

static void test_heap_growth(void **state)
{
	unsigned sizes[100];
	double growth;

	(void)state;
	/* Peaks of garbage in the earlier half, and lows in the later one, do not hide a leak. */
	for (unsigned i = 0; i < 100; i++)
		sizes[i] = i % 10 == 7 ? 200 - 2 * i : 10 + i;
	assert_true(growth_of(sizes, 100) > 20 && growth_of(sizes, 100) < 50);
	/* A heap that goes up and down does not grow. */
	for (unsigned i = 0; i < 100; i++)
		sizes[i] = 10 + i * 37 % 29;
	assert_true(growth_of(sizes, 100) == 0);
	assert_true(growth_of((const unsigned[]){ 1, 9, 2, 8, 1, 9, 2, 8, 1, 9 }, 10) == 0);
	/* Few values grow if all later ones are larger. */
	assert_true(growth_of((const unsigned[]){ 1, 3, 4, 9 }, 4) == 1);
	assert_true(growth_of((const unsigned[]){ 1, 4, 3, 9 }, 4) == 0);
	assert_true(growth_of((const unsigned[]){ 1, 9 }, 2) == 0);
	/* The growth shown is the difference of the medians: half of a steady growth. */
	for (unsigned i = 0; i < 100; i++)
		sizes[i] = 10 + i;
	assert_true(growths_of(sizes, 100, &growth) < 50 && growth == 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_triggers),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_collector_cpu),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_calls_that_have_not_ended),
		cmocka_unit_test(test_heap_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
