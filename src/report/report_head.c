/* See report_head.h. */
#include "report/report_head.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "render/unwind_label.h"
#include "report/report_page.h"
#include "trace/report.h"
#include "trace/trace.h"

#define NS_PER_S          1e9
#define UNNAMED_MAX       3u
#define CONTAINER_COLUMNS 12u /* of an id: what people know it by */

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

/* How much CPU time there was, and of what. */
static void add_use(struct report_page *page)
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
		if (report->events.count)
			text_add_things(out, events, "event, ", "events, ");
		bytes_text(out, "no CPU samples\n");
		return;
	}
	page_paint(page, PAGE_BOLD);
	bytes_printf(out, "%s%.*f %%", who ? "" : "CPU busy ", report->busy < 0.0995 ? 1 : 0,
		100 * report->busy);
	if (who) {
		bytes_text(out, " of ");
		text_add_things(out, report->cpu_count, "CPU", "CPUs");
	}
	page_paint(page, PAGE_RESET);
	if (who)
		bytes_printf(out, " used by %s", who);
	bytes_text(out, " (");
	add_cpu_seconds(out, report->all_cpu_ns);
	bytes_text(out, " of ");
	add_cpu_seconds(out, report->duration_ns * report->cpu_count);
	bytes_text(out, " CPU s)\n");
}

static void add_head(struct report_page *page)
{
	const struct report *report = page->report;
	const struct recording *recording = &report->trace->recording;
	const char *kernel = trace_text(report->trace, recording->kernel);
	struct bytes *out = page->out;

	if (recording->host) {
		page_set_cell(page, recording->host);
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

static void add_unnamed(struct report_page *page)
{
	const struct report *report = page->report;
	uint32_t shown = report->unnamed.count < UNNAMED_MAX ? report->unnamed.count : UNNAMED_MAX;

	for (uint32_t i = 0; i < shown; i++) {
		const struct report_unnamed *unnamed = &report->unnamed.items[i];
		double share = page_share(unnamed->frames, report->frames);
		if (share < 0.0005)
			break;
		const char *module = label_unnamed(report->trace, unnamed->module, unnamed->kind);
		bytes_text(page->out, i ? ", " : "; without: ");
		text_add_safe_z(page->out, module);
		bytes_printf(page->out, " %.1f %%", 100 * share);
	}
}

/* How many frames the symbol files of native images would name, and how to get these files. */
static void add_symbols_needed(struct report_page *page)
{
	const struct report *report = page->report;
	uint64_t frames = 0;

	for (uint32_t i = 0; i < report->unnamed.count; i++)
		if (report->unnamed.items[i].kind == FUNCTION_NATIVE)
			frames += report->unnamed.items[i].frames;
	if (!report->file || strcmp(report->file, "-") == 0 ||
		page_share(frames, report->frames) < 0.0005)
		return;
	text_add_things(page->out, frames, "native frame has", "native frames have");
	bytes_printf(page->out, " no symbols: %s symbols fetch ", text_program());
	text_add_shell_word(page->out, report->file);
	bytes_text(page->out, "\n");
}

/* The diagnostics sessions that the recorder opened in the processes, each kind once. */
static void add_sessions(struct report_page *page)
{
	const struct trace *trace = page->report->trace;
	struct bytes *out = page->out;

	for (uint32_t i = 0; i < trace->processes.count; i++) {
		uint32_t sessions = trace->processes.items[i].runtime_sessions;
		const char *text = trace_text(trace, sessions);
		uint32_t alike = 0;
		bool reported = false;
		if (!*text)
			continue;
		for (uint32_t j = 0; j < trace->processes.count; j++) {
			bool same = trace->processes.items[j].runtime_sessions == sessions;
			reported |= same && j < i;
			alike += same;
		}
		if (reported)
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
static void add_clocks(struct report_page *page)
{
	const struct trace *trace = page->report->trace;
	struct bytes *out = page->out;

	for (uint32_t i = 1; i < trace->clock_offsets.count; i++) {
		const struct clock_offset *offset = &trace->clock_offsets.items[i];
		uint64_t by_ns = offset->offset_ns < 0 ? 0 - (uint64_t)offset->offset_ns
						       : (uint64_t)offset->offset_ns;
		page_set_cell(page, offset->source);
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
static void add_grants(struct report_page *page)
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
		page_paint(page, PAGE_BOLD);
		bytes_printf(out, "throttled %.1f %% of the time",
			100 * page_share(grant->throttled_periods, grant->periods));
		page_paint(page, PAGE_RESET);
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

static void add_notices(struct report_page *page)
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
		page_set_cell(page, notice->text);
		bytes_add(out, page->cell.data, page->cell.len);
		if (notice->remedy) {
			page_set_cell(page, notice->remedy);
			bytes_text(out, "; ");
			bytes_add(out, page->cell.data, page->cell.len);
		}
		bytes_text(out, "\n");
	}
	free(more);
}

/* How far the answer can be trusted: loss, names, limits, end. */
static void add_trust(struct report_page *page)
{
	const struct report *report = page->report;
	struct bytes *out = page->out;

	if (report->all_samples) {
		label_samples(out, report, report->all_samples);
		bytes_text(out, ", ");
	}
	label_loss(out, report);
	if (report->frames) {
		bytes_text(out, "; names for ");
		label_names(out, report->named_frames, report->frames,
			report->has_blocks ? " of samples" : "");
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
				100 * page_share(report->cpu_ns, report->all_cpu_ns));
			add_cpu_seconds(out, report->all_cpu_ns);
			bytes_text(out, ")");
		}
		bytes_text(out, ", of ");
		text_add_safe_z(out, report->selection);
		bytes_text(out, "\n");
	}
}

void report_head(struct report_page *page)
{
	add_head(page);
	add_grants(page);
	add_trust(page);
}
