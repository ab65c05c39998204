/* thread_time.c and blocks.c: the times of threads and the waits of stacks, from events of context switches. */
#include "unit/answers_fixture.h"

#include "trace/spoor_payload.h"
#include "trace/switch_state.h"

#define ALL_NS (1000 * MS)

static void pass(struct fixture *f, uint64_t at_ms, enum known_event known, struct bytes *payload)
{
	const struct event event = { .time_ns = BEGIN_NS + at_ms * MS,
		.thread_index = f->thread,
		.stack_index = f->stack,
		.kind = known_events[known].kind,
		.schema_index = trace_known_schema(&f->trace, known),
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len };

	assert_int_equal(answers_event(&f->answers, &event), 0);
	bytes_done(payload);
}

static void block(struct fixture *f, uint64_t at_ms, const struct payload_cswitch *what)
{
	struct bytes payload = { 0 };

	payload_cswitch(&payload, what);
	pass(f, at_ms, EVENTS_CSWITCH, &payload);
}

static void end(struct fixture *f, uint64_t at_ms, const struct payload_thread_time *what)
{
	struct bytes payload = { 0 };

	payload_thread_time(&payload, what);
	pass(f, at_ms, SPOOR_THREAD_TIME, &payload);
}

static void begin(struct fixture *f)
{
	fixture_begin(f, ANSWER_OFF_CPU);
	f->answers.wanted |= 1u << ANSWER_THREAD_TIME;
}

static const struct thread_time_row *row_of(const struct fixture *f, uint32_t tid)
{
	const struct thread_time *times = &f->answers.thread_time;

	for (uint32_t i = 0; i < times->rows.count; i++)
		if (f->trace.threads.items[times->rows.items[i].thread].tid == tid)
			return &times->rows.items[i];
	fail_msg("no row of thread %u", tid);
	return NULL;
}

static void expect(const struct fixture *f, uint32_t tid, uint64_t wall, uint64_t run,
	uint64_t ready, uint64_t blocked)
{
	const struct thread_time_row *row = row_of(f, tid);

	assert_int_equal(row->wall_ns, wall * MS);
	assert_int_equal(row->on_cpu_ns, run * MS);
	assert_int_equal(row->runnable_ns, ready * MS);
	assert_int_equal(row->blocked_ns, blocked * MS);
}

/* A thread that ends, one that lives on, and one whose summary the killed recorder did not write. */
static void some_threads(struct fixture *f)
{
	block(f, 400,
		&(struct payload_cswitch){
			.value = 200 * MS, .state = SWITCH_SLEEPING, .ready_ns = 50 * MS });
	block(f, 600,
		&(struct payload_cswitch){
			.value = 100 * MS, .state = SWITCH_PREEMPTED, .ready_ns = 100 * MS });
	end(f, 700,
		&(struct payload_thread_time){ .begin_ns = BEGIN_NS + 100 * MS,
			.run_ns = 300 * MS,
			.ready_ns = 150 * MS,
			.blocked_ns = 150 * MS,
			.switches = 2,
			.ended = true });
	f->thread = trace_thread(&f->trace, 4711, 4712);
	block(f, 1000,
		&(struct payload_cswitch){ .value = 900 * MS,
			.state = SWITCH_SLEEPING,
			.flags = SWITCH_OFF_AT_END | SWITCH_READY_UNKNOWN });
	end(f, 1000,
		&(struct payload_thread_time){ .begin_ns = BEGIN_NS,
			.run_ns = 100 * MS,
			.blocked_ns = 900 * MS,
			.switches = 1 });
	f->thread = trace_thread(&f->trace, 4711, 4713);
	block(f, 500,
		&(struct payload_cswitch){ .value = 300 * MS,
			.state = SWITCH_SLEEPING,
			.ready_ns = 100 * MS,
			.flags = SWITCH_NEW_THREAD });
}

static void test_threads(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	some_threads(&f);
	fixture_finish(&f);
	expect(&f, 4711, 600, 300, 150, 150);
	expect(&f, 4712, 1000, 100, 0, 900);
	expect(&f, 4713, 800, 500, 100, 200);
	assert_true(row_of(&f, 4711)->ended);
	assert_true(f.answers.thread_time.runnable_unknown);
	const struct thread_time_process *process = f.answers.thread_time.processes.items;
	assert_int_equal(f.answers.thread_time.processes.count, 1);
	assert_int_equal(process->wall_ns, 2400 * MS);
	assert_int_equal(process->on_cpu_ns + process->runnable_ns + process->blocked_ns,
		process->wall_ns);
	fixture_end(&f);
}

/* A part of the recording: blocks count with the part that is in it. */
static void test_part(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.profile.filter.from_ns = 300 * MS;
	f.profile.filter.to_ns = 550 * MS;
	some_threads(&f);
	fixture_finish(&f);
	expect(&f, 4711, 250, 100, 100, 50);
	expect(&f, 4712, 250, 0, 0, 250);
	expect(&f, 4713, 250, 50, 100, 100);
	fixture_end(&f);
}

