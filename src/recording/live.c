/* See live.h. */
#include "recording/live.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/json.h"
#include "base/text.h"
#include "code/arch.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"
#include "machine/rights.h"
#include "machine/scheduling.h"
#include "nettrace/nettrace_write.h"
#include "perf/clock_probe.h"
#include "perf/recorder.h"
#include "pipeline/relay.h"
#include "recording/process_table.h"
#include "recording/intake.h"
#include "recording/live_clocks.h"
#include "recording/live_events.h"
#include "recording/live_port.h"
#include "recording/live_state.h"
#include "recording/managed.h"
#include "recording/throttling.h"
#include "trace/clr.h"
#include "trace/spoor_payload.h"

#define FLUSH_NS UINT64_C(500000000)
/* PerfView mislabels events that are less than 5 ms after the sync time */
#define SYNC_LEAD_NS UINT64_C(10000000)
/* interval of checks for CPU hotplug and clock changes */
#define FOLLOW_NS       UINT64_C(1000000000)
#define STACKS_MAX      65536u
#define STACK_BYTES_MAX (16u << 20)
#ifdef SPOOR_HOSTILE
#define TABLE_BYTES_MAX (256u << 10)
#else
/* of a budget of 64 MiB for the recorder; the rest is for code, file images and buffers */
#define TABLE_BYTES_MAX (40u << 20)
#endif
#define LARGE_BLOCK_BYTES (128 << 10)
#define SLOW_HZ           1000u
/* two seconds of deep stacks at SLOW_HZ; larger rings take longer to clear at the start */
#define SLOW_RING_BYTES (1u << 20)
#define REST_BOUND_NS   UINT64_C(3000000000) /* for the rundowns that name the remaining methods */
#define END_BOUND_NS    UINT64_C(8000000000)
#define PAUSE_TOLD_NS   UINT64_C(10000000)
/* the user waits after Ctrl-Z; the guard ends sessions that are still open after this */
#define PAUSE_BOUND_NS UINT64_C(2000000000)

static void emit_about_recording(struct live *live, enum known_event known)
{
	live_emit(live, known, live_main_thread(live, live->recorder_process), &live->payload,
		EVENT_CPU_UNKNOWN, 0);
}

static int on_names_event(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	struct live *live = context;

	if (live_is_over(live))
		return live->sink_error;
	if (!process)
		process = live->recorder_process;
	process_table_announce(live, process);
	live_emit(live, known, live_main_thread(live, process), payload, EVENT_CPU_UNKNOWN, 0);
	return live->sink_error;
}

static void on_managed(void *context, const struct managed_outcome *outcome)
{
	struct live *live = context;
	struct process *process = &live->trace.processes.items[outcome->process];
	struct payload_runtime runtime = {
		.kind = "coreclr",
		.version = outcome->info ? outcome->info->runtime_version : "",
		.path = "",
		.reachable = outcome->reachable,
		.reason = outcome->reason,
		.sessions = outcome->sessions,
	};

	if (outcome->info) {
		/* The version is "10.0.12+hash"; the hash is removed. */
		process->runtime_version =
			live_text(live, runtime.version, strcspn(runtime.version, "+"));
		runtime.version = trace_text(&live->trace, process->runtime_version);
		memcpy(runtime.cookie, outcome->info->cookie, sizeof(runtime.cookie));
	}
	process->runtime_kind = RUNTIME_CORECLR;
	process->runtime_reason = trace_add_text(&live->trace, outcome->reason);
	process_table_announce(live, outcome->process);
	bytes_reset(&live->payload);
	payload_runtime(&live->payload, &runtime);
	live_emit(live, SPOOR_RUNTIME, process->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	if (outcome->clock_measured) {
		bytes_reset(&live->payload);
		payload_clock_offset(&live->payload,
			&(struct payload_clock_offset){ .source = "eventpipe",
				.offset_ns = outcome->clock_offset_ns,
				.error_ns = outcome->clock_error_ns });
		live_emit(live, SPOOR_CLOCK_OFFSET, process->main_thread, &live->payload,
			EVENT_CPU_UNKNOWN, 0);
	}
	if (outcome->reachable)
		return;
	bytes_reset(&live->text);
	/* the event's thread row identifies the process */
	bytes_printf(&live->text, "no names from its runtime: %s", outcome->reason);
	live_notice(live, outcome->process, 2, outcome->reason_code, bytes_z(&live->text),
		reason_remedy(reason_kind_of(outcome->reason_code)));
}

static void on_managed_told(void *context, const char *code, const char *text)
{
	struct live *live = context;

	live_notice(live, live->recorder_process, 2, code, text, "");
}

static struct live_cpu *live_cpu(struct live *live, int32_t cpu)
{
	uint32_t index = cpu < 0 ? 0 : (uint32_t)cpu + 1;

	while (live->cpus.count <= index)
		if (!vec_push(&live->cpus))
			return NULL;
	return &live->cpus.items[index];
}

/*
 * Between fork and exec the command is a copy of spoor. Per-task events begin at its exec, but
 * CPU-wide events do not.
 */
static bool is_before_exec(const struct live *live, const struct pending *item)
{
	return item->pid == live->child.pid && recorder_info(live->recorder)->filter_by_pid &&
	       item->time_ns < live->child_exec_ns;
}

static void on_sample(struct live *live, const struct pending *item, uint64_t late_ns)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	uint32_t process = is_before_exec(live, item) ? 0 : process_table_owner(live, item->pid);
	struct live_cpu *cpu = live_cpu(live, item->cpu);

	if (!process || !cpu)
		return;
	if (live_is_full(live)) {
		live->samples_cut++;
		return;
	}
	process_table_announce(live, process);
	process_table_adopt_mappings(live, process);
	uint32_t thread = process_table_thread(live, process, item->pid, item->tid);
	uint32_t stack = item->stack_index;
	uint64_t flags = item->value;

	/* without memory the name is missing, and counted */
	(void)symbolizer_hit(&live->symbolizer, process, stack, item->time_ns, &stack);
	if (stack != item->stack_index)
		flags |= SAMPLE_WALK_STOPPED;
	struct event event = {
		.time_ns = item->time_ns,
		.value = info->period_ns,
		.thread_index = thread,
		.stack_index = stack,
		.schema_index = trace_known_schema(&live->trace, EVENTS_CPU),
		.late_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
		.cpu = item->cpu,
		.kind = EVENT_SAMPLE,
	};

	cpu->carry_ns += info->period_ns;
	bytes_reset(&live->payload);
	payload_cpu(&live->payload,
		&(struct payload_cpu){ .value = cpu->carry_ns / 1000000,
			.weight_ns = info->period_ns,
			.count = 1,
			.flags = flags },
		info->period_ns);
	cpu->carry_ns %= 1000000;
	event.payload = live->payload.data;
	event.payload_size = (uint32_t)live->payload.len;
	live_to_sink(live, &event);
	live->samples++;
	live->late += late_ns != 0;
}

