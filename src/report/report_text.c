/*
 * See report_text.h.
 *
 * Tables are laid out in two passes: widths first, then lines, so that columns are aligned. In a
 * pipe the columns are as wide as their widest cell; on a terminal they fit its width, and long
 * names are cut in the middle.
 */
#include "report/report_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/nearest.h"
#include "base/text.h"
#include "render/event_text.h"
#include "render/frame_label.h"
#include "report/answer_summary.h"
#include "render/unwind_label.h"
#include "trace/call_tree.h"
#include "trace/clr.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NS_PER_S            1e9
#define ROWS_DEFAULT        10u
#define GROUP_ROWS_DEFAULT  40u
#define EVENT_ROWS_BESIDE   12u
#define PROCESS_ROWS_MAX    8u /* the rest is added up in one line */
#define PROCESS_TABLES_MAX  3u
#define PROCESS_SHARE_MIN   0.01  /* of the table of processes */
#define TABLE_SHARE_MIN     0.05  /* a process below it gets no table of functions */
#define STACKLESS_SHARE_MIN 0.001 /* of a process, to get a line */
#define STEP_SHARE_MIN      0.01  /* of the tree */
#define BRANCHES_MAX        100u  /* nested ones */
#define NAME_COLUMNS_MIN    20u
#define GROUP_COLUMNS_MIN   8u
/* of the terminal's width, where there is too little room for all */
#define MODULE_PART       5u
#define TIERS_COLUMNS     14u /* in that case: "tier 1 OSR +2" */
#define UNNAMED_MAX       3u
#define CONTAINER_COLUMNS 12u /* of an id: what people know it by */

struct page {
	const struct report *report;
	const struct report_text_options *options;
	struct bytes *out;
	struct bytes cell; /* the cell in the making */
	uint32_t row_count;
};

static const char color_reset[] = "\x1b[0m";
static const char color_bold[] = "\x1b[1m";
static const char color_dim[] = "\x1b[2m";

static const char *kind_color(uint8_t kind)
{
	static const char *const colors[] = {
		[FUNCTION_UNKNOWN] = "\x1b[2m",
		[FUNCTION_KERNEL] = "\x1b[33m",
		[FUNCTION_NATIVE] = "",
		[FUNCTION_JIT] = "\x1b[32m",
		[FUNCTION_READYTORUN] = "\x1b[36m",
		[FUNCTION_STUB] = "\x1b[35m",
	};

	return colors[kind <= FUNCTION_STUB ? kind : FUNCTION_UNKNOWN];
}

static void paint(const struct page *page, const char *color)
{
	if (page->options->color)
		bytes_text(page->out, color);
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* "41.2 %" right-aligned in 7 columns; blank when it would read 0.0 and `blank` is set. */
static void add_percent(struct bytes *out, double share, bool blank)
{
	if (blank && share < 0.0005)
		bytes_text(out, "       ");
	else
		bytes_printf(out, "%5.1f %%", 100 * share);
}

static void add_spaces(struct bytes *out, size_t count)
{
	while (count--)
		bytes_u8(out, ' ');
}

/* `columns` characters of a text that has more: both ends, with an ellipsis between them. */
static void add_cut(struct bytes *out, const char *text, size_t len, size_t columns)
{
	size_t have = text_columns(text, len);

	if (have <= columns || columns < 3) {
		bytes_add(out, text, len);
		return;
	}
	size_t front = (columns - 1) / 2;
	size_t back = columns - 1 - front;
	size_t at = 0;
	for (size_t i = 0; i < front; i++)
		(void)text_next_char(text, len, &at); /* only its length counts */
	bytes_add(out, text, at);
	bytes_text(out, "\xe2\x80\xa6");
	for (size_t i = front; i < have - back; i++)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text + at, len - at);
}

/* The current cell, cut to the terminal and padded to `columns` if it is not its line's last. */
static void add_cell(struct page *page, size_t columns, bool last)
{
	const char *text = (const char *)page->cell.data;
	size_t len = page->cell.len;
	size_t have = text_columns(text, len);

	if (page->options->columns && have > columns) {
		add_cut(page->out, text, len, columns);
		have = columns;
	} else {
		bytes_add(page->out, text, len);
	}
	if (!last && have < columns)
		add_spaces(page->out, columns - have);
}

static void set_cell(struct page *page, uint32_t text)
{
	bytes_reset(&page->cell);
	text_add_safe(&page->cell, trace_text(page->report->trace, text),
		strtab_len(&page->report->trace->strings, text));
}

static size_t cell_columns(const struct page *page)
{
	return text_columns((const char *)page->cell.data, page->cell.len);
}

static void add_cpu_seconds(struct bytes *out, uint64_t ns)
{
	double seconds = (double)ns / NS_PER_S;

	bytes_printf(out, "%.*f", seconds >= 99.95 ? 0 : seconds >= 9.995 ? 1 : 2, seconds);
}

