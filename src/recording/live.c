/* See live.h. */
#include "recording/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "code/arch.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"
#include "machine/large_blocks.h"
#include "machine/rights.h"
#include "machine/scheduling.h"
#include "perf/child.h"
#include "perf/recorder.h"
#include "pipeline/relay.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/block_stacks.h"
#include "recording/intake.h"
#include "recording/live_clocks.h"
#include "recording/live_events.h"
#include "recording/live_lttng.h"
#include "recording/live_observations.h"
#include "recording/live_port.h"
#include "recording/live_recorder.h"
#include "recording/live_state.h"
#include "recording/live_tracers.h"
#include "recording/machine_changes.h"
#include "recording/managed.h"
#include "recording/managed_frames.h"
#include "recording/memory_names.h"
#include "recording/process_table.h"
#include "recording/removed_code.h"
#include "recording/samples.h"
#include "recording/stack_unwinder.h"
#include "recording/start_steps.h"
#include "recording/switch_table.h"
#include "recording/throttling.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#ifdef SPOOR_HOSTILE
#define TABLE_BYTES_MAX (256u << 10)
#else
/* of a budget of 64 MiB for the recorder; the rest is for code, file images and buffers */
#define TABLE_BYTES_MAX (40u << 20)
#endif
#define DRAIN_EVERY       4096u                /* switches that leave the reorder window */
#define REST_BOUND_NS     UINT64_C(3000000000) /* for the rundowns that name the remaining methods */
#define END_BOUND_NS      UINT64_C(8000000000)
#define PAUSE_REPORTED_NS UINT64_C(10000000)
/* the user waits after Ctrl-Z; the guard ends sessions that are still open after this */
#define PAUSE_BOUND_NS UINT64_C(2000000000)

static int on_names_event(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	struct live *live = context;

	if (session_writer_is_over(&live->writer))
		return live->writer.error;
	if (!process)
		process = live->writer.recorder_process;
	process_table_announce(&live->table, process);
	if (!payload->failed)
		session_writer_emit(&live->writer, known,
			(struct event){ .payload = payload->data,
				.payload_size = (uint32_t)payload->len,
				.thread_index = live->trace.processes.items[process].main_thread,
				.cpu = EVENT_CPU_UNKNOWN });
	return live->writer.error;
}

static void on_managed(void *context, const struct managed_outcome *outcome)
{
	struct live *live = context;

	process_table_announce(&live->table, outcome->process);
	start_steps_note_exec(&live->table, outcome->process);
	session_writer_runtime(&live->writer, outcome->process, outcome->info,
		&(struct payload_runtime){ .reachable = outcome->reachable,
			.reason = outcome->reason,
			.sessions = outcome->sessions });
	if (outcome->clock_measured) {
		payload_clock_offset(&live->writer.payload,
			&(struct payload_clock_offset){ .source = "eventpipe",
				.offset_ns = outcome->clock_offset_ns,
				.error_ns = outcome->clock_error_ns });
		session_writer_emit_about(&live->writer, SPOOR_CLOCK_OFFSET, outcome->process);
	}
	if (outcome->reachable) {
		live_tracers_note_runtime(live, outcome->process);
		return;
	}
	uint32_t process = outcome->process;
	enum reason_kind kind = outcome->reason_kind;
	const struct symbolizer_process *own = symbolizer_process(&live->symbolizer, process);
	bool reads = memory_names_reads(&live->memory, live->trace.processes.items[process].pid) ||
		     (own && (own->seen.codes.count || own->from_memory));
	live->silent_count += kind == REASON_KIND_STOPPED || kind == REASON_KIND_HUNG;
	session_writer_unreachable(&live->writer, process, kind, reads ? "" : reason_remedy(kind),
		"no names from its runtime: %s%s", outcome->reason,
		reads ? "; those in its samples are read from its memory" : "");
}

static void on_managed_notice(void *context, enum notice_code code, const char *text)
{
	struct live *live = context;

	session_writer_notice(&live->writer, 0, code, "", "%s", text);
}

/*
 * Switches fill the rings in some 50 ms if programs do nothing else, which is less than a flush may take:
 * the rings are read between its parts.
 */
