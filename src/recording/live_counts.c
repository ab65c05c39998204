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
	const struct session_count counts[] = {
		{ SESSION_COUNT_SAMPLES, live->samples.count },
		{ SESSION_COUNT_RUNTIME_EVENTS, live->events.count },
		{ SESSION_COUNT_RUNTIME_EVENTS_COUNTED, live->events.bound.counted },
		{ SESSION_COUNT_RUNTIME_EVENTS_LOST,
			live->events.lost + managed_lost(live->managed) },
		{ SESSION_COUNT_USDT_EVENTS, live->usdt.hits.count },
		{ SESSION_COUNT_USDT_EVENTS_LOST, live_usdt_lost(&live->usdt) },
		{ SESSION_COUNT_USDT_ARGUMENTS_UNREADABLE, live->usdt.unreadable },
		{ SESSION_COUNT_USER_EVENTS, live->user_events.hits.count },
		{ SESSION_COUNT_USER_EVENTS_LOST, live_user_events_lost(&live->user_events) },
		{ SESSION_COUNT_LOST, live->samples.lost },
		{ SESSION_COUNT_BLOCKS, live->switches.count },
		{ SESSION_COUNT_SHORT_BLOCKS, live->switches.short_count },
		{ SESSION_COUNT_KNOWN_BLOCKS,
			live->intake.block_stacks ? block_stacks_found(live->intake.block_stacks)
						  : 0 },
		{ SESSION_COUNT_IO_CALLS, live->io.count },
		{ SESSION_COUNT_LATE, late },
		{ SESSION_COUNT_FRAMES, live->symbolizer.frames_total },
		{ SESSION_COUNT_UNNAMED_NO_SYMBOLS,
			live->symbolizer.frames_unnamed[UNNAMED_NO_SYMBOLS] },
		{ SESSION_COUNT_UNNAMED_NO_IMAGE,
			live->symbolizer.frames_unnamed[UNNAMED_NO_IMAGE] },
		{ SESSION_COUNT_UNNAMED_NO_MAPPING,
			live->symbolizer.frames_unnamed[UNNAMED_NO_MAPPING] },
		{ SESSION_COUNT_UNNAMED_NO_METHOD,
			live->symbolizer.frames_unnamed[UNNAMED_NO_METHOD] },
		{ SESSION_COUNT_UNNAMED_NOT_ASKED,
			live->symbolizer.frames_unnamed[UNNAMED_NOT_ASKED] },
		{ SESSION_COUNT_UNNAMED_KERNEL_HIDDEN,
			live->symbolizer.frames_unnamed[UNNAMED_KERNEL_HIDDEN] },
		{ SESSION_COUNT_UNNAMED_NO_MEMORY,
			live->symbolizer.frames_unnamed[UNNAMED_NO_MEMORY] },
		{ SESSION_COUNT_UNNAMED_FREED, live->symbolizer.frames_unnamed[UNNAMED_FREED] },
		{ SESSION_COUNT_EVENTS, sink->events },
		{ SESSION_COUNT_CODE_BODIES, live->symbolizer.code_count },
		{ SESSION_COUNT_CODE_BODIES_REFUSED, live->symbolizer.code_refused },
		{ SESSION_COUNT_CODE_BYTES, live->symbolizer.code_size_bytes },
		{ SESSION_COUNT_UNWOUND, live->samples.unwound },
#define UNWIND_END(name, text, word) \
	{ SESSION_COUNT_UNWOUND_##name, live->samples.unwound_ends[UNWIND_##name] },
#include "code/unwind_ends.def"
#undef UNWIND_END
		{ SESSION_COUNT_SAMPLED_FROM_NS, live->writer.begin_ns },
		{ SESSION_COUNT_SAMPLED_TO_NS, live->writer.end_ns },
	};

	if (late)
		session_writer_loss_at_all(&live->writer, LOSS_LATE, LOSS_EVENTS, late,
			live->writer.end_ns);
	if (live_lttng_lost(&live->lttng))
		session_writer_loss_at_all(&live->writer, LOSS_LTTNG, LOSS_EVENTS,
			live_lttng_lost(&live->lttng), live->writer.end_ns);
	if (live_usdt_lost(&live->usdt))
		session_writer_loss_at_all(&live->writer, LOSS_USDT, LOSS_EVENTS,
			live_usdt_lost(&live->usdt), live->writer.end_ns);
	if (live_user_events_lost(&live->user_events))
		session_writer_loss_at_all(&live->writer, LOSS_USER_EVENTS, LOSS_EVENTS,
			live_user_events_lost(&live->user_events), live->writer.end_ns);
	uint64_t stream_lost = managed_lost(live->managed);

	if (stream_lost)
		session_writer_loss_at_all(&live->writer, LOSS_EVENTPIPE, LOSS_EVENTS, stream_lost,
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
		.usdt_missed = live->usdt.late_files + live->usdt.missed_files,
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