/* Which processes' CPU time the recording holds, when not that of all. */
static const char *scope_words(enum report_scope scope)
{
	switch (scope) {
	case REPORT_MACHINE:
		break;
	case REPORT_PROCESSES:
		return "the recorded processes";
	case REPORT_THREADS:
		return "the recorded threads";
	case REPORT_COMMAND:
		return "the command and its children";
	}
	return NULL;
}

static bool has_events(const struct report *report)
{
	return report->events.count != 0;
}

/* How much CPU time there was, and of what. */
static void add_use(struct page *page)
{
	const struct report *report = page->report;
	const char *who = scope_words(report->scope);
	struct bytes *out = page->out;

	if (report->busy < 0) {
		if (report->all_samples) {
			label_amount(out, report, report->all_cpu_ns);
			bytes_text(out, "\n");
			return;
		}
		uint64_t events = 0;
		for (uint32_t i = 0; i < report->events.count; i++)
			events += report->events.items[i].count;
		if (has_events(report)) {
			text_add_things(out, events, "event, ", "events, ");
		}
		bytes_text(out, "no CPU samples\n");
		return;
	}
	paint(page, color_bold);
	bytes_printf(out, "%s%.*f %%", who ? "" : "CPU busy ", report->busy < 0.0995 ? 1 : 0,
		100 * report->busy);
	if (who) {
		bytes_text(out, " of ");
		text_add_things(out, report->cpu_count, "CPU", "CPUs");
	}
	paint(page, color_reset);
	if (who)
		bytes_printf(out, " used by %s", who);
	bytes_text(out, " (");
	add_cpu_seconds(out, report->all_cpu_ns);
	bytes_text(out, " of ");
	add_cpu_seconds(out, report->duration_ns * report->cpu_count);
	bytes_text(out, " CPU s)\n");
}

static void add_head(struct page *page)
{
	const struct report *report = page->report;
	const struct recording *recording = &report->trace->recording;
	const char *kernel = trace_text(report->trace, recording->kernel);
	struct bytes *out = page->out;

	if (recording->host) {
		set_cell(page, recording->host);
		bytes_add(out, page->cell.data, page->cell.len);
		bytes_text(out, ", ");
	}
	if (*kernel) {
		bytes_text(out, *kernel >= '0' && *kernel <= '9' ? "Linux " : "");
		text_add_safe_z(out, kernel);
		bytes_text(out, ", ");
	}
	if (report->cpu_count)
		text_add_things(out, report->cpu_count, "CPU, ", "CPUs, ");
	bytes_reset(&page->cell);
	label_utc(&page->cell, report);
	if (page->cell.len) {
		bytes_add(out, page->cell.data, page->cell.len);
		bytes_text(out, ", ");
	}
	text_add_duration(out, (double)report->duration_ns / NS_PER_S);
	if (report->rate_hz > 0)
		bytes_printf(out, " at %.0f Hz", report->rate_hz);
	bytes_text(out, ": ");
	add_use(page);
}

static void add_unnamed(struct page *page)
{
	const struct report *report = page->report;
	uint32_t shown = report->unnamed.count < UNNAMED_MAX ? report->unnamed.count : UNNAMED_MAX;

	for (uint32_t i = 0; i < shown; i++) {
		const struct report_unnamed *unnamed = &report->unnamed.items[i];
		double share = share_of(unnamed->frames, report->frames);
		if (share < 0.0005)
			break;
		const char *module = label_unnamed(report->trace, unnamed->module, unnamed->kind);
		bytes_text(page->out, i ? ", " : "; without: ");
		text_add_safe_z(page->out, module);
		bytes_printf(page->out, " %.1f %%", 100 * share);
	}
}

/* How many frames the symbol files of native images would name, and how to get these files. */
static void add_symbols_needed(struct page *page)
{
	const struct report *report = page->report;
	uint64_t frames = 0;

	for (uint32_t i = 0; i < report->unnamed.count; i++)
		if (report->unnamed.items[i].kind == FUNCTION_NATIVE)
			frames += report->unnamed.items[i].frames;
	if (!report->file || strcmp(report->file, "-") == 0 ||
		share_of(frames, report->frames) < 0.0005)
		return;
	text_add_things(page->out, frames, "native frame has", "native frames have");
	bytes_text(page->out, " no symbols: spoor symbols fetch ");
	text_add_shell_word(page->out, report->file);
	bytes_text(page->out, "\n");
}