static void test_short_blocks(void **state)
{
	struct bytes payload = { 0 };
	struct fixture f;

	(void)state;
	begin(&f);
	payload_short_blocks(&payload, &(struct payload_short_blocks){ .value = 30 * MS,
					       .count = 100,
					       .state = SWITCH_SLEEPING,
					       .ready_ns = 10 * MS });
	pass(&f, 500, SPOOR_SHORT_BLOCKS, &payload);
	end(&f, 1000,
		&(struct payload_thread_time){ .begin_ns = BEGIN_NS,
			.run_ns = 970 * MS,
			.ready_ns = 10 * MS,
			.blocked_ns = 20 * MS });
	fixture_finish(&f);
	expect(&f, 4711, 1000, 970, 10, 20);
	const struct tally_row *row = f.answers.blocks.blocked.rows.list.items;
	assert_int_equal(row->count, 100);
	assert_int_equal(row->amount, 20 * MS);
	assert_int_equal(row->most, 0);
	fixture_end(&f);
}

/* The stack says what the thread waited for; the event before, which thread ended the wait. */
static void test_waits(void **state)
{
	static const uint64_t burn[] = { KERNEL + 0x108, LIBC + 0x108, JIT + 8, LIBC + 8 };
	struct bytes payload = { 0 };
	struct fixture f;

	(void)state;
	begin(&f);
	uint32_t waiting = f.thread;
	f.thread = trace_thread(&f.trace, 4711, 4720);
	payload_wakeup(&payload, &(struct payload_wakeup){ .woken_pid = 4711, .woken_tid = 4711 });
	pass(&f, 500, SPOOR_WAKEUP, &payload);
	f.thread = waiting;
	fixture_stack(&f, burn, 4);
	block(&f, 500,
		&(struct payload_cswitch){ .value = 300 * MS,
			.state = SWITCH_SLEEPING,
			.ready_ns = 100 * MS,
			.waker_pid = 4711,
			.waker_tid = 4720 });
	block(&f, 600, &(struct payload_cswitch){ .value = 50 * MS, .state = SWITCH_SLEEPING });
	fixture_finish(&f);
	const struct tally *blocked = &f.answers.blocks.blocked;
	assert_int_equal(blocked->rows.list.count, 2);
	const struct tally_row *row = blocked->rows.list.items;
	assert_int_equal(row->amount, 200 * MS);
	assert_int_equal(row->most_at_ns, 200 * MS);
	assert_string_equal(fixture_function(&f, row->key.place), "Shop.Pricing.Burn()");
	assert_string_equal(fixture_function(&f, row->key.text), "memmove");
	assert_int_equal(row->key.detail, 1);
	assert_int_equal(f.trace.threads.items[f.answers.blocks.wakers.items[0].thread].tid, 4720);
	assert_int_equal(row[1].key.detail, 0);
	fixture_end(&f);
}

/* Blocks without a stack: of before the recording, and of threads that could run on; and processes that only idle. */
static void test_without_stack(void **state)
{
	static const uint64_t burn[] = { KERNEL + 0x108, LIBC + 0x108, JIT + 8, LIBC + 8 };
	struct fixture f;

	(void)state;
	begin(&f);
	uint32_t idle = trace_thread(&f.trace, 4800, 4801);
	uint32_t working = f.thread;
	f.trace.threads.items[idle].name = trace_add_text(&f.trace, ".NET Finalizer");
	f.thread = idle;
	block(&f, 900, &(struct payload_cswitch){ .value = 900 * MS, .flags = SWITCH_OFF_BEFORE });
	f.thread = working;
	block(&f, 100,
		&(struct payload_cswitch){
			.value = 100 * MS, .state = SWITCH_SLEEPING, .flags = SWITCH_OFF_BEFORE });
	fixture_stack(&f, burn, 4);
	block(&f, 200, &(struct payload_cswitch){ .value = 50 * MS, .state = SWITCH_SLEEPING });
	fixture_finish(&f);
	const struct blocks *blocks = &f.answers.blocks;
	assert_int_equal(blocks->blocked.processes.count, 2);
	assert_int_equal(blocks->busy_count, 1);
	const struct tally_process *first = &blocks->blocked.processes.items[0];
	assert_int_equal(f.trace.processes.items[first->process].pid, 4711);
	const struct tally_row *row = &blocks->blocked.rows.list.items[first->row_at];
	assert_int_equal(row->amount, 100 * MS);
	assert_int_equal(row->key.kind, BLOCK_BEFORE);
	assert_int_equal(row[1].key.kind, BLOCK_UNKNOWN);
	assert_int_equal(row[1].amount, 50 * MS);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_short_blocks),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_without_stack),
	};

	return cmocka_run_group_tests_name("thread_time", tests, NULL, NULL);
}
