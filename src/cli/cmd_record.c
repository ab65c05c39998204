/*
 * spoor record: the machine, some processes or a command, sampled into one file.
 *
 * Parses, opens the file, drives the live session until there is a reason to end, and prints a
 * summary. Messages go to stderr.
 */
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/interrupt.h"
#include "cli/listen_port.h"
#include "cli/message.h"
#include "cli/record_events.h"
#include "cli/record_instead.h"
#include "cli/record_observed.h"
#include "cli/record_outputs.h"
#include "cli/record_summary.h"
#include "cli/run_control.h"
#include "cli/target_options.h"
#include "dotnet/ipc.h"
#include "dotnet/reverse.h"
#include "dotnet/stack_events.h"
#include "machine/box.h"
#include "machine/memory_cgroup.h"
#include "machine/output_file.h"
#include "machine/proc.h"
#include "machine/rights.h"
#include "perf/recorder.h"
#include "recording/copy_size.h"
#include "recording/live.h"
#include "recording/live_usdt.h"
#include "recording/live_user_events.h"
#include "target/targets.h"
#include "trace/trace.h"
#include "tracing/late_providers.h"

#define DEFAULT_EVENT_RATE 1000u
#define DEFAULT_HZ         99u
#define VIEWER_CPU_MAX     255u
#define OWN_TRIES          5
/* a record of a ring has less than 64 KiB */
#define STACK_SIZE_MAX  63488u
#define MEMORY_LEFT_MIN UINT64_C(64000000)

/* The words of --call-graph, in their order. */
enum call_graph { CALL_GRAPH_FP, CALL_GRAPH_DWARF, CALL_GRAPH_AUTO };

#define OPTIONS_VERB record
#define OPTIONS_LIST "cli/record_options.def"
#include "cli/option_list.h"

struct recording_run {
	const struct record_values *values;
	const struct target_query *query;
	struct arguments *args;
	struct targets targets;
	VEC(uint32_t) pids; /* of the targets */
	VEC(uint32_t) tids;
	VEC(uint32_t) owners; /* of these threads */
	struct cpu_list cpus;
	uint64_t delay_ns;
	struct record_events events;
	struct bytes subject; /* "shop (4711)" */
	char name[64];        /* for the file's default name */
	struct record_outputs outputs;
	struct listen_port port; /* of the command's runtimes */
	struct live *live;
	int observations_fd; /* of record_observed(); 0: none */
	struct screen screen;
	struct run_control control;
	bool limit_said;     /* what this user cannot record */
	bool memory_limited; /* together with the target */
};

/* ---- targets ---- */

static int list_pids(struct recording_run *run, struct diag *diag)
{
	vec_reset(&run->pids);
	for (uint32_t i = 0; i < run->targets.list.count; i++)
		if (!vec_add(&run->pids, run->targets.list.items[i].pid))
			return diag_set(diag, -ENOMEM, "cannot record: %m");
	return 0;
}

/* What the recording is called: the application, the command, or the machine. */
static void name_it(struct recording_run *run)
{
	const char *name = "machine";
	char host[256] = "";

	if (run->targets.list.count) {
		targets_add_subject(&run->targets, &run->subject);
		name = run->targets.list.items[0].name;
	} else if (run->args->command) {
		const char *slash = strrchr(run->args->command[0], '/');
		name = slash ? slash + 1 : run->args->command[0];
		text_add_safe_z(&run->subject, name);
	} else {
		(void)gethostname(host, sizeof(host) - 1); /* stays empty */
		bytes_text(&run->subject, "all of ");
		text_add_safe_z(&run->subject, host);
		name = host[0] ? host : "machine";
	}
	target_file_stem(name, run->name, sizeof(run->name));
}

