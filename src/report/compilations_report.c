/* See compilations_report.h. */
#include "report/compilations_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"
#include "trace/trace.h"

static const char *tier_words(uint8_t tier)
{
	const struct function function = { .kind = FUNCTION_JIT, .tier = tier, .named = true };
	enum function_tier known = function_tier(&function);

	return known == FUNCTION_TIER_COUNT ? "not known" : function_tier_words(known);
}

static void add_heading(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct compilations_process *process)
{
	answer_head(out, report, process->process);
	text_add_things(out, process->all.count, "method", "methods");
	bytes_text(out, " compiled in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	bytes_text(out, ", ");
	text_add_duration(out, (double)process->all.lasts_ns / 1e9);
	bytes_text(out, " in the JIT\n  size         ");
	text_add_size(out, process->all.il_bytes);
	bytes_text(out, " of IL, ");
	text_add_size(out, process->all.code_bytes);
	bytes_text(out, " of code\n");
	if (process->rejected_count) {
		bytes_text(out, "  R2R          the precompiled code of ");
		text_add_things(out, process->rejected_count, "method", "methods");
		bytes_text(out, " was rejected\n");
	}
	if (process->untimed_count) {
		bytes_text(out, "  no time      ");
		text_add_things(out, process->untimed_count, "method", "methods");
		bytes_text(out, " without the event of its begin; ");
		answer_trace_command(out, answers, report, process->process);
		bytes_text(out, "--clrevents jit --clreventlevel verbose records it\n");
	}
	bytes_text(out, "  steady       ");
	if (process->steady_ns >= answers->to_ns) {
		bytes_text(out, "not before the end of the recording\n");
	} else if (process->all.lasts_ns) {
		bytes_text(out, process->steady_ns ? "since " : "all the time");
		if (process->steady_ns)
			text_add_duration(out, (double)process->steady_ns / 1e9);
		bytes_text(out, ": less than 1 % of the time is in the JIT\n");
	} else {
		bytes_text(out, "not known\n");
	}
	answer_timeline(out, answers, &process->line, answer_time_rate);
}

static void add_tiers(struct bytes *out, const struct compilations_process *process)
{
	bytes_text(out, "\n       time    share  methods        IL      code  tier\n");
	for (uint8_t i = 0; i < COMPILATION_TIERS; i++) {
		const struct compilations_sum *sum = &process->by_tier[i];
		if (!sum->count)
			continue;
		answer_duration_cell(out, 9, sum->lasts_ns);
		answer_share_cell(out, sum->lasts_ns, process->all.lasts_ns);
		answer_count_cell(out, 7, sum->count);
		answer_size_cell(out, 8, sum->il_bytes);
		answer_size_cell(out, 8, sum->code_bytes);
		bytes_printf(out, "  %s\n", tier_words(i));
	}
}

static void add_methods(struct bytes *out, const struct compilations *compilations,
	const struct report *report, const struct compilations_process *process, uint32_t row_count)
{
	uint32_t shown = process->row_count < row_count ? process->row_count : row_count;

	bytes_text(out, "\n       time        at        IL      code  slowest methods\n");
	for (uint32_t i = 0; i < shown; i++) {
		const struct compilation *row = &compilations->rows.items[process->row_at + i];
		answer_duration_cell(out, 9, row->lasts_ns);
		answer_duration_cell(out, 8, row->at_ns);
		answer_size_cell(out, 8, row->il_bytes);
		answer_size_cell(out, 8, row->code_bytes);
		bytes_text(out, "  ");
		if (row->name)
			text_add_safe_z(out, strtab_get(&compilations->names, row->name));
		else
			answer_function(out, report, row->function);
		bytes_printf(out, "  %s%s\n", tier_words(row->tier),
			row->is_rejected ? ", R2R rejected" : "");
	}
	answer_more(out, 9, process->row_count - shown, "more method", "more methods");
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct compilations *compilations = &answers->compilations;
	const struct compilations_process *process = &compilations->processes.items[at];

	add_heading(out, answers, report, process);
	add_tiers(out, process);
	add_methods(out, compilations, report, process, row_count);
	return 0;
}

static void add_json_sum(struct json *j, const struct compilations_sum *sum)
{
	json_u64(j, "method_count", sum->count);
	json_u64(j, "jit_ns", sum->lasts_ns);
	json_u64(j, "il_bytes", sum->il_bytes);
	json_u64(j, "code_bytes", sum->code_bytes);
}

static void add_json_method(struct json *j, const struct compilations *compilations,
	const struct report *report, const struct compilation *row)
{
	const struct function *function = &report->names->functions.items[row->function];

	json_object(j, NULL);
	json_z(j, "name",
		row->name ? strtab_get(&compilations->names, row->name)
			  : trace_text(report->trace, function->name));
	json_z(j, "module", trace_text(report->trace, function->module));
	json_z(j, "tier", tier_words(row->tier));
	json_u64(j, "begin_ns", row->at_ns);
	if (row->is_timed)
		json_u64(j, "jit_ns", row->lasts_ns);
	else
		json_null(j, "jit_ns");
	json_u64(j, "il_bytes", row->il_bytes);
	json_u64(j, "code_bytes", row->code_bytes);
	json_u64(j, "tid", report->trace->threads.items[row->thread].tid);
	json_bool(j, "r2r_rejected", row->is_rejected);
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct compilations *compilations = &answers->compilations;
	const struct compilations_process *process = &compilations->processes.items[at];

	answer_json_process(j, report, process->process);
	add_json_sum(j, &process->all);
	json_u64(j, "untimed_count", process->untimed_count);
	json_u64(j, "r2r_rejected_count", process->rejected_count);
	if (process->all.lasts_ns && process->steady_ns < answers->to_ns)
		json_u64(j, "steady_ns", process->steady_ns);
	else
		json_null(j, "steady_ns");
	answer_json_timeline(j, answers, &process->line);
	json_array(j, "tiers");
	for (uint8_t tier = 0; tier < COMPILATION_TIERS; tier++) {
		if (!process->by_tier[tier].count)
			continue;
		json_object(j, NULL);
		json_z(j, "tier", tier_words(tier));
		add_json_sum(j, &process->by_tier[tier]);
		json_end(j);
	}
	json_end(j);
	json_array(j, "methods");
	for (uint32_t r = 0; r < process->row_count; r++)
		add_json_method(j, compilations, report,
			&compilations->rows.items[process->row_at + r]);
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->compilations.processes.count;
}

const struct answer_report compilations_report = {
	.option = "jit",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no compiled method is in this selection; ",
	.trace = "--clrevents jit --clreventlevel verbose records them\n",
	.add_json = add_json,
};
