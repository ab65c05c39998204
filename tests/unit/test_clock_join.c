/*
 * clock_join.c: samples get the CPU time of their thread's clock, to the nanosecond. The samples of
 * a thread whose clock does not advance get no time.
 */
#include "unit/test.h"

#include "trace/clock_join.h"
#include "trace/trace.h"

#define MS UINT64_C(1000000)

/* The reported time of each stack. */
struct totals {
	uint64_t by_stack[64];
	uint64_t by_thread[64];
	uint64_t all_ns;
	uint64_t last_ns;
	uint32_t shares;
	uint32_t samples;
};

static void each(void *context, const struct clock_share *share)
{
	struct totals *totals = context;

	assert_true(share->cpu_ns > 0);
	totals->by_stack[share->stack % 64] += share->cpu_ns;
	totals->by_thread[share->thread % 64] += share->cpu_ns;
	totals->all_ns += share->cpu_ns;
	totals->last_ns = share->time_ns;
	totals->shares++;
	totals->samples += share->count;
}

static void clock_at(struct clock_join *join, uint64_t thread, uint64_t time_ns, uint64_t cpu_ns)
{
	assert_int_equal(clock_join_clock(join, thread, time_ns, cpu_ns), 0);
}

static void sample_at(struct clock_join *join, uint64_t thread, uint64_t time_ns, uint32_t stack,
	bool runs)
{
	assert_int_equal(clock_join_sample(join, thread, time_ns, stack, runs), 0);
}

/*
 * A thread that computes: the time of each interval is divided among its samples, and equal stacks
 * share one sum.
 */
static void test_spread(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };

	(void)state;
	clock_at(&join, 7, 100 * MS, 5 * MS);
	for (uint64_t t = 101; t <= 120; t++)
		sample_at(&join, 7, t * MS, t <= 115 ? 1 : 2, true);
	clock_at(&join, 7, 120 * MS, 5 * MS + 20 * MS + 7);
	clock_join_settle(&join, 200 * MS, each, &totals);
	assert_int_equal(totals.all_ns, 20 * MS + 7);
	assert_int_equal(totals.by_stack[1], 15 * MS + 7);
	assert_int_equal(totals.by_stack[2], 5 * MS);
	assert_int_equal(totals.shares, 2);
	assert_int_equal(totals.samples, 20);
	clock_join_done(&join);
}

/* While the clock does not advance, samples get no time, whatever state the runtime reports. */
static void test_parked(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };

	(void)state;
	clock_at(&join, 7, 100 * MS, 5 * MS);
	for (uint64_t t = 101; t <= 5000; t++) {
		sample_at(&join, 7, t * MS, 1, t % 2 == 0);
		if (t % 100 == 0)
			clock_join_settle(&join, (t - 50) * MS, each, &totals);
	}
	assert_true(join.waiting <= 150);
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	assert_int_equal(totals.all_ns, 0);
	assert_int_equal(join.waiting, 0);
	clock_join_done(&join);
}

/*
 * A thread wakes after a long sleep. The stack in which it slept gets no time, because the clock
 * did not advance until then.
 */
static void test_wakes(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };

	(void)state;
	clock_at(&join, 7, 100 * MS, 5 * MS);
	for (uint64_t t = 101; t <= 1000; t++)
		sample_at(&join, 7, t * MS, 1, false);
	clock_at(&join, 7, 1000 * MS, 5 * MS);
	for (uint64_t t = 1001; t <= 1020; t++)
		sample_at(&join, 7, t * MS, 2, true);
	clock_at(&join, 7, 1020 * MS, 23 * MS);
	clock_join_settle(&join, 1100 * MS, each, &totals);
	assert_int_equal(totals.by_stack[1], 0);
	assert_int_equal(totals.by_stack[2], 18 * MS);
	clock_join_done(&join);
}

/*
 * A thread sleeps and computes in turns that are shorter than the clock's intervals. Over many
 * intervals the computing stacks get nearly all of the time.
 */
static void test_naps(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };
	uint64_t cpu_ns = 0;
	uint32_t seed = 1;

	(void)state;
	clock_at(&join, 7, 1000 * MS, 0);
	for (uint64_t t = 1000; t < 11000; t += 20) {
		/*
		 * One sample of five finds it running, on average; it always uses a fifth of the
		 * CPU.
		 */
		for (uint64_t i = 1; i <= 4; i++) {
			seed = seed * 1103515245u + 12345u;
			bool runs = (seed >> 16) % 5 == 0;
			sample_at(&join, 7, (t + 5 * i) * MS, runs ? 2 : 1, runs);
		}
		cpu_ns += 4 * MS;
		clock_at(&join, 7, (t + 20) * MS, cpu_ns);
		clock_join_settle(&join, (t + 20) * MS, each, &totals);
	}
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	assert_int_equal(totals.all_ns, cpu_ns);
	assert_true(totals.by_stack[2] > cpu_ns * 85 / 100);
	clock_join_done(&join);
}

/* The runtime reports a native call that computes as waiting, but the clock shows that it runs. */
static void test_native_call(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };
	uint64_t cpu_ns = 0;

	(void)state;
	clock_at(&join, 7, 1000 * MS, 0);
	for (uint64_t t = 1000; t < 5000; t += 20) {
		for (uint64_t i = 1; i <= 10; i++)
			sample_at(&join, 7, (t + 2 * i) * MS, i == 1 ? 2 : 1, i == 1);
		cpu_ns += 20 * MS;
		clock_at(&join, 7, (t + 20) * MS, cpu_ns);
	}
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	assert_int_equal(totals.all_ns, cpu_ns);
	assert_in_range(totals.by_stack[2], cpu_ns * 9 / 100, cpu_ns * 14 / 100);
	assert_int_equal(totals.by_stack[1] + totals.by_stack[2], cpu_ns);
	clock_join_done(&join);
}