/* The diagnostics sessions that the recorder opened in the processes, each kind once. */
static void add_sessions(struct page *page)
{
	const struct trace *trace = page->report->trace;
	struct bytes *out = page->out;

	for (uint32_t i = 0; i < trace->processes.count; i++) {
		uint32_t sessions = trace->processes.items[i].runtime_sessions;
		const char *text = trace_text(trace, sessions);
		uint32_t alike = 0;
		bool told = false;
		if (!*text)
			continue;
		for (uint32_t j = 0; j < trace->processes.count; j++) {
			bool same = trace->processes.items[j].runtime_sessions == sessions;
			told |= same && j < i;
			alike += same;
		}
		if (told)
			continue;
		bytes_text(out, "opened in ");
		if (alike == 1)
			label_process(out, trace, i);
		else
			bytes_printf(out, "%" PRIu32 " .NET processes", alike);
		bytes_text(out, ": ");
		for (const char *line = text; *line;) {
			size_t len = strcspn(line, "\n");
			text_add_safe(out, line, len);
			line += len + (line[len] == '\n');
			bytes_text(out, *line ? "; " : "\n");
		}
	}
}

/* How far each source's clock is from the recording's: -v. */
static void add_clocks(struct page *page)
{
	const struct trace *trace = page->report->trace;
	struct bytes *out = page->out;

	for (uint32_t i = 1; i < trace->clock_offsets.count; i++) {
		const struct clock_offset *offset = &trace->clock_offsets.items[i];
		uint64_t by_ns = offset->offset_ns < 0 ? 0 - (uint64_t)offset->offset_ns
						       : (uint64_t)offset->offset_ns;
		set_cell(page, offset->source);
		bytes_text(out, "clock of ");
		bytes_add(out, page->cell.data, page->cell.len);
		if (offset->process) {
			bytes_text(out, " in ");
			label_process(out, trace, offset->process);
		}
		if (by_ns <= offset->error_ns) {
			bytes_text(out, ": the recording's own, to within ");
			text_add_duration(out, (double)offset->error_ns / NS_PER_S);
		} else {
			bytes_text(out, ": ");
			text_add_duration(out, (double)by_ns / NS_PER_S);
			bytes_text(out, offset->offset_ns < 0 ? " behind" : " ahead of");
			bytes_text(out, " the recording's, known to within ");
			text_add_duration(out, (double)offset->error_ns / NS_PER_S);
		}
		bytes_text(out, "\n");
	}
}

/* A process that waits for its container's next share of CPU time looks idle, and is not. */
static void add_grants(struct page *page)
{
	const struct trace *trace = page->report->trace;
	struct bytes *out = page->out;

	for (uint32_t i = 1; i < trace->cpu_grants.count; i++) {
		const struct cpu_grant *grant = &trace->cpu_grants.items[i];
		const char *container = trace_text(trace, grant->container);
		if (!grant->period_ns)
			continue;
		bytes_text(out, *container ? "container " : "control group ");
		if (*container)
			text_add_safe(out, container,
				strlen(container) < CONTAINER_COLUMNS ? strlen(container)
								      : CONTAINER_COLUMNS);
		else
			text_add_safe(out, trace_text(trace, grant->path),
				strlen(trace_text(trace, grant->path)));
		bytes_printf(out, ": limited to %.3g CPUs, ",
			(double)grant->quota_ns / (double)grant->period_ns);
		if (!grant->throttled_periods) {
			bytes_text(out, "never throttled\n");
			continue;
		}
		paint(page, color_bold);
		bytes_printf(out, "throttled %.1f %% of the time",
			100 * share_of(grant->throttled_periods, grant->periods));
		paint(page, color_reset);
		bytes_text(out, " (in ");
		text_add_count(out, grant->throttled_periods);
		bytes_text(out, " of ");
		text_add_things(out, grant->periods, "period; its threads waited ",
			"periods; its threads waited ");
		text_add_duration(out, (double)grant->throttled_ns / NS_PER_S);
		bytes_text(out, ")\n");
	}
}

#define FOLDED UINT32_MAX /* in the counts below: printed together with an earlier notice */

/* The notice with the same text about another process. 0: there is none. */
static uint32_t find_same_notice(const struct trace *trace, const struct map *index, uint64_t key,
	const struct notice *notice)
{
	for (struct map_walk w = map_find(index, key); w.value; map_next(&w)) {
		const struct notice *known = &trace->notices.items[w.value];
		if (known->process && known->text == notice->text &&
			known->remedy == notice->remedy)
			return w.value;
	}
	return 0;
}

/*
 * How many more processes each notice is of; NULL: no memory, all are shown. A program that starts
 * many others leaves a notice for each of them that ended between fork and exec.
 */
static uint32_t *count_notices(const struct trace *trace)
{
	uint32_t *more = calloc((size_t)trace->notices.count + 1, sizeof(*more));
	struct map index = { 0 };

	for (uint32_t i = 1; more && i < trace->notices.count; i++) {
		const struct notice *notice = &trace->notices.items[i];
		uint64_t key = (uint64_t)notice->text << 32 | notice->remedy;
		uint32_t same = notice->process ? find_same_notice(trace, &index, key, notice) : 0;
		if (same) {
			more[same]++;
			more[i] = FOLDED;
		} else {
			/* without memory: the next one is shown as well */
			(void)map_add(&index, key, i);
		}
	}
	map_done(&index);
	return more;
}

