/* See thread_time_report.h. */
#include "report/thread_time_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "trace/report.h"
#include "trace/trace.h"

#define NS_PER_S 1e9

static void add_times(struct bytes *out, uint64_t on_cpu_ns, uint64_t runnable_ns,
	uint64_t blocked_ns)
{
	answer_duration_cell(out, 9, on_cpu_ns);
	answer_duration_cell(out, 9, runnable_ns);
	answer_duration_cell(out, 9, blocked_ns);
}

static void add_thread(struct bytes *out, const struct report *report,
	const struct thread_time_row *row)
{
	answer_duration_cell(out, 9, row->wall_ns);
	add_times(out, row->on_cpu_ns, row->runnable_ns, row->blocked_ns);
	answer_count_cell(out, 9, row->switches);
	bytes_text(out, "  ");
	answer_thread(out, report, row->thread);
	bytes_text(out, row->ended ? ", ended\n" : "\n");
}

/* Threads of a group that has used up its share are runnable until the next period. */
static void add_limit(struct bytes *out, const struct report *report, uint32_t process)
{
	const struct cpu_grant *grant = trace_cpu_grant(report->trace, process);

	if (!grant || !grant->throttled_periods || !grant->period_ns)
		return;
	bytes_printf(out,
		"its control group is limited to %.3g CPUs and was throttled in %s of %s periods: threads that were runnable then waited for the next one\n",
		(double)grant->quota_ns / (double)grant->period_ns,
		TEXT_COUNT(grant->throttled_periods), TEXT_COUNT(grant->periods));
}

static void add_json_limit(struct json *j, const struct report *report, uint32_t process)
{
	const struct cpu_grant *grant = trace_cpu_grant(report->trace, process);

	if (!grant || !grant->period_ns) {
		json_null(j, "cpu_limit");
		return;
	}
	json_object(j, "cpu_limit");
	json_f64(j, "cpus", (double)grant->quota_ns / (double)grant->period_ns);
	json_u64(j, "periods", grant->periods);
	json_u64(j, "throttled_periods", grant->throttled_periods);
	json_u64(j, "throttled_ns", grant->throttled_ns);
	json_end(j);
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct thread_time *times = &answers->thread_time;
	const struct thread_time_process *process = &times->processes.items[at];
	uint32_t threads = process->row_count < row_count ? process->row_count : row_count;
	uint32_t functions =
		process->function_count < row_count ? process->function_count : row_count;

	answer_head(out, report, process->process);
	bytes_printf(out, "%s, %s of thread time: on CPU %s, runnable %s, blocked %s\n",
		TEXT_THINGS(process->row_count, "thread", "threads"),
		TEXT_DURATION((double)process->wall_ns / NS_PER_S),
		TEXT_DURATION((double)process->on_cpu_ns / NS_PER_S),
		TEXT_DURATION((double)process->runnable_ns / NS_PER_S),
		TEXT_DURATION((double)process->blocked_ns / NS_PER_S));
	add_limit(out, report, process->process);
	bytes_text(out, "\n       wall     on CPU   runnable    blocked   switches  thread\n");
	for (uint32_t i = 0; i < threads; i++)
		add_thread(out, report, &times->rows.items[process->row_at + i]);
	answer_more(out, 9, process->row_count - threads, "more thread", "more threads");
	bytes_text(out, "\n     on CPU   runnable    blocked  function\n");
	for (uint32_t i = 0; i < functions; i++) {
		const struct thread_time_function *row =
			&times->functions.items[process->function_at + i];
		add_times(out, row->on_cpu_ns, row->runnable_ns, row->blocked_ns);
		bytes_text(out, "  ");
		if (row->function)
			answer_function(out, report, row->function);
		else
			bytes_text(out, "(without a stack)");
		bytes_text(out, "\n");
	}
	answer_more(out, 9, process->function_count - functions, "more function", "more functions");
	return 0;
}

static void add_json_times(struct json *j, uint64_t on_cpu_ns, uint64_t runnable_ns,
	uint64_t blocked_ns)
{
	json_u64(j, "on_cpu_ns", on_cpu_ns);
	json_u64(j, "runnable_ns", runnable_ns);
	json_u64(j, "blocked_ns", blocked_ns);
}

static void add_json_thread(struct json *j, const struct answers *answers,
	const struct report *report, const struct thread_time_row *row)
{
	const struct thread *thread = &report->trace->threads.items[row->thread];
	uint64_t begin_ns = answers->begin_ns;

	json_object(j, NULL);
	json_u64(j, "tid", thread->tid);
	json_z(j, "name", trace_text(report->trace, thread->name));
	json_u64(j, "begin_ns", row->begin_ns > begin_ns ? row->begin_ns - begin_ns : 0);
	json_u64(j, "end_ns", row->end_ns > begin_ns ? row->end_ns - begin_ns : 0);
	json_bool(j, "ended", row->ended);
	json_u64(j, "wall_ns", row->wall_ns);
	add_json_times(j, row->on_cpu_ns, row->runnable_ns, row->blocked_ns);
	json_u64(j, "switch_count", row->switches);
	json_end(j);
}

static void add_json_function(struct json *j, const struct report *report,
	const struct thread_time_function *row)
{
	const struct function *function = &report->names->functions.items[row->function];

	json_object(j, NULL);
	if (row->function) {
		json_z(j, "function", trace_text(report->trace, function->name));
		json_z(j, "module", trace_text(report->trace, function->module));
	} else {
		json_null(j, "function");
		json_null(j, "module");
	}
	add_json_times(j, row->on_cpu_ns, row->runnable_ns, row->blocked_ns);
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct thread_time *times = &answers->thread_time;
	const struct thread_time_process *process = &times->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "wall_ns", process->wall_ns);
	add_json_limit(j, report, process->process);
	add_json_times(j, process->on_cpu_ns, process->runnable_ns, process->blocked_ns);
	json_array(j, "threads");
	for (uint32_t r = 0; r < process->row_count; r++)
		add_json_thread(j, answers, report, &times->rows.items[process->row_at + r]);
	json_end(j);
	json_array(j, "functions");
	for (uint32_t r = 0; r < process->function_count; r++)
		add_json_function(j, report, &times->functions.items[process->function_at + r]);
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->thread_time.processes.count;
}

static bool has_unknown_wakings(const struct answers *answers)
{
	return answers->thread_time.runnable_unknown;
}

static void add_json_end(struct json *j, const struct answers *answers, const struct report *report)
{
	json_bool(j, "stacks", report->trace->recording.session.switch_stacks == SESSION_YES);
	json_bool(j, "runnable_exact", !answers->thread_time.runnable_unknown);
}

const struct answer_report thread_time_report = {
	.option = "thread-time",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.process_max = ANSWER_PROCESSES_MAX,
	.add_process = add_process,
	.add_json = add_json,
	.add_json_end = add_json_end,
	.lacks_wakings = has_unknown_wakings,
};