static void drain_switches(struct live *live)
{
	if (live->switches.table && live->started)
		intake_drain(&live->intake);
}

/* The stack of a known block is valid if the code of the process is the same as when it was learned. */
static void check_learned(const struct live *live, struct pending *item)
{
	uint64_t learned_ns = item->value & INTAKE_LEARNED_MASK;
	uint32_t process = learned_ns ? process_table_find(&live->table, item->pid) : 0;

	if (item->flag && process && learned_ns < live->table.rows.items[process].code_ns)
		item->stack_index = 0;
}

static void note_code_change(const struct live *live, const struct pending *item)
{
	uint32_t process = process_table_find(&live->table, item->pid);

	if (process)
		live->table.rows.items[process].code_ns = item->time_ns;
}

static void add_mapping(struct live *live, const struct pending *item)
{
	const struct pending_mapping *mapping = item->side;
	uint32_t process = process_table_owner(&live->table, item->pid);

	if (process && live->table.rows.items[process].read_ns < item->time_ns)
		process_table_add_mapping(&live->table, process, item->side, item->time_ns);
	if (process)
		start_steps_note_image(&live->table, process,
			strtab_get(&live->trace.strings, mapping->path), item->time_ns);
}

static void release_until(struct live *live, uint64_t until_ns)
{
	struct pending *item;
	uint64_t late_ns;
	uint32_t count = 0;

	reorder_window_sort(&live->window, until_ns);
	while ((item = reorder_window_next(&live->window, &late_ns))) {
		/* An item that no CPU's ring produced ends by `continue`: it is not noted below. */
		switch ((enum pending_kind)item->kind) {
		case PENDING_SAMPLE:
			samples_write(&live->samples, item, late_ns);
			break;
		case PENDING_MAPPING:
			add_mapping(live, item);
			break;
		case PENDING_COMM:
			process_table_comm(&live->table, item);
			if (live->switches.table && item->flag)
				switch_table_exec(&live->switches, item);
			break;
		case PENDING_FORK:
			process_table_fork(&live->table, item);
			if (live->switches.table)
				switch_table_fork(&live->switches, item);
			break;
		case PENDING_EXIT:
			if (live->switches.table)
				switch_table_exit(&live->switches, item);
			process_table_exit(&live->table, item);
			break;
		case PENDING_LOST:
			samples_write_lost(&live->samples, item);
			break;
		case PENDING_THROTTLE:
		case PENDING_UNTHROTTLE:
			samples_throttle(&live->samples, item);
			break;
		case PENDING_CODE_REMOVED:
			removed_code_write(&live->table, item);
			break;
		case PENDING_CODE:
			memory_names_take(&live->memory, item);
			continue;
		case PENDING_CODE_CHANGED:
			note_code_change(live, item);
			continue;
		case PENDING_SWITCH:
			check_learned(live, item);
			switch_table_switch(&live->switches, item, late_ns);
			break;
		case PENDING_WAKING:
			switch_table_waking(&live->switches, item);
			break;
		case PENDING_CLOCK: /* only in traces */
			break;
		case PENDING_SHARE:
			samples_write_share(&live->samples, item, late_ns);
			continue;
		case PENDING_LTTNG:
			live_lttng_write(&live->lttng, item, late_ns);
			free(item->side);
			item->side = NULL;
			continue;
		case PENDING_USDT:
			live_usdt_write(&live->usdt, item, late_ns);
			break;
		case PENDING_USER_EVENT:
			live_user_events_write(&live->user_events, item, late_ns);
			break;
		case PENDING_EVENT:
			live_events_hand_over(&live->events, item, late_ns);
			continue;
		}
		samples_note(&live->samples, item);
		free(item->side);
		item->side = NULL;
		if (++count % DRAIN_EVERY == 0)
			drain_switches(live);
	}
	live->released_ns = clock_monotonic_ns();
}

