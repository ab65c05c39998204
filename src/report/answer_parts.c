/* See answer_parts.h. */
#include "report/answer_parts.h"

#include "analysis/answers.h"
#include "analysis/profile.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "render/sparkline.h"
#include "trace/report.h"
#include "trace/trace.h"

#define NS_PER_S 1e9

/* A cell of `width` columns, right-aligned, after two spaces. */
static void answer_cell(struct bytes *out, size_t width, const struct bytes *cell)
{
	size_t used = text_columns((const char *)cell->data, cell->len);

	bytes_printf(out, "%*s", (int)(2 + (used < width ? width - used : 0)), "");
	bytes_add(out, cell->data, cell->len);
}

void answer_duration_cell(struct bytes *out, size_t width, uint64_t time_ns)
{
	cleanup(bytes_done) struct bytes cell = { 0 };

	text_add_duration(&cell, (double)time_ns / NS_PER_S);
	answer_cell(out, width, &cell);
}

void answer_size_cell(struct bytes *out, size_t width, uint64_t size_bytes)
{
	cleanup(bytes_done) struct bytes cell = { 0 };

	text_add_size(&cell, size_bytes);
	answer_cell(out, width, &cell);
}

void answer_count_cell(struct bytes *out, size_t width, uint64_t count)
{
	cleanup(bytes_done) struct bytes cell = { 0 };

	text_add_count(&cell, count);
	answer_cell(out, width, &cell);
}

void answer_durations_cells(struct bytes *out, const struct durations *durations,
	uint64_t unfinished_ns)
{
	answer_duration_cell(out, 8, durations->total_ns + unfinished_ns);
	answer_duration_cell(out, 8, durations_percentile(durations, 0.5));
	answer_duration_cell(out, 8, durations_percentile(durations, 0.99));
	answer_duration_cell(out, 8, durations->longest_ns);
}

void answer_share_cell(struct bytes *out, uint64_t part, uint64_t whole)
{
	bytes_printf(out, "  %5.1f %%", whole ? 100 * (double)part / (double)whole : 0);
}

void answer_head(struct bytes *out, const struct report *report, uint32_t process)
{
	const char *version =
		trace_text(report->trace, report->trace->processes.items[process].runtime_version);

	label_process(out, report->trace, process);
	if (*version) {
		bytes_text(out, ", .NET ");
		text_add_safe_z(out, version);
	}
	bytes_text(out, ": ");
}

void answer_rate(struct bytes *out, uint64_t amount, uint64_t span_ns)
{
	double rate = span_ns ? (double)amount / ((double)span_ns / NS_PER_S) : 0;

	if (rate < 100)
		bytes_printf(out, "%.3g", rate);
	else
		text_add_count(out, (uint64_t)(rate + 0.5));
}

/* Timelines begin with the selected time, and it may be that nothing was recorded so early. */
static uint32_t interval_count(const struct answers *answers, const struct timeline *line)
{
	uint64_t from_ns = answers->filter->from_ns;

	return timeline_count(line, answers->to_ns > from_ns ? answers->to_ns - from_ns : 0);
}

void answer_bars(struct bytes *out, const struct answers *answers, const struct timeline *line)
{
	sparkline_add(out, line->amounts, interval_count(answers, line));
}

void answer_time_rate(struct bytes *out, uint64_t amount, uint64_t span_ns)
{
	text_add_duration(out, span_ns ? (double)amount / (double)span_ns : 0);
}

void answer_timeline(struct bytes *out, const struct answers *answers, const struct timeline *line,
	void (*add_rate)(struct bytes *out, uint64_t amount, uint64_t span_ns))
{
	uint32_t peak = timeline_peak(line);
	uint64_t width_ns = timeline_width_ns(line);

	bytes_text(out, "  over time    ");
	answer_bars(out, answers, line);
	bytes_text(out, "\n               most ");
	(add_rate ? add_rate : answer_rate)(out, line->amounts[peak], width_ns);
	bytes_text(out, " a second, at ");
	text_add_duration(out, (double)(answers->filter->from_ns + peak * width_ns) / NS_PER_S);
	bytes_text(out, "\n");
}

void answer_function(struct bytes *out, const struct report *report, uint32_t function)
{
	if (!function)
		return;
	const struct function *f = &report->names->functions.items[function];
	text_add_safe_z(out, trace_text(report->trace, f->name));
	if (f->module) {
		bytes_text(out, "  ");
		text_add_safe_z(out, trace_text(report->trace, f->module));
	}
}

void answer_thread(struct bytes *out, const struct report *report, uint32_t row)
{
	const struct trace *trace = report->trace;
	const struct thread *thread = &trace->threads.items[row];

	text_add_safe_z(out,
		trace_text(trace, thread->name ? thread->name
					       : trace->processes.items[thread->process].name));
	bytes_printf(out, " (%u)", thread->tid);
}

