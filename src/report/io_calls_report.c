/* See io_calls_report.h. */
#include "report/io_calls_report.h"

#include <string.h>

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"

static const char *const kinds[IO_CALL_KINDS] = {
	[IO_CALL_OTHER] = "other",
	[IO_CALL_READS] = "read",
	[IO_CALL_WRITES] = "write",
	[IO_CALL_OPENS] = "open",
	[IO_CALL_CONNECTS] = "connect",
	[IO_CALL_ACCEPTS] = "accept",
	[IO_CALL_SYNCS] = "sync",
};

/* "file /var/log/x", "descriptor 3" */
static void add_thing(struct bytes *out, const struct io_calls *calls,
	const struct io_calls_row *row)
{
	const char *name = strtab_get(&calls->texts, row->name);
	bool known = row->thing != IO_THING_UNKNOWN;

	if (known)
		bytes_text(out,
			row->thing == IO_THING_OTHER ? "descriptor" : io_thing_name(row->thing));
	if (row->name) {
		bytes_text(out, known ? " " : "");
		text_add_safe_z(out, name);
	} else if (row->descriptor >= 0) {
		bytes_printf(out, "%s %d",
			known && row->thing != IO_THING_OTHER ? ", descriptor"
			: known                               ? ""
							      : "descriptor",
			row->descriptor);
	} else if (!known) {
		bytes_text(out, "(not known)");
	}
	bytes_text(out, "\n");
}

static void add_row(struct bytes *out, const struct io_calls *calls, const struct io_calls_row *row)
{
	answer_count_cell(out, 7, row->sum.count);
	answer_count_cell(out, 6, row->sum.errors);
	answer_size_cell(out, 8, row->sum.bytes);
	answer_count_cell(out, 7, row->sum.small);
	answer_duration_cell(out, 8, row->sum.time_ns);
	answer_duration_cell(out, 8, row->sum.longest_ns);
	bytes_text(out, "  ");
	text_add_safe_z(out, strtab_get(&calls->texts, row->call));
	if (row->last_error && row->last_error < INT32_MAX) {
		bytes_text(out, ": ");
		text_add_safe_z(out, strerror((int)row->last_error));
	}
	bytes_text(out, "\n");
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct io_calls *calls = &answers->io_calls;
	const struct io_calls_process *process = &calls->processes.items[at];
	uint32_t shown = 0;

	answer_head(out, report, process->process);
	text_add_things(out, process->all.count, "call", "calls");
	bytes_text(out, " for input and output in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	bytes_text(out, ", which took ");
	text_add_duration(out, (double)process->all.time_ns / 1e9);
	bytes_text(out, "\n  read ");
	text_add_size(out, process->by_kind[IO_CALL_READS].bytes);
	bytes_text(out, ", wrote ");
	text_add_size(out, process->by_kind[IO_CALL_WRITES].bytes);
	if (process->by_kind[IO_CALL_WRITES].small)
		bytes_printf(out, "; %s of at most 16 bytes",
			TEXT_THINGS(process->by_kind[IO_CALL_WRITES].small, "write", "writes"));
	bytes_text(out, "\n\n    calls  errors      size    small     total   longest\n");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct io_calls_row *row = &calls->rows.items[process->row_at + i];
		bool fresh = !i || !io_calls_is_same_thing(row - 1, row);
		if (fresh && shown++ < row_count)
			add_thing(out, calls, row);
		if (shown <= row_count)
			add_row(out, calls, row);
	}
	answer_more(out, 7, shown > row_count ? shown - row_count : 0, "more file, socket or pipe",
		"more files, sockets and pipes");
	return 0;
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct io_calls *calls = &answers->io_calls;
	const struct io_calls_process *process = &calls->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "call_count", process->all.count);
	json_u64(j, "error_count", process->all.errors);
	json_u64(j, "read_bytes", process->by_kind[IO_CALL_READS].bytes);
	json_u64(j, "written_bytes", process->by_kind[IO_CALL_WRITES].bytes);
	json_u64(j, "total_ns", process->all.time_ns);
	json_array(j, "calls");
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct io_calls_row *row = &calls->rows.items[process->row_at + i];
		json_object(j, NULL);
		json_z(j, "thing", io_thing_name(row->thing));
		json_z(j, "name", strtab_get(&calls->texts, row->name));
		if (row->descriptor >= 0)
			json_u64(j, "descriptor", (uint64_t)row->descriptor);
		json_z(j, "call", strtab_get(&calls->texts, row->call));
		json_z(j, "kind", kinds[row->kind]);
		json_u64(j, "count", row->sum.count);
		json_u64(j, "errors", row->sum.errors);
		json_u64(j, "again", row->sum.again);
		json_u64(j, "last_error", row->last_error);
		json_u64(j, "bytes", row->sum.bytes);
		json_u64(j, "small", row->sum.small);
		json_u64(j, "total_ns", row->sum.time_ns);
		json_u64(j, "longest_ns", row->sum.longest_ns);
		json_u64(j, "longest_at_ns", row->longest_at_ns);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->io_calls.processes.count;
}

const struct answer_report io_calls_report = {
	.option = "io",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.process_max = ANSWER_PROCESSES_MAX,
	.add_process = add_process,
	.none = "no call for input or output is in this selection; spoor record --io counts them\n",
	.add_json = add_json,
};