static uint64_t table_bytes(const struct live *live)
{
	const struct trace *trace = &live->trace;

	return symbolizer_size_bytes(&live->symbolizer) + managed_size_bytes(live->managed) +
	       strtab_size_bytes(&trace->strings) + stack_table_size_bytes(&trace->stacks) +
	       trace->processes.capacity * sizeof(struct process) +
	       trace->threads.capacity * sizeof(struct thread) +
	       trace->mappings.capacity * sizeof(struct mapping) + map_size_bytes(&trace->by_tid) +
	       map_size_bytes(&trace->by_pid) +
	       (live->cpu_clocks ? live_clocks_size_bytes(live->cpu_clocks) : 0) +
	       switch_table_size_bytes(&live->switches) + memory_names_size_bytes(&live->memory) +
	       block_stacks_size_bytes(live->intake.block_stacks) +
	       io_recording_size_bytes(&live->io) +
	       managed_frames_size_bytes(live->intake.managed) +
	       live->window.items.capacity * sizeof(struct pending);
}

static void move_stacks(void *context, struct stack_table *fresh)
{
	struct live *live = context;

	if (live->cpu_clocks)
		live_clocks_move_stacks(live->cpu_clocks, fresh);
	if (live->switches.table)
		switch_table_move_stacks(&live->switches, fresh);
	intake_forget_stacks(&live->intake);
	symbolizer_forget_stacks(&live->symbolizer);
}

static void say_files_skipped(struct live *live)
{
	if (live->files_said || !live->symbolizer.files_skipped)
		return;
	live->files_said = true;
	session_writer_notice(&live->writer, 0, NOTICE_OPENAT2,
		"Linux 5.6 or newer has it; an old container runtime may forbid it",
		"files of targets were skipped, and the names in them: there is no openat2 here to open them safely");
}

/* The watermark: all sources are complete up to this time. */
static uint64_t limit_ns(const struct live *live, uint64_t now_ns)
{
	uint64_t settled_ns =
		live->cpu_clocks ? live_clocks_limit_ns(live->cpu_clocks) : UINT64_MAX;
	uint64_t lttng_ns = live_lttng_limit_ns(&live->lttng, now_ns);

	return live_events_limit_ns(&live->events, settled_ns < lttng_ns ? settled_ns : lttng_ns,
		now_ns);
}

static void advance_port(struct live *live, uint64_t now_ns)
{
	uint64_t until_ns = managed_is_streaming(live->managed) ? limit_ns(live, now_ns)
								: now_ns - LIVE_PORT_SKEW_NS;

	if (live_port_take(&live->port, until_ns, now_ns))
		release_until(live, until_ns);
	live_port_judge(&live->port, until_ns, now_ns);
}

static void flush(struct live *live, uint64_t until_ns)
{
	removed_code_queue(&live->table);
	release_until(live, until_ns);
	if (live->switches.table)
		switch_table_flush(&live->switches);
	io_recording_flush(&live->io, false);
	live_events_tell_losses(&live->events);
	samples_tell_cut(&live->samples);
	drain_switches(live);
	/* unresolved addresses stay unnamed and are counted */
	(void)symbolizer_resolve(&live->symbolizer, clock_monotonic_ns());
	drain_switches(live);
	say_files_skipped(live);
	session_writer_flush(&live->writer);
	drain_switches(live);
	if (!live->writer.error)
		process_table_bury(&live->table);
	session_writer_trim_stacks(&live->writer, live->events.relay, move_stacks, live);
	bool large = !live->symbolizer.full && table_bytes(live) > TABLE_BYTES_MAX;

	/*
	 * Caches are dropped first, which takes effect by the next flush. If the tables are still
	 * too large then, naming stops.
	 */
	if (large && !live->room_wanted)
		symbolizer_make_room(&live->symbolizer);
	if (large && live->room_wanted) {
		live->symbolizer.full = true;
		live->trace.strings.full = true;
		session_writer_notice(&live->writer, 0, NOTICE_MEMORY, "",
			"the recorder's memory limit is reached: addresses that are first sampled from now on stay without a name");
	}
	live->room_wanted = large;
}

