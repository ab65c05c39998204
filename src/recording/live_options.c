/* See live_options.h. */
#include "recording/live_options.h"

#include "base/json.h"
#include "perf/recorder.h"

void live_options_json(const struct live_options *options, const struct recorder_info *info,
	struct bytes *out)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "scope",
		options->machine     ? "machine"
		: options->tid_count ? "threads"
		: options->pid_count ? "processes"
				     : "command");
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
		info->clock == RECORD_CLOCK_CYCLES ? "cycles"
		: info->clock == RECORD_CLOCK_NONE ? "thread-clocks"
						   : "cpu-clock");
	json_bool(&j, "kernel", !info->kernel_excluded);
	json_bool(&j, "user", !options->kernel_only);
	json_z(&j, "call_graph",
		!info->user_stack_bytes ? "fp"
		: info->copies_vary     ? "auto"
					: "dwarf");
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
	if (options->lttng && options->lttng[0]) {
		json_array(&j, "lttng");
		for (size_t i = 0; options->lttng[i]; i++)
			json_z(&j, NULL, options->lttng[i]);
		json_end(&j);
	}
	json_bool(&j, "arguments", !options->no_arguments);
	json_u64(&j, "stack_frames_max", info->max_stack);
	json_end(&j);
}
