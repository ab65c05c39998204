/* See heap_text.h. */
#include "heap/heap_text.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "heap/heap_report.h"
#include "trace/heap_graph.h"

#define ROWS_DEFAULT  30u
#define PATHS_DEFAULT 8u
#define ROOT_SHARE    0.005 /* below it a root is not worth a word */

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void add_type(struct bytes *out, const struct heap_graph *graph, uint32_t type)
{
	char room[32];
	const char *name = heap_graph_type_name(graph, type, room, sizeof(room));

	text_add_safe_z(out, name);
}

/* The file's name without its folders. */
static void add_module(struct bytes *out, const struct heap_graph *graph, uint32_t type)
{
	const char *path = strtab_get(&graph->strings, graph->types.items[type].module);
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	text_add_safe_z(out, path);
}

static void add_more(struct bytes *out, const char *before, uint32_t count, const char *one,
	const char *many)
{
	bytes_printf(out, "%s\xe2\x80\xa6 %s\n", before, TEXT_THINGS(count, one, many));
}

/* Right-aligned in `columns`. */
static void add_right(struct bytes *out, struct bytes *cell, size_t columns)
{
	size_t have = text_columns((const char *)cell->data, cell->len);

	for (; have < columns; have++)
		bytes_text(out, " ");
	bytes_add(out, cell->data, cell->len);
	bytes_reset(cell);
}

