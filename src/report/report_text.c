/*
 * See report_text.h.
 *
 * Tables are laid out in two passes: widths first, then lines, so that columns are aligned. In a
 * pipe the columns are as wide as their widest cell; on a terminal they fit its width, and long
 * names are cut in the middle.
 */
#include "report/report_text.h"

#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "render/event_text.h"
#include "render/frame_label.h"
#include "report/answer_summary.h"
#include "report/report_head.h"
#include "report/report_page.h"
#include "report/report_tree.h"
#include "trace/call_tree.h"
#include "trace/clr.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NS_PER_S            1e9
#define ROWS_DEFAULT        10u
#define GROUP_ROWS_DEFAULT  40u
#define EVENT_ROWS_BESIDE   12u
#define PROCESS_ROWS_MAX    8u    /* processes beyond these are one line */
#define PROCESS_SHARE_MIN   0.01  /* least share of a process in the table of processes */
#define STACKLESS_SHARE_MIN 0.001 /* least share of stackless samples for a line about them */
#define GROUP_COLUMNS_MIN   8u

static void add_process_words(struct report_page *page, uint32_t index)
{
	const struct trace *trace = page->report->trace;
	const struct process *process = &trace->processes.items[index];

	label_process(page->out, trace, index);
	if (process->runtime_kind == RUNTIME_CORECLR ||
		process->runtime_kind == RUNTIME_NATIVEAOT) {
		bytes_text(page->out,
			process->runtime_kind == RUNTIME_CORECLR ? ", .NET" : ", NativeAOT");
		if (process->runtime_version) {
			page_set_cell(page, process->runtime_version);
			bytes_text(page->out, " ");
			bytes_add(page->out, page->cell.data, page->cell.len);
		}
	}
}

static void add_processes(struct report_page *page)
{
	const struct report *report = page->report;
	struct bytes *out = page->out;
	bool events = report->weighing == REPORT_EVENTS;
	double unit = events ? 1 : NS_PER_S;
	double most = (double)report->cpu_ns / unit;
	int digits = events ? 0 : most >= 9.95 ? 1 : most >= 0.95 ? 2 : 3;
	uint32_t shown = 0;
	uint64_t rest_ns = report->cpu_ns;

	bytes_text(out, "\n");
	page_paint(page, PAGE_DIM);
	bytes_text(out, report->weighing == REPORT_THREAD_TIME ? "thread s   share  process\n"
			: events                               ? " events    share  process\n"
							       : "  CPU s    share  process\n");
	page_paint(page, PAGE_RESET);
	for (; shown < report->processes.count && shown < PROCESS_ROWS_MAX; shown++) {
		const struct report_process *process = &report->processes.items[shown];
		double share = page_share(process->cpu_ns, report->cpu_ns);
		/* A single remaining process is printed: a line about the others is as long. */
		if (share < PROCESS_SHARE_MIN && shown + 1 < report->processes.count)
			break;
		bytes_printf(out, "%7.*f  ", digits, (double)process->cpu_ns / unit);
		page_percent(out, share, false);
		bytes_text(out, "  ");
		add_process_words(page, process->process);
		bytes_text(out, "\n");
		rest_ns -= process->cpu_ns;
	}
	if (shown < report->processes.count) {
		bytes_printf(out, "%7.*f  ", digits, (double)rest_ns / unit);
		page_percent(out, page_share(rest_ns, report->cpu_ns), false);
		bytes_printf(out, "  %u others\n", report->processes.count - shown);
	}
}

static void add_table(struct report_page *page, const struct report_process *process)
{
	const struct report *report = page->report;
	const struct report_row *rows = report->rows.items + process->row_at;
	uint32_t shown = 0;
	struct page_widths widths = { .name = 8, .module = 6 };
	uint64_t shown_ns = 0;
	struct bytes *out = page->out;

	bytes_text(out, "\n");
	page_paint(page, PAGE_BOLD);
	label_process(out, report->trace, process->process);
	page_paint(page, PAGE_RESET);
	bytes_text(out, "\n");
	for (; shown < process->row_count && shown < page->row_count; shown++) {
		const struct report_row *row = &rows[shown];
		if (page_share(page->options->by_total ? row->total_ns : row->self_ns,
			    process->cpu_ns) < page->options->least_share)
			break;
		page_measure(page, row->function, row->tiers, 0, &widths);
	}
	page_fit_widths(page, &widths, page->options->without_total ? 9 : 18);
	page_paint(page, PAGE_DIM);
	bytes_text(out, page->options->without_total ? "   self  " : "   self    total  ");
	bytes_printf(out, "%-*s  module\n", (int)widths.name, "function");
	page_paint(page, PAGE_RESET);
	for (uint32_t i = 0; i < shown; i++) {
		page_percent(out, page_share(rows[i].self_ns, process->cpu_ns), false);
		bytes_text(out, "  ");
		if (!page->options->without_total) {
			page_percent(out, page_share(rows[i].total_ns, process->cpu_ns), false);
			bytes_text(out, "  ");
		}
		page_function(page, rows[i].function, rows[i].tiers, widths.name, &widths);
		shown_ns += rows[i].self_ns;
	}
	if (page_share(process->stackless_ns, process->cpu_ns) >= STACKLESS_SHARE_MIN) {
		page_paint(page, PAGE_DIM);
		page_percent(out, page_share(process->stackless_ns, process->cpu_ns), false);
		bytes_text(out, page->options->without_total ? "  " : "           ");
		bytes_text(out, report->weighing == REPORT_CPU_CLOCKS
					? "(no managed stack: native threads, the runtime's own)\n"
					: "(no stack)\n");
		page_paint(page, PAGE_RESET);
		shown_ns += process->stackless_ns;
	}
	if (shown < process->row_count) {
		uint32_t more = process->row_count - shown;
		page_paint(page, PAGE_DIM);
		bytes_text(out, "      \xe2\x80\xa6           ");
		text_add_things(out, more, "more function", "more functions");
		bytes_printf(out, ", %.1f %% self\n",
			100 * page_share(process->cpu_ns - shown_ns, process->cpu_ns));
		page_paint(page, PAGE_RESET);
	}
}

