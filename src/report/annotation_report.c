/* See annotation_report.h. */
#include "report/annotation_report.h"

#include <errno.h>
#include <string.h>

#include "analysis/annotation.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "report/source_text.h"
#include "trace/report.h"
#include "trace/trace.h"

#define TAB_COLUMNS 8u

static double share_of(const struct report *report, uint64_t ns)
{
	return report->cpu_ns ? 100.0 * (double)ns / (double)report->cpu_ns : 0;
}

static void add_share(const struct report *report, uint64_t ns, struct bytes *out)
{
	if (ns)
		bytes_printf(out, "%5.1f %%", share_of(report, ns));
	else
		bytes_text(out, "       ");
}

/* A line of source: tabs become spaces, control characters are made safe. */
static void add_source(const char *line, size_t len, struct bytes *out)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	for (size_t i = 0; i < len; i++) {
		if (line[i] != '\t') {
			bytes_u8(&text, (uint8_t)line[i]);
			continue;
		}
		do
			bytes_u8(&text, ' ');
		while (text.len % TAB_COLUMNS && !text.failed);
	}
	text_add_safe(out, (const char *)text.data, text.len);
}

static void add_row(const struct report *report, const struct annotated_line *row, uint32_t line,
	const struct source_text *source, struct bytes *out)
{
	size_t len;
	const char *text = source_text_line(source, line, &len);

	add_share(report, row ? row->self_ns : 0, out);
	bytes_text(out, "  ");
	add_share(report, row ? row->total_ns : 0, out);
	bytes_printf(out, "  %6u", line);
	if (text && len) {
		bytes_text(out, "  ");
		add_source(text, len, out);
	}
	bytes_text(out, "\n");
}

/* The rows of one file: those with time, and lines of source around them. */
static void add_rows(const struct report *report, const struct annotated_line *rows, uint32_t count,
	const struct source_text *source, uint32_t context, struct bytes *out)
{
	uint32_t next = rows[0].line > context ? rows[0].line - context : 1;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = rows[i].line > context ? rows[i].line - context : 1;
		uint32_t after = rows[i].line + context;
		if (!source->data)
			from = after = rows[i].line;
		if (from > next && i)
			bytes_text(out, "                          …\n");
		for (uint32_t line = from > next ? from : next; line < rows[i].line && source->data;
			line++)
			add_row(report, NULL, line, source, out);
		add_row(report, &rows[i], rows[i].line, source, out);
		next = rows[i].line + 1;
		if (i + 1 < count && rows[i + 1].line <= after)
			after = rows[i + 1].line - 1;
		for (; next <= after && next <= source->begins.count; next++)
			add_row(report, NULL, next, source, out);
	}
}

static void add_head(const struct annotation *annotation, const struct report *report,
	struct bytes *out)
{
	for (uint32_t i = 0; i < annotation->functions.count; i++) {
		text_add_safe_z(out, i ? ", " : "");
		text_add_safe_z(out, trace_text(report->trace, annotation->functions.items[i]));
	}
	bytes_printf(out, ": %.3g CPU s itself, %.3g with callees, %.1f %% of what is shown\n",
		(double)annotation->self_ns / 1e9, (double)annotation->total_ns / 1e9,
		share_of(report, annotation->total_ns));
}

static int add_file(const struct report *report, const struct annotated_line *rows, uint32_t count,
	const struct annotation_options *options, void *context)
{
	struct bytes *out = context;
	const char *path = trace_text(report->trace, rows[0].file);
	struct source_text source;
	int result = source_text_read(&source, path, options->folders, options->folder_count);

	bytes_text(out, "\n");
	if (rows[0].file)
		text_add_safe_z(out, path);
	else
		bytes_text(out, "(code without a line)");
	if (rows[0].file && result == -ENOENT)
		bytes_text(out, "  (the file is not here: --source names its folder)");
	if (source.changed_ns > report->trace->recording.utc_ns && source.data)
		bytes_text(out, "  (changed since the recording: lines may have moved)");
	bytes_text(out, "\n   self    total    line  source\n");
	add_rows(report, rows, count, &source, options->context, out);
	source_text_done(&source);
	return result == -ENOMEM ? result : 0;
}

/* Calls `each` for the lines of each file. */
static int each_file(const struct annotation *annotation, const struct report *report,
	const struct annotation_options *options, void *context,
	int (*each)(const struct report *report, const struct annotated_line *rows, uint32_t count,
		const struct annotation_options *options, void *context))
{
	int result = 0;

	for (uint32_t i = 0; i < annotation->lines.count && result == 0;) {
		uint32_t count = 1;
		while (i + count < annotation->lines.count &&
			annotation->lines.items[i + count].file == annotation->lines.items[i].file)
			count++;
		result = each(report, &annotation->lines.items[i], count, options, context);
		i += count;
	}
	return result;
}

int annotation_text(const struct annotation *annotation, const struct report *report,
	const struct annotation_options *options, struct bytes *out)
{
	add_head(annotation, report, out);
	return each_file(annotation, report, options, out, add_file);
}

static int add_file_json(const struct report *report, const struct annotated_line *rows,
	uint32_t count, const struct annotation_options *options, void *context)
{
	const char *path = trace_text(report->trace, rows[0].file);
	struct source_text source;
	struct json *j = context;
	int result = source_text_read(&source, path, options->folders, options->folder_count);

	for (uint32_t i = 0; i < count; i++) {
		size_t len;
		const char *text = source_text_line(&source, rows[i].line, &len);
		json_object(j, NULL);
		if (rows[i].file)
			json_z(j, "file", path);
		else
			json_null(j, "file");
		json_u64(j, "line", rows[i].line);
		json_u64(j, "self_ns", rows[i].self_ns);
		json_u64(j, "total_ns", rows[i].total_ns);
		json_u64(j, "self_samples", rows[i].self_count);
		json_u64(j, "total_samples", rows[i].total_count);
		if (text)
			json_text(j, "source", text, len);
		else
			json_null(j, "source");
		json_end(j);
	}
	source_text_done(&source);
	return result == -ENOMEM ? result : 0;
}

int annotation_json(const struct annotation *annotation, const struct report *report,
	const struct annotation_options *options, struct bytes *out)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_array(&j, "functions");
	vec_each(name, &annotation->functions)
		json_z(&j, NULL, trace_text(report->trace, *name));
	json_end(&j);
	json_u64(&j, "selected_cpu_ns", report->cpu_ns);
	json_u64(&j, "self_ns", annotation->self_ns);
	json_u64(&j, "total_ns", annotation->total_ns);
	json_u64(&j, "self_samples", annotation->self_count);
	json_u64(&j, "total_samples", annotation->total_count);
	json_array(&j, "lines");
	int result = each_file(annotation, report, options, &j, add_file_json);
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
	return result;
}
