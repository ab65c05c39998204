/* See frame_label.h. */
#include "render/frame_label.h"

#include <time.h>

#include "base/bytes.h"
#include "base/text.h"
#include "trace/loss_words.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NS_PER_S 1000000000u

void label_process_name(struct bytes *out, const struct trace *trace, uint32_t process)
{
	if (process >= trace->processes.count)
		process = 0;
	const struct process *p = &trace->processes.items[process];

	if (p->name)
		text_add_safe(out, trace_text(trace, p->name),
			strtab_len(&trace->strings, p->name));
	else
		bytes_printf(out, "pid %u", p->pid);
}

void label_process(struct bytes *out, const struct trace *trace, uint32_t process)
{
	label_process_name(out, trace, process);
	if (process < trace->processes.count && trace->processes.items[process].name)
		bytes_printf(out, " (%u)", trace->processes.items[process].pid);
}

void label_tiers(struct bytes *out, uint32_t tiers)
{
	const char *comma = "";

	for (unsigned tier = 0; tier < FUNCTION_TIER_COUNT; tier++) {
		if (!(tiers & 1u << tier))
			continue;
		bytes_text(out, comma);
		bytes_text(out, function_tier_words((enum function_tier)tier));
		comma = ", ";
	}
}

const char *label_kind(uint8_t function_kind)
{
	static const char *const words[] = {
		[FUNCTION_UNKNOWN] = "unknown",
		[FUNCTION_KERNEL] = "kernel",
		[FUNCTION_NATIVE] = "native",
		[FUNCTION_JIT] = "jit",
		[FUNCTION_READYTORUN] = "r2r",
		[FUNCTION_STUB] = "stub",
		[FUNCTION_BLOCKED] = "blocked",
	};

	return words[function_kind < sizeof(words) / sizeof(words[0]) ? function_kind
								      : FUNCTION_UNKNOWN];
}

