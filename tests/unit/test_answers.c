/* Several analyses in one pass: triggers of collections, and the summary of all. */
#include "unit/answers_fixture.h"

#include "report/answer_summary.h"
#include "trace/report.h"

static void trigger(struct fixture *f, uint64_t at_ms, uint32_t reason)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, reason);
	bytes_u16(&payload, 9);
	fixture_pass(f, at_ms, CLR_ID_GCTriggered, 0, &payload);
}

static void test_triggers(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_GC);
	fixture_stack(&f, (const uint64_t[]){ IMAGE + 8, JIT + 0x208 }, 2);
	trigger(&f, 10, 1);
	trigger(&f, 20, 1);
	trigger(&f, 30, 0);
	fixture_finish(&f);
	const struct tally *triggers = &f.answers.collections.triggers;
	assert_int_equal(triggers->rows.list.count, 2);
	const struct tally_row *row = &triggers->rows.list.items[0];
	assert_int_equal(row->count, 2);
	assert_true(collection_is_induced(row->key.kind));
	assert_false(collection_is_induced(triggers->rows.list.items[1].key.kind));
	assert_non_null(strstr(fixture_function(&f, row->key.place), "Main"));
	fixture_end(&f);
}

/* Events that no wanted analysis takes need not be passed, once the first of them was. */
static void test_ignored(void **state)
{
	struct fixture f;
	uint32_t taken;
	uint32_t other;

	(void)state;
	fixture_begin(&f, ANSWER_GC);
	taken = f.trace.schemas.count;
	trigger(&f, 10, 1);
	other = f.trace.schemas.count;
	struct bytes none = { 0 };
	fixture_pass(&f, 20, CLR_ID_ThreadPoolEnqueue, 0, &none);
	assert_int_equal(f.trace.schemas.count, other + 1);
	assert_false(answers_ignore(&f.answers, taken));
	assert_true(answers_ignore(&f.answers, other));
	assert_false(answers_ignore(&f.answers, other + 1));
	fixture_finish(&f);
	fixture_end(&f);
}

static void throw_at(struct fixture *f, uint64_t at_ms)
{
	struct bytes payload = { 0 };

	fixture_utf16(&payload, "Shop.Failure");
	fixture_utf16(&payload, "");
	fixture_pass(f, at_ms, CLR_ID_ExceptionThrown, 1, &payload);
}

static void wait_for_lock(struct fixture *f, uint64_t at_ms, uint64_t until_ms)
{
	struct bytes begin = { 0 };
	struct bytes end = { 0 };

	bytes_u8(&begin, 0);
	bytes_u16(&begin, 9);
	bytes_u8(&end, 0);
	bytes_u16(&end, 9);
	fixture_pass(f, at_ms, CLR_ID_ContentionStart_V1, 1, &begin);
	fixture_pass(f, until_ms, CLR_ID_ContentionStop, 0, &end);
}

static void test_summary(void **state)
{
	struct fixture f;
	struct report report = { 0 };
	struct bytes out = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_GC);
	f.answers.wanted = ANSWERS_ALL;
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	throw_at(&f, 10);
	throw_at(&f, 20);
	wait_for_lock(&f, 100, 350);
	f.thread = trace_thread(&f.trace, 4802, 4802);
	wait_for_lock(&f, 100, 150);
	fixture_finish(&f);
	report.trace = &f.trace;
	report.names = &f.names;
	answer_summary(&f.answers, &report, &out);
	assert_string_equal(bytes_z(&out),
		"\n.NET runtime, most costly first; an option shows more\n"
		"--locks       1 wait, 250 ms, longest 250 ms in Program.Main; shop (4711)\n"
		"--exceptions  2, 2 a second: Shop.Failure 2 in Program.Main\n");
	bytes_done(&out);
	fixture_end(&f);

	/* Nothing is there. */
	fixture_begin(&f, ANSWER_GC);
	f.answers.wanted = ANSWERS_ALL;
	fixture_finish(&f);
	answer_summary(&f.answers, &report, &out);
	assert_int_equal(out.len, 0);
	fixture_end(&f);
}

static void tick(struct fixture *f, uint32_t size, const char *type)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, size);
	bytes_u32(&payload, 0);
	bytes_u16(&payload, 9);
	bytes_u64(&payload, size);
	bytes_u64(&payload, 0x1234);
	fixture_utf16(&payload, type);
	fixture_pass(f, 10, CLR_ID_GCAllocationTick, 4, &payload);
}

/* The share is that of the type and the method, as in the table of allocations, not of one stack. */
static void test_summary_of_allocations(void **state)
{
	struct fixture f;
	struct report report = { 0 };
	struct bytes out = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_ALLOC);
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	tick(&f, 300000, "Bytes");
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208, LIBC + 8 }, 2);
	tick(&f, 310000, "Bytes");
	f.stack = 0;
	tick(&f, 390000, "Other");
	fixture_finish(&f);
	report.trace = &f.trace;
	report.names = &f.names;
	answer_summary(&f.answers, &report, &out);
	assert_non_null(strstr(bytes_z(&out), ": Bytes 61 % in Program.Main\n"));
	bytes_done(&out);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_triggers),
		cmocka_unit_test(test_ignored),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_summary_of_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