static void connect_parts(struct live *live)
{
	live->table.options = &live->options;
	live->table.trace = &live->trace;
	live->table.writer = &live->writer;
	live->table.symbolizer = &live->symbolizer;
	live->table.managed = live->managed;
	live->table.throttling = &live->throttling;
	live->table.mapped = memory_names_sign;
	live->table.mapped_context = &live->memory;
	live->intake.memory = &live->memory;
	live->memory.table = &live->table;
	live->memory.forced = live->options.names_from_memory;
	live->throttling.writer = &live->writer;
	live->changes.writer = &live->writer;
	live->samples.table = &live->table;
	live->io.table = &live->table;
	live->io.names.proc = &live->table.proc;
	live->port.table = &live->table;
	live->port.reverse = live->options.reverse;
	live->port.table_lags = live->options.instead != NULL;
	live_observations_open(&live->observations, &live->table, live->options.observations_fd);
	live->intake.trace = &live->trace;
	live->intake.window = &live->window;
	live->intake.filter = &live->table.filter;
	live->intake.table = &live->table;
	live->intake.arch = arch_here();
}

/* The parts that need no perf event. */
static int open_parts(struct live *live, const struct live_options *options)
{
	const struct symbolizer_options symbolizer_options = {
		.lines = options->lines,
		.code = options->code,
		.trace = &live->trace,
		.box = &live->writer.box,
		.emit = on_names_event,
		.context = live,
		.symbol_paths = options->symbol_paths,
		.mappings_only = options->no_names,
		.sound = options->instead != NULL,
	};
	int result = symbolizer_init(&live->symbolizer, &symbolizer_options);

	if (result == 0)
		result = managed_new(&live->trace, &live->symbolizer, on_managed, on_managed_notice,
			live, &live->managed);
	if (result < 0)
		return result;
	connect_parts(live);
	result = live_events_open(&live->events, &live->table);
	if (result == 0 && options->instead)
		result = live_clocks_open(&live->table, live->events.relay != NULL,
			&live->cpu_clocks);
	return result;
}

