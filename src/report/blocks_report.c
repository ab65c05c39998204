/* See blocks_report.h. */
#include "report/blocks_report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NS_PER_S 1e9
/* rows of the list of the longest blocks */
#define LONGEST_ROWS 5u

static void begin_detail(struct bytes *out, const char *text)
{
	bytes_printf(out, "\n%42s%s", "", text);
}

/* "Monitor.Enter": the name that a person gives to a function that waits. */
static void add_short_name(struct bytes *out, const struct report *report, uint32_t index)
{
	const struct function *function = &report->names->functions.items[index];
	const char *name = trace_text(report->trace, function->full_name);
	struct name_parts parts;

	label_split(name, strlen(name), function->kind, &parts);
	text_add_safe(out, name + parts.type_at, parts.head_len - parts.type_at);
}

void blocks_report_wait(struct bytes *out, const struct report *report, uint32_t cause,
	uint32_t function)
{
	bytes_text(out, block_cause_words((enum block_cause)cause));
	if (!function)
		return;
	bytes_text(out, ": ");
	add_short_name(out, report, function);
}

static void add_wait(struct bytes *out, const struct report *report, const struct tally_key *key)
{
	blocks_report_wait(out, report, key->kind, key->text);
}

static void add_waker(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct tally_key *key)
{
	const struct block_waker *waker = &answers->blocks.wakers.items[key->detail - 1];
	const struct thread *thread = &report->trace->threads.items[waker->thread];
	uint32_t where = waker->stack ? answers->blocks.places.items[waker->stack].where : 0;

	if (thread->process != key->process) {
		label_process(out, report->trace, thread->process);
		bytes_text(out, ", ");
	}
	answer_thread(out, report, waker->thread);
	if (!where)
		return;
	bytes_text(out, " in ");
	answer_function(out, report, where);
}

static void add_row(struct bytes *out, const struct answers *answers, const struct report *report,
	const struct tally_process *process, const struct tally_row *row)
{
	answer_duration_cell(out, 8, row->amount);
	answer_share_cell(out, row->amount, process->amount);
	answer_count_cell(out, 7, row->count);
	if (row->most)
		answer_duration_cell(out, 8, row->most);
	else
		bytes_printf(out, "%10s", "-");
	bytes_text(out, "  ");
	add_wait(out, report, &row->key);
	if (row->key.place) {
		begin_detail(out, "in ");
		answer_function(out, report, row->key.place);
	}
	if (row->key.detail) {
		begin_detail(out, "woken by ");
		add_waker(out, answers, report, &row->key);
	}
	bytes_text(out, "\n");
}

static int compare_longest(const void *a, const void *b)
{
	const struct tally_row *x = a;
	const struct tally_row *y = b;

	return x->most > y->most ? -1 : x->most < y->most;
}

/* The longest block of each stack and thread. */
static void add_longest(struct bytes *out, const struct report *report, struct tally_rows *rows)
{
	qsort(rows->list.items, rows->list.count, sizeof(rows->list.items[0]), compare_longest);
	bytes_text(out, "\n  longest        at  thread\n");
	for (uint32_t i = 0; i < rows->list.count && i < LONGEST_ROWS; i++) {
		const struct tally_row *row = &rows->list.items[i];
		if (!row->most)
			break;
		answer_duration_cell(out, 7, row->most);
		answer_duration_cell(out, 8, row->most_at_ns);
		bytes_text(out, "  ");
		answer_thread(out, report, (uint32_t)row->key.id);
		bytes_text(out, ", ");
		add_wait(out, report, &row->key);
		if (row->key.place) {
			bytes_text(out, " in ");
			answer_function(out, report, row->key.place);
		}
		bytes_text(out, "\n");
	}
}

static bool is_busy(const void *context, const struct tally_row *row)
{
	return !blocks_is_idle(context, &row->key);
}

