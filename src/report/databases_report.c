/* See databases_report.h. */
#include "report/databases_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

#define UNKNOWN_TARGET "(database not known)"

static const char *target_of(const struct databases *databases, const struct database_row *row)
{
	return row->target ? strtab_get(&databases->texts, row->target) : UNKNOWN_TARGET;
}

static const char *statement_of(const struct databases *databases, const struct database_row *row)
{
	return row->statement ? strtab_get(&databases->texts, row->statement)
			      : "(other statements)";
}

/* The stack from which most time of these commands was spent; 0: none is known. */
static uint32_t stack_of(const struct databases *databases, const struct database_row *row)
{
	const struct tally *tally = &databases->tally;

	for (uint32_t p = 0; p < tally->processes.count; p++) {
		const struct tally_process *process = &tally->processes.items[p];
		for (uint32_t i = 0; i < process->row_count; i++) {
			const struct tally_key *key =
				&tally->rows.list.items[process->row_at + i].key;
			if (key->process == row->process && key->kind == row->source &&
				key->text == row->target && key->detail == row->statement)
				return key->stack;
		}
	}
	return 0;
}

static void add_row(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct database_row *row)
{
	uint32_t stack = stack_of(&answers->databases, row);

	answer_count_cell(out, 7, row->durations.count);
	answer_count_cell(out, 6, row->failed);
	answer_count_cell(out, 7, row->unfinished);
	answer_durations_cells(out, &row->durations, row->unfinished_ns);
	bytes_text(out, "\n             ");
	text_add_safe_z(out, statement_of(&answers->databases, row));
	if (stack && answers->stacks.items.items[stack].own) {
		bytes_text(out, "\n             in ");
		answer_function(out, report, answers->stacks.items.items[stack].own);
	}
	bytes_text(out, "\n");
}

static bool is_same_target(const struct database_row *a, const struct database_row *b)
{
	return a->source == b->source && a->target == b->target;
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct databases *databases = &answers->databases;
	const struct databases_process *process = &databases->processes.items[at];
	const struct database_row *before = NULL;
	uint32_t shown = 0;

	answer_head(out, report, process->process);
	text_add_things(out, process->count, "command", "commands");
	bytes_text(out, " to databases in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	bytes_text(out, "\n");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct database_row *row = &databases->rows.items[process->row_at + i];
		if (!before || !is_same_target(before, row)) {
			answer_more(out, 7, shown > row_count ? shown - row_count : 0,
				"more statement", "more statements");
			bytes_text(out, "\n");
			text_add_safe_z(out, target_of(databases, row));
			bytes_printf(out, ", by %s\n", database_source_words(row->source));
			bytes_text(out,
				"    ended  failed  unended     total       p50       p99   longest\n");
			shown = 0;
		}
		before = row;
		if (shown++ < row_count)
			add_row(out, answers, report, row);
	}
	answer_more(out, 7, shown > row_count ? shown - row_count : 0, "more statement",
		"more statements");
	return 0;
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	static const char *const sources[DATABASE_SOURCES] = { [DATABASE_SPANS] = "spans",
		[DATABASE_ENTITY_FRAMEWORK] = "entity_framework",
		[DATABASE_SQL_CLIENT] = "sql_client" };
	const struct databases *databases = &answers->databases;
	const struct databases_process *process = &databases->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "command_count", process->count);
	json_array(j, "commands");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct database_row *row = &databases->rows.items[process->row_at + i];
		json_object(j, NULL);
		json_z(j, "source", sources[row->source]);
		json_z(j, "target", target_of(databases, row));
		json_z(j, "statement", statement_of(databases, row));
		json_u64(j, "count", row->durations.count);
		json_u64(j, "failed", row->failed);
		json_u64(j, "unfinished_count", row->unfinished);
		json_u64(j, "unfinished_ns", row->unfinished_ns);
		answer_json_durations(j, &row->durations);
		answer_json_stack(j, answers, report, stack_of(databases, row));
		json_end(j);
	}
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->databases.processes.count;
}

const struct answer_report databases_report = {
	.option = "db",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no command to a database is in this selection; spoor record --profile db takes those of Entity Framework, SqlClient and drivers with spans, or ",
	.trace = "--profile database\n",
	.add_json = add_json,
};
