/* switch_table.c: the blocks of threads, from switches, wakings, forks and exits in time order. */
#include "unit/test.h"

#include "recording/samples.h"
#include "recording/switch_table.h"
#include "trace/spoor_payload.h"
#include "trace/switch_state.h"
#include "unit/live_fixture.h"

#define BEGIN_NS 1000
#define SHOP     100 /* a process and its main thread */

static struct switch_table switches;
static struct samples samples;

static int open_machine(void **state)
{
	static const struct live_options whole_machine = { .machine = true };

	(void)state;
	fixture_open(&whole_machine, false);
	fixture.live->writer.begin_ns = BEGIN_NS;
	samples = (struct samples){ .table = &fixture.live->table };
	switches = (struct switch_table){ .table = &fixture.live->table, .samples = &samples };
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	switch_table_done(&switches);
	samples_done(&samples);
	fixture_close();
	return 0;
}

/* ---- what happens ---- */

static void out(uint32_t tid, uint64_t time_ns, enum switch_state why)
{
	const struct pending item = { .kind = PENDING_SWITCH,
		.time_ns = time_ns,
		.pid = SHOP,
		.tid = tid,
		.value = why,
		.flag = true };

	switch_table_switch(&switches, &item, 0);
}

static void in(uint32_t tid, uint64_t time_ns)
{
	const struct pending item = {
		.kind = PENDING_SWITCH, .time_ns = time_ns, .pid = SHOP, .tid = tid
	};

	switch_table_switch(&switches, &item, 0);
}

static void wake(uint32_t waker, uint32_t woken, uint64_t time_ns, bool in_interrupt)
{
	const struct pending item = { .kind = PENDING_WAKING,
		.time_ns = time_ns,
		.pid = SHOP,
		.tid = waker,
		.value = woken,
		.flag = in_interrupt };

	switch_table_waking(&switches, &item);
}

static void birth(uint32_t tid, uint64_t time_ns)
{
	const struct pending item = {
		.kind = PENDING_FORK, .time_ns = time_ns, .pid = SHOP, .tid = tid
	};

	switch_table_fork(&switches, &item);
}

static void death(uint32_t tid, uint64_t time_ns)
{
	const struct pending item = {
		.kind = PENDING_EXIT, .time_ns = time_ns, .pid = SHOP, .tid = tid
	};

	switch_table_exit(&switches, &item);
}

/* ---- what is written ---- */

static const struct written *nth(enum known_event known, unsigned n)
{
	for (uint32_t i = 0; i < fixture.written.count; i++)
		if (fixture.written.items[i].known == known && !n--)
			return &fixture.written.items[i];
	return NULL;
}

static struct payload_cswitch block(unsigned n)
{
	struct payload_cswitch read;
	const struct written *written = nth(EVENTS_CSWITCH, n);

	assert_non_null(written);
	assert_int_equal(payload_read_cswitch(written->payload.data, written->payload.len, &read),
		0);
	return read;
}

static unsigned block_count(void)
{
	unsigned count = 0;

	while (nth(EVENTS_CSWITCH, count))
		count++;
	return count;
}

static struct payload_thread_time thread_time(unsigned n)
{
	struct payload_thread_time read;
	const struct written *written = nth(SPOOR_THREAD_TIME, n);

	assert_non_null(written);
	assert_int_equal(payload_read_thread_time(written->payload.data, written->payload.len, NULL,
				 &read),
		0);
	return read;
}

static void expect_block(unsigned n, uint64_t value, uint64_t ready, enum switch_state why,
	unsigned flags)
{
	struct payload_cswitch read = block(n);

	assert_int_equal(read.value, value);
	assert_int_equal(read.ready_ns, ready);
	assert_int_equal(read.state, why);
	assert_int_equal(read.flags, flags);
}

static void expect_time(unsigned n, uint64_t begin, uint64_t run, uint64_t ready, uint64_t blocked)
{
	struct payload_thread_time read = thread_time(n);

	assert_int_equal(read.begin_ns, begin);
	assert_int_equal(read.run_ns, run);
	assert_int_equal(read.ready_ns, ready);
	assert_int_equal(read.blocked_ns, blocked);
}