static void on_lost(struct live *live, const struct pending *item, uint64_t first_ns,
	const char *source)
{
	live->lost += item->value;
	live_loss(live, source, "samples", item->value, item->cpu, first_ns, item->time_ns, true);
}

static void on_throttle(struct live *live, const struct pending *item)
{
	struct live_cpu *cpu = live_cpu(live, item->cpu);
	uint64_t period_ns = recorder_info(live->recorder)->period_ns;

	if (!cpu)
		return;
	if (item->kind == PENDING_THROTTLE) {
		cpu->throttle_ns = item->time_ns;
		return;
	}
	if (!cpu->throttle_ns)
		return;
	struct pending missing = *item;

	/*
	 * The kernel does not report the number of suppressed samples; it is estimated from the
	 * duration.
	 */
	missing.value = period_ns ? (item->time_ns - cpu->throttle_ns) / period_ns : 0;
	if (missing.value)
		on_lost(live, &missing, cpu->throttle_ns, "throttle");
	cpu->throttle_ns = 0;
}

static void on_code_removed(struct live *live, const struct pending *item)
{
	uint32_t process = item->pid;
	const struct code *code =
		symbolizer_end_code(&live->symbolizer, process, item->stack_index, item->value);

	if (!code)
		return;
	struct process *owner = &live->trace.processes.items[process];

	bytes_reset(&live->payload);
	payload_code_removed(&live->payload, code->begin, code->end);
	live_emit(live, SPOOR_CODE_REMOVED, owner->main_thread, &live->payload, EVENT_CPU_UNKNOWN,
		0);
	bytes_reset(&live->payload);
	clr_method_unload_payload(code, &live->payload);
	live_emit(live, CLR_METHOD_UNLOAD_VERBOSE, owner->main_thread, &live->payload,
		EVENT_CPU_UNKNOWN, 0);
	owner->code_epoch++;
}

void live_give_out(struct live *live, uint64_t until_ns)
{
	struct pending *item;
	uint64_t late_ns;

	reorder_window_sort(&live->window, until_ns);
	while ((item = reorder_window_next(&live->window, &late_ns))) {
		switch ((enum pending_kind)item->kind) {
		case PENDING_SAMPLE:
			on_sample(live, item, late_ns);
			break;
		case PENDING_MAPPING: {
			uint32_t process = process_table_owner(live, item->pid);
			if (process && live->processes.items[process].read_ns < item->time_ns)
				process_table_add_mapping(live, process, item->side, item->time_ns);
			break;
		}
		case PENDING_COMM:
			process_table_comm(live, item);
			break;
		case PENDING_FORK:
			process_table_fork(live, item);
			break;
		case PENDING_EXIT:
			process_table_exit(live, item);
			break;
		case PENDING_LOST: {
			const struct live_cpu *cpu = live_cpu(live, item->cpu);
			on_lost(live, item, cpu && cpu->last_ns ? cpu->last_ns : live->begin_ns,
				"ring");
			break;
		}
		case PENDING_THROTTLE:
		case PENDING_UNTHROTTLE:
			on_throttle(live, item);
			break;
		case PENDING_CODE_REMOVED:
			on_code_removed(live, item);
			break;
		case PENDING_CLOCK: /* only in traces */
			break;
		case PENDING_SHARE:
			live->late += late_ns != 0;
			live_clocks_hand_over(live, item);
			continue; /* the CPU's ring did not produce it */
		case PENDING_EVENT:
			live_events_hand_over(live, item, late_ns);
			continue; /* the CPU's ring did not produce it */
		}
		struct live_cpu *cpu = live_cpu(live, item->cpu);
		if (cpu)
			cpu->last_ns = item->time_ns;
		free(item->side);
		item->side = NULL;
	}
	live->give_out_ns = clock_monotonic_ns();
}

