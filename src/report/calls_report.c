/* See calls_report.h. */
#include "report/calls_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

static const char *target_of(const struct calls *calls, const struct call_row *row)
{
	return row->target ? strtab_get(&calls->targets, row->target) : "(other targets)";
}

/* The stack from which most time of calls to the target was spent; 0: none is known. */
static uint32_t stack_of(const struct calls *calls, const struct call_row *row)
{
	const struct tally *tally = &calls->tally;

	for (uint32_t p = 0; p < tally->processes.count; p++) {
		const struct tally_process *process = &tally->processes.items[p];
		for (uint32_t i = 0; i < process->row_count; i++) {
			const struct tally_key *key =
				&tally->rows.list.items[process->row_at + i].key;
			if (key->process == row->process && key->kind == row->kind &&
				key->text == row->target)
				return key->stack;
		}
	}
	return 0;
}

static uint32_t caller_of(const struct answers *answers, uint32_t stack)
{
	return stack ? answers->stacks.items.items[stack].own : 0;
}

static void add_row(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct call_row *row)
{
	uint32_t caller = caller_of(answers, stack_of(&answers->calls, row));

	answer_count_cell(out, 7, row->durations.count);
	answer_count_cell(out, 6, row->failed);
	answer_count_cell(out, 8, row->unfinished);
	answer_durations_cells(out, &row->durations, row->unfinished_ns);
	bytes_text(out, "\n             ");
	text_add_safe_z(out, target_of(&answers->calls, row));
	if (caller) {
		bytes_text(out, "\n             in ");
		answer_function(out, report, caller);
	}
	bytes_text(out, "\n");
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct calls *calls = &answers->calls;
	const struct calls_process *process = &calls->processes.items[at];
	enum activity_kind kind = ACTIVITY_NONE;
	uint32_t shown = 0;

	answer_head(out, report, process->process);
	text_add_things(out, process->count, "call", "calls");
	bytes_text(out, " over the network in ");
	text_add_duration(out, (double)answer_observed_ns(answers, process->process) / 1e9);
	bytes_text(out, "\n");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct call_row *row = &calls->rows.items[process->row_at + i];
		if (row->kind != kind) {
			answer_more(out, 7, shown > row_count ? shown - row_count : 0,
				"more target", "more targets");
			bytes_printf(out,
				"\n%s\n    ended  failed   unended     total       p50       p99   longest\n",
				call_kind_words(row->kind));
			kind = row->kind;
			shown = 0;
		}
		if (shown++ < row_count)
			add_row(out, answers, report, row);
	}
	answer_more(out, 7, shown > row_count ? shown - row_count : 0, "more target",
		"more targets");
	return 0;
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	static const char *const kinds[ACTIVITY_KINDS] = { [ACTIVITY_HTTP] = "http",
		[ACTIVITY_DNS] = "dns",
		[ACTIVITY_TLS] = "tls",
		[ACTIVITY_CONNECT] = "connect" };
	const struct calls *calls = &answers->calls;
	const struct calls_process *process = &calls->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "observed_ns", answer_observed_ns(answers, process->process));
	json_u64(j, "call_count", process->count);
	json_array(j, "targets");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct call_row *row = &calls->rows.items[process->row_at + i];
		json_object(j, NULL);
		json_z(j, "kind", kinds[row->kind]);
		json_z(j, "target", target_of(calls, row));
		json_u64(j, "count", row->durations.count);
		json_u64(j, "failed", row->failed);
		json_u64(j, "unfinished_count", row->unfinished);
		json_u64(j, "unfinished_ns", row->unfinished_ns);
		answer_json_durations(j, &row->durations);
		answer_json_stack(j, answers, report, stack_of(calls, row));
		json_end(j);
	}
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->calls.processes.count;
}

const struct answer_report calls_report = {
	.option = "http",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no call over the network is in this selection; spoor record --activities 4000 takes them with their stacks, --profile http without\n",
	.add_json = add_json,
};
