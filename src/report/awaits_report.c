/* See awaits_report.h. */
#include "report/awaits_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct awaits *awaits = &answers->awaits;
	const struct tally_process *process = &awaits->tally.processes.items[at];
	struct await_methods methods;
	int error = awaits_methods(awaits, report->names, process, 0, &methods);
	uint32_t count = methods.list.count;

	answer_head(out, report, process->process);
	text_add_things(out, process->count, "await", "awaits");
	bytes_text(out, " of tasks in ");
	text_add_duration(out, (double)answer_observed_ns(answers, process->process) / 1e9);
	bytes_text(out, "\n");
	if (count)
		bytes_text(out,
			"\n     awaits  unended      self     total   longest        at  method that awaits\n");
	else
		bytes_text(out, "  by the methods of the framework only\n");
	for (uint32_t i = 0; i < count && i < row_count; i++) {
		const struct await_method *method = &methods.list.items[i];
		answer_count_cell(out, 9, method->count);
		answer_count_cell(out, 7, method->pending);
		answer_duration_cell(out, 8, method->self_ns);
		answer_duration_cell(out, 8, method->all_ns);
		answer_duration_cell(out, 8, method->longest_ns);
		answer_duration_cell(out, 8, method->longest_at_ns);
		bytes_text(out, "  ");
		answer_function(out, report, method->method);
		bytes_text(out, "\n");
	}
	answer_more(out, 9, count > row_count ? count - row_count : 0, "more method",
		"more methods");
	await_methods_done(&methods);
	return error;
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct awaits *awaits = &answers->awaits;
	const struct tally_process *process = &awaits->tally.processes.items[at];
	struct await_methods methods;
	int error = awaits_methods(awaits, report->names, process, 0, &methods);

	answer_json_process(j, report, process->process);
	json_u64(j, "observed_ns", answer_observed_ns(answers, process->process));
	json_u64(j, "await_count", process->count);
	json_array(j, "methods");
	for (uint32_t i = 0; i < methods.list.count; i++) {
		const struct await_method *method = &methods.list.items[i];
		json_object(j, NULL);
		json_u64(j, "count", method->count);
		json_u64(j, "unfinished_count", method->pending);
		json_u64(j, "self_ns", method->self_ns);
		json_u64(j, "total_ns", method->all_ns);
		json_u64(j, "longest_ns", method->longest_ns);
		json_u64(j, "longest_at_ns", method->longest_at_ns);
		answer_json_stack(j, answers, report, method->stack);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	await_methods_done(&methods);
	return error;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->awaits.tally.processes.count;
}

const struct answer_report awaits_report = {
	.option = "async",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no await is in this selection; spoor record --activities 4000 takes the first ones of each process\n",
	.add_json = add_json,
};