static void on_removed_code(void *context, uint32_t process, uint32_t code, const struct code *body)
{
	struct live *live = context;
	struct pending *item = reorder_window_add(&live->window);

	if (!item)
		/* the names of the removed code stay: wrong only if other code is placed there */
		return;
	item->kind = PENDING_CODE_REMOVED;
	item->time_ns = body->until_ns;
	item->pid = process;
	item->stack_index = code;
	item->value = body->begin;
	item->cpu = EVENT_CPU_UNKNOWN;
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
	       (live->cpu_clocks ? live_clocks_size_bytes(live) : 0) +
	       live->window.items.capacity * sizeof(struct pending);
}

/*
 * The stack table has grown too large: drops all stacks except those that the reorder window still
 * uses.
 */
static void forget_stacks(struct live *live)
{
	struct stack_table fresh = { 0 };

	if (live->relay && !relay_move_stacks(live->relay, &fresh)) {
		stack_table_done(&fresh);
		return; /* the table grows on; the next flush tries again */
	}
	if (live->cpu_clocks)
		live_clocks_move_stacks(live, &fresh);
	if (live->sink_ops->forget_stacks && !live->sink_error)
		live->sink_error = live->sink_ops->forget_stacks(live->sink, &live->sink_diag);
	symbolizer_forget_stacks(&live->symbolizer);
	for (uint32_t i = live->window.taken; i < live->window.items.count; i++) {
		struct pending *item = &live->window.items.items[i];
		uint32_t count;
		if (item->kind != PENDING_SAMPLE && item->kind != PENDING_SHARE)
			continue;
		const uint64_t *frames =
			stack_table_get(&live->trace.stacks, item->stack_index, &count);
		item->stack_index = stack_table_intern(&fresh, frames, count);
	}
	stack_table_done(&live->trace.stacks);
	live->trace.stacks = fresh;
	if (live->relay)
		relay_stacks_moved(live->relay);
}

static void say_files_skipped(struct live *live)
{
	if (live->files_said || !live->symbolizer.files_skipped)
		return;
	live->files_said = true;
	live_notice(live, live->recorder_process, 2, "openat2",
		"files of targets were skipped, and the names in them: there is no openat2 here to open them safely",
		"Linux 5.6 or newer has it; an old container runtime may forbid it");
}

/* Reports the samples that were dropped because the file size limit was reached. */
static void tell_samples_cut(struct live *live)
{
	if (!live->samples_cut)
		return;
	live->lost += live->samples_cut;
	live_loss(live, "limit", "samples", live->samples_cut, EVENT_CPU_UNKNOWN, live->begin_ns,
		live->window.watermark_ns, false);
	live->samples_cut = 0;
}

static void flush(struct live *live, uint64_t until_ns)
{
	symbolizer_removed_codes(&live->symbolizer, on_removed_code, live);
	live_give_out(live, until_ns);
	live_events_tell_losses(live);
	tell_samples_cut(live);
	/* unresolved addresses stay unnamed and are counted */
	(void)symbolizer_resolve(&live->symbolizer, clock_monotonic_ns());
	say_files_skipped(live);
	live->unflushed_bytes = live->unflushed_most = 0;
	if (!live->sink_error)
		live->sink_error = live->sink_ops->flush(live->sink, &live->sink_diag);
	if (!live->sink_error)
		process_table_bury(live);
	if (live->trace.stacks.stacks.count > STACKS_MAX ||
		stack_table_size_bytes(&live->trace.stacks) > STACK_BYTES_MAX)
		forget_stacks(live);
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
		live_notice(live, live->recorder_process, 2, "memory",
			"the recorder's memory limit is reached: addresses that are first sampled from now on stay without a name",
			"");
	}
	live->room_wanted = large;
}

static void describe(struct live *live)
{
	struct recording *recording = &live->trace.recording;
	const struct recorder_info *info = recorder_info(live->recorder);
	struct box *box = &live->box;

	recording->page_size_bytes = box->page_size_bytes;
	recording->cpu_online = box->cpu_online;
	recording->cpu_possible = box->cpu_possible;
	recording->period_ns = info->period_ns;
	recording->recorder_process = live->recorder_process;
	recording->sync_ns = clock_monotonic_ns() - SYNC_LEAD_NS;
	recording->utc_ns = clock_utc_ns() - SYNC_LEAD_NS;
	live->window.watermark_ns = recording->sync_ns + SYNC_LEAD_NS;
}