/* The process's rows without those of idle threads. */
static int group_busy(const struct answers *answers, const struct tally_process *process,
	unsigned members, struct tally_rows *ret_rows)
{
	return tally_group_some(&answers->blocks.blocked, process, members, is_busy,
		&answers->blocks, ret_rows);
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct tally_process *process = &answers->blocks.blocked.processes.items[at];
	struct tally_rows rows;
	struct tally_rows single;
	int error = group_busy(answers, process, TALLY_KIND | TALLY_TEXT | TALLY_PLACE, &rows);
	uint32_t shown = rows.list.count < row_count ? rows.list.count : row_count;
	uint64_t idle_ns = process->amount;

	for (uint32_t i = 0; i < rows.list.count; i++)
		idle_ns -= rows.list.items[i].amount;
	answer_head(out, report, process->process);
	bytes_printf(out, "blocked for %s in %s", TEXT_DURATION((double)process->amount / NS_PER_S),
		TEXT_THINGS(process->count, "wait", "waits"));
	if (idle_ns)
		bytes_printf(out, ", of which %s are of idle threads",
			TEXT_DURATION((double)idle_ns / NS_PER_S));
	bytes_text(out, "\n\n   blocked    share    waits   longest  for\n");
	for (uint32_t i = 0; i < shown; i++)
		add_row(out, answers, report, process, &rows.list.items[i]);
	answer_more(out, 8, rows.list.count - shown, "more wait", "more waits");
	tally_rows_done(&rows);
	if (!error)
		error = group_busy(answers, process, TALLY_ID | TALLY_STACK, &single);
	else
		return error;
	add_longest(out, report, &single);
	tally_rows_done(&single);
	return error;
}

static void add_json_waker(struct json *j, const struct answers *answers,
	const struct report *report, const struct tally_key *key)
{
	if (!key->detail) {
		json_null(j, "woken_by");
		return;
	}
	const struct block_waker *waker = &answers->blocks.wakers.items[key->detail - 1];
	const struct thread *thread = &report->trace->threads.items[waker->thread];
	const struct process *process = &report->trace->processes.items[thread->process];

	json_object(j, "woken_by");
	json_u64(j, "pid", process->pid);
	json_u64(j, "tid", thread->tid);
	json_z(j, "process", trace_text(report->trace, process->name));
	json_z(j, "thread", trace_text(report->trace, thread->name));
	answer_json_stack(j, answers, report, waker->stack);
	json_end(j);
}

static void add_json_name(struct json *j, const char *name, const struct report *report,
	uint32_t function)
{
	struct bytes text = { 0 };

	if (function) {
		add_short_name(&text, report, function);
		json_z(j, name, bytes_z(&text));
	} else {
		json_null(j, name);
	}
	bytes_done(&text);
}

static void add_json_row(struct json *j, const struct answers *answers, const struct report *report,
	const struct tally_row *row)
{
	const struct thread *thread = &report->trace->threads.items[row->key.id];
	const struct function *functions = report->names->functions.items;

	json_object(j, NULL);
	json_u64(j, "tid", thread->tid);
	json_z(j, "thread", trace_text(report->trace, thread->name));
	json_z(j, "cause", block_cause_words((enum block_cause)row->key.kind));
	add_json_name(j, "waits_for", report, row->key.text);
	if (row->key.place)
		json_z(j, "where", trace_text(report->trace, functions[row->key.place].name));
	else
		json_null(j, "where");
	json_bool(j, "idle", blocks_is_idle(&answers->blocks, &row->key));
	json_u64(j, "count", row->count);
	json_u64(j, "blocked_ns", row->amount);
	json_u64(j, "longest_ns", row->most);
	json_u64(j, "longest_at_ns", row->most_at_ns);
	add_json_waker(j, answers, report, &row->key);
	answer_json_stack(j, answers, report, row->key.stack);
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct tally *tally = &answers->blocks.blocked;
	const struct tally_process *process = &tally->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "blocked_ns", process->amount);
	json_u64(j, "wait_count", process->count);
	json_array(j, "waits");
	for (uint32_t r = 0; r < process->row_count; r++)
		add_json_row(j, answers, report, &tally->rows.list.items[process->row_at + r]);
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->blocks.blocked.processes.count;
}

static uint32_t busy_count(const struct answers *answers)
{
	return answers->blocks.busy_count;
}

static bool has_unknown_wakings(const struct answers *answers)
{
	return answers->blocks.without_waker > 0;
}

static void add_json_end(struct json *j, const struct answers *answers, const struct report *report)
{
	(void)report;
	json_u64(j, "without_waker", answers->blocks.without_waker);
}

const struct answer_report blocks_report = {
	.option = "off-cpu",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.process_max = ANSWER_PROCESSES_MAX,
	.shown_count = busy_count,
	.add_process = add_process,
	.add_json = add_json,
	.add_json_end = add_json_end,
	.lacks_wakings = has_unknown_wakings,
};