static void add_head(const struct heap_report *report, struct bytes *out)
{
	const struct heap_graph *graph = report->graph;

	if (report->process && *report->process) {
		text_add_safe_z(out, report->process);
		bytes_text(out, ", ");
	}
	if (report->runtime && *report->runtime) {
		bytes_text(out, ".NET ");
		text_add_safe_z(out, report->runtime);
		bytes_text(out, ", ");
	}
	if (report->utc_ns) {
		time_t seconds = (time_t)(report->utc_ns / 1000000000);
		struct tm utc;
		char stamp[40];
		if (gmtime_r(&seconds, &utc) &&
			strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S UTC", &utc))
			bytes_printf(out, "%s: ", stamp);
	}
	bytes_printf(out, "%s%s\n", TEXT_THINGS(graph->object_count, "object, ", "objects, "),
		TEXT_SIZE(graph->size_bytes));
}

/* How far it can be trusted, and what it cost. */
static void add_trust(const struct heap_report *report, struct bytes *out)
{
	const struct heap_graph *graph = report->graph;

	if (report->missing && *report->missing) {
		bytes_text(out, "NOT WHOLE: ");
		text_add_safe_z(out, report->missing);
		bytes_text(out, "; numbers are too small and ways from the roots may be wrong");
	} else {
		bytes_text(out, report->stream_bytes ? "whole" : "from a file");
	}
	if (report->stream_bytes)
		bytes_printf(out, "; the collection took %s, %s were read in %s",
			TEXT_DURATION((double)report->pause_ns / 1e9),
			TEXT_SIZE(report->stream_bytes),
			TEXT_DURATION((double)report->took_ns / 1e9));
	if (graph->nameless_bytes)
		bytes_printf(out,
			"; types of %.1f %% of the bytes have no name: another tool has a session with this process, which keeps the runtime from telling them again",
			100 * share_of(graph->nameless_bytes, graph->size_bytes));
	if (report->retained_unknown)
		bytes_text(out, "; objects are nested too deeply for retained sizes");
	if (graph->size_bytes > report->reachable_bytes && report->reachable_bytes)
		bytes_printf(out, "; %s are in no root's reach",
			TEXT_SIZE(graph->size_bytes - report->reachable_bytes));
	bytes_text(out, "\n");
	if (!report->reachable_bytes)
		return;
	const char *separator = "reached from  ";

	vec_each(row, &report->roots) {
		double share = share_of(row->reached_bytes, report->reachable_bytes);
		if (share < ROOT_SHARE)
			continue;
		bytes_text(out, separator);
		add_type(out, graph, heap_graph_node_type(graph, row->node));
		bytes_printf(out, " %.1f %%", 100 * share);
		separator = ", else from ";
	}
	bytes_text(out, "\n");
}

static void add_types(const struct heap_report *report, const struct heap_text_options *options,
	struct bytes *out)
{
	const struct heap_graph *graph = report->graph;
	uint32_t limit = options->row_count ? options->row_count : ROWS_DEFAULT;
	cleanup(bytes_done) struct bytes cell = { 0 };
	uint64_t rest_bytes = 0;
	uint64_t rest_count = 0;
	uint32_t shown = 0;

	bytes_text(out, "\n    size   share       count  average  retained  type\n");
	for (uint32_t i = 0; i < report->types.count; i++) {
		const struct heap_type_row *row = &report->types.items[i];
		if (i >= limit) {
			rest_bytes += row->size_bytes;
			rest_count += row->count;
			continue;
		}
		shown++;
		text_add_size(&cell, row->size_bytes);
		add_right(out, &cell, 8);
		bytes_printf(&cell, "%.1f %%", 100 * share_of(row->size_bytes, graph->size_bytes));
		add_right(out, &cell, 8);
		text_add_count(&cell, row->count);
		add_right(out, &cell, 12);
		text_add_size(&cell, row->count ? row->size_bytes / row->count : 0);
		add_right(out, &cell, 9);
		if (report->retained_unknown)
			bytes_text(&cell, "?");
		else
			text_add_size(&cell, row->retained_bytes);
		add_right(out, &cell, 10);
		bytes_text(out, "  ");
		add_type(out, graph, row->type);
		add_module(&cell, graph, row->type);
		if (cell.len)
			bytes_text(out, "  ");
		add_right(out, &cell, 0);
		bytes_text(out, "\n");
	}
	if (report->types.count > shown) {
		text_add_size(&cell, rest_bytes);
		add_right(out, &cell, 8);
		bytes_printf(&cell, "%.1f %%", 100 * share_of(rest_bytes, graph->size_bytes));
		add_right(out, &cell, 8);
		text_add_count(&cell, rest_count);
		add_right(out, &cell, 12);
		add_more(out, "                     ", report->types.count - shown, "more type",
			"more types");
	}
}

static void add_paths(const struct heap_report *report, const struct heap_text_options *options,
	struct bytes *out)
{
	uint32_t limit = options->row_count ? options->row_count : PATHS_DEFAULT;

	for (uint32_t i = 0; i < report->paths.count && i < limit; i++) {
		const struct heap_path_row *row = &report->paths.items[i];
		bytes_printf(out, "\n%s%s", TEXT_THINGS(row->count, "object, ", "objects, "),
			TEXT_SIZE(row->size_bytes));
		if (!report->retained_unknown)
			bytes_printf(out, ", and with what they alone keep %s",
				TEXT_SIZE(row->retained_bytes));
		bytes_text(out, "\n");
		for (uint32_t t = 0; t < row->length; t++) {
			bytes_text(out, "  ");
			add_type(out, report->graph, report->path_types.items[row->first + t]);
			bytes_text(out, "\n");
		}
	}
	if (report->paths.count > limit)
		add_more(out, "\n", report->paths.count - limit, "more way", "more ways");
}

static void add_next(const struct heap_report *report, const struct heap_text_options *options,
	struct bytes *out)
{
	if (!report->file || options->type_name || !report->types.count)
		return;
	char room[32];
	const char *name = heap_graph_type_name(report->graph, report->types.items[0].type, room,
		sizeof(room));

	bytes_printf(out, "\nnext   %s heap roots ", text_program());
	text_add_shell_word(out, report->file);
	bytes_text(out, " ");
	text_add_shell_word(out, name);
	bytes_text(out, "\n");
}

void heap_text(const struct heap_report *report, const struct heap_text_options *options,
	struct bytes *out)
{
	add_head(report, out);
	add_trust(report, out);
	if (options->type_name)
		add_paths(report, options, out);
	else
		add_types(report, options, out);
	add_next(report, options, out);
}

static void add_signed(struct bytes *cell, int64_t value, bool is_size)
{
	uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	bytes_text(cell, value < 0 ? "-" : "+");
	if (is_size)
		text_add_size(cell, magnitude);
	else
		text_add_count(cell, magnitude);
}

/* Which heap: its file, its process, its date, and how many objects it has. */
static void add_side(const char *side, const struct heap_report *report, size_t file_columns,
	struct bytes *out)
{
	bytes_text(out, side);
	text_add_safe_z(out, report->file);
	for (size_t have = text_columns(report->file, strlen(report->file));
		have < file_columns + 2; have++)
		bytes_text(out, " ");
	if (!report->utc_ns)
		bytes_text(out, "no date in the file, ");
	add_head(report, out);
}

static void add_doubt(const struct heap_report *report, struct bytes *out)
{
	if (report->missing && *report->missing) {
		bytes_text(out, "NOT WHOLE: ");
		text_add_safe_z(out, report->file);
		bytes_text(out, ": ");
		text_add_safe_z(out, report->missing);
		bytes_text(out, "; the differences are wrong\n");
	}
	if (report->graph->nameless_bytes) {
		bytes_text(out, "NOT COMPARABLE: types without a name in ");
		text_add_safe_z(out, report->file);
		bytes_printf(out, ", %.1f %% of its bytes, match no type of the other file\n",
			100 * share_of(report->graph->nameless_bytes, report->graph->size_bytes));
	}
}

void heap_diff_text(const struct heap_report *report, const struct heap_report *before,
	const struct heap_text_options *options, struct bytes *out)
{
	uint32_t limit = options->row_count ? options->row_count : ROWS_DEFAULT;
	cleanup(bytes_done) struct bytes cell = { 0 };

	size_t before_columns = text_columns(before->file, strlen(before->file));
	size_t after_columns = text_columns(report->file, strlen(report->file));
	size_t file_columns = before_columns > after_columns ? before_columns : after_columns;

	add_side("before  ", before, file_columns, out);
	add_side("after   ", report, file_columns, out);
	add_doubt(before, out);
	add_doubt(report, out);
	bytes_text(out, "\n     size       count  type\n");
	for (uint32_t i = 0; i < report->diff.count && i < limit; i++) {
		const struct heap_diff_row *row = &report->diff.items[i];
		const struct heap_graph *graph = row->after ? report->graph : before->graph;
		uint32_t type = row->after ? row->after : row->before;
		add_signed(&cell, row->size_bytes, true);
		add_right(out, &cell, 9);
		add_signed(&cell, row->count, false);
		add_right(out, &cell, 12);
		bytes_text(out, "  ");
		add_type(out, graph, type);
		add_module(&cell, graph, type);
		if (cell.len)
			bytes_text(out, "  ");
		add_right(out, &cell, 0);
		bytes_text(out, "\n");
	}
	if (report->diff.count > limit)
		add_more(out, "                       ", report->diff.count - limit, "more type",
			"more types");
	if (!report->diff.count)
		bytes_text(out, "no type has more or fewer objects\n");
}

static void json_type(struct json *j, const char *member, const struct heap_graph *graph,
	uint32_t type)
{
	char room[32];

	json_z(j, member, heap_graph_type_name(graph, type, room, sizeof(room)));
}

static void json_retained(struct json *j, const struct heap_report *report, uint64_t bytes)
{
	if (report->retained_unknown)
		json_null(j, "retained_bytes");
	else
		json_u64(j, "retained_bytes", bytes);
}

static void json_summary(struct json *j, const struct heap_report *report)
{
	const struct heap_graph *graph = report->graph;

	json_z(j, "process", report->process ? report->process : "");
	if (report->runtime && *report->runtime)
		json_z(j, "runtime_version", report->runtime);
	else
		json_null(j, "runtime_version");
	json_z(j, "file", report->file ? report->file : "");
	json_u64(j, "utc_ns", report->utc_ns);
	json_bool(j, "whole", !report->missing || !*report->missing);
	json_z(j, "missing", report->missing ? report->missing : "");
	json_u64(j, "objects", graph->object_count);
	json_u64(j, "size_bytes", graph->size_bytes);
	json_u64(j, "reachable_objects", report->reachable_count);
	json_u64(j, "reachable_bytes", report->reachable_bytes);
	json_u64(j, "nameless_bytes", graph->nameless_bytes);
	json_u64(j, "stream_bytes", report->stream_bytes);
	if (report->stream_bytes) {
		json_u64(j, "pause_ns", report->pause_ns);
		json_u64(j, "took_ns", report->took_ns);
	} else { /* a saved heap does not have them */
		json_null(j, "pause_ns");
		json_null(j, "took_ns");
	}
}

static void json_roots(struct json *j, const struct heap_report *report)
{
	const struct heap_graph *graph = report->graph;

	json_array(j, "roots");
	for (uint32_t i = 0; i < report->roots.count; i++) {
		json_object(j, NULL);
		json_type(j, "name", graph,
			heap_graph_node_type(graph, report->roots.items[i].node));
		json_u64(j, "reached_bytes", report->roots.items[i].reached_bytes);
		json_end(j);
	}
	json_end(j);
}

static void json_types(struct json *j, const struct heap_report *report, uint32_t row_count)
{
	const struct heap_graph *graph = report->graph;

	json_array(j, "types");
	for (uint32_t i = 0; i < report->types.count && (!row_count || i < row_count); i++) {
		const struct heap_type_row *row = &report->types.items[i];
		json_object(j, NULL);
		json_type(j, "name", graph, row->type);
		json_z(j, "module",
			strtab_get(&graph->strings, graph->types.items[row->type].module));
		json_u64(j, "count", row->count);
		json_u64(j, "size_bytes", row->size_bytes);
		json_retained(j, report, row->retained_bytes);
		json_end(j);
	}
	json_end(j);
}

static void json_paths(struct json *j, const struct heap_report *report, uint32_t row_count)
{
	const struct heap_graph *graph = report->graph;

	json_array(j, "paths");
	for (uint32_t i = 0; i < report->paths.count && (!row_count || i < row_count); i++) {
		const struct heap_path_row *row = &report->paths.items[i];
		json_object(j, NULL);
		json_u64(j, "count", row->count);
		json_u64(j, "size_bytes", row->size_bytes);
		json_retained(j, report, row->retained_bytes);
		json_array(j, "types");
		for (uint32_t t = 0; t < row->length; t++)
			json_type(j, NULL, graph, report->path_types.items[row->first + t]);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

/* The heap that this one is compared with, and the difference by type. */
static void json_before(struct json *j, const struct heap_report *report,
	const struct heap_report *before, uint32_t row_count)
{
	const struct heap_graph *graph = report->graph;

	json_object(j, "before");
	json_z(j, "process", before->process ? before->process : "");
	json_z(j, "file", before->file ? before->file : "");
	json_u64(j, "utc_ns", before->utc_ns);
	json_bool(j, "whole", !before->missing || !*before->missing);
	json_z(j, "missing", before->missing ? before->missing : "");
	json_u64(j, "objects", before->graph->object_count);
	json_u64(j, "size_bytes", before->graph->size_bytes);
	json_u64(j, "nameless_bytes", before->graph->nameless_bytes);
	json_end(j);
	json_array(j, "diff");
	for (uint32_t i = 0; i < report->diff.count && (!row_count || i < row_count); i++) {
		const struct heap_diff_row *row = &report->diff.items[i];
		json_object(j, NULL);
		json_type(j, "name", row->after ? graph : before->graph,
			row->after ? row->after : row->before);
		json_i64(j, "count", row->count);
		json_i64(j, "size_bytes", row->size_bytes);
		json_end(j);
	}
	json_end(j);
}

void heap_json(const struct heap_report *report, const struct heap_report *before,
	uint32_t row_count, struct bytes *out)
{
	struct json json = { .out = out };

	json_object(&json, NULL);
	json_summary(&json, report);
	json_roots(&json, report);
	json_types(&json, report, row_count);
	json_paths(&json, report, row_count);
	if (before)
		json_before(&json, report, before, row_count);
	json_end(&json);
	bytes_u8(out, '\n');
}
