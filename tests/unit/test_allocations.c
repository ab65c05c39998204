/* Allocated bytes by type and stack: versions of the tick, weights of samples, one source a process. */
#include "unit/answers_fixture.h"

#include "trace/spoor_payload.h"

static void tick(struct fixture *f, uint64_t at_ms, uint32_t kind, uint64_t size, const char *type)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, (uint32_t)size);
	bytes_u32(&payload, kind);
	bytes_u16(&payload, 9);
	bytes_u64(&payload, size);
	bytes_u64(&payload, 0x1234);
	fixture_utf16(&payload, type);
	fixture_pass(f, at_ms, CLR_ID_GCAllocationTick, 4, &payload);
}

static void sample(struct fixture *f, uint64_t at_ms, uint32_t kind, uint64_t size,
	const char *type)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, kind);
	bytes_u16(&payload, 9);
	bytes_u64(&payload, 0x1234);
	fixture_utf16(&payload, type);
	bytes_u64(&payload, 0x7f0000001000);
	bytes_u64(&payload, size);
	bytes_u64(&payload, 12);
	fixture_pass(f, at_ms, CLR_ID_AllocationSampled, 0, &payload);
}

static const struct tally_row *row_of(const struct fixture *f, uint32_t i)
{
	assert_true(i < f->answers.allocations.tally.rows.list.count);
	return &f->answers.allocations.tally.rows.list.items[i];
}

static void test_ticks(void **state)
{
	struct fixture f;
	struct bytes old = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_ALLOC);
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	tick(&f, 1, 0, 100000, "Order");
	tick(&f, 2, 0, 110000, "Order");
	tick(&f, 3, 1, UINT64_C(5000000000), "Image");
	tick(&f, 4, 2, 3000, "Buffer");
	tick(&f, 5, 99, 1000, "Odd");
	bytes_u32(&old, 700);
	bytes_u32(&old, 1);
	fixture_pass(&f, 6, CLR_ID_GCAllocationTick, 0, &old);
	fixture_finish(&f);
	const struct allocations *a = &f.answers.allocations;
	const struct tally_process *process = &a->tally.processes.items[0];
	assert_int_equal(process->count, 6);
	assert_int_equal(process->amount,
		UINT64_C(5000000000) + 100000 + 110000 + 3000 + 1000 + 700);
	assert_int_equal(allocations_of_kind(a, process, ALLOCATION_SMALL), 211000);
	assert_int_equal(allocations_of_kind(a, process, ALLOCATION_LARGE), UINT64_C(5000000700));
	assert_int_equal(allocations_of_kind(a, process, ALLOCATION_PINNED), 3000);
	assert_false(allocations_are_sampled(a, process));
	assert_string_equal(event_texts_get(&a->types, row_of(&f, 0)->key.text), "Image");
	assert_string_equal(allocation_kind(row_of(&f, 0)->key.kind), "large");
	assert_int_equal(row_of(&f, 1)->amount, 210000);
	assert_int_equal(row_of(&f, 1)->count, 2);
	assert_non_null(strstr(fixture_function(&f, row_of(&f, 1)->key.place), "Main"));
	fixture_end(&f);
}

/* Of 1,000 ms, 800 were not observed: what was seen stands for five times as much. */
static void begin_with_gap(struct fixture *f)
{
	struct bytes payload = { 0 };

	fixture_begin(f, ANSWER_ALLOC);
	sample(f, 50, 0, 1000000, "Image");
	sample(f, 950, 0, 1000000, "Image");
	payload_event_gap(&payload, &(struct payload_event_gap){ .provider = PROVIDER_CLR_NAME,
					    .event_id = CLR_ID_AllocationSampled,
					    .from_ns = BEGIN_NS + 100 * MS,
					    .to_ns = BEGIN_NS + 900 * MS });
	fixture_event(f, 960,
		&(struct schema){ .provider_kind = PROVIDER_SPOOR, .event_id = ID_SPOOR_EVENT_GAP },
		NULL, &payload);
}

