/* See live_options.h. */
#include "recording/live_options.h"

#include "base/json.h"
#include "code/arch.h"
#include "perf/recorder_options.h"
#include "recording/copy_size.h"
#include "recording/stack_unwinder.h"
#include "trace/session_options.h"

#define SLOW_HZ 1000u
/* limits of a ring with half a second of stack copies */
#define COPY_RING_BYTES_MIN (2u << 20)
#define COPY_RING_BYTES_MAX (16u << 20)
/* two seconds of deep stacks at SLOW_HZ; larger rings take longer to clear at the start */
#define SLOW_RING_BYTES (1u << 20)
/* some 10,000 switches with their stacks */
#define SWITCH_RING_BYTES (8u << 20)
/* some 4,000 switches with copied stacks: 40 ms of programs that do nothing but switch */
#define SWITCH_COPY_RING_BYTES (32u << 20)

bool live_options_want_user_events(const struct live_options *options)
{
	return (options->user_events && options->user_events[0]) || options->user_provider_count;
}

static uint32_t stack_bytes(const struct live_options *options, uint32_t otherwise)
{
	return options->stack_bytes ? options->stack_bytes : otherwise;
}

static size_t ring_bytes(const struct live_options *options, bool copies)
{
	uint64_t half =
		(uint64_t)options->frequency_hz * stack_bytes(options, STACK_COPY_BYTES) / 2;

	if (options->off_cpu || (options->usdt && options->usdt[0]) ||
		live_options_want_user_events(options))
		return copies ? SWITCH_COPY_RING_BYTES : SWITCH_RING_BYTES;
	if (!copies)
		return options->frequency_hz <= SLOW_HZ ? SLOW_RING_BYTES : RECORDER_RING_BYTES;
	return half < COPY_RING_BYTES_MIN   ? COPY_RING_BYTES_MIN
	       : half > COPY_RING_BYTES_MAX ? COPY_RING_BYTES_MAX
					    : (size_t)half;
}

void live_options_recorder(const struct live_options *options, bool unwinds,
	const uint32_t *command_pid, struct recorder_options *ret_options)
{
	/* With frame pointers too: blocks are recognized by the registers. */
	const struct arch_unwind *unwind =
		unwinds || (options->off_cpu && !options->kernel_only) ? arch_here()->unwind : NULL;

	*ret_options = (struct recorder_options){
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
		.ring_bytes = ring_bytes(options, unwinds),
		.user_stack_bytes = unwinds ? stack_bytes(options, STACK_COPY_BYTES) : 0,
		.switch_stack_bytes = stack_bytes(options, SWITCH_COPY_BYTES),
		.waking_stack_bytes = WAKER_COPY_BYTES,
		.user_stack_small_bytes = unwinds && options->fit_copies ? COPY_SIZE_SMALL : 0,
		.user_registers = unwind ? unwind->kernel_mask : 0,
		.kernel_registers = unwind ? unwind->block_offsets : NULL,
		.kernel_register_count = unwind ? unwind->block_count : 0,
		.user_only = options->user_only,
		.switches = options->off_cpu,
		.prefer_cpus = options->io,
		.waking_stacks = options->wakers,
		.usdt = options->usdt && options->usdt[0],
		.tracepoints = live_options_want_user_events(options),
		.hit_stack_bytes = stack_bytes(options, WAKER_COPY_BYTES),
		.kernel_only = options->kernel_only,
		.instead = options->instead,
	};
	if (options->child && ret_options->scope == RECORD_CHILD) {
		ret_options->pids = command_pid;
		ret_options->pid_count = 1;
	}
}

/* Nothing if there are no texts. */
static void add_list(struct json *j, const char *name, const char *const *texts)
{
	if (!texts || !texts[0])
		return;
	json_array(j, name);
	for (size_t i = 0; texts[i]; i++)
		json_z(j, NULL, texts[i]);
	json_end(j);
}

void live_options_json(const struct live_options *options, const struct recorder_info *info,
	struct bytes *out)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "scope",
		session_value_word(options->machine     ? SESSION_MACHINE
				   : options->tid_count ? SESSION_THREADS
				   : options->pid_count ? SESSION_PROCESSES
							: SESSION_COMMAND));
	json_array(&j, "pids");
	for (size_t i = 0; i < options->pid_count; i++)
		json_u64(&j, NULL, options->pids[i]);
	json_end(&j);
	if (options->tid_count) {
		json_array(&j, "tids");
		for (size_t i = 0; i < options->tid_count; i++)
			json_u64(&j, NULL, options->tids[i]);
		json_end(&j);
	}
	if (options->cpu_count)
		json_u64(&j, "cpus", info->ring_count);
	json_u64(&j, "frequency_hz", options->frequency_hz);
	json_z(&j, "event",
		session_value_word(info->clock == RECORD_CLOCK_CYCLES ? SESSION_CYCLES
				   : info->clock == RECORD_CLOCK_NONE ? SESSION_THREAD_CLOCKS
								      : SESSION_CPU_CLOCK));
	json_bool(&j, "kernel", !info->kernel_excluded);
	json_bool(&j, "user", !options->kernel_only);
	json_z(&j, "call_graph",
		session_value_word(!info->user_stack_bytes ? SESSION_FRAME_POINTERS
				   : info->copies_vary     ? SESSION_AUTO
							   : SESSION_DWARF));
	if (info->user_stack_bytes)
		json_u64(&j, "stack_bytes", info->user_stack_bytes);
	json_bool(&j, "idle", !info->idle_excluded);
	if (info->switches) {
		json_bool(&j, "switches", true);
		json_bool(&j, "switch_stacks", info->sched.of[SCHED_EVENT_SWITCH].wanted);
		json_bool(&j, "wakers",
			options->wakers && info->sched.of[SCHED_EVENT_WAKING].wanted);
		json_u64(&j, "min_block_ns", options->min_block_ns);
	}
	if (options->io)
		json_bool(&j, "io", true);
	json_bool(&j, "names", !options->no_names);
	json_bool(&j, "dotnet", !options->no_dotnet);
	if (options->names_from_memory)
		json_bool(&j, "names_from_memory", true);
	if (options->provider_count)
		json_z(&j, "providers", options->providers_text);
	if (options->stack_kinds)
		json_bool(&j, "event_stacks", true);
	if (options->activity_max)
		json_u64(&j, "activities", options->activity_max);
	add_list(&j, "lttng", options->lttng);
	add_list(&j, "usdt", options->usdt);
	add_list(&j, "user_events", options->user_events);
	if (options->user_provider_count)
		json_z(&j, "dotnet_user_events", options->user_providers_text);
	json_bool(&j, "arguments", !options->no_arguments);
	json_u64(&j, "stack_frames_max", info->max_stack);
	json_end(&j);
}