static void add_notices(struct page *page)
{
	const struct trace *trace = page->report->trace;
	struct bytes *out = page->out;
	uint32_t *more = page->options->verbose ? NULL : count_notices(trace);

	for (uint32_t i = 1; i < trace->notices.count; i++) {
		const struct notice *notice = &trace->notices.items[i];
		if ((notice->severity < 2 && !page->options->verbose) || !notice->text ||
			(more && more[i] == FOLDED))
			continue;
		if (notice->process) {
			label_process(out, trace, notice->process);
			if (more && more[i]) {
				bytes_text(out, " and ");
				text_add_things(out, more[i], "more process", "more processes");
			}
			bytes_text(out, ": ");
		}
		set_cell(page, notice->text);
		bytes_add(out, page->cell.data, page->cell.len);
		if (notice->remedy) {
			set_cell(page, notice->remedy);
			bytes_text(out, "; ");
			bytes_add(out, page->cell.data, page->cell.len);
		}
		bytes_text(out, "\n");
	}
	free(more);
}

/* How far the answer can be trusted: loss, names, limits, end. */
static void add_trust(struct page *page)
{
	const struct report *report = page->report;
	struct bytes *out = page->out;

	if (report->all_samples) {
		label_samples(out, report, report->all_samples);
		bytes_text(out, ", ");
	}
	label_loss(out, report);
	if (report->frames) {
		double named = share_of(report->named_frames, report->frames);
		/* A share below 100 % is not rounded up to 100 %. */
		if (named < 1 && named > 0.9995)
			named = 0.9995 - 0.00001;
		bytes_printf(out, "; names for %.*f %% of ", named < 1 ? 1 : 0, 100 * named);
		text_add_things(out, report->frames, "frame", "frames");
		add_unnamed(page);
	}
	bytes_text(out, "\n");
	add_symbols_needed(page);
	if (report->unwound_stacks) {
		label_unwinding(out, report->unwound_stacks, report->unwound_ends);
		bytes_text(out, "\n");
	}
	if (report->weighing == REPORT_CPU_CLOCKS)
		bytes_text(out,
			report->no_stacks
				? "CPU time by each thread's CPU clock; no stacks\n"
				: "managed stacks sampled by the runtime, weighted by each thread's CPU clock; no native frames\n");
	if (report->weighing == REPORT_THREAD_TIME)
		bytes_text(out,
			"thread time, not CPU time: the runtime samples threads whether they run or wait, and no thread's CPU clock is in this file\n");
	if (page->options->verbose)
		add_sessions(page);
	if (report->killed)
		bytes_text(out,
			"the recorder was stopped before it could end the recording: the last "
			"second may be missing\n");
	add_notices(page);
	if (page->options->verbose)
		add_clocks(page);
	if (report->selection) {
		bytes_text(out, "shown: ");
		if (report->weighing != REPORT_EVENTS)
			text_add_things(out, report->samples, "sample, ", "samples, ");
		label_amount(out, report, report->cpu_ns);
		if (report->all_cpu_ns && report->weighing != REPORT_EVENTS) {
			bytes_printf(out, " (%.1f %% of the recording's ",
				100 * share_of(report->cpu_ns, report->all_cpu_ns));
			add_cpu_seconds(out, report->all_cpu_ns);
			bytes_text(out, ")");
		}
		bytes_text(out, ", of ");
		text_add_safe_z(out, report->selection);
		bytes_text(out, "\n");
	}
}

static void add_process_words(struct page *page, uint32_t index)
{
	const struct trace *trace = page->report->trace;
	const struct process *process = &trace->processes.items[index];

	label_process(page->out, trace, index);
	if (process->runtime_kind == RUNTIME_CORECLR ||
		process->runtime_kind == RUNTIME_NATIVEAOT) {
		bytes_text(page->out,
			process->runtime_kind == RUNTIME_CORECLR ? ", .NET" : ", NativeAOT");
		if (process->runtime_version) {
			set_cell(page, process->runtime_version);
			bytes_text(page->out, " ");
			bytes_add(page->out, page->cell.data, page->cell.len);
		}
	}
}

static void add_processes(struct page *page)
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
	paint(page, color_dim);
	bytes_text(out, report->weighing == REPORT_THREAD_TIME ? "thread s   share  process\n"
			: events                               ? " events    share  process\n"
							       : "  CPU s    share  process\n");
	paint(page, color_reset);
	for (; shown < report->processes.count && shown < PROCESS_ROWS_MAX; shown++) {
		const struct report_process *process = &report->processes.items[shown];
		double share = share_of(process->cpu_ns, report->cpu_ns);
		/* A single remaining process is printed: a line about the others is as long. */
		if (share < PROCESS_SHARE_MIN && shown + 1 < report->processes.count)
			break;
		bytes_printf(out, "%7.*f  ", digits, (double)process->cpu_ns / unit);
		add_percent(out, share, false);
		bytes_text(out, "  ");
		add_process_words(page, process->process);
		bytes_text(out, "\n");
		rest_ns -= process->cpu_ns;
	}
	if (shown < report->processes.count) {
		bytes_printf(out, "%7.*f  ", digits, (double)rest_ns / unit);
		add_percent(out, share_of(rest_ns, report->cpu_ns), false);
		bytes_printf(out, "  %u others\n", report->processes.count - shown);
	}
}