static void test_gaps(void **state)
{
	struct fixture f;

	(void)state;
	begin_with_gap(&f);
	fixture_finish(&f);
	const struct allocations *a = &f.answers.allocations;
	const struct tally_process *process = &a->tally.processes.items[0];
	assert_int_equal(process->count, 2);
	assert_in_range(process->amount, 9990000, 10010000);
	assert_int_equal(row_of(&f, 0)->amount, process->amount);
	assert_true(allocations_observed(a, process->process) > 0.199 &&
		    allocations_observed(a, process->process) < 0.201);
	fixture_end(&f);
}

/* A flame graph has the same bytes as the report. */
static void test_gaps_of_a_profile(void **state)
{
	struct fixture f;
	uint64_t sum_bytes = 0;

	(void)state;
	begin_with_gap(&f);
	f.trace.recording.end_ns = f.trace.recording.sync_ns + 1000 * MS;
	f.profile.ignores_samples = true;
	assert_int_equal(answers_fill_profile(&f.answers, ANSWER_ALLOC, &f.profile), 0);
	vec_each(stack, &f.profile.stacks)
		sum_bytes += stack->weight_ns;
	assert_in_range(sum_bytes, 9990000, 10010000);
	fixture_finish(&f);
	assert_in_range(f.answers.allocations.tally.processes.items[0].amount, 9990000, 10010000);
	fixture_end(&f);
}

/* A sample weighs size / probability: a small object about 102,400 bytes, a large one its own size. */
static void test_weights(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_ALLOC);
	sample(&f, 1, 0, 24, "Small");
	sample(&f, 2, 0, 102400, "Middle");
	sample(&f, 3, 1, 10000000, "Large");
	sample(&f, 4, 0, UINT64_MAX, "Broken");
	fixture_finish(&f);
	assert_int_equal(row_of(&f, 0)->amount, UINT64_MAX);
	assert_int_equal(row_of(&f, 1)->amount, 10000000);
	assert_int_equal(row_of(&f, 2)->amount, 161994); /* 102,400 / (1 - 1/e) */
	assert_int_equal(row_of(&f, 3)->amount, 102412);
	fixture_end(&f);
}

static void test_both(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_ALLOC);
	tick(&f, 1, 0, 100000, "Tick");
	sample(&f, 2, 0, 24, "Sample");
	f.thread = trace_thread(&f.trace, 4802, 4802);
	tick(&f, 900, 0, 200000, "Tick");
	fixture_finish(&f);
	const struct tally *tally = &f.answers.allocations.tally;
	assert_int_equal(tally->processes.count, 2);
	assert_int_equal(tally->processes.items[0].amount, 200000);
	assert_int_equal(tally->processes.items[0]
				 .line.amounts[timeline_peak(&tally->processes.items[0].line)],
		200000);
	assert_int_equal(tally->processes.items[1].amount, 102412);
	assert_int_equal(tally->processes.items[1].count, 1);
	assert_true(allocations_are_sampled(&f.answers.allocations, &tally->processes.items[1]));
	fixture_end(&f);
}

/* In place of samples, the profile has the bytes of each stack. */
static void test_profile(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_ALLOC);
	f.profile.ignores_samples = true;
	sample_fill(&f.profile);
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	tick(&f, 1, 0, 100000, "A");
	tick(&f, 2, 0, 100000, "B");
	f.stack = 0;
	tick(&f, 3, 0, 5000, "C");
	assert_int_equal(answers_fill_profile(&f.answers, ANSWER_ALLOC, &f.profile), 0);
	fixture_finish(&f);
	assert_int_equal(f.profile.stacks.count, 2);
	assert_int_equal(f.profile.count, 3);
	assert_int_equal(f.profile.weight_ns, 205000);
	assert_int_equal(f.profile.stacks.items[1].weight_ns, 200000);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_gaps_of_a_profile),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
