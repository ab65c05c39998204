/* CPU time of garbage collection: samples in pauses, and of the collector's threads at other times. */
#include "unit/answers_fixture.h"

#include "trace/event.h"

static void sample(struct fixture *f, uint64_t at_ms, const char *thread)
{
	const struct schema schema = { .provider_kind = PROVIDER_UNIVERSAL_EVENTS,
		.kind = EVENT_SAMPLE };
	const uint32_t row = trace_thread(&f->trace, 4711, *thread ? 4720 : 4711);

	if (*thread)
		f->trace.threads.items[row].name = trace_add_text(&f->trace, thread);
	*(struct schema *)vec_push(&f->trace.schemas) = schema;
	const struct event event = { .time_ns = BEGIN_NS + at_ms * MS,
		.value = 10 * MS,
		.kind = EVENT_SAMPLE,
		.thread_index = row,
		.schema_index = f->trace.schemas.count - 1 };
	assert_int_equal(answers_event(&f->answers, &event), 0);
}

static void pass(struct fixture *f, uint64_t at_ms, uint32_t id)
{
	struct bytes payload = { 0 };

	fixture_pass(f, at_ms, id, 1, &payload);
}

static void test_cpu(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_GC);
	sample(&f, 10, "");
	sample(&f, 20, ".NET BGC");
	pass(&f, 25, CLR_ID_GCSuspendEEEnd);
	sample(&f, 30, "");
	sample(&f, 40, ".NET Server GC");
	pass(&f, 45, CLR_ID_GCRestartEEEnd);
	sample(&f, 50, ".NET TP Worker");
	fixture_finish(&f);
	uint32_t process = f.trace.threads.items[f.thread].process;
	const struct collector_cpu_process *cpu =
		collector_cpu_of(&f.answers.collector_cpu, process);
	assert_non_null(cpu);
	assert_int_equal(cpu->all_ns, 50 * MS);
	assert_int_equal(cpu->pauses_ns, 20 * MS);
	assert_int_equal(cpu->threads_ns, 10 * MS);
	fixture_end(&f);
}

/* Events without samples say nothing about CPU time; times and threads of the filter apply. */
static void test_selection(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_GC);
	f.profile.filter.from_ns = 35 * MS;
	pass(&f, 25, CLR_ID_GCSuspendEEEnd);
	sample(&f, 30, "");
	sample(&f, 40, "");
	fixture_finish(&f);
	uint32_t process = f.trace.threads.items[f.thread].process;
	assert_int_equal(collector_cpu_of(&f.answers.collector_cpu, process)->pauses_ns, 10 * MS);
	fixture_end(&f);

	fixture_begin(&f, ANSWER_GC);
	pass(&f, 25, CLR_ID_GCSuspendEEEnd);
	fixture_finish(&f);
	assert_null(collector_cpu_of(&f.answers.collector_cpu, process));
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_selection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