struct widths {
	size_t name;
	size_t module;
	size_t tiers;
};

/* Reduces the widths to the columns of the terminal; `fixed` columns are before the name. */
static void fit_widths(const struct page *page, struct widths *widths, size_t fixed)
{
	size_t columns = page->options->columns;
	size_t behind = 2 + widths->module + (widths->tiers ? 2 + widths->tiers : 0);

	if (!columns || fixed + widths->name + behind <= columns)
		return;
	/* The name gives way last: it is what the line is about. */
	if (widths->module > columns / MODULE_PART) {
		behind -= widths->module - columns / MODULE_PART;
		widths->module = columns / MODULE_PART;
	}
	if (widths->tiers > TIERS_COLUMNS && fixed + widths->name + behind > columns) {
		behind -= widths->tiers - TIERS_COLUMNS;
		widths->tiers = TIERS_COLUMNS;
	}
	size_t room = columns > fixed + behind ? columns - fixed - behind : 0;
	if (room < NAME_COLUMNS_MIN)
		room = NAME_COLUMNS_MIN;
	if (widths->name > room)
		widths->name = room;
}

/* All tiers, or in a narrow column the last one, which replaced the others, and their number. */
static void set_tiers_cell(struct page *page, uint32_t tiers, size_t columns)
{
	unsigned last = 0;
	unsigned count = 0;

	bytes_reset(&page->cell);
	label_tiers(&page->cell, tiers);
	if (cell_columns(page) <= columns)
		return;
	for (unsigned tier = 0; tier < FUNCTION_TIER_COUNT; tier++) {
		if (!(tiers & 1u << tier))
			continue;
		last = tier;
		count++;
	}
	bytes_reset(&page->cell);
	bytes_text(&page->cell, function_tier_words((enum function_tier)last));
	if (count > 1)
		bytes_printf(&page->cell, " +%u", count - 1);
}

static void measure(struct page *page, uint32_t function_index, uint32_t tiers, size_t indent,
	struct widths *widths)
{
	const struct function *function = &page->report->names->functions.items[function_index];

	set_cell(page, function->name);
	size_t name = cell_columns(page) + indent;
	if (name > widths->name)
		widths->name = name;
	set_cell(page, function->module);
	if (cell_columns(page) > widths->module)
		widths->module = cell_columns(page);
	set_tiers_cell(page, tiers, SIZE_MAX);
	if (cell_columns(page) > widths->tiers)
		widths->tiers = cell_columns(page);
}

/*
 * In the cell, the longest form of the function's name that fits: as in a flame graph arguments go
 * first, then the namespace, then the type.
 */
static void shorten_cell(struct page *page, uint8_t function_kind, size_t columns)
{
	const char *text = (const char *)page->cell.data;
	struct name_parts parts;

	if (!page->options->columns || cell_columns(page) <= columns)
		return;
	label_split(text, page->cell.len, function_kind, &parts);
	const size_t begins[] = { 0, parts.type_at, parts.method_at };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		size_t len = parts.head_len - begins[i];
		bool last = i + 1 == sizeof(begins) / sizeof(begins[0]);
		if (!last && text_columns(text + begins[i], len) > columns)
			continue;
		memmove(page->cell.data, page->cell.data + begins[i], len);
		page->cell.len = len;
		return;
	}
}

/* Name, module and tiers, and the end of the line. */
static void add_function(struct page *page, uint32_t function_index, uint32_t tiers,
	size_t name_columns, const struct widths *widths)
{
	const struct function *function = &page->report->names->functions.items[function_index];

	set_cell(page, function->name);
	shorten_cell(page, function->named ? function->kind : (uint8_t)FUNCTION_UNKNOWN,
		name_columns);
	paint(page, kind_color(function->kind));
	add_cell(page, name_columns, !function->module && !tiers);
	if (page->options->color && *kind_color(function->kind))
		bytes_text(page->out, color_reset);
	if (function->module || tiers) {
		bytes_text(page->out, "  ");
		set_cell(page, function->module);
		add_cell(page, widths->module, !tiers);
	}
	if (tiers) {
		bytes_text(page->out, "  ");
		set_tiers_cell(page, tiers, page->options->columns ? widths->tiers : SIZE_MAX);
		add_cell(page, widths->tiers, true);
	}
	bytes_text(page->out, "\n");
}