/* A thread that no runtime reports, and a thread without samples between two clock readings. */
static void test_without_samples(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };

	(void)state;
	clock_at(&join, 8, 1000 * MS, 3 * MS);
	for (uint64_t t = 1020; t <= 2000; t += 20)
		clock_at(&join, 8, t * MS, 3 * MS + (t - 1000) * MS / 2);
	clock_join_settle(&join, 2000 * MS, each, &totals);
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	assert_int_equal(totals.by_stack[0], 500 * MS);
	assert_in_range(totals.shares, 5,
		11); /* one sample every 100 ms, not one in each interval */
	totals = (struct totals){ 0 };
	/* A gap of 40 ms: its time is counted for the next sample. */
	clock_at(&join, 9, 1000 * MS, 0);
	clock_at(&join, 9, 1020 * MS, 20 * MS);
	clock_at(&join, 9, 1040 * MS, 40 * MS);
	sample_at(&join, 9, 1050 * MS, 4, true);
	clock_at(&join, 9, 1060 * MS, 60 * MS);
	clock_join_settle(&join, 1060 * MS, each, &totals);
	assert_int_equal(totals.by_stack[4], 60 * MS);
	assert_int_equal(totals.by_stack[0], 0);
	clock_join_done(&join);
}

/*
 * For any input the reported time of a thread equals the advance of its clock. Clocks that go back
 * and samples out of order do no harm.
 */
static void test_sums(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };
	uint64_t cpu_ns[20] = { 0 };
	uint32_t seed = 42;

	(void)state;
	for (uint64_t thread = 0; thread < 20; thread++)
		clock_at(&join, thread, 1, 0);
	for (uint64_t step = 1; step < 20000; step++) {
		seed = seed * 1664525u + 1013904223u;
		uint64_t thread = seed >> 8 & 15;
		uint64_t time_ns = step * 777777;
		if (seed >> 28 < 9) {
			sample_at(&join, thread, time_ns - (seed & 0xfffff), 1 + (seed >> 12 & 7),
				seed >> 20 & 1);
		} else {
			cpu_ns[thread] += seed >> 30 ? seed & 0xffffff : 0;
			clock_at(&join, thread, time_ns, cpu_ns[thread]);
			/* it is not later, so it is ignored */
			clock_at(&join, thread, time_ns - 5, cpu_ns[thread] + 99);
		}
		if (step % 64 == 0)
			clock_join_settle(&join,
				time_ns - 200 * MS < time_ns ? time_ns - 200 * MS : 0, each,
				&totals);
	}
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	for (uint64_t thread = 0; thread < 20; thread++)
		assert_int_equal(totals.by_thread[thread], cpu_ns[thread]);
	assert_int_equal(join.waiting, 0);
	clock_join_done(&join);
}

static bool has_ended(void *context, uint64_t thread)
{
	return thread == *(uint64_t *)context;
}

static void test_forget(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };
	uint64_t gone = 1;

	(void)state;
	for (uint64_t thread = 1; thread <= 3; thread++) {
		clock_at(&join, thread, 1000 * MS, 0);
		clock_at(&join, thread, 1020 * MS, 20 * MS);
	}
	clock_join_forget(&join, has_ended, &gone); /* some of its time is not reported yet */
	assert_int_equal(join.threads.count, 3);
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	clock_join_forget(&join, has_ended, &gone);
	assert_int_equal(join.threads.count, 2);
	clock_at(&join, 3, 1040 * MS, 25 * MS);
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	assert_int_equal(totals.by_thread[3], 25 * MS);
	assert_int_equal(totals.by_thread[1], 20 * MS);
	clock_join_done(&join);
}

static void test_moved_stacks(void **state)
{
	struct clock_join join = { 0 };
	struct totals totals = { 0 };
	struct stack_table from = { 0 };
	struct stack_table fresh = { 0 };
	const uint64_t other[] = { 1, 2 };
	const uint64_t frames[] = { 5, 6, 7 };
	uint32_t count;

	(void)state;
	(void)stack_table_intern(&from, other, 2);
	uint32_t stack = stack_table_intern(&from, frames, 3);

	clock_at(&join, 1, 1000 * MS, 0);
	sample_at(&join, 1, 1010 * MS, stack, true);
	clock_join_move_stacks(&join, &from, &fresh);
	clock_at(&join, 1, 1020 * MS, 9 * MS);
	clock_join_settle(&join, UINT64_MAX, each, &totals);
	uint32_t moved = 0;

	for (uint32_t i = 0; i < 64; i++)
		if (totals.by_stack[i])
			moved = i;
	assert_int_not_equal(moved, stack);
	assert_memory_equal(stack_table_get(&fresh, moved, &count), frames, sizeof(frames));
	assert_int_equal(count, 3);
	clock_join_done(&join);
	stack_table_done(&from);
	stack_table_done(&fresh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_wakes),
		cmocka_unit_test(test_naps),
		cmocka_unit_test(test_native_call),
		cmocka_unit_test(test_without_samples),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_moved_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