/*
 * Large tables grow by doubling. By default glibc raises its mmap threshold when a large block is
 * freed and takes later large blocks from the heap, where they leave holes: recording a process
 * storm with compression took twice the memory in use. With a fixed threshold each large table is a
 * separate mapping, which is returned to the system when it is freed.
 */
static void keep_large_blocks_apart(void)
{
#ifdef __GLIBC__
	/* a hint: the heap is only larger without it */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * LARGE_BLOCK_BYTES); /* as for M_MMAP_THRESHOLD */
#endif
}

int live_open(const struct live_options *options, struct live **ret_live, struct diag *diag)
{
	keep_large_blocks_apart();
	struct live *live = calloc(1, sizeof(*live));
	int result = -ENOMEM;

	if (!live || trace_init(&live->trace) < 0) {
		free(live);
		return diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	live->options = *options;
	live->options.cpus = NULL; /* borrowed for this call */
	live->reverse = options->reverse;
	box_read(&live->box);
	live->arch = arch_here();
	result = proc_open(&live->proc, diag);
	if (result < 0)
		goto fail;
	struct symbolizer_options symbolizer_options = {
		.trace = &live->trace,
		.box = &live->box,
		.emit = on_names_event,
		.context = live,
		.symbol_paths = options->symbol_paths,
		.mappings_only = options->no_names,
		.sound = options->instead != NULL,
	};
	result = symbolizer_init(&live->symbolizer, &symbolizer_options);
	if (result == 0)
		result = managed_new(&live->trace, &live->symbolizer, on_managed, on_managed_told,
			live, &live->managed);
	if (result == 0)
		result = live_events_open(live);
	if (result == 0)
		result = live_clocks_open(live);
	if (result < 0) {
		diag_set(diag, result, "cannot record: %m");
		goto fail;
	}
	struct recorder_options recorder_options = {
		.scope = options->machine     ? RECORD_MACHINE
			 : options->tid_count ? RECORD_THREADS
			 : options->pid_count ? RECORD_PIDS
					      : RECORD_CHILD,
		.frequency_hz = options->frequency_hz,
		.pids = options->tid_count ? options->tids : options->pids,
		.pid_count = options->tid_count ? options->tid_count : options->pid_count,
		.cpus = options->cpus,
		.cpu_count = options->cpu_count,
		.late_start = options->late_start,
		.ring_bytes =
			options->frequency_hz <= SLOW_HZ ? SLOW_RING_BYTES : RECORDER_RING_BYTES,
		.user_only = options->user_only,
		.kernel_only = options->kernel_only,
		.instead = options->instead,
	};
	if (options->command) {
		result = record_child_spawn(&live->child, (char *const *)options->command, diag);
		if (result < 0)
			goto fail;
		live->child_waits = true;
		if (recorder_options.scope == RECORD_CHILD) {
			recorder_options.pids = &live->child.pid;
			recorder_options.pid_count = 1;
		}
	}
	result = recorder_open(&recorder_options, &live->recorder, diag);
	if (result < 0)
		goto fail;
	live->layout =
		(struct perf_layout){ .sample_type = recorder_info(live->recorder)->sample_type,
			.sample_id_all = true };
	live->recorder_process = trace_process(&live->trace, (uint32_t)getpid());
	if (!live->recorder_process || !process_table_entry(live, live->recorder_process)) {
		result = diag_set(diag, -ENOMEM, "cannot record: %m");
		goto fail;
	}
	if (!options->no_names && !recorder_info(live->recorder)->kernel_excluded)
		symbolizer_open_kernel(&live->symbolizer);
	live->options.instead = NULL; /* borrowed for this call */
	*ret_live = live;
	return 0;
fail:
	live_close(live);
	return result;
}

const struct recorder_info *live_recorder_info(const struct live *live)
{
	return recorder_info(live->recorder);
}

int live_command_code(const struct live *live)
{
	return live->child.exec_code;
}

uint32_t live_child_pid(const struct live *live)
{
	return live->child.pid;
}

uint32_t live_rights(const struct live *live)
{
	const struct live_options *options = &live->options;
	uint32_t rights = RIGHT_SYS_PTRACE; /* read maps, environment and root of later processes */

	if (options->machine || recorder_info(live->recorder)->filter_by_pid)
		rights |= RIGHT_PERFMON | RIGHT_IPC_LOCK; /* open events on CPUs that come online */
	if (options->command)
		rights |= RIGHT_KILL; /* the command may run as another user */
	if (!options->no_names)
		rights |= RIGHT_DAC_READ_SEARCH | RIGHT_CHECKPOINT_RESTORE; /* read images */
	if (!options->no_names && !options->no_dotnet)
		rights |= RIGHT_DAC_OVERRIDE; /* connecting to a socket requires write permission */
	if (live->symbolizer.kernel_asked && live->symbolizer.kernel_needs_right)
		rights |= RIGHT_BPF;
	return rights;
}

int live_write_to(struct live *live, int fd, const char *name, bool packed, struct diag *diag)
{
	struct nettrace_key keys[] = {
		{ "SpoorVersion", live->options.version },
		{ "Host", live->box.host },
		{ "Kernel", live->box.kernel },
	};
	struct nettrace_sink_options options = {
		.fd = fd,
		.name = name,
		.keys = keys,
		.key_count = sizeof(keys) / sizeof(keys[0]),
		.packed = packed,
	};

	int result = output_limit_init(&live->output, fd, name, live->options.size_max,
		live->options.spare_page_cache, diag);

	if (result < 0)
		return result;
	describe(live);
	live->sink_ops = &nettrace_sink;
	return nettrace_sink_open(&options, &live->trace, &live->sink, diag);
}

/* Writes the recording options as JSON for the file. */
static void options_json(const struct live *live, struct bytes *out)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "scope",
		live->options.machine     ? "machine"
		: live->options.tid_count ? "threads"
		: live->options.pid_count ? "processes"
					  : "command");
	json_array(&j, "pids");
	for (size_t i = 0; i < live->options.pid_count; i++)
		json_u64(&j, NULL, live->options.pids[i]);
	json_end(&j);
	if (live->options.tid_count) {
		json_array(&j, "tids");
		for (size_t i = 0; i < live->options.tid_count; i++)
			json_u64(&j, NULL, live->options.tids[i]);
		json_end(&j);
	}
	if (live->options.cpu_count)
		json_u64(&j, "cpus", info->ring_count);
	json_u64(&j, "frequency_hz", live->options.frequency_hz);
	json_z(&j, "event",
		info->clock == RECORD_CLOCK_CYCLES ? "cycles"
		: info->clock == RECORD_CLOCK_NONE ? "thread-clocks"
						   : "cpu-clock");
	json_bool(&j, "kernel", !info->kernel_excluded);
	json_bool(&j, "user", !live->options.kernel_only);
	json_bool(&j, "idle", !info->idle_excluded);
	json_bool(&j, "names", !live->options.no_names);
	json_bool(&j, "dotnet", !live->options.no_dotnet);
	if (live->options.provider_count)
		json_z(&j, "providers", live->options.providers_text);
	json_bool(&j, "arguments", !live->options.no_arguments);
	json_u64(&j, "stack_frames_max", info->max_stack);
	json_end(&j);
}

