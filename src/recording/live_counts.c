/* See live_counts.h. */
#include "recording/live_counts.h"

#include <string.h>

#include "nettrace/nettrace_write.h"
#include "perf/recorder.h"
#include "recording/block_stacks.h"
#include "recording/live_state.h"
#include "recording/managed.h"
#include "trace/spoor_payload.h"

void live_counts_end(struct live *live, const char *reason)
{
	const struct nettrace_sink_counts *sink = nettrace_sink_counts(live->writer.sink);
	uint64_t late = live->samples.late + live->events.late;
	struct payload_count counts[] = {
		{ "samples", live->samples.count },
		{ "runtime_events", live->events.count },
		{ "runtime_events_counted", live->events.bound.counted },
		{ "runtime_events_lost", live->events.lost + managed_lost(live->managed) },
		{ "usdt_events", live->usdt.hits.count },
		{ "usdt_events_lost", live_usdt_lost(&live->usdt) },
		{ "usdt_arguments_unreadable", live->usdt.unreadable },
		{ "user_events", live->user_events.hits.count },
		{ "user_events_lost", live_user_events_lost(&live->user_events) },
		{ "lost", live->samples.lost },
		{ "blocks", live->switches.count },
		{ "short_blocks", live->switches.short_count },
		{ "known_blocks", live->intake.block_stacks
					  ? block_stacks_found(live->intake.block_stacks)
					  : 0 },
		{ "io_calls", live->io.count },
		{ "late", late },
		{ "frames", live->symbolizer.frames_total },
		{ "unnamed_no_symbols", live->symbolizer.frames_unnamed[UNNAMED_NO_SYMBOLS] },
		{ "unnamed_no_image", live->symbolizer.frames_unnamed[UNNAMED_NO_IMAGE] },
		{ "unnamed_no_mapping", live->symbolizer.frames_unnamed[UNNAMED_NO_MAPPING] },
		{ "unnamed_no_method", live->symbolizer.frames_unnamed[UNNAMED_NO_METHOD] },
		{ "unnamed_not_asked", live->symbolizer.frames_unnamed[UNNAMED_NOT_ASKED] },
		{ "unnamed_kernel_hidden", live->symbolizer.frames_unnamed[UNNAMED_KERNEL_HIDDEN] },
		{ "unnamed_no_memory", live->symbolizer.frames_unnamed[UNNAMED_NO_MEMORY] },
		{ "unnamed_freed", live->symbolizer.frames_unnamed[UNNAMED_FREED] },
		{ "events", sink->events },
		{ "code_bodies", live->symbolizer.code_count },
		{ "code_bodies_refused", live->symbolizer.code_refused },
		{ "code_bytes", live->symbolizer.code_size_bytes },
		{ "unwound", live->samples.unwound },
#define UNWIND_END(name, text, word) { "unwound_" text, live->samples.unwound_ends[UNWIND_##name] },
#include "code/unwind_ends.def"
#undef UNWIND_END
		/*
		 * Times on the recording's clock, not counts: events after sampled_to_ns were
		 * written when sampling had stopped.
		 */
		{ "sampled_from_ns", live->writer.begin_ns },
		{ "sampled_to_ns", live->writer.end_ns },
	};

	if (late)
		session_writer_loss_at_all(&live->writer, "late", "events", late,
			live->writer.end_ns);
	if (live_lttng_lost(&live->lttng))
		session_writer_loss_at_all(&live->writer, "lttng", "events",
			live_lttng_lost(&live->lttng), live->writer.end_ns);
	if (live_usdt_lost(&live->usdt))
		session_writer_loss_at_all(&live->writer, "usdt", "events",
			live_usdt_lost(&live->usdt), live->writer.end_ns);
	if (live_user_events_lost(&live->user_events))
		session_writer_loss_at_all(&live->writer, "user-events", "events",
			live_user_events_lost(&live->user_events), live->writer.end_ns);
	uint64_t stream_lost = managed_lost(live->managed);

	if (stream_lost)
		session_writer_loss_at_all(&live->writer, "eventpipe", "events", stream_lost,
			live->writer.end_ns);
	session_writer_end(&live->writer, reason, counts, sizeof(counts) / sizeof(counts[0]));
}

void live_count(const struct live *live, struct live_counts *ret_counts)
{
	*ret_counts = (struct live_counts){
		.samples = live->samples.count,
		.lost = live->samples.lost,
		.blocks = live->switches.count,
		.late = live->samples.late + live->events.late + live->lttng.late +
			live->usdt.hits.late + live->user_events.hits.late,
		.events = live->events.count,
		.lttng_events = live->lttng.count,
		.lttng_lost = live_lttng_lost(&live->lttng),
		.lttng_incomplete = live->lttng.incomplete,
		.lttng_left = live->lttng.session.stuck ? live->lttng.session.name : NULL,
		.usdt_events = live->usdt.hits.count,
		.usdt_lost = live_usdt_lost(&live->usdt),
		.usdt_unreadable = live->usdt.unreadable,
		.usdt_sites = live->usdt.sites.rows.count,
		.usdt_refused = live->usdt.refused,
		.usdt = live->usdt.table != NULL,
		.user_events = live->user_events.hits.count,
		.user_events_lost = live_user_events_lost(&live->user_events),
		.user_tracepoints = live->user_events.events.tracepoints.count,
		.user_tracepoints_refused = live->user_events.refused,
		.user_events_wanted = live->user_events.table && live->options.user_events,
		.events_counted = live->events.bound.counted,
		.events_lost =
			live->events.lost + (live->managed ? managed_lost(live->managed) : 0),
		.bytes = session_writer_bytes(&live->writer),
		.unsampled_ns = live->unsampled_ns,
		.command_ns = live->command_ns,
		.frames = live->symbolizer.frames_total,
		.begin_ns = live->writer.begin_ns,
		.end_ns = live->writer.end_ns,
		.targets_left = recorder_targets_left(live->recorder),
		.memory_full = live->symbolizer.full,
		.dotnet_silent = live->silent_count,
		.limit = live->writer.limit.reached,
		.unwound = live->samples.unwound,
	};
	memcpy(ret_counts->unwound_ends, live->samples.unwound_ends,
		sizeof(ret_counts->unwound_ends));
	memcpy(ret_counts->unnamed, live->symbolizer.frames_unnamed, sizeof(ret_counts->unnamed));
	managed_counts(live->managed, &ret_counts->dotnet_asked, &ret_counts->dotnet_known);
	ret_counts->dotnet_memory = live->symbolizer.memory_process_count;
	ret_counts->dotnet_not_asked = live->options.names_from_memory;
	ret_counts->dotnet_withheld = managed_withheld(live->managed);
}
