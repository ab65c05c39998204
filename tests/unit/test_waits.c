/* Waits from pairs of events: of two threads at a time, lost ends and begins, and waits that had not ended. */
#include "unit/answers_fixture.h"

#include "trace/spoor_payload.h"
#include "trace/switch_state.h"

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

/* 4711 and 4712 wait for each other; 4713 for one of them; 4714 for a thread that does not wait. */
static void test_deadlock(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_LOCKS);
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	begin_lock(&f, 100, 0xa0, 4712);
	f.thread = trace_thread(&f.trace, 4711, 4712);
	begin_lock(&f, 110, 0xb0, 4711);
	f.thread = trace_thread(&f.trace, 4711, 4713);
	begin_lock(&f, 120, 0xb0, 4711);
	f.thread = trace_thread(&f.trace, 4711, 4714);
	begin_lock(&f, 130, 0xc0, 4715);
	f.thread = trace_thread(&f.trace, 4711, 4716);
	begin_lock(&f, 140, 0xd0, 4716); /* no thread waits for itself, but a file may say so */
	end_lock(&f, 150, 10e6);
	fixture_finish(&f);
	const struct deadlocks *deadlocks = &f.answers.locks.deadlocks;
	assert_int_equal(deadlocks->circles, 1);
	assert_int_equal(deadlocks_count(deadlocks, 1), 2);
	assert_int_equal(deadlocks->waits.count, 4);
	assert_int_equal(deadlocks->waits.items[0].tid, 4711);
	assert_int_equal(deadlocks->waits.items[0].next, 1);
	assert_int_equal(deadlocks->waits.items[1].circle, 1);
	assert_int_equal(deadlocks->waits.items[2].circle, 0);
	assert_int_equal(deadlocks->waits.items[3].circle, 0);
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

/* The thread is back on a CPU. */
static void end_block(struct fixture *f, uint64_t at_ms, uint64_t value_ms, uint64_t ready_ms)
{
	struct bytes payload = { 0 };

	payload_cswitch(&payload, &(struct payload_cswitch){ .value = value_ms * MS,
					  .state = SWITCH_SLEEPING,
					  .ready_ns = ready_ms * MS });
	const struct event event = { .time_ns = BEGIN_NS + at_ms * MS,
		.thread_index = f->thread,
		.kind = EVENT_SWITCH,
		.schema_index = trace_known_schema(&f->trace, EVENTS_CSWITCH),
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len };
	assert_int_equal(answers_event(&f->answers, &event), 0);
	bytes_done(&payload);
}

/* Of a wait from 100 to 200 ms: blocked from before it to 150, then without a CPU to 170, then again from 180 to 190. */
static void test_switches(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_LOCKS);
	f.answers.wanted |= 1u << ANSWER_OFF_CPU;
	end_block(&f, 50, 10, 0); /* in no wait */
	begin_lock(&f, 100, 0xa0, 4713);
	end_block(&f, 170, 80, 20);
	end_block(&f, 190, 10, 0);
	end_lock(&f, 200, 100e6);
	end_block(&f, 300, 40, 0);
	fixture_finish(&f);
	const struct tally_process *process = &f.answers.locks.tally.processes.items[0];
	const struct wait_off_cpu *off = waits_off_cpu(&f.answers.locks, process->process);
	assert_non_null(off);
	assert_int_equal(off->blocked_ns, 60 * MS);
	assert_int_equal(off->runnable_ns, 20 * MS);
	assert_int_equal(process->amount, 100 * MS);
	assert_false(waits_are_switched(&f.answers.locks, process));
	fixture_end(&f);

	/* without a cause that is a lock, a block is none */
	fixture_begin(&f, ANSWER_LOCKS);
	f.answers.wanted |= 1u << ANSWER_OFF_CPU;
	end_block(&f, 50, 10, 0);
	fixture_finish(&f);
	assert_int_equal(f.answers.locks.tally.processes.count, 0);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_deadlock),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_ran_on),
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
