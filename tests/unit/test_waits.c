/* Waits from pairs of events: of two threads at a time, lost ends and begins, and waits that had not ended. */
#include "unit/answers_fixture.h"

static void begin_lock(struct fixture *f, uint64_t at_ms, uint64_t lock, uint64_t owner)
{
	struct bytes payload = { 0 };

	bytes_u8(&payload, 0);
	bytes_u16(&payload, 9);
	bytes_u64(&payload, lock);
	bytes_u64(&payload, 0x7f0000001000);
	bytes_u64(&payload, owner);
	fixture_pass(f, at_ms, CLR_ID_ContentionStart_V1, 2, &payload);
}

static void end_lock(struct fixture *f, uint64_t at_ms, double lasts_ns)
{
	struct bytes payload = { 0 };
	uint64_t bits;

	memcpy(&bits, &lasts_ns, sizeof(bits));
	bytes_u8(&payload, 0);
	bytes_u16(&payload, 9);
	bytes_u64(&payload, bits);
	fixture_pass(f, at_ms, CLR_ID_ContentionStop, 1, &payload);
}

static void pass_handle(struct fixture *f, uint64_t at_ms, uint32_t id, uint8_t source)
{
	struct bytes payload = { 0 };

	if (id == CLR_ID_WaitHandleWaitStart) {
		bytes_u8(&payload, source);
		bytes_u64(&payload, 0x7f0000001000);
	}
	bytes_u16(&payload, 9);
	fixture_pass(f, at_ms, id, 0, &payload);
}

static const struct tally_row *row_of(const struct tally *tally, uint32_t i)
{
	assert_true(i < tally->rows.list.count);
	return &tally->rows.list.items[i];
}

static void test_locks(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_LOCKS);
	uint32_t one = f.thread;
	uint32_t two = trace_thread(&f.trace, 4711, 4712);
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	begin_lock(&f, 100, 0xa0, 4713);
	f.thread = two;
	begin_lock(&f, 110, 0xa0, 4713);
	f.thread = one;
	end_lock(&f, 150, 49.5e6);
	f.thread = two;
	end_lock(&f, 300, 190e6);
	begin_lock(&f, 400, 0xb0, 4711);
	end_lock(&f, 410, 10e6);
	fixture_finish(&f);
	const struct tally *tally = &f.answers.locks.tally;
	assert_int_equal(tally->processes.items[0].count, 3);
	assert_int_equal(tally->processes.items[0].amount, 249500000);
	assert_int_equal(tally->rows.list.count, 2);
	const struct tally_row *row = row_of(tally, 0);
	assert_int_equal(row->key.id, 0xa0);
	assert_int_equal(row->key.text, 4713);
	assert_int_equal(row->key.kind, WAIT_LOCK);
	assert_int_equal(row->count, 2);
	assert_int_equal(row->most, 190 * MS);
	assert_int_equal(row->most_at_ns, 110 * MS);
	assert_non_null(strstr(fixture_function(&f, row->key.place), "Main"));
	/* Each part of a wait is in its interval. */
	const struct timeline *line = &tally->processes.items[0].line;
	assert_int_equal(timeline_width_ns(line), 8 * MS);
	assert_int_equal(line->amounts[110 / 8 + 1], 16 * MS);
	assert_int_equal(line->amounts[200 / 8], 8 * MS);
	assert_int_equal(line->amounts[350 / 8], 0);
	fixture_end(&f);
}

static void test_lost(void **state)
{
	struct fixture f;
	struct bytes old = { 0 };
	struct bytes cut = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_LOCKS);
	end_lock(&f, 50, 20e6); /* it began before the recording */
	begin_lock(&f, 100, 0xa0, 4713);
	begin_lock(&f, 200, 0xb0, 4713); /* the end of the first one was lost */
	end_lock(&f, 230, 0.0 / 0.0);    /* no number: by the events' times */
	bytes_u8(&old, 1);               /* the runtime's own lock, in an older version */
	bytes_u16(&old, 9);
	fixture_pass(&f, 800, CLR_ID_ContentionStart_V1, 1, &old);
	bytes_u8(&cut, 0);
	fixture_pass(&f, 900, CLR_ID_ContentionStart_V1, 2, &cut); /* ignored */
	fixture_finish(&f);
	const struct tally *tally = &f.answers.locks.tally;
	const struct tally_process *process = &tally->processes.items[0];
	assert_int_equal(process->count, 4);
	assert_int_equal(process->amount, (200 + 30 + 20) * MS);
	assert_int_equal(waits_with(&f.answers.locks, process, WAIT_UNFINISHED), 1);
	assert_int_equal(waits_with(&f.answers.locks, process, WAIT_UNKNOWN), 2);
	assert_int_equal(row_of(tally, 0)->key.kind, WAIT_NATIVE_LOCK | WAIT_UNFINISHED);
	assert_int_equal(row_of(tally, 0)->amount, 200 * MS);
	assert_int_equal(row_of(tally, 1)->amount, 30 * MS);
	assert_int_equal(row_of(tally, 2)->key.kind, WAIT_LOCK | WAIT_UNKNOWN);
	assert_int_equal(row_of(tally, 2)->amount, 20 * MS);
	assert_int_equal(row_of(tally, 2)->first_ns, 30 * MS);
	assert_int_equal(row_of(tally, 3)->amount, 0);
	fixture_end(&f);
}

/* The end of a wait was lost: the thread compiled and threw later. */
static void test_ran_on(void **state)
{
	struct fixture f;
	struct bytes payload = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_LOCKS);
	begin_lock(&f, 100, 0xa0, 4713);
	fixture_pass(&f, 130, CLR_ID_MethodJittingStarted, 1, &payload);
	fixture_pass(&f, 500, CLR_ID_MethodJittingStarted, 1, &payload);
	fixture_finish(&f);
	const struct tally *tally = &f.answers.locks.tally;
	assert_int_equal(row_of(tally, 0)->amount, 30 * MS);
	assert_int_equal(row_of(tally, 0)->key.kind, WAIT_LOCK | WAIT_UNKNOWN);
	fixture_end(&f);
}

/* The begin decides whether a wait is in the selected time. */
static void test_handles(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_WAITS);
	f.profile.filter.from_ns = 50 * MS;
	pass_handle(&f, 10, CLR_ID_WaitHandleWaitStart, 0);
	pass_handle(&f, 60, CLR_ID_WaitHandleWaitStop, 0);
	pass_handle(&f, 70, CLR_ID_WaitHandleWaitStart, 1);
	pass_handle(&f, 75, CLR_ID_WaitHandleWaitStop, 0);
	pass_handle(&f, 80, CLR_ID_WaitHandleWaitStart, 0);
	pass_handle(&f, 82, CLR_ID_WaitHandleWaitStop, 0);
	fixture_finish(&f);
	const struct tally *tally = &f.answers.handles.tally;
	assert_int_equal(tally->processes.items[0].count, 2);
	assert_string_equal(wait_source(row_of(tally, 0)->key.kind), "Monitor.Wait");
	assert_int_equal(row_of(tally, 0)->amount, 5 * MS);
	assert_string_equal(wait_source(row_of(tally, 1)->key.kind), "handle");
	assert_int_equal(row_of(tally, 1)->amount, 2 * MS);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_ran_on),
		cmocka_unit_test(test_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