static void add_table(struct page *page, const struct report_process *process)
{
	const struct report *report = page->report;
	const struct report_row *rows = report->rows.items + process->row_at;
	uint32_t shown = 0;
	struct widths widths = { .name = 8, .module = 6 };
	uint64_t shown_ns = 0;
	struct bytes *out = page->out;

	bytes_text(out, "\n");
	paint(page, color_bold);
	label_process(out, report->trace, process->process);
	paint(page, color_reset);
	bytes_text(out, "\n");
	for (; shown < process->row_count && shown < page->row_count; shown++) {
		const struct report_row *row = &rows[shown];
		if (share_of(page->options->by_total ? row->total_ns : row->self_ns,
			    process->cpu_ns) < page->options->least_share)
			break;
		measure(page, row->function, row->tiers, 0, &widths);
	}
	fit_widths(page, &widths, page->options->without_total ? 9 : 18);
	paint(page, color_dim);
	bytes_text(out, page->options->without_total ? "   self  " : "   self    total  ");
	bytes_printf(out, "%-*s  module\n", (int)widths.name, "function");
	paint(page, color_reset);
	for (uint32_t i = 0; i < shown; i++) {
		add_percent(out, share_of(rows[i].self_ns, process->cpu_ns), false);
		bytes_text(out, "  ");
		if (!page->options->without_total) {
			add_percent(out, share_of(rows[i].total_ns, process->cpu_ns), false);
			bytes_text(out, "  ");
		}
		add_function(page, rows[i].function, rows[i].tiers, widths.name, &widths);
		shown_ns += rows[i].self_ns;
	}
	if (share_of(process->stackless_ns, process->cpu_ns) >= STACKLESS_SHARE_MIN) {
		paint(page, color_dim);
		add_percent(out, share_of(process->stackless_ns, process->cpu_ns), false);
		bytes_text(out, page->options->without_total ? "  " : "           ");
		bytes_text(out, report->weighing == REPORT_CPU_CLOCKS
					? "(no managed stack: native threads, the runtime's own)\n"
					: "(no stack)\n");
		paint(page, color_reset);
		shown_ns += process->stackless_ns;
	}
	if (shown < process->row_count) {
		uint32_t more = process->row_count - shown;
		paint(page, color_dim);
		bytes_text(out, "      \xe2\x80\xa6           ");
		text_add_things(out, more, "more function", "more functions");
		bytes_printf(out, ", %.1f %% self\n",
			100 * share_of(process->cpu_ns - shown_ns, process->cpu_ns));
		paint(page, color_reset);
	}
}

/* The text of one key of a group, in page->cell. */
static void set_group_cell(struct page *page, const struct report_group *group,
	enum report_group_key key)
{
	switch (key) {
	case GROUP_NAME:
		set_cell(page, group->name);
		break;
	case GROUP_PID:
		bytes_reset(&page->cell);
		bytes_printf(&page->cell, "%u", group->pid);
		break;
	case GROUP_MODULE:
		set_cell(page, group->module);
		break;
	case GROUP_FUNCTION:
		set_cell(page, page->report->names->functions.items[group->function].name);
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

static void add_groups(struct page *page)
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
		if (share_of(options->by_total ? group->total_ns : group->self_ns, report->cpu_ns) <
			options->least_share)
			break;
		for (size_t c = 0; c < column_count; c++) {
			if (!(report->group_keys & columns[c].key))
				continue;
			set_group_cell(page, group, columns[c].key);
			if (cell_columns(page) > widths[c])
				widths[c] = cell_columns(page);
			last = c;
		}
	}
	for (size_t c = 0; c < column_count; c++)
		if (report->group_keys & columns[c].key && widths[c] < strlen(columns[c].heading))
			widths[c] = strlen(columns[c].heading);
	fit_groups(options->columns, options->without_total ? 7 : 16, widths, column_count);
	bytes_text(out, "\n");
	paint(page, color_dim);
	bytes_text(out, options->without_total ? "   self" : "   self    total");
	for (size_t c = 0; c < column_count; c++) {
		if (!(report->group_keys & columns[c].key))
			continue;
		size_t heading = strlen(columns[c].heading);
		bytes_text(out, "  ");
		bytes_text(out, columns[c].heading);
		if (c != last)
			add_spaces(out, widths[c] - heading);
	}
	bytes_text(out, "\n");
	paint(page, color_reset);
	for (uint32_t i = 0; i < shown; i++) {
		const struct report_group *group = &report->groups.items[i];
		add_percent(out, share_of(group->self_ns, report->cpu_ns), false);
		if (!options->without_total) {
			bytes_text(out, "  ");
			add_percent(out, share_of(group->total_ns, report->cpu_ns), false);
		}
		for (size_t c = 0; c < column_count; c++) {
			if (!(report->group_keys & columns[c].key))
				continue;
			bytes_text(out, "  ");
			set_group_cell(page, group, columns[c].key);
			add_cell(page, widths[c], c == last);
		}
		bytes_text(out, "\n");
		shown_ns += group->self_ns;
	}
	if (shown < report->groups.count) {
		paint(page, color_dim);
		bytes_text(out, "      \xe2\x80\xa6  ");
		text_add_count(out, report->groups.count - shown);
		bytes_printf(out, " more, %.1f %% self\n",
			100 * share_of(report->cpu_ns - shown_ns, report->cpu_ns));
		paint(page, color_reset);
	}
}