static void emit_head(struct live *live)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	const struct box *box = &live->box;
	struct rights rights;

	rights_read(&rights);
	bytes_reset(&live->text);
	options_json(live, &live->text);
	bytes_reset(&live->payload);
	payload_session(&live->payload,
		&(struct payload_session){ .event_set = 1,
			.tool_version = live->options.version,
			.command_line = live->options.command_line,
			.options = bytes_z(&live->text),
			.period_ns = info->period_ns,
			.clock = "CLOCK_MONOTONIC",
			.utc_ns = live->trace.recording.utc_ns,
			.cpu_recorded = live->options.cpu_count ? info->ring_count : 0 });
	emit_about_recording(live, SPOOR_SESSION);
	bytes_reset(&live->payload);
	payload_machine(&live->payload,
		&(struct payload_machine){ .host = box->host,
			.kernel = box->kernel,
			.system = box->system,
			.architecture = box->architecture,
			.cpu_model = box->cpu_model,
			.cpu_online = box->cpu_online,
			.cpu_possible = box->cpu_possible,
			.memory_bytes = box->memory_bytes,
			.page_size_bytes = box->page_size_bytes,
			.boot_id = box->boot_id,
			.virtualization = box->virtualization,
			.perf_event_paranoid = rights.perf_event_paranoid });
	emit_about_recording(live, SPOOR_MACHINE);
	if (info->limit.error)
		live_notice(live, live->recorder_process, 2, "rights", info->limit.text,
			info->limit.remedy);
}

/*
 * A CPU came online or went offline. Its earlier samples are kept; the change is written to the
 * file.
 */
static void on_cpu(void *context, uint32_t cpu, bool online)
{
	struct live *live = context;

	bytes_reset(&live->payload);
	payload_cpu_state(&live->payload,
		&(struct payload_cpu_state){ .cpu = cpu, .online = online });
	emit_about_recording(live, SPOOR_CPU_STATE);
	bytes_reset(&live->text);
	bytes_printf(&live->text, "CPU %u %s ", cpu, online ? "came online" : "went offline");
	text_add_duration(&live->text, (double)(clock_monotonic_ns() - live->begin_ns) / 1e9);
	bytes_text(&live->text, " after the begin");
	live_notice(live, live->recorder_process, 2, "cpu", bytes_z(&live->text), "");
}

static void measure_perf_clock(struct live *live)
{
	struct clock_probe probe;

	if (clock_probe_perf(&probe) < 0)
		return; /* without a measurement no event is written */
	bytes_reset(&live->payload);
	payload_clock_offset(&live->payload, &(struct payload_clock_offset){ .source = "perf",
						     .offset_ns = probe.offset_ns,
						     .error_ns = probe.error_ns });
	emit_about_recording(live, SPOOR_CLOCK_OFFSET);
}