int live_open(const struct live_options *options, struct live **ret_live, struct diag *diag)
{
	large_blocks_keep_apart();
	struct live *live = calloc(1, sizeof(*live));

	if (!live || trace_init(&live->trace) < 0 ||
		session_writer_init(&live->writer, &live->trace, &live->window) < 0) {
		if (live)
			trace_done(&live->trace);
		free(live);
		return diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	live->options = *options;
	live->options.cpus = NULL; /* borrowed for this call */
	int result = proc_open(&live->table.proc, diag);

	if (result == 0 && (result = open_parts(live, options)) < 0)
		diag_set(diag, result, "cannot record: %m");
	if (result == 0)
		result = live_recorder_unwind(live, options, diag);
	if (result == 0)
		result = live_recorder_open(live, options, diag);
	if (result == 0 && !process_table_entry(&live->table, live->writer.recorder_process))
		result = diag_set(diag, -ENOMEM, "cannot record: %m");
	if (result < 0) {
		live_close(live);
		return result;
	}
	if (!options->no_names && !recorder_info(live->recorder)->kernel_excluded)
		symbolizer_open_kernel(&live->symbolizer);
	live->options.instead = NULL; /* borrowed for this call */
	*ret_live = live;
	return 0;
}

const struct diag *live_io_limit(const struct live *live)
{
	return live->io.limit.error ? &live->io.limit : NULL;
}

const struct recorder_info *live_recorder_info(const struct live *live)
{
	return recorder_info(live->recorder);
}

uint32_t live_rights(const struct live *live)
{
	const struct live_options *options = &live->options;
	uint32_t rights = RIGHT_SYS_PTRACE; /* read maps, environment and root of later processes */

	if (options->machine || recorder_info(live->recorder)->filter_by_pid)
		rights |= RIGHT_PERFMON | RIGHT_IPC_LOCK; /* open events on CPUs that come online */
	if (options->child)
		rights |= RIGHT_KILL; /* the command may run as another user */
	if (!options->no_names || live->unwinder || live->io.probe)
		rights |= RIGHT_DAC_READ_SEARCH | RIGHT_CHECKPOINT_RESTORE; /* read images */
	if (!options->no_names && !options->no_dotnet)
		rights |= RIGHT_DAC_OVERRIDE; /* connecting to a socket requires write permission */
	if ((live->symbolizer.kernel_asked && live->symbolizer.kernel_needs_right) ||
		live->io.probe)
		rights |= RIGHT_BPF;
	return rights | live_tracers_rights(live);
}

int live_write_to(struct live *live, int fd, const char *name, bool packed, struct diag *diag)
{
	int result = output_limit_init(&live->writer.limit, fd, name, live->options.size_max,
		live->options.spare_page_cache, diag);

	if (result < 0)
		return result;
	live->trace.recording.period_ns = recorder_info(live->recorder)->period_ns;
	return session_writer_open(&live->writer,
		&(struct session_file){ .fd = fd,
			.name = name,
			.version = live->options.version,
			.packed = packed },
		diag);
}

static void emit_head(struct live *live)
{
	const struct recorder_info *info = recorder_info(live->recorder);

	bytes_reset(&live->writer.text);
	live_options_json(&live->options, info, &live->writer.text);
	session_writer_head(&live->writer,
		&(struct payload_session){ .tool_version = live->options.version,
			.command_line = live->options.command_line,
			.options = bytes_z(&live->writer.text),
			.period_ns = info->period_ns,
			.cpu_recorded = live->options.cpu_count ? info->ring_count : 0 });
	if (info->limit.error)
		session_writer_notice(&live->writer, 0, NOTICE_RIGHTS, info->limit.remedy, "%s",
			info->limit.text);
	if (info->switches && info->sched.limit.error)
		session_writer_notice(&live->writer, 0, NOTICE_SWITCH_STACKS,
			info->sched.limit.remedy, "%s", info->sched.limit.text);
}

int live_run_command(struct live *live, struct diag *diag)
{
	if (!live->options.child || !live->options.child->waits)
		return 0;
	int result = record_child_go(live->options.child, diag);

	/* replaced by the time of the exec record in process_table_comm() */
	live->table.command_exec_ns = clock_monotonic_ns();
	return result;
}

int live_start(struct live *live, struct diag *diag)
{
	if (live->options.off_cpu)
		scheduling_go_first();
	else
		scheduling_wait_ones_turn(); /* unread records stay in the rings */
	live->writer.begin_ns = clock_monotonic_ns();
	live->flush_ns = live->writer.begin_ns;
	live->throttling.reported_ns = live->writer.begin_ns;
	live->window.watermark_ns = live->writer.begin_ns;
	process_table_announce(&live->table, live->writer.recorder_process);
	emit_head(live);
	machine_changes_begin(&live->changes);
	int result = live_tracers_start(live, diag);

	if (result == 0)
		result = recorder_start(live->recorder, diag);

	if (result < 0)
		return result;
	live->started = true;
	io_recording_start(&live->io);
	if (live->options.off_cpu && !live->options.machine)
		switch_table_begin(&live->switches, live->options.pids, live->options.pid_count);
	process_table_scan(&live->table);
	if (recorder_usdt(live->recorder))
		live_usdt_start(&live->usdt, &live->table, recorder_usdt(live->recorder));
	if (live->cpu_clocks)
		live_clocks_start(live->cpu_clocks);
	result = live_run_command(live, diag);
	if (result < 0)
		return result;
	session_writer_flush(&live->writer);
	/* live_step() checks the result */
	(void)output_limit_check(&live->writer.limit, session_writer_bytes(&live->writer));
	managed_advance(live->managed, clock_monotonic_ns());
	return 0;
}

/* Waits for rings, streams and the caller's descriptors, at most until `until_ns`. */
static void wait_for(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns)
{
	struct poll_set *set = &live->set;

	poll_set_begin(set, until_ns);
	if (!live->writer.end_ns)
		recorder_await(live->recorder, set);
	managed_await(live->managed, set);
	live_port_await(&live->port, set);
	if (!live->writer.end_ns)
		live_tracers_await(live, set);
	if (!live->writer.end_ns)
		memory_names_await(&live->memory, set);
	live_observations_await(&live->observations, set);
	if (live->cpu_clocks)
		poll_set_wake(set, live_clocks_wake_ns(live->cpu_clocks));
	poll_set_add_callers(set, fds, fd_count);
	(void)poll_set_wait(set); /* the parts read the clock when they need it */
	if (!live->writer.end_ns)
		recorder_note_wait(live->recorder, set);
}

int live_step(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag)
{
	uint64_t due_ns = live->flush_ns + SESSION_FLUSH_NS;
	uint32_t targets = recorder_targets_left(live->recorder);

	wait_for(live, fds, fd_count, until_ns < due_ns ? until_ns : due_ns);
	if (live->cpu_clocks) {
		bool soon = recorder_targets_left(live->recorder) != targets;
		for (size_t i = 0; i < fd_count; i++)
			soon |= fds[i].revents != 0;
		live_clocks_turn(live->cpu_clocks, clock_monotonic_ns(), soon);
	}
	managed_advance(live->managed, clock_monotonic_ns());
	/* Before the rings are read: they have what is older, however long reading them takes. */
	uint64_t now_ns = clock_monotonic_ns();
	intake_drain(&live->intake);

	live_tracers_look(live, now_ns);
	live_observations_take(&live->observations);
	advance_port(live, now_ns);
	if (now_ns >= due_ns) {
		flush(live, limit_ns(live, now_ns));
		live->flush_ns = now_ns;
		/* the result is checked below */
		(void)output_limit_check(&live->writer.limit, session_writer_bytes(&live->writer));
	} else if (live_events_press(&live->events, live->released_ns, now_ns)) {
		release_until(live, limit_ns(live, now_ns));
	}
	machine_changes_check(&live->changes, now_ns);
	throttling_tell(&live->throttling, now_ns);
	if (live->writer.error)
		return session_writer_error(&live->writer, diag);
	if (live->writer.limit.reached)
		return 0;
	return live->options.machine || recorder_targets_left(live->recorder) ? 1 : 0;
}

const char *live_end_reason(const struct live *live)
{
	return live->writer.limit.reached ? live->writer.limit.reason : "all targets ended";
}

void live_pause(struct live *live)
{
	uint64_t read_ns = clock_monotonic_ns();
	uint64_t bound_ns = read_ns + PAUSE_BOUND_NS;

	intake_drain(&live->intake);
	managed_pause(live->managed, clock_monotonic_ns());
	while (!managed_ended(live->managed) && clock_monotonic_ns() < bound_ns) {
		wait_for(live, NULL, 0, clock_monotonic_ns() + UINT64_C(50000000));
		managed_advance(live->managed, clock_monotonic_ns());
		live_observations_take(&live->observations);
		read_ns = clock_monotonic_ns();
		intake_drain(&live->intake);
	}
	if (!live->writer.error)
		flush(live, read_ns - REORDER_WINDOW_NS);
}

void live_resume(struct live *live, uint64_t paused_ns)
{
	managed_resume(live->managed, clock_monotonic_ns());
	if (paused_ns < PAUSE_REPORTED_NS)
		return;
	session_writer_paused(&live->writer, paused_ns,
		"samples were kept until the kernel's buffers were full, and the methods that .NET processes "
		"compiled meanwhile are requested again");
}

/* Returns true if one of the caller's descriptors is ready. */
static bool turn_managed(struct live *live, struct pollfd *fds, size_t fd_count)
{
	bool asked = false;

	wait_for(live, fds, fd_count, clock_monotonic_ns() + UINT64_C(100000000));
	managed_advance(live->managed, clock_monotonic_ns());
	live_observations_take(&live->observations);
	for (size_t i = 0; i < fd_count; i++)
		asked = asked || fds[i].revents;
	return asked;
}

/* Ends the .NET sessions, within a time limit or until one of the caller's descriptors is ready. */
static void end_managed(struct live *live, struct pollfd *fds, size_t fd_count)
{
	uint64_t bound_ns = clock_monotonic_ns() + REST_BOUND_NS;
	bool hurried = false;

	while (!hurried && clock_monotonic_ns() < bound_ns &&
		managed_names_rest(live->managed, clock_monotonic_ns()))
		hurried = turn_managed(live, fds, fd_count);
	bound_ns = clock_monotonic_ns() + END_BOUND_NS;
	managed_stop(live->managed, clock_monotonic_ns());
	while (!hurried && clock_monotonic_ns() < bound_ns && !managed_ended(live->managed))
		hurried = turn_managed(live, fds, fd_count);
}

static void say_withheld(struct live *live)
{
	uint32_t count = managed_withheld(live->managed);

	if (!count)
		return;
	session_writer_notice(&live->writer, 0, NOTICE_WITHHELD, LIVE_WITHHELD_REMEDY,
		LIVE_WITHHELD, TEXT_THINGS(count, ".NET process", ".NET processes"),
		count == 1 ? "its" : "their");
}

void live_command_used(struct live *live, uint64_t user_ns, uint64_t system_ns)
{
	const struct recorder_info *info = recorder_info(live->recorder);

	live->command_ns =
		(live->options.kernel_only ? 0 : user_ns) + (info->kernel_excluded ? 0 : system_ns);
}

int live_end(struct live *live, const char *reason, struct pollfd *fds, size_t fd_count,
	struct diag *diag)
{
	if (!live->started)
		return 0;
	live_observations_stop(&live->observations);
	scheduling_wait_no_more();
	live_dotnet_events_stop(&live->dotnet_events);
	recorder_stop(live->recorder);
	io_recording_stop(&live->io);
	intake_drain(&live->intake);
	if (live->cpu_clocks)
		live_clocks_stop(live->cpu_clocks);
	live->writer.end_ns = clock_monotonic_ns();
	managed_limit(live->managed, live->writer.end_ns);
	live_port_leave(&live->port);
	if (!live->writer.error)
		/* so that a second signal leaves a valid file */
		flush(live, live->cpu_clocks ? live_clocks_limit_ns(live->cpu_clocks)
					     : live->writer.end_ns - REORDER_WINDOW_NS);
	live_lttng_stop(&live->lttng);
	end_managed(live, fds, fd_count);
	while (live_lttng_finish(&live->lttng))
		release_until(live, live->lttng.last_ns);
	if (live->cpu_clocks)
		live_clocks_finish(live->cpu_clocks);
	live_observations_finish(&live->observations);
	removed_code_queue(&live->table);
	release_until(live, UINT64_MAX);
	io_recording_flush(&live->io, true);
	if (live->window.watermark_ns < live->writer.end_ns)
		live->window.watermark_ns = live->writer.end_ns;
	if (live->switches.table)
		switch_table_end(&live->switches, live->window.watermark_ns);
	(void)symbolizer_finish(&live->symbolizer); /* errors are ignored as in flush() */
	say_files_skipped(live);
	process_table_tell_others(&live->table, live->writer.end_ns);
	throttling_tell(&live->throttling, UINT64_MAX);
	say_withheld(live);
	live_events_tell_losses(&live->events);
	samples_tell_cut(&live->samples);
	live_usdt_tell(&live->usdt);
	live_user_events_tell(&live->user_events);
	live->unsampled_ns = samples_tell_unsampled(&live->samples, &live->options,
		recorder_info(live->recorder), live->command_ns);
	live_counts_end(live, reason);
	return session_writer_error(&live->writer, diag);
}

void live_close(struct live *live)
{
	if (!live)
		return;
	live_dotnet_events_done(&live->dotnet_events);
	managed_free(live->managed);
	live_port_done(&live->port);
	live_clocks_close(live->cpu_clocks);
	live_events_close(&live->events);
	live_observations_done(&live->observations);
	session_writer_done(&live->writer);
	if (live->recorder)
		recorder_close(live->recorder);
	live_tracers_done(live);
	stack_unwinder_free(live->unwinder);
	symbolizer_done(&live->symbolizer);
	reorder_window_done(&live->window);
	throttling_done(&live->throttling);
	memory_names_done(&live->memory);
	process_table_done(&live->table);
	samples_done(&live->samples);
	switch_table_done(&live->switches);
	io_recording_done(&live->io);
	intake_done(&live->intake);
	poll_set_done(&live->set);
	trace_done(&live->trace);
	free(live);
}
