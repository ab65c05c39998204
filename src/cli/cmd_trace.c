/*
 * spoor trace: the events of .NET runtimes, of one process or of many, written into one file.
 *
 * Parses, opens the file, drives the trace until there is a reason to end, and prints a summary.
 * Messages go to stderr; events, with --print, to stdout.
 */
#include "cli/verbs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/listen_port.h"
#include "cli/message.h"
#include "cli/record_outputs.h"
#include "cli/run_control.h"
#include "cli/target_options.h"
#include "cli/trace_end.h"
#include "dotnet/ipc.h"
#include "dotnet/providers.h"
#include "dotnet/reason.h"
#include "dotnet/reverse.h"
#include "machine/output_file.h"
#include "render/event_line.h"
#include "target/targets.h"
#include "trace/trace.h"
#include "tracing/late_providers.h"
#include "tracing/provider_counts.h"
#include "tracing/stopping_event.h"
#include "tracing/tracing.h"

#define PAUSE_BOUND_NS UINT64_C(10000000000)
#define PAUSE_LOOK_NS  UINT64_C(50000000)
#define BUFFER_MB      256u
#define BUFFER_MB_MAX  UINT32_MAX

#define OPTIONS_VERB trace
#define OPTIONS_LIST "cli/trace_options.def"
#include "cli/option_list.h"

#define COUNT_COLUMNS 11 /* "100,000,000" */

/* The lines of --print. */
enum print_state {
	PRINT_WORKS,
	PRINT_FAILED,
	PRINT_READER_GONE, /* the reader closed the pipe: no failure, but printing ends */
};

struct trace_run {
	const struct trace_values *values;
	const struct arguments *args;
	struct targets targets;
	struct provider_list providers;
	struct bytes providers_text;
	struct tracing *tracing;
	struct listen_port port;
	struct record_outputs outputs;
	bool to_file;
	struct output_file out;
	uint32_t raw_files;
	char name[64];        /* of the file: "shop" */
	struct bytes subject; /* "shop (4711), worker (4802)" */
	struct screen screen;
	struct run_control control;
	bool wants_pause; /* Ctrl-Z */
	uint64_t paused_ns;
	struct bytes line;
	int64_t utc_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	struct provider_counts counts;
	struct stopping_event stop;
	bool stopping_event_seen;
	bool unguarded_said;
	enum print_state print;
	bool refused; /* a process was not traced because the user lacks the rights */
};

/* ---- the providers to request ---- */

static int choose_providers(struct trace_run *run, struct diag *diag)
{
	const struct trace_values *values = run->values;
	bool chosen =
		values->providers.list.count || values->profiles.list.count || values->clr_events;
	bool ignored = false;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < values->providers.list.count; i++)
		result = provider_list_add_text(&run->providers, values->providers.list.items[i],
			"--providers", diag);
	for (uint32_t i = 0; result == 0 && i < values->profiles.list.count; i++)
		result = provider_list_add_profiles(&run->providers, values->profiles.list.items[i],
			diag);
	if (result == 0 && values->clr_events)
		result = provider_list_add_clr_events(&run->providers, values->clr_events,
			values->clr_level, &ignored, diag);
	if (result == 0 && !chosen)
		result = provider_list_add_profiles(&run->providers,
			"dotnet-common,dotnet-sampled-thread-time", diag);
	for (uint32_t i = 0; result == 0 && i < values->event_ids.list.count; i++)
		result = provider_list_add_event_ids(&run->providers,
			values->event_ids.list.items[i], diag);
	if (result == 0 && ignored && !values->quiet)
		message_print("--clrevents is left out: the runtime's events were chosen otherwise "
			      "already");
	return result;
}

/* Prints the chosen providers, each with the option that chose it. */
static void say_providers(const struct trace_run *run)
{
	bool chosen = run->values->providers.list.count || run->values->profiles.list.count ||
		      run->values->clr_events;
	int width = 0;

	for (uint32_t i = 0; i < run->providers.items.count; i++) {
		int len = (int)strlen(run->providers.items.items[i].name);
		width = len > width ? len : width;
	}
	for (uint32_t i = 0; i < run->providers.items.count; i++) {
		const struct provider_choice *choice = &run->providers.items.items[i];
		char name[128];
		/* a cut end is fine */
		(void)text_make_safe(choice->name, strlen(choice->name), name, sizeof(name));
		fprintf(stderr, "%-11s%-*s  0x%016" PRIx64 "  %-13s  %s\n", i ? "" : "providers",
			width, name, choice->keywords, provider_level_name(choice->level),
			chosen ? choice->from : "--profile (the default)");
	}
}

