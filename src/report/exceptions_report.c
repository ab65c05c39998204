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
			row->kind != EXCEPTION_WRITTEN)
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
	const char *type = event_texts_get(&exceptions->types, row->key.text);
	text_add_safe_z(out, *type ? type : "(type not known)");
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

/* Where the numbers of those that are not in the file come from. */
static void add_not_written(struct bytes *out, const struct exceptions *exceptions,
	const struct tally_process *process)
{
	static const struct {
		enum exception_kind kind;
		const char *before;
		const char *after;
	} lines[] = {
		{ EXCEPTION_ONLY_COUNTED, "  only counted ",
			" of them, above the rate of spoor record --event-rate: their messages are not known\n" },
		{ EXCEPTION_UNSEEN, "  not observed ",
			" of them, above that rate: the runtime's counter exception-count has their number\n" },
		{ EXCEPTION_ESTIMATED, "  estimated ",
			" of them, by the rate before: the counter has no value for their time\n" },
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		uint64_t count = exceptions_of_kind(exceptions, process, lines[i].kind);
		if (!count)
			continue;
		bytes_text(out, lines[i].before);
		text_add_count(out, count);
		bytes_text(out, lines[i].after);
	}
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct tally_process *process = &answers->exceptions.tally.processes.items[at];
	struct tally_rows rows;
	int error =
		tally_group(&answers->exceptions.tally, process, TALLY_TEXT | TALLY_PLACE, &rows);
	uint32_t shown = rows.list.count < row_count ? rows.list.count : row_count;

	answer_head(out, report, process->process);
	bytes_printf(out, "%s in %s, ", TEXT_THINGS(process->count, "exception", "exceptions"),
		TEXT_DURATION((double)answers->span_ns / 1e9));
	answer_rate(out, process->count, answers->span_ns);
	bytes_text(out, " a second\n");
	answer_timeline(out, answers, &process->line, NULL);
	add_not_written(out, &answers->exceptions, process);
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
	json_u64(j, "only_counted",
		exceptions_of_kind(exceptions, process, EXCEPTION_ONLY_COUNTED));
	json_u64(j, "not_observed", exceptions_of_kind(exceptions, process, EXCEPTION_UNSEEN));
	json_u64(j, "estimated", exceptions_of_kind(exceptions, process, EXCEPTION_ESTIMATED));
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
