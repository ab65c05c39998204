/* See record_summary.h. */
#include "cli/record_summary.h"

#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/record_outputs.h"
#include "perf/recorder.h"
#include "recording/live.h"
#include "render/unwind_label.h"

static uint64_t sum_unnamed(const struct live_counts *counts)
{
	uint64_t sum = 0;

	for (int i = 0; i < UNNAMED_CAUSE_COUNT; i++)
		sum += counts->unnamed[i];
	return sum;
}

static void add_names(const struct live_counts *counts, struct bytes *out)
{
	static const char *const words[UNNAMED_CAUSE_COUNT] = {
		[UNNAMED_NO_SYMBOLS] = "in images without symbols (shown by function bounds)",
		[UNNAMED_NO_IMAGE] = "in images that could not be opened",
		[UNNAMED_NO_MAPPING] = "outside any known mapping",
		[UNNAMED_NO_METHOD] = "in JIT memory that no method owns",
		[UNNAMED_NOT_ASKED] = "of processes that could not be asked",
		[UNNAMED_KERNEL_HIDDEN] = "of the kernel, which hides its symbols from this user",
		[UNNAMED_NO_MEMORY] = "first sampled when the recorder's memory was used up",
		[UNNAMED_FREED] = "in dynamic code that was not read while it ran",
	};
	uint64_t unnamed = sum_unnamed(counts);
	const char *separator = "; ";

	if (!counts->frames)
		return;
	bytes_text(out, "names      ");
	label_names(out, counts->frames - unnamed, counts->frames,
		counts->blocks ? " of samples and blocks" : "");
	for (int i = 0; i < UNNAMED_CAUSE_COUNT; i++) {
		double percent = 100.0 * (double)counts->unnamed[i] / (double)counts->frames;
		if (!counts->unnamed[i])
			continue;
		bytes_printf(out, "%s%.*f %% %s", separator, percent < 0.1 ? 2 : 1, percent,
			words[i]);
		separator = ", ";
	}
	bytes_text(out, "\n");
}

/* What the recording has: "1.2 MB, 3,000 samples and 20 .NET events in 10 s". */
static void add_amounts(const struct live_counts *counts, struct bytes *out)
{
	bytes_printf(out, "  %s, %s", TEXT_SIZE(counts->bytes),
		TEXT_THINGS(counts->samples, "sample", "samples"));
	if (counts->blocks)
		bytes_printf(out, "%s%s", counts->events ? ", " : " and ",
			TEXT_THINGS(counts->blocks, "block", "blocks"));
	if (counts->events)
		bytes_printf(out, " and %s",
			TEXT_THINGS(counts->events, ".NET event", ".NET events"));
	if (counts->lttng_events)
		bytes_printf(out, " and %s",
			TEXT_THINGS(counts->lttng_events, "event of LTTng", "events of LTTng"));
	if (counts->usdt_events)
		bytes_printf(out, " and %s",
			TEXT_THINGS(counts->usdt_events, "hit of USDT probes",
				"hits of USDT probes"));
	if (counts->user_events)
		bytes_printf(out, " and %s",
			TEXT_THINGS(counts->user_events, "event of user_events",
				"events of user_events"));
	if (counts->events_counted)
		bytes_printf(out, " (%s more are counted only)",
			TEXT_COUNT(counts->events_counted));
	bytes_printf(out, " in %s",
		TEXT_DURATION((double)(counts->end_ns - counts->begin_ns) / 1e9));
}

/* The end of that line: the losses. */
static void add_losses(const struct live_counts *counts, struct bytes *out)
{
	if (counts->events_lost)
		bytes_printf(out, ", %s (%.1f %%)",
			TEXT_THINGS(counts->events_lost, ".NET event lost", ".NET events lost"),
			100.0 * (double)counts->events_lost /
				(double)(counts->events + counts->events_lost));
	if (counts->lttng_lost)
		bytes_printf(out, ", %s",
			TEXT_THINGS(counts->lttng_lost, "event of LTTng lost",
				"events of LTTng lost"));
	if (counts->usdt_lost)
		bytes_printf(out, ", %s",
			TEXT_THINGS(counts->usdt_lost, "hit of USDT probes lost",
				"hits of USDT probes lost"));
	if (counts->user_events_lost)
		bytes_printf(out, ", %s",
			TEXT_THINGS(counts->user_events_lost, "event of user_events lost",
				"events of user_events lost"));
	if (counts->unsampled_ns)
		bytes_printf(out,
			", %.2f of %.2f CPU s not sampled (short-lived processes; sudo or a higher -F samples them)%s",
			(double)counts->unsampled_ns / 1e9, (double)counts->command_ns / 1e9,
			counts->lost ? "" : "\n");
	if (counts->unsampled_ns && !counts->lost) {
		/* CPU time without samples was reported above: "nothing lost" would be false. */
	} else if (!counts->lost && (counts->events_lost || counts->lttng_lost ||
					    counts->usdt_lost || counts->user_events_lost)) {
		bytes_text(out, "; no sample lost\n");
	} else if (counts->lost && counts->blocks) {
		bytes_printf(out, ", %s samples and switches lost\n", TEXT_COUNT(counts->lost));
	} else if (counts->lost) {
		bytes_printf(out, ", %s lost (%.1f %%)\n", TEXT_COUNT(counts->lost),
			100.0 * (double)counts->lost / (double)(counts->samples + counts->lost));
	} else {
		bytes_text(out, ", nothing lost\n");
	}
}

