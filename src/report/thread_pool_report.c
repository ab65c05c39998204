/* See thread_pool_report.h. */
#include "report/thread_pool_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

static void add_reasons(struct bytes *out, const struct pool_process *process)
{
	const char *separator = "  reasons      ";

	for (unsigned i = 0; i < POOL_REASONS; i++) {
		if (!process->by_reason[i])
			continue;
		bytes_printf(out, "%s%s ", separator, pool_reason(i));
		text_add_count(out, process->by_reason[i]);
		separator = "; ";
	}
	if (process->change_count)
		bytes_text(out, "\n");
}

/* Workers that wait for tasks get others immediately, so the pool does not starve. */
static void add_blocking(struct bytes *out, const struct pool_process *process)
{
	if (!process->blocking_added)
		return;
	bytes_text(out, " by the pool's own adjustments; ");
	text_add_things(out, process->blocking_added, "thread", "threads");
	bytes_text(out, " added for blocked ones (cooperative blocking)");
}

static void add_starvations(struct bytes *out, const struct thread_pool *pool,
	const struct pool_process *process)
{
	bytes_text(out, "  starvation   ");
	if (!process->starvation_count) {
		bytes_text(out, "none");
		add_blocking(out, process);
		bytes_text(out, "\n");
		return;
	}
	/* the first work item waited before the pool added a thread, the last one after it */
	bytes_text(out, "at least ");
	text_add_duration(out, (double)process->starved_ns / 1e9);
	bytes_text(out, " in ");
	text_add_things(out, process->starvation_count, "stretch\n", "stretches\n");
	for (uint32_t i = 0; i < process->starvation_count; i++) {
		const struct pool_starvation *starvation =
			&pool->starvations.items[process->starvation_at + i];
		bytes_text(out, "               from ");
		text_add_duration(out, (double)starvation->begin_ns / 1e9);
		bytes_text(out, " to ");
		text_add_duration(out, (double)starvation->end_ns / 1e9);
		bytes_text(out, ": ");
		text_add_things(out, starvation->added, "thread added, ", "threads added, ");
		if (starvation->threads_before) {
			bytes_text(out, "from ");
			text_add_count(out, starvation->threads_before);
		}
		bytes_text(out, " to ");
		text_add_count(out, starvation->threads_after);
		bytes_text(out, "\n");
	}
}

static void add_heading(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct pool_process *process)
{
	answer_head(out, report, process->process);
	text_add_count(out, process->least_threads);
	bytes_text(out, " to ");
	text_add_things(out, process->most_threads, "worker thread", "worker threads");
	bytes_text(out, " in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	if (process->max_threads) {
		bytes_text(out, " (limits: ");
		text_add_count(out, process->min_threads);
		bytes_text(out, " and ");
		text_add_count(out, process->max_threads);
		bytes_text(out, ")");
	}
	bytes_text(out, "\n");
	add_starvations(out, &answers->thread_pool, process);
	add_reasons(out, process);
	bytes_text(out, "  threads      ");
	answer_bars(out, answers, &process->threads);
	bytes_text(out, "\n");
	if (process->dequeued) {
		bytes_text(out, "  work items   ");
		text_add_things(out, process->dequeued, "taken, ", "taken, ");
		text_add_count(out, process->enqueued);
		bytes_text(out, " queued\n");
		answer_timeline(out, answers, &process->items, NULL);
	}
}