static void test_blocks(void **state)
{
	(void)state;
	in(SHOP, 1500); /* off the CPU since before the begin */
	out(SHOP, 2000, SWITCH_SLEEPING);
	wake(101, SHOP, 2700, false);
	wake(102, SHOP, 2800, false); /* it is awake already */
	in(SHOP, 3000);
	assert_int_equal(nth(EVENTS_CSWITCH, 1)->time_ns, 3000);
	out(SHOP, 3400, SWITCH_PREEMPTED);
	in(SHOP, 3500);
	out(SHOP, 3600, SWITCH_UNINTERRUPTIBLE);
	wake(101, SHOP, 3650, true);
	in(SHOP, 3700);
	switch_table_end(&switches, 4000);
	expect_block(0, 500, 0, SWITCH_UNKNOWN, SWITCH_OFF_BEFORE | SWITCH_READY_UNKNOWN);
	expect_block(1, 1000, 300, SWITCH_SLEEPING, 0);
	assert_int_equal(block(1).waker_tid, 101);
	expect_block(2, 100, 100, SWITCH_PREEMPTED, 0);
	expect_block(3, 100, 50, SWITCH_UNINTERRUPTIBLE, SWITCH_WOKEN_BY_INTERRUPT);
	assert_int_equal(block(3).waker_tid, 0);
	expect_time(0, BEGIN_NS, 1300, 450, 1250);
	assert_int_equal(thread_time(0).switches, 3);
	assert_false(thread_time(0).ended);
}

/* A thread that could run when the recording began, and is switched to first, has waited for a CPU. */
static void test_ready_at_begin(void **state)
{
	(void)state;
	switch_table_note_ready(&switches, SHOP);
	switch_table_note_ready(&switches, SHOP + 1);
	in(SHOP, 1500);
	out(SHOP, 2000, SWITCH_SLEEPING);
	in(SHOP, 2100);
	out(SHOP + 1, 2200, SWITCH_SLEEPING); /* it was on a CPU */
	in(SHOP + 1, 2300);
	switch_table_end(&switches, 3000);
	expect_block(0, 500, 500, SWITCH_UNKNOWN, SWITCH_OFF_BEFORE);
	expect_block(1, 100, 0, SWITCH_SLEEPING, SWITCH_READY_UNKNOWN);
	expect_block(2, 100, 0, SWITCH_SLEEPING, SWITCH_READY_UNKNOWN);
	expect_time(0, BEGIN_NS, 1400, 500, 100);
	expect_time(1, BEGIN_NS, 1900, 0, 100);
}

static void test_birth_and_death(void **state)
{
	(void)state;
	(void)process_table_process(&fixture.live->table, SHOP);
	birth(101, 2000);
	birth(101, 2000); /* written twice */
	in(101, 2100);
	out(101, 2300, SWITCH_SLEEPING);
	in(101, 2400);
	death(101, 2450);
	out(101, 2460, SWITCH_PREEMPTED); /* on its way out */
	in(101, 2470);
	expect_block(0, 100, 100, SWITCH_UNKNOWN, SWITCH_NEW_THREAD);
	expect_block(1, 100, 0, SWITCH_SLEEPING, SWITCH_READY_UNKNOWN);
	expect_time(0, 2000, 250, 100, 100);
	assert_true(thread_time(0).ended);

	birth(101, 2600); /* the id is reused */
	in(101, 2700);
	switch_table_end(&switches, 3000);
	expect_time(1, 2600, 300, 100, 0);
	assert_null(nth(SPOOR_THREAD_TIME, 2));
}

/* An exec ends the life of a thread in one process of the file, and begins another: no time is in both, or in none. */
static void test_exec(void **state)
{
	const struct pending item = {
		.kind = PENDING_COMM, .time_ns = 2600, .pid = SHOP, .tid = SHOP, .flag = true
	};
	struct process_table *table = &fixture.live->table;

	(void)state;
	out(SHOP, 2000, SWITCH_SLEEPING);
	in(SHOP, 2500);
	uint32_t before = process_table_find(table, SHOP);
	table->rows.items[before].read_ns = 0; /* the program was not looked up later */
	process_table_comm(table, &item);
	switch_table_exec(&switches, &item);
	assert_int_not_equal(process_table_find(table, SHOP), before);
	expect_time(0, BEGIN_NS, 1100, 0, 500);
	assert_true(thread_time(0).ended);
	out(SHOP, 2700, SWITCH_PREEMPTED);
	in(SHOP, 2750);
	switch_table_end(&switches, 3000);
	expect_time(1, 2600, 350, 50, 0);
	assert_null(nth(SPOOR_THREAD_TIME, 2));
}