static void look_at_clocks(struct live *live)
{
	int64_t by_ns;
	enum clock_change change = clock_watch_look(&live->clocks, clock_watch_read(), &by_ns);

	if (change == CLOCK_STEADY)
		return;
	bytes_reset(&live->text);
	bytes_text(&live->text,
		change == CLOCK_SLEPT ? "the machine slept for " : "the time of day was set ");
	if (change == CLOCK_SET)
		bytes_text(&live->text, by_ns < 0 ? "back by " : "forward by ");
	text_add_duration(&live->text, (double)(by_ns < 0 ? -by_ns : by_ns) / 1e9);
	bytes_text(&live->text, change == CLOCK_SLEPT ? ", which no time here counts, " : " ");
	text_add_duration(&live->text, (double)(clock_monotonic_ns() - live->begin_ns) / 1e9);
	bytes_text(&live->text, " after the begin");
	if (change == CLOCK_SET)
		bytes_text(&live->text,
			"; times of day in this recording go by what it was at the begin");
	live_notice(live, live->recorder_process, 2,
		change == CLOCK_SLEPT ? "suspend" : "clock-set", bytes_z(&live->text), "");
	measure_perf_clock(live);
}

int live_run_command(struct live *live, struct diag *diag)
{
	if (!live->child_waits)
		return 0;
	live->child_waits = false;
	int result = record_child_go(&live->child, live->options.command[0], diag);

	/* replaced by the time of the exec record in process_table_comm() */
	live->child_exec_ns = clock_monotonic_ns();
	return result;
}

int live_start(struct live *live, struct diag *diag)
{
	scheduling_wait_ones_turn(); /* unread records stay in the rings */
	live->begin_ns = clock_monotonic_ns();
	live->flush_ns = live->begin_ns;
	live->follow_ns = live->begin_ns;
	live->throttling.told_ns = live->begin_ns;
	live->window.watermark_ns = live->begin_ns;
	process_table_announce(live, live->recorder_process);
	emit_head(live);
	measure_perf_clock(live);
	clock_watch_begin(&live->clocks, clock_watch_read());
	int result = recorder_start(live->recorder, diag);

	if (result < 0)
		return result;
	live->started = true;
	process_table_scan(live);
	live_clocks_start(live);
	result = live_run_command(live, diag);
	if (result < 0)
		return result;
	if (!live->sink_error)
		live->sink_error = live->sink_ops->flush(live->sink, &live->sink_diag);
	/* live_step() checks the result */
	(void)output_limit_check(&live->output, nettrace_sink_counts(live->sink)->bytes);
	managed_advance(live->managed, clock_monotonic_ns());
	return 0;
}

static int tell_sink_error(struct live *live, struct diag *diag)
{
	if (diag && !diag->error)
		*diag = live->sink_diag;
	return live->sink_error;
}

/* Waits for rings, streams and the caller's descriptors, at most until `until_ns`. */
static void wait_for(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns)
{
	struct poll_set *set = &live->set;

	poll_set_begin(set, until_ns);
	if (!live->end_ns)
		recorder_await(live->recorder, set);
	managed_await(live->managed, set);
	live_port_await(live, set);
	if (live->cpu_clocks)
		poll_set_wake(set, live_clocks_wake_ns(live));
	poll_set_add_callers(set, fds, fd_count);
	(void)poll_set_wait(set); /* the parts read the clock when they need it */
	if (!live->end_ns)
		recorder_note_wait(live->recorder, set);
}

int live_step(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag)
{
	uint64_t due_ns = live->flush_ns + FLUSH_NS;
	uint32_t targets = recorder_targets_left(live->recorder);

	wait_for(live, fds, fd_count, until_ns < due_ns ? until_ns : due_ns);
	if (live->cpu_clocks) {
		bool soon = recorder_targets_left(live->recorder) != targets;
		for (size_t i = 0; i < fd_count; i++)
			soon |= fds[i].revents != 0;
		live_clocks_turn(live, clock_monotonic_ns(), soon);
	}
	managed_advance(live->managed, clock_monotonic_ns());
	intake_drain(live);
	uint64_t now_ns = clock_monotonic_ns();

	live_port_advance(live, now_ns);
	if (now_ns >= due_ns) {
		flush(live, live_events_limit_ns(live, now_ns));
		live->flush_ns = now_ns;
		/* the result is checked below */
		(void)output_limit_check(&live->output, nettrace_sink_counts(live->sink)->bytes);
	} else if (live_events_press(live, now_ns)) {
		live_give_out(live, live_events_limit_ns(live, now_ns));
	}
	if (now_ns >= live->follow_ns + FOLLOW_NS) {
		live->follow_ns = now_ns;
		/* a CPU that cannot be opened has no samples */
		(void)recorder_follow_cpus(live->recorder, on_cpu, live, NULL);
		look_at_clocks(live);
		throttling_tell(live, now_ns);
	}
	if (live->sink_error)
		return tell_sink_error(live, diag);
	if (live->output.reached)
		return 0;
	return live->options.machine || recorder_targets_left(live->recorder) ? 1 : 0;
}

