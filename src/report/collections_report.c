/* See collections_report.h. Times of rows count from the begin of the recording. */
#include "report/collections_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/sparkline.h"
#include "trace/report.h"
#include "trace/trace.h"

#define TRIGGERS_SHOWN 3u
#define LEVELS         32u /* intervals of the heap over time */

static const char *const part_words[COLLECTION_HEAPS] = { "gen 0", "gen 1", "gen 2", "large",
	"pinned" };

static void add_known_size_cell(struct bytes *out, uint64_t size_bytes, bool is_known)
{
	if (is_known)
		answer_size_cell(out, 8, size_bytes);
	else
		bytes_text(out, "         -");
}

static double share_of_time(const struct collections *collections, uint64_t time_ns)
{
	return collections->span_ns ? (double)time_ns / (double)collections->span_ns : 0;
}

static uint64_t since_begin(const struct report *report, uint64_t time_ns)
{
	return time_ns > report->begin_ns ? time_ns - report->begin_ns : 0;
}

/* "small objects 84, induced 6", most first; at most all reasons once. */
static void add_reasons(struct bytes *out, const struct collections_process *process)
{
	bool shown[COLLECTION_REASONS] = { false };
	const char *separator = "";

	for (;;) {
		uint32_t most = COLLECTION_REASONS;
		for (uint32_t i = 0; i < COLLECTION_REASONS; i++)
			if (!shown[i] && process->by_reason[i] &&
				(most == COLLECTION_REASONS ||
					process->by_reason[i] > process->by_reason[most]))
				most = i;
		if (most == COLLECTION_REASONS)
			return;
		shown[most] = true;
		bytes_printf(out, "%s%s ", separator, collection_reason(most));
		text_add_count(out, process->by_reason[most]);
		separator = "; ";
	}
}

static const struct tally_process *triggers_of(const struct collections *collections,
	uint32_t process)
{
	const struct tally *triggers = &collections->triggers;

	for (uint32_t i = 0; i < triggers->processes.count; i++)
		if (triggers->processes.items[i].process == process)
			return &triggers->processes.items[i];
	return NULL;
}

/* Methods that induced collections, most first. Without memory there are none. */
static void add_triggers(struct bytes *out, const struct collections *collections,
	const struct report *report, uint32_t process)
{
	const struct tally_process *triggers = triggers_of(collections, process);
	struct tally_rows rows;
	uint32_t shown = 0;

	if (!triggers)
		return;
	if (tally_group(&collections->triggers, triggers, TALLY_KIND | TALLY_PLACE, &rows) == 0)
		for (uint32_t i = 0; i < rows.list.count && shown < TRIGGERS_SHOWN; i++) {
			const struct tally_key *key = &rows.list.items[i].key;
			if (!key->place || !collection_is_induced(key->kind))
				continue;
			bytes_text(out, shown++ ? "\n               " : "\n  induced by   ");
			answer_function(out, report, key->place);
			bytes_text(out, ": ");
			text_add_count(out, rows.list.items[i].count);
		}
	tally_rows_done(&rows);
}

/* The parts of the heap at the ends of equal intervals. */
static void add_levels(struct bytes *out, const struct collections *collections, uint64_t from_ns,
	const struct collections_process *process)
{
	uint64_t levels[LEVELS];

	for (uint32_t part = 0; part < COLLECTION_HEAPS; part++) {
		uint64_t most = 0;
		collections_levels(collections, process, part, from_ns, LEVELS, levels);
		for (uint32_t i = 0; i < LEVELS; i++)
			most = levels[i] > most ? levels[i] : most;
		if (!most)
			continue;
		bytes_printf(out, "\n  %-13s", part_words[part]);
		sparkline_add(out, levels, LEVELS);
		bytes_text(out, "  ");
		text_add_size(out, levels[LEVELS - 1]);
		if (most > levels[LEVELS - 1]) {
			bytes_text(out, ", most ");
			text_add_size(out, most);
		}
	}
}

static void add_cpu(struct bytes *out, const struct answers *answers, uint32_t process)
{
	const struct collector_cpu_process *cpu =
		collector_cpu_of(&answers->collector_cpu, process);
	uint64_t collector_ns = cpu ? cpu->pauses_ns + cpu->threads_ns : 0;

	if (!cpu)
		return;
	bytes_text(out, "\n  CPU          ");
	text_add_duration(out, (double)collector_ns / 1e9);
	bytes_printf(out,
		" (%.1f %% of the process's): ", 100 * (double)collector_ns / (double)cpu->all_ns);
	text_add_duration(out, (double)cpu->pauses_ns / 1e9);
	bytes_text(out, " in pauses, ");
	text_add_duration(out, (double)cpu->threads_ns / 1e9);
	bytes_text(out, " beside the program");
}