/* Of tracers whose names the user gave: what could not be opened or read. */
static void add_unopened(const struct live_counts *counts, struct bytes *out)
{
	if (counts->usdt && !counts->usdt_sites && !counts->usdt_refused)
		bytes_printf(out,
			"no USDT probe that --usdt names was in %s ('readelf -n FILE' lists those of a file)\n",
			counts->usdt_missed ? "an image that could be read"
					    : "the recorded processes");
	if (counts->usdt_missed)
		bytes_printf(out,
			"processes ended before %s could be read: hits of USDT probes are missing\n",
			TEXT_THINGS(counts->usdt_missed, "image", "images"));
	if (counts->usdt_refused)
		bytes_printf(out, "%s could not be probed (spoor report -v shows the reason)\n",
			TEXT_THINGS(counts->usdt_refused, "USDT probe", "USDT probes"));
	if (counts->user_events_wanted && !counts->user_tracepoints &&
		!counts->user_tracepoints_refused)
		bytes_text(out,
			"no program had registered events of user_events that --user-events names ('ls /sys/kernel/tracing/events/user_events' lists them)\n");
	if (counts->user_tracepoints_refused)
		bytes_printf(out, "%s could not be opened (spoor report -v shows the reason)\n",
			TEXT_THINGS(counts->user_tracepoints_refused, "tracepoint of user_events",
				"tracepoints of user_events"));
	if (counts->usdt_unreadable)
		bytes_printf(out,
			"unreadable %s (the field 'unreadable' of the events names them)\n",
			TEXT_THINGS(counts->usdt_unreadable, "argument of USDT probes",
				"arguments of USDT probes"));
}

/* The limits of the events of LTTng. */
static void add_lttng(const struct live_counts *counts, struct bytes *out)
{
	if (counts->lttng_incomplete)
		bytes_text(out, "incomplete events of LTTng (spoor report -v shows the reason)\n");
	if (counts->lttng_left)
		bytes_printf(out,
			"LTTng's session daemon does not answer, and a session may be left; once it answers: lttng destroy %s\n",
			counts->lttng_left);
}

/* The .NET processes without events or names, and those whose names were read. */
static void add_dotnet(const struct live_counts *counts, struct bytes *out)
{
	if (counts->dotnet_withheld) {
		bytes_printf(out, LIVE_WITHHELD,
			TEXT_THINGS(counts->dotnet_withheld, ".NET process", ".NET processes"),
			counts->dotnet_withheld == 1 ? "its" : "their");
		bytes_text(out, ".\n" LIVE_WITHHELD_REMEDY ".\n");
	}
	if (counts->dotnet_silent)
		bytes_printf(out,
			"not asked  %s stopped or silent: no events or method names of %s (spoor report -v shows the reason)\n",
			TEXT_THINGS(counts->dotnet_silent, ".NET process", ".NET processes"),
			counts->dotnet_silent == 1 ? "it" : "them");
	if (counts->dotnet_memory)
		bytes_printf(out, "memory     methods of %s were named from %s memory%s\n",
			TEXT_THINGS(counts->dotnet_memory, ".NET process", ".NET processes"),
			counts->dotnet_memory == 1 ? "its" : "their",
			counts->dotnet_not_asked
				? ""
				: ", as no runtime sent them (spoor report -v shows the reason)");
}

void record_summary(struct bytes *out, const struct live_counts *counts,
	const struct record_outputs *outputs, bool reported)
{
	if (strcmp(outputs->path, "-") == 0)
		bytes_text(out, "standard output");
	else if (outputs->temporary)
		bytes_text(out, "recorded");
	else
		text_add_safe_z(out, outputs->path);
	add_amounts(counts, out);
	add_losses(counts, out);
	add_unopened(counts, out);
	add_lttng(counts, out);
	add_dotnet(counts, out);
	add_names(counts, out);
	if (counts->unwound) {
		bytes_text(out, "stacks     ");
		label_unwinding(out, counts->unwound, counts->unwound_ends);
		bytes_text(out, "\n");
	}
	if (strcmp(outputs->path, "-") != 0 && !reported && !outputs->temporary) {
		bool events_only = !counts->samples && counts->events;
		bytes_printf(out, "next       %s %s ", text_program(),
			events_only ? "events" : "report");
		text_add_shell_word(out, outputs->path);
		bytes_text(out, events_only ? " --summary\n" : "\n");
	}
}

void record_summary_details(const struct recorder_info *info, struct bytes *out)
{
	if (info->clock == RECORD_CLOCK_NONE) {
		bytes_text(out,
			"\nclocks     of threads that .NET runtimes sample every 20 ms, of others every 500 ms; less often where that would take 2 % of a CPU");
		return;
	}
	bytes_printf(out,
		"\nevents     %s every %s, %s; idle %s; stacks of at most %u frames\nrings      %u of %s, %s",
		info->clock == RECORD_CLOCK_CYCLES ? "cycles" : "cpu-clock",
		TEXT_DURATION((double)info->period_ns / 1e9),
		info->kernel_excluded ? "user code only" : "kernel and user code",
		info->idle_excluded ? "left out" : "included", info->max_stack, info->ring_count,
		TEXT_SIZE(info->ring_bytes), TEXT_THINGS(info->event_count, "event", "events"));
	if (info->filter_by_pid)
		bytes_text(out, " of whole CPUs, of which other processes' records are dropped");
	else if (info->thread_count)
		bytes_printf(out, ", %s", TEXT_THINGS(info->thread_count, "thread", "threads"));
	bytes_printf(out, "; build ids %s the kernel, lost records %s",
		info->build_ids ? "from" : "not from",
		info->lost_counts ? "counted by it" : "in the ring");
}