static int add_work(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct tally_process *work, uint32_t row_count)
{
	const struct thread_pool *pool = &answers->thread_pool;
	struct tally_rows rows;
	int error = tally_group(&pool->work, work, TALLY_KIND | TALLY_PLACE, &rows);
	uint32_t shown = rows.list.count < row_count ? rows.list.count : row_count;

	bytes_text(out, "  workers      ");
	text_add_duration(out, (double)work->amount / 1e9);
	bytes_text(out, " in work items, of which ");
	text_add_duration(out, (double)thread_pool_blocked_ns(pool, work) / 1e9);
	bytes_text(out, " blocked\n\n       time    share  in work items\n");
	for (uint32_t i = 0; i < shown; i++) {
		const struct tally_row *row = &rows.list.items[i];
		answer_duration_cell(out, 9, row->amount);
		answer_share_cell(out, row->amount, work->amount);
		bytes_printf(out, "  %s", pool_activity(row->key.kind));
		if (row->key.place) {
			bytes_text(out, " in ");
			answer_function(out, report, row->key.place);
		}
		bytes_text(out, "\n");
	}
	answer_more(out, 9, rows.list.count - shown, "more method", "more methods");
	tally_rows_done(&rows);
	return error;
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct thread_pool *pool = &answers->thread_pool;
	const struct pool_process *process = &pool->processes.items[at];
	const struct tally_process *work = thread_pool_work(pool, process->process);

	add_heading(out, answers, report, process);
	if (work)
		return add_work(out, answers, report, work, row_count);
	bytes_text(out,
		"\nthe recording has no samples of threads, so what holds the workers is not known; ");
	answer_trace_command(out, answers, report, process->process);
	bytes_text(out, "--profile dotnet-common,dotnet-sampled-thread-time records them\n");
	return 0;
}

static void add_json_changes(struct json *j, const struct thread_pool *pool,
	const struct pool_process *process)
{
	json_array(j, "starvations");
	for (uint32_t i = 0; i < process->starvation_count; i++) {
		const struct pool_starvation *starvation =
			&pool->starvations.items[process->starvation_at + i];
		json_object(j, NULL);
		json_u64(j, "begin_ns", starvation->begin_ns);
		json_u64(j, "end_ns", starvation->end_ns);
		json_u64(j, "threads_before", starvation->threads_before);
		json_u64(j, "threads_after", starvation->threads_after);
		json_u64(j, "added", starvation->added);
		json_end(j);
	}
	json_end(j);
	json_array(j, "adjustments");
	for (uint32_t i = 0; i < process->change_count; i++) {
		const struct pool_change *change = &pool->changes.items[process->change_at + i];
		json_object(j, NULL);
		json_u64(j, "time_ns", change->at_ns);
		json_u64(j, "threads", change->threads);
		json_z(j, "reason", pool_reason(change->reason));
		json_end(j);
	}
	json_end(j);
}

static void add_json_work(struct json *j, const struct answers *answers,
	const struct report *report, const struct tally_process *work)
{
	const struct thread_pool *pool = &answers->thread_pool;

	json_u64(j, "work_ns", work->amount);
	json_u64(j, "blocked_ns", thread_pool_blocked_ns(pool, work));
	json_array(j, "work");
	for (uint32_t i = 0; i < work->row_count; i++) {
		const struct tally_row *row = &pool->work.rows.list.items[work->row_at + i];
		json_object(j, NULL);
		json_z(j, "activity", pool_activity(row->key.kind));
		json_u64(j, "time_ns", row->amount);
		json_u64(j, "samples", row->count);
		answer_json_stack(j, answers, report, row->key.stack);
		json_end(j);
	}
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct thread_pool *pool = &answers->thread_pool;
	const struct pool_process *process = &pool->processes.items[at];
	const struct tally_process *work = thread_pool_work(pool, process->process);

	answer_json_process(j, report, process->process);
	json_u64(j, "least_threads", process->least_threads);
	json_u64(j, "most_threads", process->most_threads);
	json_u64(j, "last_threads", process->last_threads);
	json_u64(j, "min_threads", process->min_threads);
	json_u64(j, "max_threads", process->max_threads);
	json_u64(j, "starved_ns", process->starved_ns);
	json_u64(j, "blocking_added", process->blocking_added);
	json_u64(j, "enqueued", process->enqueued);
	json_u64(j, "dequeued", process->dequeued);
	answer_json_timeline(j, answers, &process->threads);
	add_json_changes(j, pool, process);
	if (work)
		add_json_work(j, answers, report, work);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->thread_pool.processes.count;
}

const struct answer_report thread_pool_report = {
	.option = "threadpool",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no event of a thread pool is in this selection; spoor record takes them unless --no-events is given, and a pool has some when it changes\n",
	.add_json = add_json,
};