/* Order of children in a printed tree: most time first. */
static int compare_steps(const struct call_tree *tree, uint32_t a, uint32_t b, void *context)
{
	const struct call_node *x = &tree->nodes.items[a];
	const struct call_node *y = &tree->nodes.items[b];

	(void)context;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

struct tree_page {
	struct page *page;
	const struct call_tree *tree;
	struct widths widths;
	struct bytes prefix; /* of the lines below the current branch */
	uint64_t whole_ns;   /* 100 % */
	bool measuring;
};

/* The number of children with enough time for a line, and the number and time of the others. */
static uint32_t count_children(const struct tree_page *t, const struct call_node *node,
	uint32_t *ret_more, uint64_t *ret_more_ns)
{
	uint32_t shown = 0;

	*ret_more = 0;
	*ret_more_ns = 0;
	for (uint32_t c = node->child; c; c = t->tree->nodes.items[c].sibling) {
		const struct call_node *child = &t->tree->nodes.items[c];
		if (share_of(child->total_ns, t->whole_ns) >= STEP_SHARE_MIN &&
			shown < t->page->row_count) {
			shown++;
		} else {
			(*ret_more)++;
			*ret_more_ns += child->total_ns;
		}
	}
	return shown;
}

static void add_step(struct tree_page *t, const struct call_node *node, const char *branch)
{
	struct bytes *out = t->page->out;
	size_t indent = text_columns((const char *)t->prefix.data, t->prefix.len) +
			text_columns(branch, strlen(branch));

	if (t->measuring) {
		measure(t->page, node->what, node->tiers, indent, &t->widths);
		return;
	}
	add_percent(out, share_of(node->total_ns, t->whole_ns), false);
	bytes_text(out, "  ");
	/* In a tree of callers the last frame of a branch is a caller: it has no self time. */
	add_percent(out, t->tree->reversed ? 0 : share_of(node->self_ns, t->whole_ns), true);
	bytes_text(out, "  ");
	paint(t->page, color_dim);
	bytes_add(out, t->prefix.data, t->prefix.len);
	bytes_text(out, branch);
	paint(t->page, color_reset);
	/* However deep: some of the name must be seen. */
	size_t room = t->widths.name > indent + NAME_COLUMNS_MIN ? t->widths.name - indent
								 : NAME_COLUMNS_MIN;
	add_function(t->page, node->what, node->tiers, room, &t->widths);
}

/*
 * The steps below `node`, whose line was printed before. A step that is its parent's only child is
 * printed without further indenting: stacks are deep, and most of them do not branch.
 */
static void add_steps(struct tree_page *t, const struct call_node *node, unsigned branches)
{
	size_t prefix_len = t->prefix.len;
	uint32_t more;
	uint64_t more_ns;
	uint32_t shown = count_children(t, node, &more, &more_ns);

	while (shown == 1 && share_of(more_ns, t->whole_ns) < STEP_SHARE_MIN) {
		node = &t->tree->nodes.items[node->child];
		add_step(t, node, "");
		shown = count_children(t, node, &more, &more_ns);
	}
	if (branches == BRANCHES_MAX)
		shown = 0;
	bool more_line = shown && more && share_of(more_ns, t->whole_ns) >= STEP_SHARE_MIN;
	uint32_t child = node->child;
	for (uint32_t i = 0; i < shown; i++, child = t->tree->nodes.items[child].sibling) {
		bool last = i + 1 == shown && !more_line;
		add_step(t, &t->tree->nodes.items[child], last ? "\xe2\x94\x94 " : "\xe2\x94\x9c ");
		bytes_text(&t->prefix, last ? "  " : "\xe2\x94\x82 ");
		add_steps(t, &t->tree->nodes.items[child], branches + 1);
		t->prefix.len = prefix_len;
	}
	if (more_line && !t->measuring) {
		struct bytes *out = t->page->out;
		add_percent(out, share_of(more_ns, t->whole_ns), false);
		bytes_text(out, "           ");
		bytes_add(out, t->prefix.data, t->prefix.len);
		bytes_printf(out, "\xe2\x94\x94 \xe2\x80\xa6 %u more\n", more);
	}
}

static void add_tree_below(struct page *page, const struct call_tree *tree,
	const struct call_node *node)
{
	struct tree_page t = { .page = page,
		.tree = tree,
		.whole_ns = node->total_ns,
		.widths = { .name = 8, .module = 6 } };
	uint32_t more;
	uint64_t more_ns;

	t.measuring = true;
	add_steps(&t, node, 0);
	t.measuring = false;
	fit_widths(page, &t.widths, 18);
	paint(page, color_dim);
	bytes_text(page->out, tree->reversed ? "  share           " : "  total     self  ");
	bytes_printf(page->out, "%-*s  module\n", (int)t.widths.name, "function");
	paint(page, color_reset);
	(void)count_children(&t, node, &more, &more_ns);
	add_steps(&t, node, 0);
	bytes_done(&t.prefix);
}

/* In place of the callers of a function that is on no stack. */
static void add_nearest_functions(struct page *page)
{
	struct nearest near = { .wanted = page->options->callers };
	const struct report *report = page->report;

	struct bytes names = { 0 };

	bytes_text(page->out, " is on no stack; ");
	for (uint32_t i = 0; i < report->rows.count; i++)
		nearest_offer(&near,
			trace_text(report->trace,
				report->names->functions.items[report->rows.items[i].function]
					.name));
	if (nearest_add(&near, &names))
		bytes_printf(page->out, "did you mean %s?\n", bytes_z(&names));
	else
		bytes_text(page->out,
			"names are compared whole, from their last part (\"Burn\"), or as a pattern (\"*Burn*\")\n");
	page->out->failed |= names.failed;
	bytes_done(&names);
}

static void add_tree(struct page *page, struct call_tree *tree)
{
	const struct call_node *root = &tree->nodes.items[CALL_TREE_ROOT];
	struct bytes *out = page->out;
	uint32_t shown = 0;

	(void)call_tree_sort(tree, compare_steps, NULL); /* without memory only the order suffers */
	if (page->options->callers) {
		bytes_text(out, "\n");
		paint(page, color_bold);
		text_add_safe_z(out, page->options->callers);
		paint(page, color_reset);
		if (!root->total_ns) {
			add_nearest_functions(page);
			return;
		}
		bytes_text(out, " and its callers: ");
		label_amount(out, page->report, root->total_ns);
		bytes_printf(out, ", %.1f %% of what is shown\n",
			100 * share_of(root->total_ns, page->report->cpu_ns));
		add_tree_below(page, tree, root);
		return;
	}
	for (uint32_t c = root->child; c; c = tree->nodes.items[c].sibling) {
		const struct call_node *node = &tree->nodes.items[c];
		double share = share_of(node->total_ns, root->total_ns);
		if (shown && (share < TABLE_SHARE_MIN || shown == PROCESS_TABLES_MAX))
			break;
		shown++;
		bytes_text(out, "\n");
		paint(page, color_bold);
		label_process(out, page->report->trace, node->what);
		paint(page, color_reset);
		bytes_text(out, "  ");
		label_amount(out, page->report, node->total_ns);
		bytes_text(out, "\n");
		add_tree_below(page, tree, node);
	}
}

/* The ends of methods' code are in each recording, for readers that go by them. */
static bool is_told(const struct report *report, uint32_t i)
{
	const struct schema *schema = &report->trace->schemas.items[report->events.items[i].schema];

	return !report->all_samples || schema->provider_kind != PROVIDER_CLR ||
	       schema->event_id != CLR_ID_MethodUnloadVerbose;
}

/* What a trace holds, or a recording beside its samples: events by kind. */
static void add_events(struct page *page)
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
		if (!is_told(report, i))
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
		add_spaces(out, cell_columns(page) < 11 ? 11 - cell_columns(page) : 0);
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
		bytes_text(out,
			" counted by type, but not written: above the recorder's --event-rate\n");
	}
}