static void add_summary(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct collections_process *process)
{
	const struct collections *collections = &answers->collections;
	const struct collection *longest = &collections->rows.items[process->longest];

	answer_head(out, report, process->process);
	text_add_things(out, process->row_count, "collection", "collections");
	bytes_text(out, " in ");
	text_add_duration(out, (double)collections->span_ns / 1e9);
	bytes_text(out, ", paused for ");
	text_add_duration(out, (double)process->pause_ns / 1e9);
	bytes_printf(out, " (%.1f %%)\n", 100 * share_of_time(collections, process->pause_ns));

	bytes_text(out, "  pauses       median ");
	text_add_duration(out, (double)process->pause_median_ns / 1e9);
	bytes_text(out, ", 95 % ");
	text_add_duration(out, (double)process->pause_p95_ns / 1e9);
	bytes_text(out, ", 99 % ");
	text_add_duration(out, (double)process->pause_p99_ns / 1e9);
	bytes_text(out, ", longest ");
	text_add_duration(out, (double)longest->pause_ns / 1e9);
	bytes_text(out, " at ");
	text_add_duration(out, (double)since_begin(report, longest->begin_ns) / 1e9);
	bytes_text(out, "\n  generations ");
	for (uint32_t i = 0; i < COLLECTION_GENERATIONS; i++) {
		bytes_printf(out, "%s gen %" PRIu32 ": ", i ? "," : "", i);
		text_add_count(out, process->by_generation[i]);
		if (process->by_generation[i]) {
			bytes_text(out, " (");
			answer_rate(out, process->by_generation[i], collections->span_ns);
			bytes_text(out, "/s)");
		}
	}
	if (process->background_count) {
		bytes_text(out, "; in the background: ");
		text_add_count(out, process->background_count);
	}
	bytes_text(out, "\n  reasons      ");
	add_reasons(out, process);
	add_triggers(out, collections, report, process->process);
	if (process->heap_most_bytes) {
		bytes_text(out, "\n  heap         ");
		text_add_size(out, process->heap_last_bytes);
		bytes_text(out, " after the last one, ");
		text_add_size(out, process->heap_most_bytes);
		bytes_text(out, " at most; promoted ");
		text_add_size(out, process->promoted_bytes);
	}
	if (process->has_free) {
		bytes_text(out, "\n  free         ");
		text_add_size(out, process->free_last_bytes);
		bytes_text(out, " of it between objects after the last one (fragmentation)");
	}
	add_levels(out, collections, report->begin_ns + answers->from_ns, process);
	add_cpu(out, answers, process->process);
	bytes_text(out, "\n\n");
}

static void add_row(struct bytes *out, const struct report *report, const struct collection *row)
{
	answer_duration_cell(out, 8, since_begin(report, row->begin_ns));
	answer_count_cell(out, 7, row->number);
	bytes_printf(out, "  %3u", row->generation);
	answer_duration_cell(out, 8, row->pause_ns);
	answer_duration_cell(out, 8, row->suspend_ns);
	add_known_size_cell(out, row->promoted_bytes, row->has_stats);
	add_known_size_cell(out, row->heap_bytes, row->has_stats);
	bytes_printf(out, "  %s%s%s\n",
		row->type == COLLECTION_BLOCKING ? ""
						 : collection_type((enum collection_type)row->type),
		row->type == COLLECTION_BLOCKING ? "" : ", ", collection_reason(row->reason));
}