void answer_more(struct bytes *out, size_t width, uint32_t count, const char *one, const char *many)
{
	const struct bytes dots = { .data = (uint8_t *)(uintptr_t) "\xe2\x80\xa6", .len = 3 };

	if (!count)
		return;
	answer_cell(out, width, &dots);
	bytes_text(out, "  ");
	text_add_things(out, count, one, many);
	bytes_text(out, "\n");
}

void answer_switch_end(struct bytes *out, const struct report *report, bool any,
	bool wakings_missing)
{
	const struct trace *trace = report->trace;

	if (any)
		bytes_text(out, "\n");
	if (!any)
		bytes_text(out,
			trace->recording.session.switches == SESSION_YES
				? "no context switch is in this selection\n"
				: "the recording has no context switches: spoor record --off-cpu takes them\n");
	else if (trace->recording.session.switch_stacks == SESSION_NO)
		bytes_text(out,
			"without the right to use the kernel's tracepoints, waits have no stacks and no cause, and include the time until the thread had a CPU again\n");
	else if (wakings_missing)
		bytes_text(out,
			"the kernel recorded no waking for some waits: they include the time until the thread had a CPU again\n");
	if (!any && !report->losses.count)
		return;
	label_loss(out, report);
	bytes_text(out, "\n");
}

/* A process to be traced, of those in the recording; 0: none. */
static uint32_t process_to_trace(const struct answers *answers, const struct trace *trace)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < trace->processes.count; i++) {
		const struct process *process = &trace->processes.items[i];
		if (!process->pid || !profile_filter_has_process(answers->filter, trace, i))
			continue;
		if (process->runtime_version)
			return i;
		found = found ? found : i;
	}
	return found;
}

void answer_trace_command(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t process)
{
	if (!process)
		process = process_to_trace(answers, report->trace);
	if (process)
		bytes_printf(out, "spoor trace -p %u ",
			report->trace->processes.items[process].pid);
	else
		bytes_text(out, "spoor trace -p PID ");
}

bool answer_has_stacks(const struct answers *answers, const struct tally_process *process)
{
	for (uint32_t i = 1; i < answers->stacks.items.count; i++)
		if (answers->stacks.items.items[i].process == process->process)
			return true;
	return false;
}

void answer_json_process(struct json *j, const struct report *report, uint32_t process)
{
	const struct process *owner = &report->trace->processes.items[process];

	json_object(j, NULL);
	json_u64(j, "pid", owner->pid);
	json_z(j, "name", trace_text(report->trace, owner->name));
}

void answer_json_timeline(struct json *j, const struct answers *answers,
	const struct timeline *line)
{
	uint32_t count = interval_count(answers, line);

	json_object(j, "timeline");
	json_u64(j, "interval_ns", timeline_width_ns(line));
	json_array(j, "amounts");
	for (uint32_t i = 0; i < count; i++)
		json_u64(j, NULL, line->amounts[i]);
	json_end(j);
	json_end(j);
}

static void add_json_function(struct json *j, const char *name, const struct report *report,
	uint32_t text)
{
	if (text)
		json_z(j, name, trace_text(report->trace, text));
	else
		json_null(j, name);
}

uint64_t answer_observed_ns(const struct answers *answers, uint32_t process)
{
	uint64_t to_ns = activity_spans_end(&answers->activity_spans, process, answers->to_ns);

	return to_ns > answers->from_ns ? to_ns - answers->from_ns : 0;
}

void answer_json_durations(struct json *j, const struct durations *durations)
{
	json_u64(j, "total_ns", durations->total_ns);
	json_u64(j, "p50_ns", durations_percentile(durations, 0.5));
	json_u64(j, "p99_ns", durations_percentile(durations, 0.99));
	json_u64(j, "longest_ns", durations->longest_ns);
	json_u64(j, "longest_at_ns", durations->longest_at_ns);
}

void answer_json_stack(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t stack)
{
	const struct function *functions = report->names->functions.items;

	if (!stack) {
		json_null(j, "method");
		json_null(j, "module");
		json_null(j, "stack");
		return;
	}
	const struct event_stack *s = &answers->stacks.items.items[stack];
	add_json_function(j, "method", report, s->own ? functions[s->own].name : 0);
	add_json_function(j, "module", report, s->own ? functions[s->own].module : 0);
	json_array(j, "stack");
	for (uint32_t i = 0; i < s->frame_count; i++)
		json_z(j, NULL,
			trace_text(report->trace,
				functions[answers->stacks.functions.items[s->at + i]].name));
	json_end(j);
}