const char *live_end_reason(const struct live *live)
{
	return live->output.reached ? live->output.reason : "all targets ended";
}

void live_pause(struct live *live)
{
	uint64_t bound_ns = clock_monotonic_ns() + PAUSE_BOUND_NS;

	managed_pause(live->managed, clock_monotonic_ns());
	while (!managed_ended(live->managed) && clock_monotonic_ns() < bound_ns) {
		wait_for(live, NULL, 0, clock_monotonic_ns() + UINT64_C(50000000));
		managed_advance(live->managed, clock_monotonic_ns());
		intake_drain(live);
	}
	if (!live->sink_error)
		flush(live, clock_monotonic_ns() - REORDER_WINDOW_NS);
}

void live_resume(struct live *live, uint64_t paused_ns)
{
	struct bytes text = { 0 };

	managed_resume(live->managed, clock_monotonic_ns());
	if (paused_ns < PAUSE_TOLD_NS)
		return;
	bytes_text(&text, "spoor was stopped for ");
	text_add_duration(&text, (double)paused_ns / 1e9);
	bytes_text(&text,
		" (Ctrl-Z, SIGTSTP): samples were kept until the kernel's buffers were full, and the methods that .NET processes "
		"compiled meanwhile are requested again");
	live_notice(live, live->recorder_process, 2, "paused", bytes_z(&text), "");
	bytes_done(&text);
}

/* Returns true if one of the caller's descriptors is ready. */
static bool turn_managed(struct live *live, struct pollfd *fds, size_t fd_count)
{
	bool asked = false;

	wait_for(live, fds, fd_count, clock_monotonic_ns() + UINT64_C(100000000));
	managed_advance(live->managed, clock_monotonic_ns());
	for (size_t i = 0; i < fd_count; i++)
		asked = asked || fds[i].revents;
	return asked;
}

/*
 * Ends the .NET sessions, within a time limit, or earlier if one of the caller's descriptors
 * becomes ready.
 */
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
	bytes_reset(&live->text);
	bytes_printf(&live->text, LIVE_WITHHELD,
		text_put_things((char[TEXT_THINGS_ROOM]){ 0 }, count, ".NET process",
			".NET processes"),
		count == 1 ? "its" : "their");
	live_notice(live, live->recorder_process, 2, "withheld", bytes_z(&live->text),
		LIVE_WITHHELD_REMEDY);
}

void live_command_used(struct live *live, uint64_t user_ns, uint64_t system_ns)
{
	const struct recorder_info *info = recorder_info(live->recorder);

	live->command_ns =
		(live->options.kernel_only ? 0 : user_ns) + (info->kernel_excluded ? 0 : system_ns);
}

/* Called when all samples have left the reorder window. */
static void tell_unsampled(struct live *live)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	uint64_t seen_ns = (live->samples + live->lost) * info->period_ns;
	bool task_events = info->clock != RECORD_CLOCK_NONE && !info->filter_by_pid &&
			   !live->options.machine && !live->options.pid_count;

	if (!task_events || live->options.cpu_count || live->options.late_start ||
		live->command_ns <= seen_ns)
		return;
	uint64_t missing_ns = live->command_ns - seen_ns;
	double expected = (double)live->command_ns / (double)info->period_ns;

	/*
	 * Three standard deviations of a count, and a tenth for rounding in the kernel's
	 * accounting.
	 */
	if ((double)missing_ns <=
		3 * sqrt(expected) * (double)info->period_ns + (double)live->command_ns / 10)
		return;
	live->unsampled_ns = missing_ns;
	bytes_reset(&live->text);
	bytes_printf(&live->text,
		"%.2f of the command's %.2f CPU s have no sample: without the right to sample whole CPUs there is none of threads that lived for less than a sampling period",
		(double)missing_ns / 1e9, (double)live->command_ns / 1e9);
	live_notice(live, live->recorder_process, 2, "short-lived", bytes_z(&live->text),
		"record with sudo, or more often (-F)");
}