void label_utc(struct bytes *out, const struct report *report)
{
	time_t seconds = (time_t)(report->trace->recording.utc_ns / NS_PER_S);
	struct tm tm;
	char text[64];

	if (!seconds || !gmtime_r(&seconds, &tm))
		return;
	if (strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		bytes_text(out, text);
}

/* With --off-cpu, records of switches are counted with the samples, which have no share then. */
static bool is_of_samples(const struct report *report, const struct report_loss *loss)
{
	return loss_unit_of(trace_text(report->trace, loss->unit)) == LOSS_SAMPLES &&
	       report->trace->recording.session.switches != SESSION_YES;
}

static void add_where(struct bytes *out, const struct report *report,
	const struct report_loss *loss)
{
	const char *comma = "";

	bytes_text(out, " (");
	if (loss->count && is_of_samples(report, loss)) {
		uint64_t all = report->all_samples + (loss->moved ? 0 : loss->count);
		bytes_printf(out, "%.1f %%", 100.0 * (double)loss->count / (double)(all ? all : 1));
		comma = ", ";
	}
	if (loss->cpu >= 0) {
		bytes_printf(out, "%sCPU %d", comma, loss->cpu);
		comma = ", ";
	} else if (loss->several_cpus) {
		bytes_printf(out, "%sseveral CPUs", comma);
		comma = ", ";
	}
	double first = loss->first_ns > report->begin_ns
			       ? (double)(loss->first_ns - report->begin_ns) / NS_PER_S
			       : 0;
	double last = loss->last_ns > report->begin_ns
			      ? (double)(loss->last_ns - report->begin_ns) / NS_PER_S
			      : 0;
	bytes_printf(out, "%s%.1f to %.1f s", comma, first, last);
	const char *source = trace_text(report->trace, loss->source);
	if (!loss->moved && loss_source_of(source) != LOSS_RING) {
		bytes_text(out, ", ");
		text_add_safe_z(out, source);
	}
	bytes_text(out, ")");
}

static void add_loss(struct bytes *out, const struct report *report, const struct report_loss *loss)
{
	const char *unit = trace_text(report->trace, loss->unit);

	if (loss->more_unknown && !loss->count) {
		bytes_text(out, "an unknown number of ");
	} else {
		if (loss->more_unknown)
			bytes_text(out, "at least ");
		text_add_count(out, loss->count);
		if (!loss->moved && is_of_samples(report, loss))
			bytes_printf(out, " of %s", TEXT_COUNT(report->all_samples + loss->count));
		bytes_text(out, " ");
	}
	text_add_safe_z(out, *unit ? unit : "events");
	if (loss_unit_of(unit) == LOSS_SAMPLES && !is_of_samples(report, loss))
		bytes_text(out, " and switches");
	bytes_text(out, loss->moved ? " came late, in a later place of the file" : " lost");
	add_where(out, report, loss);
}

void label_loss(struct bytes *out, const struct report *report)
{
	bool lost = false;
	const char *separator = "";

	for (uint32_t i = 0; i < report->losses.count; i++)
		lost |= !report->losses.items[i].moved;
	if (!lost) {
		bytes_text(out, "nothing lost");
		separator = "; ";
	}
	for (uint32_t i = 0; i < report->losses.count; i++) {
		bytes_text(out, separator);
		add_loss(out, report, &report->losses.items[i]);
		separator = "; ";
	}
}

const char *label_unnamed(const struct trace *trace, uint32_t module, uint8_t function_kind)
{
	if (function_kind == FUNCTION_JIT)
		return "JIT code";
	if (function_kind == FUNCTION_UNKNOWN)
		return "memory without a file";
	return trace_text(trace, module);
}

const char *label_weight(const struct report *report)
{
	return report->weighing == REPORT_THREAD_TIME ? "thread"
	       : report->weighing == REPORT_WAITING   ? "waiting"
	       : report->weighing == REPORT_WALL      ? "wall-clock"
						      : "CPU";
}

void label_samples(struct bytes *out, const struct report *report, uint64_t count)
{
	bool events = report->weighing == REPORT_EVENTS;

	text_add_things(out, count, events ? "event" : "sample", events ? "events" : "samples");
}

void label_amount(struct bytes *out, const struct report *report, uint64_t weight)
{
	double seconds = (double)weight / 1e9;

	if (report->weighing == REPORT_ALLOCATIONS)
		text_add_size(out, weight);
	else if (report->weighing == REPORT_EVENTS)
		text_add_things(out, weight, "event", "events");
	else
		bytes_printf(out, "%.*f %s s",
			seconds >= 99.95   ? 0
			: seconds >= 9.995 ? 1
					   : 2,
			seconds, label_weight(report));
}

/* Where the arguments begin; what opens with "(" is a kind of stub and has none. */
static size_t head_length(const char *text, size_t len)
{
	size_t depth = 0;

	if (!len || text[0] == '(')
		return len;
	for (size_t i = 1; i < len; i++) {
		if (text[i] == '<')
			depth++;
		else if (text[i] == '>' && depth)
			depth--;
		else if (text[i] == '(' && !depth)
			return i;
	}
	return len;
}

/* After the last separator, and the one before it; those within generic arguments not counted. */
void label_split(const char *text, size_t len, uint8_t function_kind, struct name_parts *ret_parts)
{
	bool managed = function_kind == FUNCTION_JIT || function_kind == FUNCTION_READYTORUN;
	struct name_parts parts = { .head_len = head_length(text, len) };
	size_t depth = 0;

	*ret_parts = parts;
	if (!len || text[0] == '(' || function_kind == FUNCTION_KERNEL ||
		function_kind >= FUNCTION_KIND_COUNT)
		return;
	for (size_t i = 0; i + 1 < parts.head_len; i++) {
		size_t next = 0;
		if (text[i] == '<')
			depth++;
		else if (text[i] == '>' && depth)
			depth--;
		else if (depth)
			continue;
		else if (text[i] == ':' && text[i + 1] == ':')
			next = i + 2;
		else if (managed && text[i] == '.' && i && text[i - 1] != '.')
			next = i + 1;
		if (!next || next >= parts.head_len)
			continue;
		parts.type_at = parts.method_at;
		parts.method_at = next;
	}
	*ret_parts = parts;
}
