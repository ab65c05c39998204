/* See live_recorder.h. */
#include "recording/live_recorder.h"

#include <errno.h>

#include "base/diag.h"
#include "code/arch.h"
#include "perf/child.h"
#include "perf/recorder.h"
#include "recording/live_state.h"
#include "recording/stack_unwinder.h"

static bool is_unwound(const struct live_options *options)
{
	return options->unwind && !options->instead && !options->kernel_only;
}

int live_recorder_unwind(struct live *live, const struct live_options *options, struct diag *diag)
{
	if (!is_unwound(options))
		return 0;
	int result = stack_unwinder_new(&live->trace.strings, &live->table.proc, arch_here(),
		&live->unwinder);

	if (result < 0)
		return diag_set(diag, result,
			result == -ENOTSUP
				? "stacks cannot be unwound on this processor: only x86-64 and arm64 are supported"
				: "cannot record: %m");
	if (options->off_cpu)
		stack_unwinder_hurry(live->unwinder);
	return 0;
}

/* The parts of the session learn what the recorder records. */
static int connect_recorder(struct live *live, const struct live_options *options,
	const struct recorder_options *opened)
{
	const struct recorder_info *info = recorder_info(live->recorder);

	live->intake.recorder = live->recorder;
	live->intake.usdt = recorder_usdt(live->recorder) ? &live->usdt : NULL;
	live->intake.user_events = opened->tracepoints ? &live->user_events : NULL;
	live->intake.unwinder = live->unwinder;
	intake_read_frames(&live->intake);
	live->intake.copies_vary = info->copies_vary;
	int result = intake_recognize_blocks(&live->intake);

	if (result < 0)
		return result;
	live->changes.recorder = live->recorder;
	live->samples.period_ns = info->period_ns;
	live->table.filter_by_pid = info->filter_by_pid;
	if (live->table.filter_by_pid)
		live->table.filter.shared[0] = recorder_muted(live->recorder);
	if (options->io)
		io_recording_open(&live->io);
	if (info->switches)
		live->switches = (struct switch_table){ .table = &live->table,
			.samples = &live->samples,
			.min_block_ns = options->min_block_ns,
			.wakers = options->wakers };
	live->intake.layout = (struct perf_layout){ .sample_type = info->sample_type,
		.user_registers = opened->user_registers,
		.sample_id_all = true };
	return 0;
}

int live_recorder_open(struct live *live, const struct live_options *options, struct diag *diag)
{
	struct recorder_options recorder_options;

	if (options->child)
		live->table.command_pid = options->child->pid;
	live_options_recorder(options, is_unwound(options), &live->table.command_pid,
		&recorder_options);
	int result = recorder_open(&recorder_options, &live->recorder, diag);

	if (result < 0)
		return result;
	result = connect_recorder(live, options, &recorder_options);
	return result < 0 ? diag_set(diag, result, "cannot record: %m") : 0;
}
