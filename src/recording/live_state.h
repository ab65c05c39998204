/*
 * The state that the files of a live session share, and the functions that write events to its
 * sink.
 *
 * live.c is the main loop; intake.c moves the rings' records into the reorder window; process_table.c
 * keeps the process table as records leave it. Only files of src/recording include this header.
 */
#ifndef SPOOR_RECORDING_LIVE_STATE_H
#define SPOOR_RECORDING_LIVE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/poll_set.h"
#include "base/vec.h"
#include "dotnet/held_runtime.h"
#include "machine/proc.h"
#include "perf/child.h"
#include "perf/perf_record.h"
#include "pipeline/clock_watch.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/live_options.h"
#include "recording/pid_filter.h"
#include "recording/throttled_groups.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

struct arch;
struct live_clocks;
struct managed;
struct recorder;
struct relay;
struct reverse;

#define LIVE_FRAMES_MAX 2048u

/*
 * A live session's own data of a process, in addition to the trace's. Parallel to trace.processes.
 */
struct live_process {
	/* when its tables were read from /proc: older sideband records are already included */
	uint64_t read_ns;
	/* it shares the first fork_end mappings of this process's list; 0: none */
	uint32_t fork_parent;
	uint32_t fork_end;
	bool wanted;       /* a target or started by one */
	bool announced;    /* written to the file */
	bool follows_exec; /* an entry for the same pid before its exec is in the file */
	/* its runtime sends samples; live_clocks.c, also for comm_hash to stacks_seen */
	bool sampled;
	/* events dropped because the file size limit was reached, since the last report */
	uint64_t events_cut;
	uint64_t comm_hash; /* of its program at the last check */
	uint64_t exe_hash;
	uint64_t looked_ns;   /* last reading of its mappings */
	uint64_t look_gap_ns; /* interval to the next reading */
	uint32_t stacks_seen; /* stacks with lower indexes were checked for unknown mappings */
};

/* A runtime that has connected to the listen port. */
struct live_newcomer {
	struct held_runtime held;
	uint64_t came_ns;
	bool judged; /* it is resumed without a session */
};

struct live_cpu {
	uint64_t carry_ns;    /* remainder of sample weights below one millisecond */
	uint64_t last_ns;     /* time of the last record */
	uint64_t throttle_ns; /* since when the CPU is throttled; 0: it is not */
};

struct live {
	struct live_options options;
	struct trace trace;
	struct session_writer writer;
	struct recorder *recorder;
	struct managed *managed;
	struct relay *relay;
	/* used instead of perf events; NULL: perf events are used */
	struct live_clocks *cpu_clocks;
	struct symbolizer symbolizer;
	struct reorder_window window;
	struct proc_reader proc;
	const struct arch *arch;
	struct perf_layout layout;
	struct record_child child;
	VEC(struct live_process) processes;
	/* pid filter of CPU-wide sampling with some processes as targets */
	struct pid_filter filter;
	VEC(struct live_cpu) cpus;
	struct reverse *reverse; /* the listen port, borrowed; NULL: none */
	VEC(struct live_newcomer) newcomers;
	struct poll_set set;
	VEC(uint32_t) free_processes;
	VEC(uint32_t) free_threads;
	VEC(uint32_t) free_mappings;
	VEC(uint32_t) ended;         /* processes whose slots may be reused after a flush */
	VEC(uint32_t) ended_threads; /* threads, likewise */
	uint64_t frames[LIVE_FRAMES_MAX];
	uint64_t flush_ns; /* of the last flush */
	uint64_t follow_ns;
	struct clock_watch clocks;
	struct throttling throttling;
	uint64_t samples;
	uint64_t carry_ns; /* remainder of CPU time shares below one millisecond */
	uint64_t lost;
	uint64_t late;
	uint64_t events;      /* of runtimes */
	uint64_t events_lost; /* reported losses, of the streams and of the reorder window */
	uint64_t losses_told_ns;
	uint64_t give_out_ns; /* when the reorder window was last released */
	/* samples dropped because the file size limit was reached, since the last report */
	uint64_t samples_cut;
	bool started;
	bool room_wanted; /* the tables were too large at the last flush */
	bool child_waits;
	/* time of the command's exec; before it the command is a copy of spoor */
	uint64_t child_exec_ns;
	/* CPU time of the command and the children it waited for; 0: unknown */
	uint64_t command_ns;
	uint64_t unsampled_ns; /* estimated CPU time of the command that no sample covers */
	bool files_said;       /* skipped symbol files were reported */
};

/* The index of a text in the trace's string table. */
uint32_t live_text(struct live *live, const char *text, size_t len);

uint32_t live_main_thread(const struct live *live, uint32_t process);

/* Releases the items of the reorder window up to `until_ns`. */
void live_give_out(struct live *live, uint64_t until_ns);

#endif
