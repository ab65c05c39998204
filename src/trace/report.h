/*
 * The contents of a report, as plain data: filled by `analysis/`, printed by `report/` and
 * `render/`. Times are of the recording's clock; weights are ns of CPU. Fields with "all" are of
 * the whole recording, the others of the samples that pass the filter.
 */
#ifndef SPOOR_TRACE_REPORT_H
#define SPOOR_TRACE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "code/unwind.h"
#include "trace/symbolmap.h"

struct trace;

/* Losses of one source and unit, added up. */
struct report_loss {
	uint32_t source; /* strtab */
	uint32_t unit;   /* strtab */
	uint64_t count;
	uint64_t first_ns;
	uint64_t last_ns;
	int32_t cpu; /* of all of them; -1 unknown or several */
	bool several_cpus;
	bool more_unknown; /* some did not say how many */
	bool moved;        /* late events: in the file, at a later place */
};

/* Frames without a name, by module. */
struct report_unnamed {
	uint32_t module; /* strtab */
	uint8_t kind;    /* enum function_kind */
	uint64_t frames;
};

/* One function in one process: a method in one row, however often the runtime compiled it. */
struct report_row {
	uint32_t function;                     /* of the symbolmap */
	uint32_t tiers;                        /* set of 1 << enum function_tier */
	uint64_t tier_ns[FUNCTION_TIER_COUNT]; /* of self_ns */
	uint64_t self_ns;
	uint64_t total_ns;   /* recursion counted once */
	uint64_t self_count; /* samples */
	uint64_t total_count;
};

struct report_process {
	uint64_t stackless_ns; /* of cpu_ns: time without a stack */
	uint32_t process;      /* index in trace.processes */
	uint32_t row_at;       /* its rows, sorted, in report.rows */
	uint32_t row_count;
	uint64_t cpu_ns;
	uint64_t samples;
};

/* Events of one kind that other providers than ours wrote. */
struct report_event {
	uint32_t schema; /* index in trace.schemas */
	uint64_t count;
};

/* What CPU time is added up by, beside the tables of functions. */
enum report_group_key {
	GROUP_NAME = 1 << 0, /* of the process */
	GROUP_PID = 1 << 1,
	GROUP_MODULE = 1 << 2,
	GROUP_FUNCTION = 1 << 3,
};

struct report_group {
	uint32_t process;  /* index in trace.processes: one of those in it */
	uint32_t pid;      /* 0 unless it is a key, as the others */
	uint32_t name;     /* strtab */
	uint32_t module;   /* strtab */
	uint32_t function; /* of the symbolmap: one of those in it */
	uint64_t self_ns;
	uint64_t total_ns;   /* recursion counted once */
	uint64_t self_count; /* samples */
	uint64_t total_count;
};

/* What the weights of samples are. */
enum report_weighing {
	REPORT_CPU, /* CPU time as the kernel samples it */
	/* ... by the threads' CPU clocks, divided among stacks that runtimes sampled */
	REPORT_CPU_CLOCKS,
	REPORT_THREAD_TIME, /* time that threads were there, whether they ran or waited */
	REPORT_WAITING,     /* time that threads waited */
	REPORT_WALL,        /* time that threads computed or waited */
	REPORT_ALLOCATIONS, /* allocated bytes, although the fields are named for times */
	REPORT_EVENTS,      /* number of events, likewise */
};

/* Which part of the machine the recorder sampled. */
enum report_scope {
	REPORT_MACHINE,
	REPORT_PROCESSES,
	REPORT_THREADS,
	REPORT_COMMAND, /* a command and its children */
};

struct report {
	enum report_weighing weighing;
	enum report_scope scope;
	/* REPORT_CPU_CLOCKS: the recorder requested no stacks from a runtime */
	bool no_stacks;
	const struct trace *trace;
	const struct symbolmap *names;
	const char *file; /* borrowed; as it is to be named to a person, or NULL */
	/* borrowed: options of this selection for a shell, " -p 4711"; NULL: none */
	const char *arguments;
	bool one_process; /* they have a -p */
	/* borrowed: the filter's options, "-p 4711"; NULL when there is none */
	const char *selection;
	uint64_t begin_ns;
	uint64_t duration_ns; /* sampled time: without what the recorder did afterwards */
	uint64_t cpu_count;   /* 0 unknown */
	double rate_hz;       /* 0 unknown */
	/* sampled share of the machine's CPU time, 0 to 1; negative: unknown or none */
	double busy;
	uint64_t all_samples;
	uint64_t all_cpu_ns;
	uint64_t samples;
	uint64_t cpu_ns;
	/* of cpu_ns, by the innermost frame's kind; no name: FUNCTION_UNKNOWN */
	uint64_t kind_ns[FUNCTION_KIND_COUNT];
	uint64_t frames; /* of the samples */
	uint64_t named_frames;
	bool has_blocks;       /* the recorder wrote blocks, whose stacks are not counted above */
	uint64_t lost_samples; /* of the whole recording */
	bool loss_unknown;     /* more was lost than the numbers say */
	bool killed;           /* the recorder did not end it */
	/* of the whole recording: stacks that were unwound, and how those ended (enum unwind_end) */
	uint64_t unwound_stacks;
	uint64_t unwound_ends[UNWIND_END_COUNT];
	VEC(struct report_loss) losses;
	VEC(struct report_unnamed) unnamed;   /* most frames first */
	VEC(struct report_process) processes; /* most CPU first */
	VEC(struct report_row) rows;
	VEC(struct report_event) events; /* most first */
	uint64_t events_counted;         /* of these: not written, see trace/event_count.h */
	unsigned group_keys;             /* enum report_group_key; 0: no groups were requested */
	VEC(struct report_group) groups; /* sorted as asked */
};

void report_done(struct report *report);

#endif
