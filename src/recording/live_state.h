/*
 * What the files of a live session share: its state, and how events leave it.
 *
 * live.c drives; intake.c brings the rings' records into the window; census.c keeps the process table as they leave it. Nobody else includes
 * this.
 */
#ifndef SPOOR_RECORDING_LIVE_STATE_H
#define SPOOR_RECORDING_LIVE_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/vec.h"
#include "dotnet/held_runtime.h"
#include "machine/box.h"
#include "machine/proc.h"
#include "perf/child.h"
#include "perf/perf_record.h"
#include "pipeline/clock_watch.h"
#include "pipeline/merge.h"
#include "pipeline/output_limit.h"
#include "recording/live_options.h"
#include "recording/strangers.h"
#include "recording/throttled_groups.h"
#include "symbolize/names.h"
#include "trace/flow.h"
#include "trace/schema.h"
#include "trace/trace.h"

struct arch;
struct live_clocks;
struct managed;
struct recorder;
struct relay;
struct reverse;

#define LIVE_FRAMES_MAX 2048u

/* What a live session knows of a process beyond the model. Parallel to trace.processes. */
struct live_process {
	uint64_t read_ns;     /* its tables were read from /proc at this time: older sideband is in them */
	uint32_t fork_parent; /* shares the first fork_end mappings of this process's list until its own exec */
	uint32_t fork_end;
	bool wanted;          /* one of the targets or started by one */
	bool announced;       /* in the file */
	bool follows_exec;    /* the same process was another program before, which is in the file */
	bool sampled;         /* its runtime samples it: live_clocks.c, as what follows */
	uint64_t events_cut;  /* that would have made the file larger than it may become; told and begun anew */
	uint64_t comm_hash;   /* of the program it was when it was looked at last */
	uint64_t exe_hash;
	uint64_t looked_ns;   /* at its mappings */
	uint64_t look_gap_ns; /* to the next look */
	uint32_t stacks_seen; /* stacks below this number were looked at */
};

/* A runtime that has come to the listen port. */
struct live_newcomer {
	struct held_runtime held;
	uint64_t came_ns;
	bool judged;          /* it is resumed without a session */
};

struct live_cpu {
	uint64_t carry_ns;    /* of sample weights, below a millisecond */
	uint64_t last_ns;     /* time of the last record */
	uint64_t throttle_ns; /* since when; 0 not throttled */
};

struct live {
	struct live_options options;
	struct trace trace;
	struct recorder *recorder;
	struct managed *managed;
	struct relay *relay;
	struct live_clocks *cpu_clocks; /* instead of perf events; NULL: there are those */
	struct names names;
	struct merge merge;
	struct proc_reader proc;
	struct box box;
	const struct arch *arch;
	struct perf_layout layout;
	const struct sink_ops *sink_ops;
	struct sink *sink;
	struct output_limit output;
	struct record_child child;
	VEC(struct live_process) processes;
	struct strangers strangers; /* where the CPUs are sampled for some processes */
	VEC(struct live_cpu) cpus;
	struct reverse *reverse;    /* the listen port, borrowed; NULL: none */
	VEC(struct live_newcomer) newcomers;
	VEC(struct pollfd) poll_fds;
	VEC(uint32_t) free_processes;
	VEC(uint32_t) free_threads;
	VEC(uint32_t) free_mappings;
	VEC(uint32_t) ended;         /* processes whose places may be given to others after a flush */
	VEC(uint32_t) ended_threads; /* likewise */
	struct bytes payload;
	struct bytes text;
	uint64_t frames[LIVE_FRAMES_MAX];
	uint64_t begin_ns;
	uint64_t end_ns;        /* rings stopped; 0 they run */
	uint64_t flush_ns;      /* of the last flush */
	uint64_t follow_ns;
	struct clock_watch clocks;
	struct throttling throttling;
	uint64_t samples;
	uint64_t carry_ns;      /* of shares of CPU time, below a millisecond */
	uint64_t lost;
	uint64_t late;
	uint64_t events;        /* of runtimes */
	uint64_t events_lost;   /* told, of their streams and of our window */
	uint64_t losses_told_ns;
	uint64_t give_out_ns;   /* of the last give-out */
	size_t unflushed_bytes; /* of events in the sink, about */
	size_t unflushed_most;  /* of all that the sink has not written, at most; where the size of the file is limited */
	uint64_t samples_cut;   /* for which the file had no room; reported and begun anew */
	uint32_t recorder_process;
	bool started;
	bool room_wanted;       /* the tables were too large at the last flush */
	bool child_waits;
	uint64_t child_exec_ns; /* from then on the command is no copy of us */
	uint64_t command_ns;    /* CPU time of the command and the children it waited for; 0 not known */
	uint64_t unsampled_ns;  /* CPU time of the command that no sample stands for, as far as that is known */
	bool files_said;        /* that files of targets are skipped */
	int sink_error;
	struct diag sink_diag;
};

/* A text's index in the trace. */
uint32_t live_text(struct live *live, const char *text, size_t len);

uint32_t live_main_thread(const struct live *live, uint32_t process);

/* To the sink; its error is kept in sink_error, and nothing more is given to it then. */
void live_to_sink(struct live *live, const struct event *event);

/* Whether the file has room for names and the last words only, or (over) not even for names. May flush the sink, to know its size. */
bool live_is_full(struct live *live);
bool live_is_over(struct live *live);

/* An event about a thread, at the place that the stream has reached. The payload is borrowed; one that ran out of memory is not written. */
void live_emit(struct live *live, enum known_event known, uint32_t thread, const struct bytes *payload,
	int32_t cpu, uint32_t lost_before);

/* What limits the recording, on the row of a process (the recorder's for the whole). Severity: 1 note, 2 limited, 3 failed. */
void live_notice(struct live *live, uint32_t process, uint64_t severity, const char *code,
	const char *text, const char *remedy);

/* Releases the items of the window up to that time. */
void live_give_out(struct live *live, uint64_t until_ns);

/* A loss; `gap`: the count shows in the sequence numbers too. */
void live_loss(struct live *live, const char *source, const char *unit, uint64_t count, int32_t cpu,
	uint64_t first_ns, uint64_t last_ns, bool gap);

#endif
