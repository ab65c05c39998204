/* Thread pools: threads over time, stretches of starvation, work items, and what workers did. */
#include "unit/answers_fixture.h"

#include "report/answer_report.h"
#include "trace/report.h"

#include "trace/clr.h"

#define DISPATCH (JIT + 0x800)
#define TASK     (JIT + 0xa00)

static void threads(struct fixture *f, uint64_t at_ms, uint32_t count)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, count);
	bytes_u32(&payload, 0);
	bytes_u16(&payload, 9);
	fixture_pass(f, at_ms, CLR_ID_ThreadPoolWorkerThreadStart, 0, &payload);
}

static void adjust(struct fixture *f, uint64_t at_ms, uint32_t count, uint32_t reason)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, 0);
	bytes_u32(&payload, count);
	bytes_u32(&payload, reason);
	bytes_u16(&payload, 9);
	fixture_pass(f, at_ms, CLR_ID_ThreadPoolWorkerThreadAdjustmentAdjustment, 0, &payload);
}

static void item(struct fixture *f, uint64_t at_ms, uint32_t id)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, 1);
	bytes_u16(&payload, 9);
	fixture_pass(f, at_ms, id, 0, &payload);
}

/* Threads that are added beside blocked ones are no starvation, but the report does not say "none" alone. */
static void test_blocking(void **state)
{
	struct fixture f;
	struct report report = { 0 };
	struct bytes out = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_POOL);
	threads(&f, 10, 2);
	adjust(&f, 100, 3, POOL_COOPERATIVE_BLOCKING);
	adjust(&f, 200, 62, POOL_COOPERATIVE_BLOCKING);
	adjust(&f, 300, 10, POOL_COOPERATIVE_BLOCKING);
	fixture_finish(&f);
	assert_int_equal(f.answers.thread_pool.processes.items[0].blocking_added, 60);
	report.trace = &f.trace;
	report.names = &f.names;
	assert_int_equal(answer_report_text(ANSWER_POOL, &f.answers, &report, 0, &out), 0);
	assert_non_null(strstr(bytes_z(&out),
		"  starvation   none by the pool's own adjustments; 60 threads added for blocked ones (cooperative blocking)\n"));
	assert_non_null(strstr(bytes_z(&out),
		"; spoor trace -p 4711 --profile dotnet-common,dotnet-sampled-thread-time "));
	bytes_done(&out);
	fixture_end(&f);
}

static void test_starvation(void **state)
{
	struct fixture f;
	struct bytes limits = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_POOL);
	bytes_u16(&limits, 2);
	bytes_u16(&limits, 100);
	fixture_pass(&f, 1, CLR_ID_ThreadPoolMinMaxThreads, 0, &limits);
	adjust(&f, 700, 4,
		POOL_STARVATION); /* before earlier ones, as in a file sorted by thread */
	threads(&f, 10, 2);
	adjust(&f, 600, 3, POOL_STARVATION);
	adjust(&f, 4000, 5, POOL_STARVATION);
	adjust(&f, 4500, 4, POOL_CLIMBING_MOVE);
	adjust(&f, 5000, 6, 77);
	item(&f, 100, CLR_ID_ThreadPoolEnqueue);
	item(&f, 110, CLR_ID_ThreadPoolEnqueue);
	item(&f, 120, CLR_ID_ThreadPoolDequeue);
	fixture_finish(&f);
	const struct thread_pool *pool = &f.answers.thread_pool;
	assert_int_equal(pool->processes.count, 1);
	const struct pool_process *process = &pool->processes.items[0];
	assert_int_equal(process->min_threads, 2);
	assert_int_equal(process->max_threads, 100);
	assert_int_equal(process->least_threads, 2);
	assert_int_equal(process->most_threads, 6);
	assert_int_equal(process->last_threads, 6);
	assert_int_equal(process->enqueued, 2);
	assert_int_equal(process->dequeued, 1);
	assert_int_equal(process->by_reason[POOL_STARVATION], 3);
	assert_int_equal(process->by_reason[POOL_OTHER], 1);
	assert_int_equal(process->starvation_count, 2);
	const struct pool_starvation *first = &pool->starvations.items[process->starvation_at];
	assert_int_equal(first->begin_ns, 100 * MS);
	assert_int_equal(first->end_ns, 700 * MS);
	assert_int_equal(first->threads_before, 2);
	assert_int_equal(first->threads_after, 4);
	assert_int_equal(first->added, 2);
	assert_int_equal(first[1].begin_ns, 3500 * MS);
	assert_int_equal(process->starved_ns, (600 + 500) * MS);
	/* The time is that of the last event, of which intervals of 128 ms are made. */
	assert_int_equal(timeline_width_ns(&process->threads), 128 * MS);
	assert_int_equal(process->threads.amounts[0], 2);
	assert_int_equal(process->threads.amounts[4], 3);
	assert_int_equal(process->threads.amounts[10], 4);
	assert_int_equal(process->threads.amounts[39], 6);
	fixture_end(&f);
}

