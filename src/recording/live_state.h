/* The state of a live session, for the files that implement live.h. */
#ifndef SPOOR_RECORDING_LIVE_STATE_H
#define SPOOR_RECORDING_LIVE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/poll_set.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/intake.h"
#include "recording/io_recording.h"
#include "recording/live_dotnet_events.h"
#include "recording/live_events.h"
#include "recording/live_lttng.h"
#include "recording/live_observations.h"
#include "recording/live_options.h"
#include "recording/live_port.h"
#include "recording/live_usdt.h"
#include "recording/live_user_events.h"
#include "recording/machine_changes.h"
#include "recording/memory_names.h"
#include "recording/process_table.h"
#include "recording/samples.h"
#include "recording/switch_table.h"
#include "recording/throttling.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

struct live_clocks;
struct managed;
struct recorder;
struct stack_unwinder;

/* Each part has its state in its own struct; connect_parts() tells it which others it uses. */
struct live {
	struct live_options options;
	struct trace trace;
	struct reorder_window window;
	struct session_writer writer;
	struct symbolizer symbolizer;
	struct managed *managed;
	struct recorder *recorder;
	struct intake intake;
	struct stack_unwinder *unwinder; /* NULL: call chains by frame pointers only */
	struct process_table table;
	struct memory_names memory;
	struct samples samples;
	struct switch_table switches; /* without a table: they are not recorded */
	struct io_recording io;       /* without a probe: likewise */
	struct live_events events;
	struct live_lttng lttng;
	struct live_observations observations;
	struct live_usdt usdt;
	struct live_user_events user_events;
	struct live_dotnet_events dotnet_events;
	struct live_port port;
	/* used instead of perf events; NULL: perf events are used */
	struct live_clocks *cpu_clocks;
	struct throttling throttling;
	struct machine_changes changes;
	struct poll_set set;
	bool started;         /* the rings were */
	bool room_wanted;     /* the tables were too large at the last flush */
	bool files_said;      /* skipped symbol files were reported */
	uint64_t flush_ns;    /* of the last flush */
	uint64_t released_ns; /* when the reorder window was last released */
	/* CPU time of the command and the children it waited for; 0: unknown */
	uint64_t command_ns;
	uint64_t unsampled_ns; /* estimated CPU time of the command that no sample covers */
	uint32_t silent_count; /* see live_counts.dotnet_silent */
};

#endif