/* The text of one key of a group, in page->cell. */
static void set_group_cell(struct report_page *page, const struct report_group *group,
	enum report_group_key key)
{
	switch (key) {
	case GROUP_NAME:
		page_set_cell(page, group->name);
		break;
	case GROUP_PID:
		bytes_reset(&page->cell);
		bytes_printf(&page->cell, "%u", group->pid);
		break;
	case GROUP_MODULE:
		page_set_cell(page, group->module);
		break;
	case GROUP_FUNCTION:
		page_set_cell(page, page->report->names->functions.items[group->function].name);
		break;
	}
}

/* The widest columns give way until the line fits. A width of 0 is no column. */
static void fit_groups(size_t columns, size_t fixed, size_t *widths, size_t count)
{
	while (columns) {
		size_t sum = fixed;
		size_t widest = 0;
		for (size_t c = 0; c < count; c++) {
			sum += widths[c] ? 2 + widths[c] : 0;
			widest = widths[c] > widths[widest] ? c : widest;
		}
		if (sum <= columns || widths[widest] <= GROUP_COLUMNS_MIN)
			return;
		widths[widest]--;
	}
}

static void add_groups(struct report_page *page)
{
	static const struct {
		enum report_group_key key;
		const char *heading;
	} columns[] = { { GROUP_NAME, "process" }, { GROUP_PID, "pid" }, { GROUP_MODULE, "module" },
		{ GROUP_FUNCTION, "function" } };
	const size_t column_count = sizeof(columns) / sizeof(columns[0]);
	const struct report *report = page->report;
	const struct report_text_options *options = page->options;
	uint32_t limit = options->row_count ? options->row_count : GROUP_ROWS_DEFAULT;
	size_t widths[sizeof(columns) / sizeof(columns[0])] = { 0 };
	size_t last = 0;
	uint32_t shown = 0;
	uint64_t shown_ns = 0;
	struct bytes *out = page->out;

	for (; shown < report->groups.count && shown < limit; shown++) {
		const struct report_group *group = &report->groups.items[shown];
		if (page_share(options->by_total ? group->total_ns : group->self_ns,
			    report->cpu_ns) < options->least_share)
			break;
		for (size_t c = 0; c < column_count; c++) {
			if (!(report->group_keys & columns[c].key))
				continue;
			set_group_cell(page, group, columns[c].key);
			if (page_cell_columns(page) > widths[c])
				widths[c] = page_cell_columns(page);
			last = c;
		}
	}
	for (size_t c = 0; c < column_count; c++)
		if (report->group_keys & columns[c].key && widths[c] < strlen(columns[c].heading))
			widths[c] = strlen(columns[c].heading);
	fit_groups(options->columns, options->without_total ? 7 : 16, widths, column_count);
	bytes_text(out, "\n");
	page_paint(page, PAGE_DIM);
	bytes_text(out, options->without_total ? "   self" : "   self    total");
	for (size_t c = 0; c < column_count; c++) {
		if (!(report->group_keys & columns[c].key))
			continue;
		size_t heading = strlen(columns[c].heading);
		bytes_text(out, "  ");
		bytes_text(out, columns[c].heading);
		if (c != last)
			page_spaces(out, widths[c] - heading);
	}
	bytes_text(out, "\n");
	page_paint(page, PAGE_RESET);
	for (uint32_t i = 0; i < shown; i++) {
		const struct report_group *group = &report->groups.items[i];
		page_percent(out, page_share(group->self_ns, report->cpu_ns), false);
		if (!options->without_total) {
			bytes_text(out, "  ");
			page_percent(out, page_share(group->total_ns, report->cpu_ns), false);
		}
		for (size_t c = 0; c < column_count; c++) {
			if (!(report->group_keys & columns[c].key))
				continue;
			bytes_text(out, "  ");
			set_group_cell(page, group, columns[c].key);
			page_cell(page, widths[c], c == last);
		}
		bytes_text(out, "\n");
		shown_ns += group->self_ns;
	}
	if (shown < report->groups.count) {
		page_paint(page, PAGE_DIM);
		bytes_text(out, "      \xe2\x80\xa6  ");
		text_add_count(out, report->groups.count - shown);
		bytes_printf(out, " more, %.1f %% self\n",
			100 * page_share(report->cpu_ns - shown_ns, report->cpu_ns));
		page_paint(page, PAGE_RESET);
	}
}

