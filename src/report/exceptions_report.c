/* See exceptions_report.h. */
#include "report/exceptions_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

/* The most frequent message of a type and method, 0: none is known; and whether there are others. */
static uint32_t find_message(const struct tally *tally, const struct tally_process *process,
	const struct tally_key *key, bool *ret_others)
{
	uint32_t message = 0;

	*ret_others = false;
	for (uint32_t i = 0; i < process->row_count && !*ret_others; i++) {
		const struct tally_key *row = &tally->rows.list.items[process->row_at + i].key;
		if (row->text != key->text || row->place != key->place ||
			row->kind == EXCEPTION_ONLY_COUNTED)
			continue;
		*ret_others = message && row->detail != message;
		message = message ? message : row->detail;
	}
	return message;
}

static void begin_detail(struct bytes *out, const char *text)
{
	bytes_printf(out, "\n%22s%s", "", text);
}

static void add_row(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct tally_process *process, const struct tally_row *row)
{
	const struct exceptions *exceptions = &answers->exceptions;
	bool others;
	const char *message = event_texts_get(&exceptions->messages,
		find_message(&exceptions->tally, process, &row->key, &others));

	answer_count_cell(out, 9, row->count);
	answer_share_cell(out, row->count, process->count);
	bytes_text(out, "  ");
	text_add_safe_z(out, event_texts_get(&exceptions->types, row->key.text));
	if (*message) {
		begin_detail(out, "");
		text_add_safe_z(out, message);
		if (others)
			bytes_text(out, " (and other messages)");
	}
	if (row->key.place) {
		begin_detail(out, "in ");
		answer_function(out, report, row->key.place);
	}
	bytes_text(out, "\n");
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct tally_process *process = &answers->exceptions.tally.processes.items[at];
	struct tally_rows rows;
	int error =
		tally_group(&answers->exceptions.tally, process, TALLY_TEXT | TALLY_PLACE, &rows);
	uint32_t shown = rows.list.count < row_count ? rows.list.count : row_count;
	uint64_t only_counted = exceptions_only_counted(&answers->exceptions, process);

	answer_head(out, report, process->process);
	bytes_printf(out, "%s in %s, ", TEXT_THINGS(process->count, "exception", "exceptions"),
		TEXT_DURATION((double)answers->span_ns / 1e9));
	answer_rate(out, process->count, answers->span_ns);
	bytes_text(out, " a second\n");
	answer_timeline(out, answers, &process->line, NULL);
	if (only_counted) {
		bytes_text(out, "  only counted ");
		text_add_count(out, only_counted);
		bytes_text(out,
			" of them, above the rate of spoor record --event-rate: their messages are not known\n");
	}
	bytes_text(out, "\n      count    share  exception\n");
	for (uint32_t i = 0; i < shown; i++)
		add_row(out, answers, report, process, &rows.list.items[i]);
	answer_more(out, 9, rows.list.count - shown, "more type and method",
		"more types and methods");
	if (!answer_has_stacks(answers, process))
		bytes_text(out,
			"\nthe events have no stacks, so the throwing methods are not known; spoor record --event-stacks records them\n");
	tally_rows_done(&rows);
	return error;
}

static void add_json_members(struct json *j, const struct answers *answers,
	const struct report *report, const struct tally_process *process,
	const struct tally_rows *types)
{
	const struct exceptions *exceptions = &answers->exceptions;

	answer_json_process(j, report, process->process);
	json_u64(j, "exception_count", process->count);
	json_u64(j, "only_counted", exceptions_only_counted(exceptions, process));
	answer_json_timeline(j, answers, &process->line);
	json_array(j, "types");
	for (uint32_t i = 0; i < types->list.count; i++) {
		const struct tally_row *row = &types->list.items[i];
		json_object(j, NULL);
		json_z(j, "type", event_texts_get(&exceptions->types, row->key.text));
		json_u64(j, "count", row->count);
		json_end(j);
	}
	json_end(j);
	json_array(j, "exceptions");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *row =
			&exceptions->tally.rows.list.items[process->row_at + i];
		json_object(j, NULL);
		json_z(j, "type", event_texts_get(&exceptions->types, row->key.text));
		json_z(j, "message", event_texts_get(&exceptions->messages, row->key.detail));
		json_u64(j, "count", row->count);
		json_u64(j, "first_ns", row->first_ns);
		json_u64(j, "last_ns", row->last_ns);
		answer_json_stack(j, answers, report, row->key.stack);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct tally_process *process = &answers->exceptions.tally.processes.items[at];
	struct tally_rows types;
	int error = tally_group(&answers->exceptions.tally, process, TALLY_TEXT, &types);

	add_json_members(j, answers, report, process, &types);
	tally_rows_done(&types);
	return error;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->exceptions.tally.processes.count;
}

const struct answer_report exceptions_report = {
	.option = "exceptions",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no exception is in this selection; spoor record takes them unless --no-events is given, and their stacks with --event-stacks\n",
	.add_json = add_json,
};
