/* See waits_report.h. */
#include "report/waits_report.h"

#include <inttypes.h>

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "report/blocks_report.h"
#include "trace/report.h"
#include "trace/trace.h"

/* What the reports of the two kinds of waits differ in. */
struct wait_words {
	const char *one;
	const char *many;
	const char *heading; /* of the last column */
	const char *no_stacks;
	unsigned members; /* of the rows */
};

static const struct wait_words lock_words = {
	"wait for a lock",
	"waits for locks",
	"lock",
	"\nthe events have no stacks, so the waiting methods are not known; spoor record --event-stacks records them\n",
	TALLY_ID | TALLY_KIND | TALLY_PLACE,
};

static const struct wait_words handle_words = {
	"wait",
	"waits",
	"for",
	"\nthe events have no stacks, so the waiting methods are not known; spoor record --event-stacks records them\n",
	TALLY_KIND | TALLY_PLACE,
};

/* The name of a process's thread; "" when it is not known. */
static const char *thread_name(const struct report *report, uint32_t process, uint32_t tid)
{
	const struct trace *trace = report->trace;

	for (uint32_t i = 1; i < trace->threads.count; i++)
		if (trace->threads.items[i].tid == tid &&
			trace->threads.items[i].process == process)
			return trace_text(trace, trace->threads.items[i].name);
	return "";
}

static bool has_other_owners(const struct tally *tally, const struct tally_process *process,
	const struct tally_key *key)
{
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_key *other = &tally->rows.list.items[process->row_at + i].key;
		if (other->id == key->id && other->place == key->place && other->text != key->text)
			return true;
	}
	return false;
}

static void add_owner(struct bytes *out, const struct report *report, const struct tally *tally,
	const struct tally_process *process, const struct tally_key *key)
{
	const char *name = thread_name(report, process->process, key->text);

	if (!key->text)
		return;
	bytes_text(out, ", held by ");
	if (*name) {
		text_add_safe_z(out, name);
		bytes_printf(out, " (%" PRIu32 ")", key->text);
	} else {
		bytes_printf(out, "thread %" PRIu32, key->text);
	}
	if (has_other_owners(tally, process, key))
		bytes_text(out, " and others");
}

static void add_row(struct bytes *out, const struct report *report, const struct tally *tally,
	const struct tally_process *process, const struct tally_row *row)
{
	answer_duration_cell(out, 9, row->amount);
	answer_share_cell(out, row->amount, process->amount);
	answer_count_cell(out, 7, row->count);
	answer_duration_cell(out, 8, row->most);
	bytes_text(out, "  ");
	if (row->key.kind & WAIT_SWITCHED) {
		blocks_report_wait(out, report, row->key.kind >> WAIT_CAUSE_SHIFT, row->key.text);
	} else {
		bytes_text(out, wait_source(row->key.kind));
		if (row->key.id)
			bytes_printf(out, " 0x%" PRIx64, row->key.id);
		add_owner(out, report, tally, process, &row->key);
	}
	if (row->key.kind & WAIT_UNFINISHED)
		bytes_text(out, "; had not ended");
	if (row->key.place) {
		bytes_printf(out, "\n%41sin ", "");
		answer_function(out, report, row->key.place);
	}
	bytes_text(out, "\n");
}

/* What context switches say of the waits, where they were recorded. */
static void add_off_cpu(struct bytes *out, const struct waits *waits,
	const struct tally_process *process)
{
	const struct wait_off_cpu *off = waits_off_cpu(waits, process->process);

	if (waits_are_switched(waits, process)) {
		bytes_text(out,
			"  known by     context switches; it wrote no events of its waits\n");
		return;
	}
	if (!off)
		return;
	bytes_text(out, "  off CPU      ");
	text_add_duration(out, (double)off->blocked_ns / 1e9);
	bytes_text(out, " blocked, then ");
	text_add_duration(out, (double)off->runnable_ns / 1e9);
	bytes_text(out, " woken and without a CPU\n");
}

static void add_thread(struct bytes *out, const struct report *report, uint32_t process,
	uint32_t tid)
{
	const char *name = thread_name(report, process, tid);

	if (*name)
		text_add_safe_z(out, name);
	bytes_printf(out, *name ? " (%" PRIu32 ")" : "thread %" PRIu32, tid);
}