static void sample(struct fixture *f, uint64_t at_ms, uint32_t type, const uint64_t *frames,
	uint32_t count)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, type);
	fixture_stack(f, frames, count);
	fixture_event(f, at_ms,
		&(struct schema){ .provider_kind = PROVIDER_SAMPLE, .event_id = CLR_THREAD_SAMPLE },
		NULL, &payload);
}

static void test_work(void **state)
{
	static const uint64_t waits[] = { TASK + 8, JIT + 0x208, DISPATCH + 8, LIBC + 8 };
	static const uint64_t runs[] = { JIT + 0x208, DISPATCH + 8, LIBC + 8 };
	static const uint64_t idle[] = { DISPATCH + 8, LIBC + 8 };
	static const uint64_t other[] = { TASK + 8, JIT + 0x208, LIBC + 8 };
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_POOL);
	uint32_t shop = trace_find_process(&f.trace, 4711);
	sample_code(&f.trace, shop, DISPATCH,
		"bool [System.Private.CoreLib] System.Threading.ThreadPoolWorkQueue::Dispatch()[OptimizedTier1]",
		UINT32_MAX, CODE_JIT, TIER_1);
	sample_code(&f.trace, shop, TASK,
		"bool [System.Private.CoreLib] System.Threading.Tasks.Task::InternalWaitCore(int32)[OptimizedTier1]",
		UINT32_MAX, CODE_JIT, TIER_1);
	sample(&f, 100, 1, waits, 4);
	sample(&f, 300, CLR_SAMPLE_MANAGED, runs, 3);
	sample(&f, 310, 1, waits, 4);
	sample(&f, 2310, 1, idle, 2); /* sampled again too late: a second counts */
	sample(&f, 2320, 1, idle, 2);
	f.thread = trace_thread(&f.trace, 4711, 4712);
	sample(&f, 100, 1, other, 3); /* no worker */
	sample(&f, 500, 1, other, 3);
	threads(&f, 1, 2);
	fixture_finish(&f);
	const struct thread_pool *pool = &f.answers.thread_pool;
	const struct tally_process *work = thread_pool_work(pool, shop);
	assert_non_null(work);
	assert_int_equal(work->row_count, 2);
	assert_int_equal(work->amount, (200 + 1000 + 10) * MS);
	assert_int_equal(thread_pool_blocked_ns(pool, work), 1200 * MS);
	const struct tally_row *row = &pool->work.rows.list.items[work->row_at];
	assert_string_equal(pool_activity(row->key.kind), "sync over async");
	assert_string_equal(pool_activity(row[1].key.kind), "running");
	assert_int_equal(row[1].amount, 10 * MS);
	assert_null(thread_pool_work(pool, shop + 1));
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starvation),
		cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