static void emit_end(struct live *live, const char *reason)
{
	const struct nettrace_sink_counts *sink = nettrace_sink_counts(live->sink);
	struct payload_count counts[] = {
		{ "samples", live->samples },
		{ "runtime_events", live->events },
		{ "runtime_events_lost", live->events_lost + managed_lost(live->managed) },
		{ "lost", live->lost },
		{ "late", live->late },
		{ "frames", live->symbolizer.frames_total },
		{ "unnamed_no_symbols", live->symbolizer.frames_unnamed[UNNAMED_NO_SYMBOLS] },
		{ "unnamed_no_image", live->symbolizer.frames_unnamed[UNNAMED_NO_IMAGE] },
		{ "unnamed_no_mapping", live->symbolizer.frames_unnamed[UNNAMED_NO_MAPPING] },
		{ "unnamed_no_method", live->symbolizer.frames_unnamed[UNNAMED_NO_METHOD] },
		{ "unnamed_not_asked", live->symbolizer.frames_unnamed[UNNAMED_NOT_ASKED] },
		{ "unnamed_kernel_hidden", live->symbolizer.frames_unnamed[UNNAMED_KERNEL_HIDDEN] },
		{ "unnamed_no_memory", live->symbolizer.frames_unnamed[UNNAMED_NO_MEMORY] },
		{ "events", sink->events },
		/*
		 * Times on the recording's clock, not counts: events after sampled_to_ns were
		 * written when sampling had stopped.
		 */
		{ "sampled_from_ns", live->begin_ns },
		{ "sampled_to_ns", live->end_ns },
	};

	if (live->late)
		live_loss(live, "late", "events", live->late, EVENT_CPU_UNKNOWN, live->begin_ns,
			live->end_ns, false);
	uint64_t stream_lost = managed_lost(live->managed);

	if (stream_lost)
		live_loss(live, "eventpipe", "events", stream_lost, EVENT_CPU_UNKNOWN,
			live->begin_ns, live->end_ns, false);
	bytes_reset(&live->payload);
	payload_session_end(&live->payload,
		&(struct payload_session_end){ .reason = reason,
			.counts = counts,
			.count_count = sizeof(counts) / sizeof(counts[0]) });
	emit_about_recording(live, SPOOR_SESSION_END);
}

int live_end(struct live *live, const char *reason, struct pollfd *fds, size_t fd_count,
	struct diag *diag)
{
	if (!live->started)
		return 0;
	recorder_stop(live->recorder);
	intake_drain(live);
	if (live->cpu_clocks)
		live_clocks_stop(live);
	live->end_ns = clock_monotonic_ns();
	live_port_leave(live);
	if (!live->sink_error)
		/* so that a second signal leaves a valid file */
		flush(live, live->cpu_clocks ? live_clocks_limit_ns(live)
					     : live->end_ns - REORDER_WINDOW_NS);
	end_managed(live, fds, fd_count);
	if (live->cpu_clocks)
		live_clocks_finish(live);
	symbolizer_removed_codes(&live->symbolizer, on_removed_code, live);
	live_give_out(live, UINT64_MAX);
	if (live->window.watermark_ns < live->end_ns)
		live->window.watermark_ns = live->end_ns;
	(void)symbolizer_finish(&live->symbolizer); /* errors are ignored as in flush() */
	say_files_skipped(live);
	throttling_tell(live, UINT64_MAX);
	say_withheld(live);
	live_events_tell_losses(live);
	tell_samples_cut(live);
	tell_unsampled(live);
	emit_end(live, reason);
	if (!live->sink_error)
		live->sink_error = live->sink_ops->end(live->sink, &live->sink_diag);
	return live->sink_error ? tell_sink_error(live, diag) : 0;
}

void live_count(const struct live *live, struct live_counts *ret_counts)
{
	*ret_counts = (struct live_counts){
		.samples = live->samples,
		.lost = live->lost,
		.late = live->late,
		.events = live->events,
		.events_lost =
			live->events_lost + (live->managed ? managed_lost(live->managed) : 0),
		.bytes = live->sink ? nettrace_sink_counts(live->sink)->bytes : 0,
		.unsampled_ns = live->unsampled_ns,
		.command_ns = live->command_ns,
		.frames = live->symbolizer.frames_total,
		.begin_ns = live->begin_ns,
		.end_ns = live->end_ns,
		.targets_left = recorder_targets_left(live->recorder),
		.memory_full = live->symbolizer.full,
		.limit = live->output.reached,
	};
	memcpy(ret_counts->unnamed, live->symbolizer.frames_unnamed, sizeof(ret_counts->unnamed));
	managed_counts(live->managed, &ret_counts->dotnet_asked, &ret_counts->dotnet_known);
	ret_counts->dotnet_withheld = managed_withheld(live->managed);
}

void live_close(struct live *live)
{
	if (!live)
		return;
	if (live->child_waits)
		record_child_cancel(&live->child);
	managed_free(live->managed);
	live_port_close(live);
	live_clocks_close(live);
	live_events_close(live);
	if (live->sink)
		live->sink_ops->close(live->sink);
	if (live->recorder)
		recorder_close(live->recorder);
	symbolizer_done(&live->symbolizer);
	reorder_window_done(&live->window);
	throttling_done(&live->throttling);
	proc_close(&live->proc);
	vec_done(&live->processes);
	pid_filter_done(&live->filter);
	vec_done(&live->cpus);
	poll_set_done(&live->set);
	vec_done(&live->free_processes);
	vec_done(&live->free_threads);
	vec_done(&live->free_mappings);
	vec_done(&live->ended);
	vec_done(&live->ended_threads);
	bytes_done(&live->payload);
	bytes_done(&live->text);
	trace_done(&live->trace);
	free(live);
}