/* The ends of methods' code are in each recording, for readers that go by them. */
static bool is_reported(const struct report *report, uint32_t i)
{
	const struct schema *schema = &report->trace->schemas.items[report->events.items[i].schema];

	return !report->all_samples || schema->provider_kind != PROVIDER_CLR ||
	       schema->event_id != CLR_ID_MethodUnloadVerbose;
}

/* What a trace holds, or a recording beside its samples: events by kind. */
static void add_events(struct report_page *page)
{
	const struct report *report = page->report;
	uint32_t limit = page->options->row_count ? page->options->row_count
			 : report->samples        ? EVENT_ROWS_BESIDE
						  : GROUP_ROWS_DEFAULT;
	struct bytes *out = page->out;
	uint32_t rows = 0;
	uint32_t more = 0;

	for (uint32_t i = 0; i < report->events.count; i++) {
		const struct event event = { .schema_index = report->events.items[i].schema };
		if (!is_reported(report, i))
			continue;
		if (rows == limit) {
			more++;
			continue;
		}
		if (!rows++)
			bytes_text(out, report->selection
						? "\n     events  name, in the whole recording\n"
						: "\n     events  name\n");
		bytes_reset(&page->cell);
		text_add_count(&page->cell, report->events.items[i].count);
		page_spaces(out, page_cell_columns(page) < 11 ? 11 - page_cell_columns(page) : 0);
		bytes_add(out, page->cell.data, page->cell.len);
		bytes_text(out, "  ");
		event_text_name(out, report->trace, &event);
		bytes_text(out, "\n");
	}
	if (more) {
		bytes_text(out, "          \xe2\x80\xa6  ");
		text_add_things(out, more, "more kind\n", "more kinds\n");
	}
	if (report->events_counted) {
		text_add_things(out, report->events_counted, "of these was", "of these were");
		bytes_text(out, " only counted, not written: above the recorder's --event-rate\n");
	}
}

/* One command a line, to be pasted. */
static void begin_next(struct report_page *page, bool first, const char *verb)
{
	const struct report *report = page->report;

	bytes_printf(page->out, "%s%s %s ", first ? "\nnext   " : "       ", text_program(), verb);
	text_add_shell_word(page->out,
		report->file && strcmp(report->file, "-") != 0 ? report->file : "FILE");
}

static void add_next(struct report_page *page, bool tree)
{
	const struct report *report = page->report;
	struct bytes *out = page->out;

	if (!report->samples && report->all_samples) {
		begin_next(page, true, "report");
	} else if (!report->samples && report->events.count) {
		begin_next(page, true, "events");
		bytes_text(out, " --summary");
	} else if (!report->samples) {
		bytes_printf(out, "\nnext   %s doctor", text_program());
	} else {
		uint32_t busiest = report->processes.count ? report->processes.items[0].process : 0;
		uint32_t pid = report->trace->processes.items[busiest].pid;
		if (!tree) {
			begin_next(page, true, "report");
			bytes_text(out, " --tree");
			bytes_text(out, report->arguments ? report->arguments : "");
			if (!report->one_process)
				bytes_printf(out, " -p %u", pid);
			bytes_text(out, "\n");
		}
		begin_next(page, tree, "flame");
		bytes_text(out, report->arguments ? report->arguments : "");
		bytes_text(out, " -o flame.svg");
	}
	bytes_text(out, "\n");
}

void report_text(const struct report *report, struct call_tree *tree,
	const struct report_text_options *options, struct bytes *out)
{
	struct report_page page = { .report = report,
		.options = options,
		.out = out,
		.row_count = options->row_count ? options->row_count : ROWS_DEFAULT };

	report_head(&page);
	if (options->answers)
		answer_summary(options->answers, report, out);
	if (!report->samples) {
		if (report->all_samples)
			bytes_text(out, "no sample is left by this selection\n");
		if (!report->all_samples || !report->selection)
			add_events(&page);
	} else {
		if (!options->callers)
			add_processes(&page);
		if (tree)
			report_tree(&page, tree);
		if (report->group_keys && !tree)
			add_groups(&page);
		for (uint32_t i = 0; !tree && !report->group_keys && i < report->processes.count &&
				     i < PROCESS_TABLES_MAX;
			i++) {
			const struct report_process *process = &report->processes.items[i];
			if (i && page_share(process->cpu_ns, report->cpu_ns) < TABLE_SHARE_MIN)
				break;
			if (process->row_count)
				add_table(&page, process);
		}
		if (!tree && !report->group_keys && !options->callers)
			add_events(&page);
	}
	add_next(&page, tree != NULL);
	bytes_done(&page.cell);
}