/* One command a line, to be pasted. */
static void begin_next(struct page *page, bool first, const char *verb)
{
	const struct report *report = page->report;

	bytes_text(page->out, first ? "\nnext   spoor " : "       spoor ");
	bytes_text(page->out, verb);
	bytes_text(page->out, " ");
	text_add_shell_word(page->out,
		report->file && strcmp(report->file, "-") != 0 ? report->file : "FILE");
}

static void add_next(struct page *page, bool tree)
{
	const struct report *report = page->report;
	struct bytes *out = page->out;

	if (!report->samples && report->all_samples) {
		begin_next(page, true, "report");
	} else if (!report->samples && has_events(report)) {
		begin_next(page, true, "events");
		bytes_text(out, " --summary");
	} else if (!report->samples) {
		bytes_text(out, "\nnext   spoor doctor");
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
	struct page page = { .report = report,
		.options = options,
		.out = out,
		.row_count = options->row_count ? options->row_count : ROWS_DEFAULT };

	add_head(&page);
	add_grants(&page);
	add_trust(&page);
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
			add_tree(&page, tree);
		if (report->group_keys && !tree)
			add_groups(&page);
		for (uint32_t i = 0; !tree && !report->group_keys && i < report->processes.count &&
				     i < PROCESS_TABLES_MAX;
			i++) {
			const struct report_process *process = &report->processes.items[i];
			if (i && share_of(process->cpu_ns, report->cpu_ns) < TABLE_SHARE_MIN)
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
