/* See allocations_report.h. */
#include "report/allocations_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

static void add_size_rate(struct bytes *out, uint64_t amount, uint64_t span_ns)
{
	double rate = span_ns ? (double)amount * 1e9 / (double)span_ns : 0;

	text_add_size(out, rate < (double)INT64_MAX ? (uint64_t)rate : INT64_MAX);
}

static void add_heading(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct tally_process *process)
{
	const struct allocations *allocations = &answers->allocations;
	bool is_sampled = allocations_are_sampled(allocations, process);

	answer_head(out, report, process->process);
	text_add_size(out, process->amount);
	bytes_text(out, " allocated in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	bytes_text(out, ", ");
	add_size_rate(out, process->amount, answers->span_ns);
	bytes_text(out, " a second\n  estimated    from ");
	if (is_sampled)
		text_add_things(out, process->count, "sampled object, weighted by its probability",
			"sampled objects, each weighted by its probability");
	else
		text_add_things(out, process->count, "tick of about 100 kB",
			"ticks of about 100 kB");
	double observed = allocations_observed(allocations, process->process);
	if (observed < 1)
		bytes_printf(out,
			"\n  observed     in %.1f %% of the time, as there were too many; scaled to the whole of it",
			100 * observed);
	bytes_text(out, "\n  kinds        small objects ");
	text_add_size(out, allocations_of_kind(allocations, process, ALLOCATION_SMALL));
	bytes_text(out, ", large ");
	text_add_size(out, allocations_of_kind(allocations, process, ALLOCATION_LARGE));
	bytes_text(out, ", pinned ");
	text_add_size(out, allocations_of_kind(allocations, process, ALLOCATION_PINNED));
	bytes_text(out, "\n");
	answer_timeline(out, answers, &process->line, add_size_rate);
	bytes_text(out, "\n      bytes    share  type\n");
}

static void add_row(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct tally_process *process, const struct tally_row *row)
{
	const char *type = event_texts_get(&answers->allocations.types, row->key.text);
	uint32_t kind = row->key.kind & ~ALLOCATION_IS_SAMPLED;

	answer_size_cell(out, 9, row->amount);
	answer_share_cell(out, row->amount, process->amount);
	bytes_text(out, "  ");
	text_add_safe_z(out, *type ? type : "(type not known)");
	if (kind != ALLOCATION_SMALL)
		bytes_printf(out, " (%s objects)", allocation_kind(kind));
	if (row->key.place) {
		bytes_printf(out, "\n%22sin ", "");
		answer_function(out, report, row->key.place);
	}
	bytes_text(out, "\n");
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct tally_process *process = &answers->allocations.tally.processes.items[at];
	struct tally_rows rows;
	int error = tally_group(&answers->allocations.tally, process,
		TALLY_TEXT | TALLY_KIND | TALLY_PLACE, &rows);
	uint32_t shown = rows.list.count < row_count ? rows.list.count : row_count;

	add_heading(out, answers, report, process);
	for (uint32_t i = 0; i < shown; i++)
		add_row(out, answers, report, process, &rows.list.items[i]);
	answer_more(out, 9, rows.list.count - shown, "more type and method",
		"more types and methods");
	if (!answer_has_stacks(answers, process))
		bytes_text(out,
			"\nthe events have no stacks, so the allocating methods are not known; spoor record --event-stacks records them\n");
	tally_rows_done(&rows);
	return error;
}

static void add_json_rows(struct json *j, const struct answers *answers,
	const struct report *report, const struct tally_process *process)
{
	const struct allocations *allocations = &answers->allocations;

	json_array(j, "allocations");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *row =
			&allocations->tally.rows.list.items[process->row_at + i];
		json_object(j, NULL);
		json_z(j, "type", event_texts_get(&allocations->types, row->key.text));
		json_z(j, "kind", allocation_kind(row->key.kind));
		json_u64(j, "bytes", row->amount);
		json_u64(j, "events", row->count);
		answer_json_stack(j, answers, report, row->key.stack);
		json_end(j);
	}
	json_end(j);
}

static void add_json_members(struct json *j, const struct answers *answers,
	const struct report *report, const struct tally_process *process,
	const struct tally_rows *types)
{
	const struct allocations *allocations = &answers->allocations;

	answer_json_process(j, report, process->process);
	json_u64(j, "allocated_bytes", process->amount);
	json_u64(j, "small_bytes", allocations_of_kind(allocations, process, ALLOCATION_SMALL));
	json_u64(j, "large_bytes", allocations_of_kind(allocations, process, ALLOCATION_LARGE));
	json_u64(j, "pinned_bytes", allocations_of_kind(allocations, process, ALLOCATION_PINNED));
	json_u64(j, "events", process->count);
	json_f64(j, "observed_share", allocations_observed(allocations, process->process));
	json_z(j, "source", allocations_are_sampled(allocations, process) ? "samples" : "ticks");
	answer_json_timeline(j, answers, &process->line);
	json_array(j, "types");
	for (uint32_t i = 0; i < types->list.count; i++) {
		const struct tally_row *row = &types->list.items[i];
		json_object(j, NULL);
		json_z(j, "type", event_texts_get(&allocations->types, row->key.text));
		json_z(j, "kind", allocation_kind(row->key.kind));
		json_u64(j, "bytes", row->amount);
		json_u64(j, "events", row->count);
		json_end(j);
	}
	json_end(j);
	add_json_rows(j, answers, report, process);
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct tally *tally = &answers->allocations.tally;
	struct tally_rows types;
	int error =
		tally_group(tally, &tally->processes.items[at], TALLY_TEXT | TALLY_KIND, &types);

	add_json_members(j, answers, report, &tally->processes.items[at], &types);
	tally_rows_done(&types);
	return error;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->allocations.tally.processes.count;
}

const struct answer_report allocations_report = {
	.option = "alloc",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no sample of an allocation is in this selection; spoor record --event-stacks records them\n",
	.add_json = add_json,
};