static void add_deadlock(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct deadlocks *deadlocks, uint32_t process,
	uint32_t circle)
{
	const char *label = "  deadlock     ";

	for (uint32_t i = 0; i < deadlocks->waits.count; i++) {
		const struct deadlock_wait *wait = &deadlocks->waits.items[i];
		if (wait->circle != circle || wait->process != process)
			continue;
		bytes_text(out, label);
		add_thread(out, report, process, wait->tid);
		bytes_text(out, " waits since ");
		text_add_duration(out, (double)wait->at_ns / 1e9);
		bytes_printf(out, " for lock 0x%" PRIx64 " of ", wait->lock);
		add_thread(out, report, process, wait->owner);
		if (wait->stack) {
			bytes_text(out, "\n                 in ");
			answer_function(out, report, answers->stacks.items.items[wait->stack].own);
		}
		bytes_text(out, "\n");
		label = "               ";
	}
}

static void add_heading(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct waits *waits, const struct tally_process *process,
	const struct wait_words *words)
{
	const struct tally_row *longest = &waits->tally.rows.list.items[process->row_at];
	uint64_t unfinished = waits_with(waits, process, WAIT_UNFINISHED);

	for (uint32_t i = 1; i < process->row_count; i++) {
		const struct tally_row *row = &waits->tally.rows.list.items[process->row_at + i];
		if (row->most > longest->most)
			longest = row;
	}
	answer_head(out, report, process->process);
	text_add_things(out, process->count, words->one, words->many);
	bytes_text(out, " in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	bytes_text(out, ", together ");
	text_add_duration(out, (double)process->amount / 1e9);
	bytes_text(out, "\n  longest      ");
	text_add_duration(out, (double)longest->most / 1e9);
	bytes_text(out, " at ");
	text_add_duration(out, (double)longest->most_at_ns / 1e9);
	bytes_text(out, "\n");
	if (unfinished) {
		bytes_text(out, "  not ended    ");
		text_add_things(out, unfinished, words->one, words->many);
		bytes_text(out, " at the end of the recording\n");
	}
	for (uint32_t i = 1; i <= waits->deadlocks.circles; i++)
		add_deadlock(out, answers, report, &waits->deadlocks, process->process, i);
	add_off_cpu(out, waits, process);
	if (!waits_are_switched(waits, process))
		answer_timeline(out, answers, &process->line, answer_time_rate);
	bytes_printf(out, "\n     waited    share    waits   longest  %s\n", words->heading);
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct waits *waits, const struct wait_words *words,
	uint32_t at, uint32_t row_count)
{
	const struct tally_process *process = &waits->tally.processes.items[at];
	struct tally_rows rows;
	/* there the text is what waits, not an owner */
	unsigned text = waits_are_switched(waits, process) ? TALLY_TEXT : 0;
	int error = tally_group(&waits->tally, process, words->members | text, &rows);
	uint32_t shown = rows.list.count < row_count ? rows.list.count : row_count;

	add_heading(out, answers, report, waits, process, words);
	for (uint32_t i = 0; i < shown; i++)
		add_row(out, report, &waits->tally, process, &rows.list.items[i]);
	answer_more(out, 9, rows.list.count - shown, "more row", "more rows");
	if (!answer_has_stacks(answers, process))
		bytes_text(out, words->no_stacks);
	tally_rows_done(&rows);
	return error;
}

static void add_json_lock(struct json *j, const struct tally_key *key)
{
	char text[24];

	if (!key->id) {
		json_null(j, "lock");
		return;
	}
	text_set(text, "0x%" PRIx64, key->id);
	json_z(j, "lock", text);
}

static void add_json_amounts(struct json *j, const struct tally_row *row)
{
	json_u64(j, "count", row->count);
	json_u64(j, "waited_ns", row->amount);
	json_u64(j, "longest_ns", row->most);
	json_u64(j, "longest_at_ns", row->most_at_ns);
}

static void add_json_wait(struct json *j, const struct answers *answers,
	const struct report *report, const struct tally_process *process,
	const struct tally_row *row)
{
	json_object(j, NULL);
	bool is_switched = row->key.kind & WAIT_SWITCHED;

	json_z(j, "kind",
		is_switched
			? block_cause_words((enum block_cause)(row->key.kind >> WAIT_CAUSE_SHIFT))
			: wait_source(row->key.kind));
	add_json_lock(j, &row->key);
	if (row->key.text && !is_switched) {
		json_u64(j, "owner_tid", row->key.text);
		json_z(j, "owner_name", thread_name(report, process->process, row->key.text));
	} else {
		json_null(j, "owner_tid");
		json_null(j, "owner_name");
	}
	if (is_switched)
		json_null(j, "finished");
	else
		json_bool(j, "finished", !(row->key.kind & WAIT_UNFINISHED));
	add_json_amounts(j, row);
	answer_json_stack(j, answers, report, row->key.stack);
	json_end(j);
}

/* A list of circles, each a list of waits. */
static void add_json_deadlocks(struct json *j, const struct answers *answers,
	const struct report *report, uint32_t process)
{
	const struct deadlocks *deadlocks = &answers->locks.deadlocks;

	json_array(j, "deadlocks");
	for (uint32_t circle = 1; circle <= deadlocks->circles; circle++) {
		bool is_open = false;
		for (uint32_t i = 0; i < deadlocks->waits.count; i++) {
			const struct deadlock_wait *wait = &deadlocks->waits.items[i];
			const struct tally_key key = { .id = wait->lock };
			if (wait->circle != circle || wait->process != process)
				continue;
			if (!is_open)
				json_array(j, NULL);
			is_open = true;
			json_object(j, NULL);
			json_u64(j, "tid", wait->tid);
			json_u64(j, "owner_tid", wait->owner);
			add_json_lock(j, &key);
			json_u64(j, "begin_ns", wait->at_ns);
			answer_json_stack(j, answers, report, wait->stack);
			json_end(j);
		}
		if (is_open)
			json_end(j);
	}
	json_end(j);
}

static void add_json_members(struct json *j, const struct answers *answers,
	const struct report *report, const struct waits *waits, const struct tally_process *process,
	const struct tally_rows *locks)
{
	const struct wait_off_cpu *off = waits_off_cpu(waits, process->process);

	answer_json_process(j, report, process->process);
	json_u64(j, "wait_count", process->count);
	json_u64(j, "waited_ns", process->amount);
	json_u64(j, "unfinished_count", waits_with(waits, process, WAIT_UNFINISHED));
	json_u64(j, "incomplete_count", waits_with(waits, process, WAIT_UNKNOWN));
	json_z(j, "known_by", waits_are_switched(waits, process) ? "switches" : "events");
	if (off && !waits_are_switched(waits, process)) {
		json_u64(j, "blocked_ns", off->blocked_ns);
		json_u64(j, "runnable_ns", off->runnable_ns);
	}
	if (!waits_are_switched(waits, process))
		answer_json_timeline(j, answers, &process->line);
	if (waits == &answers->locks)
		json_array(j, "locks");
	for (uint32_t i = 0; i < locks->list.count; i++) {
		json_object(j, NULL);
		add_json_lock(j, &locks->list.items[i].key);
		add_json_amounts(j, &locks->list.items[i]);
		json_end(j);
	}
	if (waits == &answers->locks) {
		json_end(j);
		add_json_deadlocks(j, answers, report, process->process);
	}
	json_array(j, "waits");
	for (uint32_t i = 0; i < process->row_count; i++)
		add_json_wait(j, answers, report, process,
			&waits->tally.rows.list.items[process->row_at + i]);
	json_end(j);
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	const struct waits *waits, uint32_t at)
{
	const struct tally_process *process = &waits->tally.processes.items[at];
	struct tally_rows locks = { 0 };
	int error = waits == &answers->locks ? tally_group(&waits->tally, process, TALLY_ID, &locks)
					     : 0;

	add_json_members(j, answers, report, waits, process, &locks);
	tally_rows_done(&locks);
	return error;
}

static uint32_t lock_process_count(const struct answers *answers)
{
	return answers->locks.tally.processes.count;
}

static int add_lock_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	return add_process(out, answers, report, &answers->locks, &lock_words, at, row_count);
}

static int add_lock_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	return add_json(j, answers, report, &answers->locks, at);
}

const struct answer_report locks_report = {
	.option = "locks",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = lock_process_count,
	.add_process = add_lock_process,
	.none = "no wait for a lock is in this selection; spoor record takes them unless --no-events is given, and their stacks with --event-stacks; those of all programs with --profile thread-time\n",
	.add_json = add_lock_json,
};

static uint32_t handle_process_count(const struct answers *answers)
{
	return answers->handles.tally.processes.count;
}

static int add_handle_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	return add_process(out, answers, report, &answers->handles, &handle_words, at, row_count);
}

static int add_handle_json(struct json *j, const struct answers *answers,
	const struct report *report, uint32_t at)
{
	return add_json(j, answers, report, &answers->handles, at);
}

const struct answer_report waits_report = {
	.option = "waits",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = handle_process_count,
	.add_process = add_handle_process,
	.none = "no wait for a handle is in this selection; spoor record --event-stacks records those of .NET 9 and later, --profile thread-time those of all programs\n",
	.add_json = add_handle_json,
};
