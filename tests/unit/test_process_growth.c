/* Readings of a process's use, and the levels that its runtime reports: what counts as growth. */
#include "unit/test.h"

#include <string.h>

#include "analysis/runtime_gauges.h"
#include "base/bytes.h"
#include "diagnose/facts.h"
#include "diagnose/process_growth.h"
#include "machine/process_use.h"
#include "unit/sample_trace.h"

#define S  UINT64_C(1000000000)
#define MB UINT64_C(1000000)

static void test_parsers(void **state)
{
	uint64_t cpu_ns;
	uint64_t wait_ns;
	uint64_t pages;

	(void)state;
	assert_true(process_use_parse_schedstat("123 456 7\n", 10, &cpu_ns, &wait_ns));
	assert_int_equal(cpu_ns, 123);
	assert_int_equal(wait_ns, 456);
	assert_false(process_use_parse_schedstat("123", 3, &cpu_ns, &wait_ns));
	assert_false(process_use_parse_schedstat("123 x", 5, &cpu_ns, &wait_ns));
	assert_false(process_use_parse_schedstat("99999999999999999999 1", 22, &cpu_ns, &wait_ns));
	assert_true(process_use_parse_statm("900 500 200 1 0 3 0\n", 20, &pages));
	assert_int_equal(pages, 300);
	assert_true(process_use_parse_statm("900 100 200", 11, &pages));
	assert_int_equal(pages, 0);
	assert_false(process_use_parse_statm("900 100", 7, &pages));

	uint64_t calls;
	uint64_t bytes;
	static const char io[] = "rchar: 1\nwchar: 7000\nsyscr: 2\nsyscw: 70\nread_bytes: 0\n";
	assert_true(process_use_parse_io(io, sizeof(io) - 1, &calls, &bytes));
	assert_int_equal(calls, 70);
	assert_int_equal(bytes, 7000);
	assert_false(process_use_parse_io(io, 20, &calls, &bytes));
	assert_false(process_use_parse_io("wchar: 7\nsyscw: ", 16, &calls, &bytes));
	assert_false(process_use_parse_io("", 0, &calls, &bytes));
}

static void test_growth(void **state)
{
	struct process_use uses[4] = { 0 };
	struct process_facts process = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		uses[i] = (struct process_use){ .time_ns = i * S + S,
			.cpu_ns = i * S / 10,
			.wait_ns = i * S / 5,
			.private_bytes = 100 * MB + i * 20 * MB,
			.descriptors = 10 + 100 * i,
			.write_calls = 5000 * i,
			.written_bytes = 100000 * i,
			.has_writes = true,
			.has_wait = true,
			.has_descriptors = true };
	process_growth_gather(&process, uses, 4);
	assert_true(process.numbers[FACT_demand_cpus] > 0.299 &&
		    process.numbers[FACT_demand_cpus] < 0.301);
	assert_true(process.numbers[FACT_private_growth] == 60e6);
	assert_true(process.numbers[FACT_descriptor_growth] == 300);
	assert_true(process.numbers[FACT_descriptor_rate] == 100);
	assert_true(process.numbers[FACT_small_write_rate] == 5000);
	assert_true(process.numbers[FACT_write_size] == 20);
	uses[3].written_bytes = 15000 * 4096;
	process_growth_gather(&process, uses, 4);
	assert_true(process.numbers[FACT_small_write_rate] == 0);
	/* It fell once: no leak. Unknown readings give no growth. */
	uses[2].private_bytes = 110 * MB;
	uses[1].has_descriptors = false;
	process_growth_gather(&process, uses, 4);
	assert_true(process.numbers[FACT_private_growth] == 0);
	assert_true(process.numbers[FACT_descriptor_growth] == 0);
	/* Two readings show the demand, but no trend. */
	process = (struct process_facts){ 0 };
	process_growth_gather(&process, uses, 2);
	assert_true(process.known[FACT_demand_cpus]);
	assert_false(process.known[FACT_private_growth]);
}

static void add_field(struct trace *trace, struct schema *schema, const char *name)
{
	struct field *field = vec_push(&schema->fields);

	field->name = trace_add_text(trace, name);
}

/* An event of a level, cut to `size` bytes. */
static void pass(struct runtime_gauges *gauges, struct trace *trace, uint32_t schema,
	const char *name, double value, size_t size)
{
	struct bytes payload = { 0 };

	bytes_utf16z(&payload, name, strlen(name), 100);
	bytes_utf16z(&payload, "Shown", 5, 100);
	bytes_f64(&payload, value);
	const struct event event = { .thread_index = trace_thread(trace, 4711, 4711),
		.schema_index = schema,
		.payload = payload.data,
		.payload_size = (uint32_t)(size < payload.len ? size : payload.len) };
	assert_int_equal(runtime_gauges_event(gauges, &event), 0);
	bytes_done(&payload);
}

static void test_gauges(void **state)
{
	struct trace trace;
	struct runtime_gauges gauges = { .trace = &trace };
	struct process_facts process = { 0 };

	(void)state;
	sample_trace(&trace);
	struct schema *schema = vec_push(&trace.schemas);
	schema->provider = trace_add_text(&trace, "System.Runtime");
	schema->name = trace_add_text(&trace, "EventCounters");
	add_field(&trace, schema, "Payload");
	add_field(&trace, schema, "Name");
	add_field(&trace, schema, "DisplayName");
	uint32_t index = trace.schemas.count - 1;
	/* Without a Mean it is a rate. */
	pass(&gauges, &trace, index, "gc-committed", 1, SIZE_MAX);
	assert_int_equal(gauges.processes.count, 0);
	add_field(&trace, &trace.schemas.items[index], "Mean");
	for (size_t size = 0; size < 46; size++)
		pass(&gauges, &trace, index, "gc-committed", 1, size);
	assert_int_equal(gauges.processes.count, 0);
	pass(&gauges, &trace, index, "gc-committed", 10, SIZE_MAX);
	pass(&gauges, &trace, index, "gc-committed", 14, SIZE_MAX);
	pass(&gauges, &trace, index, "threadpool-queue-length", 7, SIZE_MAX);
	pass(&gauges, &trace, index, "threadpool-queue-length", 3, SIZE_MAX);
	pass(&gauges, &trace, index, "cpu-usage", 3, SIZE_MAX);
	assert_int_equal(gauges.processes.count, 1);
	assert_int_equal(gauges.processes.items[0].gauges[GAUGE_COMMITTED].count, 2);

	facts_set(&process, FACT_span, 10);
	facts_set(&process, FACT_private, 200e6);
	facts_set(&process, FACT_private_growth, 60e6);
	process_growth_split(&process, &gauges.processes.items[0]);
	assert_true(process.numbers[FACT_queue] == 7);
	assert_true(process.numbers[FACT_committed_growth] == 40e6);
	assert_true(process.numbers[FACT_unmanaged_growth] == 20e6);
	assert_true(process.numbers[FACT_unmanaged_growth_share] == 0.1);
	/* objects since the last collection, which the memory held after it does not have */
	pass(&gauges, &trace, index, "gc-heap-size", 1, SIZE_MAX);
	pass(&gauges, &trace, index, "gc-heap-size", 7, SIZE_MAX);
	process_growth_split(&process, &gauges.processes.items[0]);
	assert_true(process.numbers[FACT_unmanaged_growth] == 0);
	runtime_gauges_done(&gauges);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parsers),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_gauges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