/* A block that lasts at the end is written with the time of the end. */
static void test_end(void **state)
{
	(void)state;
	out(SHOP, 2000, SWITCH_SLEEPING);
	switch_table_end(&switches, 5000);
	expect_block(0, 3000, 0, SWITCH_SLEEPING, SWITCH_OFF_AT_END | SWITCH_READY_UNKNOWN);
	assert_int_equal(nth(EVENTS_CSWITCH, 0)->time_ns, 5000);
	expect_time(0, BEGIN_NS, 1000, 0, 3000);
}

/* Lost records: the time between counts as time on the CPU, and the sum rule holds. */
static void test_lost(void **state)
{
	struct payload_thread_time time;

	(void)state;
	in(SHOP, 1100);
	in(SHOP, 1500);
	out(SHOP, 2000, SWITCH_SLEEPING);
	out(SHOP, 2500, SWITCH_SLEEPING);
	in(SHOP, 2600);
	switch_table_end(&switches, 3000);
	expect_block(1, 100, 0, SWITCH_SLEEPING, SWITCH_READY_UNKNOWN);
	time = thread_time(0);
	assert_int_equal(time.run_ns + time.ready_ns + time.blocked_ns, 3000 - BEGIN_NS);
	/* It came to another CPU, of which there is no record, and left that one. */
	out(SHOP + 2, 7000, SWITCH_SLEEPING);
	in(SHOP + 2, 6500); /* before it left, by the other CPU's entries */
	out(SHOP + 2, 7400, (enum switch_state)(SWITCH_PREEMPTED | SWITCH_CAME_UNSEEN));
	in(SHOP + 2, 7500);
	struct payload_cswitch last = block(block_count() - 1);
	assert_int_equal(last.value, 100);
	assert_int_equal(last.state, SWITCH_PREEMPTED);
	assert_int_equal(block(block_count() - 2).value, 400);
}

/* Short blocks are summed for each thread and state, and written at the flush. */
static void test_short_blocks(void **state)
{
	struct payload_short_blocks sum;

	(void)state;
	switches.min_block_ns = 200;
	for (uint64_t time = 2000; time < 5000; time += 1000) {
		out(SHOP, time, SWITCH_SLEEPING);
		wake(101, SHOP, time + 60, false);
		in(SHOP, time + 100);
		out(SHOP, time + 200, SWITCH_PREEMPTED);
		in(SHOP, time + 250);
	}
	out(SHOP, 5000, SWITCH_SLEEPING);
	in(SHOP, 5200);
	assert_null(nth(EVENTS_CSWITCH, 1));
	assert_null(nth(SPOOR_SHORT_BLOCKS, 0));
	switch_table_flush(&switches);
	for (unsigned i = 0; i < 2; i++) {
		const struct written *written = nth(SPOOR_SHORT_BLOCKS, i);
		assert_non_null(written);
		assert_int_equal(payload_read_short_blocks(written->payload.data,
					 written->payload.len, NULL, &sum),
			0);
		assert_int_equal(sum.count, 3);
		assert_int_equal(sum.value, i ? 150 : 300);
		assert_int_equal(sum.ready_ns, i ? 150 : 120);
		assert_int_equal(sum.state, i ? SWITCH_PREEMPTED : SWITCH_SLEEPING);
	}
	assert_null(nth(SPOOR_SHORT_BLOCKS, 2));
	assert_int_equal(switches.count, 7);
	assert_int_equal(switches.short_count, 6);
	switch_table_end(&switches, 6000);
	expect_time(0, BEGIN_NS, 5000 - 300 - 150 - 200, 270, 180 + 200);
}

/* The waker's event precedes the block that it ends. */
static void test_wakers(void **state)
{
	struct payload_wakeup wakeup;

	(void)state;
	switches.wakers = true;
	out(SHOP, 2000, SWITCH_SLEEPING);
	wake(101, SHOP, 2500, false);
	in(SHOP, 2600);
	const struct written *written = nth(SPOOR_WAKEUP, 0);

	assert_non_null(written);
	assert_true(written < nth(EVENTS_CSWITCH, 0));
	assert_int_equal(
		payload_read_wakeup(written->payload.data, written->payload.len, NULL, &wakeup), 0);
	assert_int_equal(wakeup.woken_pid, SHOP);
	assert_int_equal(wakeup.woken_tid, SHOP);
	assert_int_equal(fixture.live->trace.threads.items[written->thread].tid, 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_blocks, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_ready_at_begin, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_birth_and_death, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_exec, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_end, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_lost, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_short_blocks, open_machine, close_fixture),
		cmocka_unit_test_setup_teardown(test_wakers, open_machine, close_fixture),
	};

	return cmocka_run_group_tests_name("switch_table", tests, NULL, NULL);
}