/* Of threads: the processes that they belong to. */
static int find_owners(struct recording_run *run, struct diag *diag)
{
	struct proc_reader proc;
	int result = run->tids.count ? proc_open(&proc, diag) : 0;

	if (result < 0 || !run->tids.count)
		return result;
	for (uint32_t i = 0; result == 0 && i < run->tids.count; i++) {
		uint32_t pid;
		if (proc_read_thread_owner(&proc, run->tids.items[i], &pid) < 0)
			result = diag_set(diag, -ESRCH, "no thread has the id %u",
				run->tids.items[i]);
		else if (!vec_add(&run->owners, pid))
			result = diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	proc_close(&proc);
	return result;
}

static int choose_targets(struct recording_run *run, struct diag *diag)
{
	struct target_query query = *run->query;
	int result = find_owners(run, diag);

	if (result < 0)
		return result;
	query.all = false; /* the whole machine is no list of processes */
	if (run->tids.count) {
		query.pids = run->owners.items;
		query.pid_count = run->owners.count;
	}
	result = targets_choose(&query, &run->targets, diag);
	if (result == 0)
		result = list_pids(run, diag);
	if (result == 0)
		name_it(run);
	if (result == 0 && run->tids.count)
		bytes_printf(&run->subject, ", %s",
			TEXT_THINGS(run->tids.count, "thread", "threads"));
	return result;
}

/* Without the right to see the whole machine: what this user runs. */
static int choose_own_processes(struct recording_run *run, struct diag *diag)
{
	const struct target_query query = { .own = true };
	int result;

	targets_done(&run->targets);
	result = targets_choose(&query, &run->targets, diag);
	return result < 0 ? result : list_pids(run, diag);
}

/* ---- memory ---- */

/* What we take counts against the limit of a target in our own control group. */
static bool shares_memory(const struct recording_run *run, const struct memory_cgroup *group)
{
	for (uint32_t i = 0; i < run->pids.count; i++)
		if (memory_cgroup_holds("", group, run->pids.items[i]))
			return true;
	return !run->pids.count; /* the machine, or a command that we start */
}

static int look_at_memory(struct recording_run *run, struct diag *diag)
{
	struct memory_cgroup group;
	cleanup(bytes_done) struct bytes left = { 0 };

	if (memory_cgroup_read("", &group) < 0 || !shares_memory(run, &group))
		return 0;
	run->memory_limited = true;
	bytes_printf(&left, "%s of %s", TEXT_SIZE(group.left_bytes), TEXT_SIZE(group.limit_bytes));
	if (group.left_bytes < MEMORY_LEFT_MIN && !run->values->yes) {
		diag_set(diag, -ENOMEM,
			"only %s of memory are left to the control group that the recorder shares with its target",
			bytes_z(&left));
		diag_remedy(diag, "record from outside of that container, or use --yes");
		return -ENOMEM;
	}
	if (!run->values->quiet)
		fprintf(stderr, "memory     %s left to the control group shared with the target\n",
			bytes_z(&left));
	return 0;
}

/* perf's bare milliseconds, or a time with its unit. */
static bool parse_delay(const char *text, uint64_t *ret_ns)
{
	uint64_t ms;

	if (text_parse_u64(text, &ms)) {
		*ret_ns = ms * 1000000;
		return ms <= UINT64_C(86400000);
	}
	return text_parse_duration(text, ret_ns);
}

/* ---- words ---- */

static void say_begin(struct recording_run *run)
{
	const struct recorder_info *info = live_recorder_info(run->live);

	if (info->limit.error && !run->limit_said)
		/* the recording continues with fewer events: not a failure */
		(void)message_fail(&info->limit);
	if (info->switches && info->sched.limit.error)
		(void)message_fail(&info->sched.limit); /* as above */
	else if (run->values->off_cpu && !info->switches)
		message_print("--off-cpu has no effect: context switches need perf events");
	if (live_io_limit(run->live))
		(void)message_fail(live_io_limit(run->live)); /* as above */
	if (run->values->quiet)
		return;
	if (info->cpu_max > VIEWER_CPU_MAX)
		message_print(
			"CPU numbers go to %u here: spoor's own reports are right, viewers made with TraceEvent keep the low 8 bits of them",
			info->cpu_max);
	cleanup(bytes_done) struct bytes line = { 0 };

	bytes_printf(&line, "recording  %s", bytes_z(&run->subject));
	if (info->kernel_excluded && info->clock != RECORD_CLOCK_NONE)
		bytes_text(&line, ", user code only,");
	else if (info->ring_count && !run->pids.count && !run->args->command)
		bytes_printf(&line, ": %s", TEXT_THINGS(info->ring_count, "CPU", "CPUs"));
	if (info->clock == RECORD_CLOCK_NONE)
		bytes_text(&line, " by the threads' CPU clocks");
	else
		bytes_printf(&line, " at %u Hz", info->frequency_hz);
	if (run->screen.terminal && !run->values->duration_ns && !run->args->command)
		bytes_text(&line, "; Enter or Ctrl-C ends it");
	if (run->values->verbose)
		record_summary_details(info, &line);
	fprintf(stderr, "%s\n", bytes_z(&line));
}

static void say_progress(struct recording_run *run)
{
	if (!run->screen.terminal || run->values->quiet)
		return;
	struct live_counts counts;
	cleanup(bytes_done) struct bytes line = { 0 };

	live_count(run->live, &counts);
	run_progress_begin(&line, clock_monotonic_ns() - counts.begin_ns);
	bytes_printf(&line, "%s%s lost  %s", TEXT_THINGS(counts.samples, "sample  ", "samples  "),
		TEXT_COUNT(counts.lost), TEXT_SIZE(counts.bytes));
	run_progress_print(&line);
}

static void say_end(struct recording_run *run)
{
	struct live_counts counts;
	cleanup(bytes_done) struct bytes text = { 0 };

	if (run->values->quiet)
		return;
	if (run->screen.terminal)
		run_progress_clear();
	live_count(run->live, &counts);
	record_summary(&text, &counts, &run->outputs, run->values->report);
	fputs(bytes_z(&text), stderr);
}

/* A size limit from the command line is a normal end; a disk that is nearly full is a failure. */
static int say_limit(struct recording_run *run, struct diag *diag)
{
	struct live_counts counts;

	live_count(run->live, &counts);
	if (counts.limit == OUTPUT_SIZE_LIMIT && !run->values->quiet)
		message_print("%s", live_end_reason(run->live));
	if (counts.limit != OUTPUT_DISK_LIMIT)
		return 0;
	diag_set(diag, -ENOSPC, "the recording was ended: %s", live_end_reason(run->live));
	diag_remedy(diag,
		"the file is complete up to then; free disk space, or write to another disk with -o");
	return -ENOSPC;
}

/* ---- the run ---- */

/* Ctrl-Z: while this program is stopped, it has no session open in other processes. */
static void pause_recording(struct recording_run *run)
{
	live_pause(run->live);
	if (run->port.reverse)
		reverse_hang_up(run->port.reverse);
	live_resume(run->live, run_control_pause());
}

/* Whatever requests the end sets control.reason. */
static void take_requests(struct recording_run *run)
{
	if (run_control_take(&run->control) & RUN_REQUEST_PAUSE)
		pause_recording(run);
}

static int run_until_end(struct recording_run *run, struct diag *diag)
{
	uint64_t duration_ns = run->values->duration_ns;
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t end_ns = duration_ns && duration_ns < UINT64_MAX - begin_ns
				  ? begin_ns + duration_ns
				  : UINT64_MAX;
	uint64_t progress_ns = begin_ns;

	while (!run->control.reason) {
		uint64_t until_ns = end_ns;
		if (run->screen.terminal && !run->values->quiet &&
			progress_ns + RUN_PROGRESS_NS < until_ns)
			until_ns = progress_ns + RUN_PROGRESS_NS;
		int result = live_step(run->live, run->control.watched, run->control.watched_count,
			until_ns, diag);
		if (result < 0)
			return result;
		take_requests(run);
		uint64_t now_ns = clock_monotonic_ns();
		if (!run->control.reason && now_ns >= end_ns)
			run->control.reason = "the time was up";
		if (!run->control.reason && result == 0) {
			run_control_reap(&run->control);
			run->control.reason = run->control.reason ? run->control.reason
								  : live_end_reason(run->live);
		}
		if (now_ns >= progress_ns + RUN_PROGRESS_NS) {
			progress_ns = now_ns;
			say_progress(run);
		}
	}
	return 0;
}

/* The file is complete, and only the command is waited for. */
static void leave_to_command(struct recording_run *run)
{
	struct run_control *control = &run->control;

	run_control_reap(control);
	if (!control->command.pid || control->command.ended || control->signal)
		return;
	if (control->command.is_timer)
		/* its only purpose was to end the recording */
		run_command_signal(&control->command, SIGTERM);
	else if (!run->values->quiet)
		message_print("'%s' (%u) keeps running; Ctrl-C ends it", run->args->command[0],
			control->command.pid);
}

/* -D: false if a signal arrived or the command ended before the delay was over. */
static bool wait_delay(struct recording_run *run)
{
	struct run_control *control = &run->control;
	uint64_t end_ns = clock_monotonic_ns() + run->delay_ns;
	struct poll_set set = { 0 };

	for (uint64_t now_ns; !control->reason && (now_ns = clock_monotonic_ns()) < end_ns;) {
		poll_set_begin(&set, now_ns + RUN_REAP_NS);
		poll_set_wake(&set, end_ns);
		poll_set_add_callers(&set, control->watched, control->watched_count);
		(void)poll_set_wait(&set);
		if (set.ready)
			take_requests(run);
		run_control_reap(control);
	}
	poll_set_done(&set);
	return !control->reason;
}

static bool asks_no_runtime(const struct record_values *values)
{
	return values->no_dotnet || values->names_from_memory;
}

/*
 * The command is recorded, so its .NET runtimes name their methods from the first one on.
 * Exceptions: no names are wanted; -D, since the recording begins after the start; EventCounters,
 * which may lock up a runtime whose session has them during its start.
 */
static bool wants_port(const struct recording_run *run)
{
	const struct record_values *values = run->values;

	if (!run->args->command || run->pids.count || run->delay_ns || asks_no_runtime(values) ||
		values->no_symbols)
		return false;
	for (uint32_t i = 0; i < run->events.providers.items.count; i++)
		if (late_providers_has(&run->events.requested[i]))
			return false;
	return true;
}

static int open_live(struct recording_run *run, struct live_options *options, struct diag *diag)
{
	int result = live_open(options, &run->live, diag);

	if ((result == -EACCES || result == -EPERM || result == -ENOSYS || result == -ENOENT) &&
		record_open_instead(options, &run->live, diag))
		return 0;
	if (result != -EACCES || !options->machine || run->values->targets.all ||
		run->values->kernel_only)
		return result;
	/* The whole machine was only the default: record this user's processes instead. */
	struct diag machine = *diag;

	options->machine = false;
	result = -ESRCH;
	/* One of them may end before it is opened: then they are looked for again. */
	for (int i = 0; i < OWN_TRIES && result == -ESRCH; i++) {
		*diag = (struct diag){ 0 };
		result = choose_own_processes(run, diag);
		if (result < 0)
			return result;
		options->pids = run->pids.items;
		options->pid_count = run->pids.count;
		result = live_open(options, &run->live, diag);
	}
	if (result < 0) {
		*diag = machine;
		return result;
	}
	(void)message_fail(
		&machine); /* printed once; the recording continues with fewer processes */
	run->limit_said = true;
	bytes_reset(&run->subject);
	bytes_printf(&run->subject, "this user's %s",
		TEXT_THINGS(run->pids.count, "process", "processes"));
	return 0;
}

/* Rights for the reports and pictures at the end: never those of the program's file. */
static uint32_t rights_to_make(const struct recording_run *run)
{
	if (rights_are_borrowed())
		return 0;
	return run->outputs.made.count ? RIGHTS_OF_FILES
	       : run->values->report   ? RIGHT_DAC_READ_SEARCH
				       : 0u;
}

/* The texts of run->events and `command_line` are borrowed. */
static struct live_options live_options_of(struct recording_run *run, const char *command_line)
{
	const struct record_values *values = run->values;

	return (struct live_options){
		.machine = values->targets.all || (!run->pids.count && !run->args->command),
		.pids = run->pids.items,
		.pid_count = run->pids.count,
		.tids = run->tids.items,
		.tid_count = run->tids.count,
		.cpus = run->cpus.cpus.items,
		.cpu_count = run->cpus.cpus.count,
		.frequency_hz = (uint32_t)values->frequency_hz,
		.off_cpu = values->off_cpu || run->events.switches,
		.wakers = values->wakers,
		.min_block_ns = values->min_block_ns,
		.io = values->io,
		.user_only = values->user_only,
		.kernel_only = values->kernel_only,
		.unwind = values->call_graph != CALL_GRAPH_FP,
		.fit_copies = values->call_graph == CALL_GRAPH_AUTO,
		.stack_bytes = (uint32_t)(values->stack_size + 7) & ~7u,
		.late_start = run->delay_ns != 0,
		.no_names = values->no_symbols,
		.no_dotnet = asks_no_runtime(values),
		.names_from_memory = values->names_from_memory,
		.lines = values->lines || values->code,
		.code = values->code,
		.providers = run->events.requested,
		.provider_count = run->events.providers.items.count,
		.providers_text = bytes_z(&run->events.text),
		/*
		 * A diagnosis does not judge waits for handles. Their level, 5, makes a runtime prepare an event
		 * for each 100 kB that its program allocates, and for each step of its collector's threads.
		 */
		.stack_kinds =
			run->events.stack_kinds & ~(run->observations_fd ? STACKS_OF_WAITS : 0u),
		.activity_max = values->events.activities,
		.event_rate = values->event_rate < UINT32_MAX ? (uint32_t)values->event_rate : 0,
		.lttng = values->lttng.list.items,
		.usdt = values->usdt.list.items,
		.user_events = values->user_events.list.items,
		.user_providers = run->events.user_requested,
		.user_provider_count = run->events.user_providers.items.count,
		.user_providers_text = bytes_z(&run->events.user_text),
		.no_arguments = values->no_arguments,
		.symbol_paths = values->symbol_paths.list.items,
		.size_max = values->size_max,
		.observations_fd = run->observations_fd,
		.command_line = command_line,
		.version = SPOOR_VERSION,
	};
}

/* Starts the command, opens the session, waits for the delay, and begins to write. */
static int begin_recording(struct recording_run *run, struct live_options *options,
	struct output_file *out, struct diag *diag)
{
	int result = run_control_start(&run->control, INTERRUPT_CHILD | INTERRUPT_PAUSE,
		!run->args->command, diag);
	if (result == 0)
		result = listen_port_open(&run->port, wants_port(run) ? "record" : NULL, NULL,
			run->args->command, diag);
	options->reverse = run->port.reverse;
	options->child = run->args->command ? &run->port.child : NULL;
	if (result == 0)
		result = open_live(run, options, diag);
	run->control.command.pid = run->port.child.pid;
	if (result == 0 && run->delay_ns)
		result = live_run_command(run->live, diag);
	if (result == 0 && (!run->delay_ns || wait_delay(run)))
		result = live_write_to(run->live, out->fd,
			strcmp(run->outputs.path, "-") == 0 ? "standard output" : run->outputs.path,
			run->outputs.packed, diag);
	else if (result == 0)
		result = diag_set(diag, -ECANCELED,
			"nothing was recorded: %s before the delay was over", run->control.reason);
	if (result == 0)
		result = live_start(run->live, diag);
	if (result == 0)
		result = output_file_keep(out, diag);
	if (result == 0 && out->replaced && !run->values->quiet)
		message_print_replaced(run->outputs.path);
	return result;
}

static int record(struct recording_run *run, int argc, char **argv, struct diag *diag)
{
	const struct record_values *values = run->values;
	cleanup(bytes_done) struct bytes command_line = { 0 };
	cleanup(output_file_close) struct output_file out = {
		.fd = -1, .folder = -1, .dropped = -1
	};
	int result = choose_targets(run, diag);

	if (result < 0)
		return result;
	message_add_command_line(&command_line, values->no_arguments ? 1 : argc, argv);
	struct live_options options = live_options_of(run, bytes_z(&command_line));
	const struct record_outputs_wish wish = { .files = &values->outputs,
		.folder = values->folder,
		.name = run->name,
		.packed = values->packed };

	result = look_at_memory(run, diag);
	if (result < 0)
		return result;
	options.spare_page_cache = run->memory_limited;
	/* beside other processes the command is not recorded: its end ends the recording */
	run->control.command.is_timer =
		run->args->command && (values->targets.all || run->pids.count);
	result = record_outputs_choose(&run->outputs, &wish, diag);
	if (result == 0)
		result = record_outputs_open(&run->outputs, &out, diag);
	if (result < 0)
		return result;
	result = begin_recording(run, &options, &out, diag);
	if (result < 0) {
		run_control_pass_signal(&run->control);
		return result;
	}
	/* What fails leaves more rights than needed, no less. */
	(void)rights_reduce(live_rights(run->live) | rights_to_make(run));
	say_begin(run);
	result = run_until_end(run, diag);
	run_control_watch_end(&run->control);
	if (run->control.command.ended)
		live_command_used(run->live, run->control.command.user_ns,
			run->control.command.system_ns);
	int end_result =
		live_end(run->live, run->control.reason ? run->control.reason : "a failed write",
			run->control.watched, run->control.watched_count, result < 0 ? NULL : diag);

	run_control_pass_signal(&run->control);
	say_end(run);
	return result < 0 ? result : end_result < 0 ? end_result : say_limit(run, diag);
}

/*
 * Failed downloads of names are printed, and the recording stays valid without them. Lines are those
 * that this machine's files give; without any the recording stays as it is.
 */
static void complete(struct recording_run *run, char *action, char *option, bool quiet)
{
	const struct verb *symbols = verb_find("symbols");
	char *words[] = { "symbols", action, option, run->outputs.path, "-q", NULL };

	(void)symbols->run(symbols, quiet ? 5 : 4, words);
}

/* An option that chooses events, and one that leaves out all of them; NULL: not given. */
static const char *events_option(const struct record_values *values)
{
	return values->events.providers.list.count        ? "--providers"
	       : values->events.user_providers.list.count ? "--dotnet-user-events"
	       : values->events.profiles.list.count       ? "--profile"
	       : values->events.stacks                    ? "--event-stacks"
	       : values->events.activities                ? "--activities"
							  : NULL;
}

static const char *without_events(const struct record_values *values)
{
	return values->no_events           ? "--no-events"
	       : values->names_from_memory ? "--names-from-memory"
	       : values->no_dotnet         ? "--no-dotnet"
	       : values->no_symbols        ? "--no-symbols"
					   : NULL;
}

/* Checks the value of each option alone; EXIT_DONE: all are right. */
static int check_values(const struct verb *self, const struct record_values *values,
	struct recording_run *run)
{
	if (run->args->words.count)
		return options_misused(self, "'%s' is no option; give a command after --",
			run->args->words.items[0]);
	if (!values->frequency_hz || values->frequency_hz > RECORDER_HZ_MAX)
		return options_misused(self, "-F takes 1 to %u samples a second", RECORDER_HZ_MAX);
	if (values->tids.list.count && target_options_given(&values->targets))
		return options_misused(self,
			"-t names threads and -p, -n and the like processes: one of them");
	if (values->stack_size && values->call_graph == CALL_GRAPH_FP)
		return options_misused(self,
			"--stack-size goes with --call-graph dwarf or --call-graph auto");
	if (values->stack_size &&
		(values->stack_size < COPY_SIZE_SMALL || values->stack_size > STACK_SIZE_MAX))
		return options_misused(self, "--stack-size takes %u to %u bytes", COPY_SIZE_SMALL,
			STACK_SIZE_MAX);
	if (values->user_only && values->kernel_only)
		return options_misused(self, "--all-user and --all-kernel exclude each other");
	if (values->cpus &&
		(box_parse_cpu_list(values->cpus, strlen(values->cpus), &run->cpus) < 0 ||
			!run->cpus.cpus.count))
		return options_misused(self, "-C takes CPUs such as 0,2-3, not '%s'", values->cpus);
	if (values->delay && !parse_delay(values->delay, &run->delay_ns))
		return options_misused(self, "-D takes milliseconds or a time such as 5s, not '%s'",
			values->delay);
	if (values->folder && values->outputs.list.count)
		return options_misused(self, "-d and -o exclude each other");
	if (record_outputs_problem(&values->outputs))
		return options_misused(self, "%s", record_outputs_problem(&values->outputs));
	return EXIT_DONE;
}

/* Checks the options together, once the targets are chosen; EXIT_DONE: they fit. */
static int check_choices(const struct verb *self, struct record_values *values,
	struct recording_run *run, struct diag *diag)
{
	if (values->names_from_memory && (values->no_dotnet || values->no_symbols))
		return options_misused(self, "--names-from-memory and %s exclude each other",
			values->no_dotnet ? "--no-dotnet" : "--no-symbols");
	if (events_option(values) && without_events(values))
		return options_misused(self, "%s and %s exclude each other", events_option(values),
			without_events(values));
	if (!without_events(values) &&
		record_events_choose(&run->events, &values->events, diag) < 0)
		return message_fail_argument(diag);
	if (!values->off_cpu && !run->events.switches && (values->wakers || values->min_block_ns))
		return options_misused(self, "%s goes with --off-cpu",
			values->wakers ? "--wakers" : "--min-block");
	if (values->report && record_outputs_have_stdout(&values->outputs))
		return options_misused(self, "--report and -o - both want standard output");
	if (!vec_add(&values->symbol_paths.list, NULL) ||
		(values->lttng.list.count && !vec_add(&values->lttng.list, NULL)) ||
		(values->usdt.list.count && !vec_add(&values->usdt.list, NULL)) ||
		(values->user_events.list.count && !vec_add(&values->user_events.list, NULL)))
		return EXIT_FAILED;
	if (live_usdt_check(values->usdt.list.items, values->tids.list.count, diag) < 0 ||
		live_user_events_check(values->user_events.list.items, values->tids.list.count,
			diag) < 0)
		return message_fail_argument(diag);
	return EXIT_DONE;
}

/* Ends the session, makes the requested files from the recording, and waits for the command. */
static int finish_run(struct recording_run *run, int code)
{
	const struct record_values *values = run->values;
	bool ran = !run->port.child.exec_code;
	bool made = run->live && ran && code != EXIT_MISUSED && code != EXIT_MISSING;

	run->control.command.exec_code = run->port.child.exec_code;
	/* no session and no ring buffer stays open while the command keeps running */
	live_close(run->live);
	listen_port_leave(&run->port, values->quiet);
	if (made && values->symbols && run->outputs.path[0] &&
		!record_outputs_have_stdout(&values->outputs))
		complete(run, "fetch", "--apply", values->quiet);
	if (made && (values->lines || values->code) && run->outputs.path[0] &&
		!record_outputs_have_stdout(&values->outputs))
		complete(run, "apply", "--lines", true);
	if (made && run->outputs.path[0]) {
		int made_code = record_outputs_make(&run->outputs, values->quiet);
		code = code ? code : made_code;
	}
	if (made && values->report) {
		char *words[] = { "report", run->outputs.path, NULL };
		int report_code = verb_find("report")->run(verb_find("report"), 2, words);
		code = code ? code : report_code;
	}
	leave_to_command(run);
	return listen_port_end(&run->port, &run->control, false, values->quiet, code);
}

int record_observed(int argc, char **argv, int observations_fd)
{
	const struct verb *self = verb_find("record");
	struct record_values values = { .frequency_hz = DEFAULT_HZ,
		.event_rate = DEFAULT_EVENT_RATE };
	struct arguments args;
	struct target_choice choice = { 0 };
	struct recording_run run = {
		.values = &values,
		.query = &choice.query,
		.args = &args,
		.observations_fd = observations_fd,
		.control = { .watched = { { .fd = -1 } }, .wait = RUN_WAIT_INSIST },
	};
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	rights_raise();
	if (values.list_profiles) {
		code = record_events_list_profiles();
	} else if ((code = check_values(self, &values, &run)) == EXIT_DONE &&
		   (code = target_options_query(&values.targets, self, &choice)) == EXIT_DONE &&
		   (code = target_options_ids(&values.tids, "-t", "thread", self, &run.tids)) ==
			   EXIT_DONE &&
		   (code = check_choices(self, &values, &run, &diag)) == EXIT_DONE) {
		screen_look(stderr, COLOR_AUTO, &run.screen);
		int result = record(&run, argc, argv, &diag);
		code = result < 0 ? message_fail(&diag) : EXIT_DONE;
	}
	code = finish_run(&run, code);
	record_outputs_done(&run.outputs);
	vec_done(&run.pids);
	vec_done(&run.tids);
	vec_done(&run.owners);
	vec_done(&run.cpus.cpus);
	targets_done(&run.targets);
	target_options_done(&choice);
	record_events_done(&run.events);
	bytes_done(&run.subject);
	options_done(self, &values, &args);
	return code;
}

int cmd_record(const struct verb *self, int argc, char **argv)
{
	(void)self;
	return record_observed(argc, argv, 0);
}