static int compare_pauses(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* The least pause of the `count` longest ones. Without memory 0: all rows are shown. */
static uint64_t least_pause(const struct collection *rows, uint32_t row_count, uint32_t count)
{
	if (!count || count >= row_count)
		return 0;
	uint64_t *pauses = calloc(row_count, sizeof(*pauses));
	if (!pauses)
		return 0;
	for (uint32_t i = 0; i < row_count; i++)
		pauses[i] = rows[i].pause_ns;
	qsort(pauses, row_count, sizeof(*pauses), compare_pauses);
	uint64_t least_ns = pauses[count - 1];
	free(pauses);
	return least_ns;
}

static void add_rows(struct bytes *out, const struct collections *collections,
	const struct report *report, const struct collections_process *process, uint32_t row_count)
{
	const struct collection *rows = &collections->rows.items[process->row_at];
	uint64_t least_ns = least_pause(rows, process->row_count, row_count);
	uint32_t shown = 0;

	bytes_text(out,
		"        at   number  gen     pause   suspend  promoted      heap  reason\n");
	for (uint32_t i = 0; i < process->row_count; i++) {
		if (rows[i].pause_ns < least_ns || (row_count && shown == row_count))
			continue;
		add_row(out, report, &rows[i]);
		shown++;
	}
	if (shown < process->row_count) {
		bytes_text(out, "         \xe2\x80\xa6  ");
		text_add_things(out, process->row_count - shown, "collection", "collections");
		bytes_text(out, " with shorter pauses\n");
	}
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct collections *collections = &answers->collections;
	const struct collections_process *process = &collections->processes.items[at];

	add_summary(out, answers, report, process);
	add_rows(out, collections, report, process, row_count);
	return 0;
}

static void add_json_row(struct json *j, const struct report *report, const struct collection *row)
{
	json_object(j, NULL);
	json_u64(j, "number", row->number);
	json_u64(j, "begin_ns", since_begin(report, row->begin_ns));
	if (row->end_ns)
		json_u64(j, "end_ns", since_begin(report, row->end_ns));
	else
		json_null(j, "end_ns");
	json_u64(j, "generation", row->generation);
	json_z(j, "type", collection_type((enum collection_type)row->type));
	json_z(j, "reason", collection_reason(row->reason));
	json_u64(j, "pause_ns", row->pause_ns);
	json_u64(j, "suspend_ns", row->suspend_ns);
	if (row->has_stats) {
		json_u64(j, "promoted_bytes", row->promoted_bytes);
		json_u64(j, "heap_bytes", row->heap_bytes);
	} else {
		json_null(j, "promoted_bytes");
		json_null(j, "heap_bytes");
	}
	json_array(j, "part_bytes");
	for (uint32_t i = 0; i < COLLECTION_HEAPS && row->has_stats; i++)
		json_u64(j, NULL, row->part_bytes[i]);
	json_end(j);
	if (row->has_free)
		json_u64(j, "free_bytes", row->free_bytes);
	else
		json_null(j, "free_bytes");
	json_end(j);
}

static void add_json_triggers(struct json *j, const struct answers *answers,
	const struct report *report, uint32_t process)
{
	const struct collections *collections = &answers->collections;
	const struct tally_process *triggers = triggers_of(collections, process);

	json_array(j, "triggers");
	for (uint32_t i = 0; triggers && i < triggers->row_count; i++) {
		const struct tally_row *row =
			&collections->triggers.rows.list.items[triggers->row_at + i];
		json_object(j, NULL);
		json_z(j, "reason", collection_reason(row->key.kind));
		json_u64(j, "count", row->count);
		answer_json_stack(j, answers, report, row->key.stack);
		json_end(j);
	}
	json_end(j);
}

static void add_json_cpu(struct json *j, const struct answers *answers, uint32_t process)
{
	const struct collector_cpu_process *cpu =
		collector_cpu_of(&answers->collector_cpu, process);

	if (!cpu) {
		json_null(j, "cpu_in_pauses_ns");
		json_null(j, "cpu_beside_ns");
		return;
	}
	json_u64(j, "cpu_in_pauses_ns", cpu->pauses_ns);
	json_u64(j, "cpu_beside_ns", cpu->threads_ns);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct collections *collections = &answers->collections;
	const struct collections_process *process = &collections->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "collection_count", process->row_count);
	json_u64(j, "pause_ns", process->pause_ns);
	json_f64(j, "pause_share", share_of_time(collections, process->pause_ns));
	json_u64(j, "pause_median_ns", process->pause_median_ns);
	json_u64(j, "pause_p95_ns", process->pause_p95_ns);
	json_u64(j, "pause_p99_ns", process->pause_p99_ns);
	add_json_cpu(j, answers, process->process);
	json_u64(j, "heap_last_bytes", process->heap_last_bytes);
	json_u64(j, "heap_most_bytes", process->heap_most_bytes);
	json_u64(j, "promoted_bytes", process->promoted_bytes);
	add_json_triggers(j, answers, report, process->process);
	json_array(j, "collections");
	for (uint32_t r = 0; r < process->row_count; r++)
		add_json_row(j, report, &collections->rows.items[process->row_at + r]);
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->collections.processes.count;
}

const struct answer_report collections_report = {
	.option = "gc",
	.process_count = process_count,
	.add_process = add_process,
	.none = "no garbage collection is in this selection; spoor record takes them unless --no-events is given\n",
	.add_json = add_json,
};