/* Called after the first failure, with its errno. */
static void note_print_failure(struct trace_run *run)
{
	assert(run->print == PRINT_WORKS);
	run->print = errno == EPIPE ? PRINT_READER_GONE : PRINT_FAILED;
}

static void print_event(struct trace_run *run, const struct trace *trace, const struct event *event)
{
	struct bytes *line = &run->line;

	bytes_reset(line);
	if (event->lost_before)
		event_line_lost(line, trace, event, run->utc_offset_ns);
	event_line(line, trace, event, run->utc_offset_ns);
	errno = 0;
	if (fwrite(line->data, 1, line->len, stdout) != line->len)
		note_print_failure(run);
}

static int on_event(void *context, const struct trace *trace, const struct event *event)
{
	struct trace_run *run = context;

	/* raw: each process has its own schemas, so events are not counted here */
	if (!run->values->raw)
		provider_counts_add(&run->counts, trace, event);
	if (run->values->print && run->print == PRINT_WORKS)
		print_event(run, trace, event);
	bool stopping = stopping_event_fits(&run->stop, trace, event);

	run->stopping_event_seen |= stopping;
	return stopping || run->print != PRINT_WORKS;
}

/* ---- files ---- */

/* A file of raw bytes: the one that was named, for several processes with their ids in it. */
static int open_raw(void *context, const char *name, uint32_t pid, bool second, struct diag *diag)
{
	struct trace_run *run = context;
	bool single = run->targets.list.count == 1 && !run->port.reverse;
	char path[sizeof(run->outputs.path) + 32];
	size_t len = strlen(run->outputs.path);
	static const char suffix[] = ".nettrace";
	bool has_suffix = len >= sizeof(suffix) &&
			  strcmp(run->outputs.path + len - (sizeof(suffix) - 1), suffix) == 0;

	(void)name;
	if (single && second && strcmp(run->outputs.path, "-") == 0)
		return diag_set(diag, -EINVAL,
			"its EventCounters come in a stream of their own, and standard output takes one only");
	run->raw_files++;
	if (single && strcmp(run->outputs.path, "-") == 0) {
		int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? diag_set(diag, -errno, "cannot write to standard output: %m") : fd;
	}
	int stem = (int)(has_suffix ? len - (sizeof(suffix) - 1) : len);
	const char *part = second ? "_counters" : "";

	if (single && !second)
		text_set(path, "%s", run->outputs.path);
	else if (single)
		text_set(path, "%.*s%s%s", stem, run->outputs.path, part, suffix);
	else
		text_set(path, "%.*s_%u%s%s", stem, run->outputs.path, pid, part, suffix);
	cleanup(output_file_close) struct output_file out = {
		.fd = -1, .folder = -1, .dropped = -1
	};
	int result = output_file_open(&out, path, diag);

	if (result == 0)
		result = output_file_keep(&out, diag);
	if (result == 0 && out.replaced && !run->values->quiet)
		message_print_replaced(path);
	if (result < 0)
		return result;
	int fd = fcntl(out.fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? diag_set(diag, -errno, "cannot write '%s': %m", path) : fd;
}

/* ---- words ---- */

/* A runtime that starts during the trace sends EventCounters only later: prints that. */
static void say_late(const struct trace_run *run, const struct ipc_provider *providers)
{
	if (!run->args->command && !run->port.reverse)
		return;
	for (uint32_t i = 0; i < run->providers.items.count; i++)
		if (late_providers_has(&providers[i])) {
			message_print(
				"EventCounters are enabled 1 s after a runtime's start: earlier they can deadlock it");
			return;
		}
}

static void say_begin(struct trace_run *run, const struct ipc_provider *providers)
{
	if (run->values->quiet)
		return;
	say_late(run, providers);
	say_providers(run);
	fprintf(stderr, "tracing    %s%s\n", bytes_z(&run->subject),
		run->screen.terminal && !run->values->duration_ns && !run->args->command
			? "; Enter or Ctrl-C ends it"
			: "");
}

static void add_counts(struct bytes *line, const struct trace_run *run,
	const struct tracing_counts *counts)
{
	if (!run->values->raw)
		bytes_printf(line, "%s%s lost  ",
			TEXT_THINGS(counts->events, "event  ", "events  "),
			TEXT_COUNT(counts->lost));
	text_add_size(line,
		run->to_file || run->values->raw ? counts->file_bytes : counts->stream_bytes);
}

static void say_progress(struct trace_run *run, bool ending)
{
	struct tracing_counts counts;
	cleanup(bytes_done) struct bytes line = { 0 };

	if (!run->screen.terminal || run->values->quiet ||
		(run->values->print && isatty(STDOUT_FILENO)))
		return;
	tracing_count(run->tracing, &counts);
	run_progress_begin(&line, clock_monotonic_ns() - counts.begin_ns);
	add_counts(&line, run, &counts);
	if (ending)
		bytes_printf(&line, "  names of %s are being written; Ctrl-C leaves them out",
			TEXT_THINGS(counts.running, "process", "processes"));
	else if (counts.opening)
		bytes_printf(&line, "  %u not open yet", counts.opening);
	run_progress_print(&line);
}

/* Once, when it begins or when it happens. */
static void say_unguarded(struct trace_run *run)
{
	const char *sentence = tracing_unguarded(run->tracing);

	if (sentence && !run->unguarded_said && !run->values->quiet)
		message_print("%s", sentence);
	run->unguarded_said = sentence != NULL;
}

static bool ended_untraced(const struct tracing_process *process)
{
	return !process->bytes && *process->reason && process->reason_kind == REASON_KIND_ENDED;
}

/* One line for all processes that ended before their session, as between fork and exec. */
static void say_ended(const struct trace_run *run)
{
	struct tracing_process first = { 0 };
	unsigned count = 0;

	for (size_t i = 0; i < tracing_process_count(run->tracing); i++) {
		struct tracing_process process;
		tracing_process(run->tracing, i, &process);
		if (!ended_untraced(&process))
			continue;
		first = count++ ? first : process;
	}
	if (count == 1)
		message_print("%s (%u) was not traced: %s", first.name, first.pid, first.reason);
	else if (count)
		message_print("%s (%u) and %s were not traced: each ended before it could be",
			first.name, first.pid,
			TEXT_THINGS(count - 1, "more process", "more processes"));
}

/* The processes that were not traced, or not to their end. */
static void say_failures(struct trace_run *run, uint32_t *ret_traced)
{
	*ret_traced = 0;
	say_ended(run);
	for (size_t i = 0; i < tracing_process_count(run->tracing); i++) {
		struct tracing_process process;
		tracing_process(run->tracing, i, &process);
		bool traced = process.bytes && process.reason_kind != REASON_KIND_CLOSED;
		if (traced)
			(*ret_traced)++;
		if (!*process.reason || ended_untraced(&process))
			continue;
		message_print("%s (%u) was %s: %s", process.name, process.pid,
			traced ? "not traced to its end" : "not traced", process.reason);
		if (process.reason_kind == REASON_KIND_PERMISSION)
			run->refused = true;
		else if (!process.bytes && process.reason_kind != REASON_KIND_CLOSED &&
			 process.reason_kind != REASON_KIND_TOO_OLD)
			message_print("spoor ps -p %u says more", process.pid);
	}
	if (run->refused)
		message_print("run it as that user, or with sudo");
}

/* Events of each chosen provider; for one without any, whether its name is known. */
static void add_provider_counts(struct bytes *text, const struct trace_run *run)
{
	size_t width = 0;
	cleanup(bytes_done) struct bytes cell = { 0 };

	for (uint32_t i = 0; i < run->counts.events.count; i++) {
		bytes_reset(&cell);
		text_add_safe_z(&cell, run->providers.items.items[i].name);
		size_t columns = text_columns(bytes_z(&cell), cell.len);
		width = columns > width ? columns : width;
	}
	for (uint32_t i = 0; i < run->counts.events.count; i++) {
		const char *name = run->providers.items.items[i].name;
		struct nearest near = { .wanted = name };
		bytes_reset(&cell);
		text_add_safe_z(&cell, name);
		bytes_printf(text, "%-11s%s%*s", i ? "" : "events", bytes_z(&cell),
			(int)(width - text_columns(bytes_z(&cell), cell.len)), "");
		bytes_reset(&cell);
		text_add_count(&cell, run->counts.events.items[i]);
		bytes_printf(text, "  %*s", COUNT_COLUMNS, bytes_z(&cell));
		if (!run->counts.events.items[i])
			provider_offer_known(&near);
		if (!run->counts.events.items[i] && (!near.count || near.found[0].distance)) {
			bytes_text(text, "  no event source of this name sent any");
			bytes_text(text, near.count ? "; did you mean " : "");
			bytes_text(text, nearest_add(&near, text) ? "?" : "");
		}
		bytes_text(text, "\n");
	}
}

static void say_end(struct trace_run *run, uint32_t traced)
{
	struct tracing_counts counts;
	cleanup(bytes_done) struct bytes text = { 0 };

	if (run->screen.terminal && !run->values->quiet)
		run_progress_clear();
	if (run->values->quiet || !traced)
		return;
	tracing_count(run->tracing, &counts);
	if (run->values->raw && run->raw_files != 1)
		text_add_things(&text, run->raw_files, "file", "files");
	else if (!run->to_file && !run->values->raw)
		bytes_text(&text, "no file");
	else if (strcmp(run->outputs.path, "-") == 0)
		bytes_text(&text, "standard output");
	else
		text_add_safe_z(&text, run->outputs.path);
	bytes_text(&text, "  ");
	if (run->to_file || run->values->raw)
		bytes_printf(&text, "%s, ", TEXT_SIZE(counts.file_bytes));
	if (!run->values->raw) {
		uint64_t rundown = run->counts.rundown_events < counts.events
					   ? run->counts.rundown_events
					   : counts.events;
		text_add_things(&text, counts.events - rundown, "event", "events");
		if (rundown)
			bytes_printf(&text, " and %s of the rundown", TEXT_COUNT(rundown));
		bytes_text(&text, rundown ? ", of " : " of ");
	}
	bytes_printf(&text, "%s%s", TEXT_THINGS(traced, "process in ", "processes in "),
		TEXT_DURATION((double)(counts.end_ns - counts.first_open_ns) / 1e9));
	if (run->paused_ns)
		bytes_printf(&text, " (stopped for %s)",
			TEXT_DURATION((double)run->paused_ns / 1e9));
	if (!run->values->raw) {
		bytes_text(&text, ", ");
		if (counts.lost) {
			bytes_printf(&text,
				"%s lost (%.1f %%): a larger --buffersize or fewer events help",
				TEXT_COUNT(counts.lost),
				100.0 * (double)counts.lost /
					(double)(counts.events + counts.lost));
		} else {
			bytes_text(&text, "nothing lost");
		}
	}
	bytes_text(&text, "\n");
	if (!run->values->raw)
		add_provider_counts(&text, run);
	if (run->values->stop.provider && !run->stopping_event_seen)
		bytes_text(&text, "the stopping event did not occur\n");
	if ((run->to_file || (run->values->raw && run->raw_files == 1)) &&
		strcmp(run->outputs.path, "-") != 0) {
		bytes_printf(&text, "next       %s events ", text_program());
		text_add_shell_word(&text, run->outputs.path);
		bytes_text(&text, " --summary\n");
	}
	fputs(bytes_z(&text), stderr);
}

static int print_profiles(void)
{
	for (const struct provider_profile *profile = provider_profiles; profile->name; profile++) {
		printf("%-27s %s\n", profile->name, profile->text);
		for (const char *at = profile->providers; *at;) {
			size_t len = strcspn(at, ",");
			const char *arguments = memchr(at, '"',
				len); /* the specs of a DiagnosticSource listener are long: cut */
			printf("%-27s   %.*s%s\n", "", arguments ? (int)(arguments - at) : (int)len,
				at, arguments ? "..." : "");
			if (arguments)
				break;
			at += len;
			at += *at == ',';
		}
	}
	printf("Without a choice dotnet-common and dotnet-sampled-thread-time are taken.\n");
	return message_finish_output();
}

/* ---- the run ---- */

/* True if a signal or a key requests the end; control.reason is set then. */
static bool take_requests(struct trace_run *run)
{
	unsigned requests = run_control_take(&run->control);

	run->wants_pause |= (requests & RUN_REQUEST_PAUSE) != 0;
	return requests & RUN_REQUEST_END;
}

static void flush_lines(struct trace_run *run)
{
	errno = 0;
	if (run->values->print && run->print == PRINT_WORKS && fflush(stdout) != 0)
		note_print_failure(run);
}

/* Once a session is open the file gets its name, and keeps it if this process is killed. */
static int keep_file(struct trace_run *run, struct diag *diag)
{
	struct tracing_counts counts;

	if (!run->to_file || run->out.kept)
		return 0;
	tracing_count(run->tracing, &counts);
	int result = counts.first_open_ns ? output_file_keep(&run->out, diag) : 0;

	if (result == 0 && run->out.replaced && !run->values->quiet)
		message_print_replaced(run->outputs.path);
	return result;
}

/* Ctrl-Z: while this program is stopped, it has no session open in other processes. */
static int pause_tracing(struct trace_run *run, struct diag *diag)
{
	uint64_t bound_ns = clock_monotonic_ns() + PAUSE_BOUND_NS;
	int result = 0;

	tracing_pause(run->tracing);
	while (result >= 0 && !run->control.reason && !tracing_paused(run->tracing) &&
		clock_monotonic_ns() < bound_ns) {
		result = tracing_step(run->tracing, run->control.watched,
			run->control.watched_count, clock_monotonic_ns() + PAUSE_LOOK_NS, diag);
		(void)take_requests(run); /* it sets the reason */
	}
	if (result >= 0)
		result = tracing_flush(run->tracing, diag);
	run->wants_pause = false;
	if (result < 0)
		return result;
	flush_lines(run);
	if (run->port.reverse)
		reverse_hang_up(run->port.reverse);
	uint64_t paused_ns = run->control.reason ? 0 : run_control_pause();

	run->paused_ns += paused_ns;
	tracing_resume(run->tracing, paused_ns);
	if (run->values->raw && !run->control.reason)
		run->control.reason = trace_end_reason(TRACE_PAUSED_RAW);
	return 0;
}

static int run_until_end(struct trace_run *run, struct diag *diag)
{
	uint64_t duration_ns = run->values->duration_ns;
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t end_ns = UINT64_MAX;
	uint64_t progress_ns = begin_ns;

	while (!run->control.reason) {
		struct tracing_counts counts;
		int result = tracing_step(run->tracing, run->control.watched,
			run->control.watched_count,
			end_ns < progress_ns + RUN_PROGRESS_NS ? end_ns
							       : progress_ns + RUN_PROGRESS_NS,
			diag);
		int kept = result < 0 ? result : keep_file(run, diag);
		if (kept < 0)
			return kept;
		flush_lines(run);
		say_unguarded(run);
		(void)take_requests(run); /* it sets the reason */
		if (run->wants_pause && !run->control.reason && pause_tracing(run, diag) < 0)
			return diag->error;
		uint64_t at_ns = clock_monotonic_ns();
		if (duration_ns) {
			/* From the first session on, or from when it was due. */
			tracing_count(run->tracing, &counts);
			uint64_t from_ns =
				counts.first_open_ns ? counts.first_open_ns : counts.due_open_ns;
			end_ns = from_ns && duration_ns < UINT64_MAX - from_ns
					 ? from_ns + duration_ns
					 : UINT64_MAX;
		}
		if (run->control.reason)
			break;
		run->control.reason = trace_end_reason(trace_end_of(at_ns >= end_ns,
			tracing_wants_end(run->tracing), run->print == PRINT_WORKS, result));
		if (at_ns >= progress_ns + RUN_PROGRESS_NS) {
			progress_ns = at_ns;
			say_progress(run, false);
		}
	}
	return 0;
}

/* Drains the sessions and their rundowns; a second Ctrl-C leaves that out. */
static int run_the_end(struct trace_run *run, struct diag *diag)
{
	uint64_t progress_ns = clock_monotonic_ns();
	int result = 0;

	tracing_end(run->tracing, run->control.reason);
	while (result >= 0 && !tracing_ended(run->tracing)) {
		result = tracing_step(run->tracing, run->control.watched,
			run->control.watched_count, progress_ns + RUN_PROGRESS_NS, diag);
		flush_lines(run);
		if (take_requests(run))
			break;
		if (clock_monotonic_ns() >= progress_ns + RUN_PROGRESS_NS) {
			progress_ns = clock_monotonic_ns();
			say_progress(run, true);
		}
	}
	int finished = tracing_finish(run->tracing, result < 0 ? NULL : diag);

	if (result >= 0 && finished == 0)
		finished = keep_file(run, diag); /* a program that was shorter than a turn */

	flush_lines(run);
	return result < 0 ? result : finished;
}

static int choose_targets(struct trace_run *run, const struct target_query *asked,
	struct diag *diag)
{
	struct target_query query = *asked;

	query.dotnet_only = true;
	query.single = true;
	query.details = TARGET_PLACE;
	if (run->args->command || run->values->start.port)
		query.single = false;
	else if (!target_query_chooses(&query) && !targets_in_container()) {
		diag_set(diag, -EINVAL, "nothing says which processes to trace");
		diag_remedy(diag, "choose with -p PID, -n NAME, --all or -- COMMAND; spoor ps "
				  "lists the .NET processes");
		return -EINVAL;
	}
	return target_options_choose_own(&query, &run->targets, diag);
}

static void name_it(struct trace_run *run)
{
	const char *name = "trace";

	targets_add_subject(&run->targets, &run->subject);
	if (run->targets.list.count) {
		name = run->targets.list.items[0].name;
	} else if (run->args->command) {
		const char *slash = strrchr(run->args->command[0], '/');
		name = slash ? slash + 1 : run->args->command[0];
		text_add_safe_z(&run->subject, name);
	} else if (run->values->start.port) {
		bytes_text(&run->subject, "runtimes at ");
		text_add_safe(&run->subject, run->values->start.port,
			strlen(run->values->start.port));
	}
	target_file_stem(name, run->name, sizeof(run->name));
}

static int add_targets(struct trace_run *run, struct diag *diag)
{
	const char *path = run->port.connect_path;
	int result = path ? tracing_add_path(run->tracing, path, diag) : 0;

	for (uint32_t i = 0; result == 0 && i < run->targets.list.count; i++)
		result = tracing_add(run->tracing, &run->targets.list.items[i], diag);
	if (result == 0 && run->port.reverse)
		tracing_listen(run->tracing, run->port.reverse);
	return result;
}

static int trace_them(struct trace_run *run, const struct target_query *query, int argc,
	char **argv, struct diag *diag)
{
	const struct trace_values *values = run->values;
	cleanup(freep) struct ipc_provider *providers = NULL;
	cleanup(bytes_done) struct bytes command_line = { 0 };
	bool reads_events = values->print || values->stop.provider;
	int result = choose_providers(run, diag);

	if (result == 0)
		result = choose_targets(run, query, diag);
	if (result < 0)
		return result;
	provider_list_describe(&run->providers, &run->providers_text);
	name_it(run);
	message_add_command_line(&command_line, argc, argv);
	providers = provider_list_request(&run->providers);
	if (!providers)
		return diag_set(diag, -ENOMEM, "cannot trace: %m");
	run->to_file = !values->raw && (!values->print || values->outputs.list.count);
	const struct record_outputs_wish wish = { .files = &values->outputs, .name = run->name };

	result = record_outputs_choose(&run->outputs, &wish, diag);
	if (result == 0 && run->to_file)
		result = record_outputs_open(&run->outputs, &run->out, diag);
	if (result == 0)
		result = run_control_start(&run->control, INTERRUPT_CHILD | INTERRUPT_PAUSE,
			!run->args->command, diag);
	if (result == 0)
		result = listen_port_open(&run->port, "trace", values->start.port,
			run->args->command, diag);
	if (result < 0)
		return result;
	say_begin(run, providers);
	const struct tracing_options options = {
		.providers = providers,
		.provider_count = run->providers.items.count,
		.buffer_mb = (uint32_t)values->buffer_mb,
		.rundown_keywords = values->rundown == NO ? 0
				    : run->providers.rundown_keywords
					    ? run->providers.rundown_keywords
					    : IPC_RUNDOWN_WHOLE,
		.hold = values->start.resume == NO,
		.open_raw = values->raw ? open_raw : NULL,
		.event = reads_events || !values->raw ? on_event : NULL,
		.context = run,
		.command_line = bytes_z(&command_line),
		.providers_text = bytes_z(&run->providers_text),
		.version = SPOOR_VERSION,
	};

	provider_counts_begin(&run->counts, &run->providers);
	result = tracing_new(&options, &run->tracing, diag);
	if (result == 0 && run->to_file)
		result = tracing_write_to(run->tracing, run->out.fd,
			strcmp(run->outputs.path, "-") == 0 ? "standard output" : run->outputs.path,
			diag);
	if (result == 0)
		result = add_targets(run, diag);
	if (result == 0)
		result = tracing_start(run->tracing, diag);
	if (result == 0)
		result = listen_port_go(&run->port, &run->control.command, diag);
	if (result < 0)
		return result;
	result = run_until_end(run, diag);
	int end_result = run_the_end(run, result < 0 ? NULL : diag);
	uint32_t traced;

	say_failures(run, &traced);
	say_end(run, traced);
	if (result == 0 && end_result == 0 && !traced)
		return diag_set(diag, run->refused ? -EACCES : -ESRCH, "nothing was traced");
	return result < 0 ? result : end_result;
}

/* Combinations of options that are refused, as a sentence; NULL: none. */
static const char *find_misuse(const struct trace_values *values, const struct arguments *args)
{
	const char *port_misuse = listen_port_misuse(args->command, values->start.port,
		target_options_given(&values->targets) || values->targets.all);

	if (port_misuse)
		return port_misuse;
	if (!values->buffer_mb || values->buffer_mb > BUFFER_MB_MAX)
		return "--buffersize takes 1 to 4294967295 MB";
	if (values->clr_level && !values->clr_events)
		return "--clreventlevel is for --clrevents";
	if (values->stop.event && !values->stop.provider)
		return "--stopping-event-event-name needs --stopping-event-provider-name";
	if (values->stop.payload && !values->stop.event)
		return "--stopping-event-payload-filter needs --stopping-event-event-name";
	if (values->outputs.list.count > 1)
		return "a trace is one file: only one -o";
	return record_outputs_problem(&values->outputs);
}

int cmd_trace(const struct verb *self, int argc, char **argv)
{
	struct trace_values values = { .buffer_mb = BUFFER_MB };
	struct arguments args;
	struct target_choice choice = { 0 };
	struct trace_run run = {
		.values = &values,
		.args = &args,
		.out = { .fd = -1, .folder = -1 },
		.control = { .watched = { { .fd = -1 } } },
	};
	struct diag diag = { 0 };
	int code = EXIT_DONE;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (values.list_profiles) {
		code = print_profiles();
	} else if (args.words.count) {
		code = options_misused(self, "'%s' is no option; give a command after --",
			args.words.items[0]);
	} else if (find_misuse(&values, &args)) {
		code = options_misused(self, "%s", find_misuse(&values, &args));
	} else if (code == EXIT_DONE &&
		   (code = target_options_query(&values.targets, self, &choice)) == EXIT_DONE) {
		run.stop = values.stop;
		screen_look(stderr, COLOR_AUTO, &run.screen);
		run.utc_offset_ns = (int64_t)(clock_utc_ns() - clock_monotonic_ns());
		int result = trace_them(&run, &choice.query, argc, argv, &diag);
		code = result == 0   ? EXIT_DONE
		       : run.tracing ? message_fail(&diag)
				     : message_fail_argument(&diag);
	}
	output_file_close(&run.out); /* a file without a session is removed */
	tracing_close(run.tracing);  /* no session stays open while the command keeps running */
	if (values.print && code == EXIT_DONE && run.print != PRINT_READER_GONE)
		code = message_finish_output();
	/* Ctrl-Z during the end has already stopped the command */
	code = listen_port_end(&run.port, &run.control, run.wants_pause && args.command,
		values.quiet, code);
	record_outputs_done(&run.outputs);
	provider_counts_done(&run.counts);
	stopping_event_done(&run.stop);
	provider_list_done(&run.providers);
	targets_done(&run.targets);
	target_options_done(&choice);
	bytes_done(&run.providers_text);
	bytes_done(&run.subject);
	bytes_done(&run.line);
	options_done(self, &values, &args);
	return code;
}
