/* What a recorder is to open, and what it has opened (recorder.h). */
#ifndef SPOOR_PERF_RECORDER_OPTIONS_H
#define SPOOR_PERF_RECORDER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "perf/sched_events.h"

struct rights;

#define RECORDER_RINGS_BYTES_MAX (64u << 20) /* all rings together */
#define RECORDER_RING_BYTES      (2u << 20)  /* each ring, if so many bytes are available */
#define RECORDER_TARGETS_MAX     4096u
#define RECORDER_HZ_MAX          100000u

enum record_scope {
	RECORD_MACHINE, /* every CPU, every process */
	/* all threads of some processes, and the threads and processes that they start */
	RECORD_PIDS,
	/* `pids` are thread ids: these threads only, and none that they start */
	RECORD_THREADS,
	/* pids[0] is our child before its exec, which begins it (not if filter_by_pid) */
	RECORD_CHILD,
};

enum record_clock {
	RECORD_CLOCK_CYCLES, /* hardware cycles, a given number a second */
	RECORD_CLOCK_CPU,    /* the kernel's cpu-clock timer */
	RECORD_CLOCK_NONE,   /* no samples: there are targets, but no rings */
};

struct recorder_options {
	enum record_scope scope;
	uint32_t frequency_hz; /* samples a second and CPU, at least 1 */
	const uint32_t *pids;  /* borrowed during recorder_open() */
	size_t pid_count;
	const uint32_t *cpus; /* only these CPUs; borrowed as `pids` is */
	size_t cpu_count;     /* 0: all */
	size_t ring_bytes;    /* 0: RECORDER_RING_BYTES; otherwise a power of two of pages */
	bool user_only;       /* exclude kernel code even if it is allowed */
	bool kernel_only;     /* exclude user code and user stacks */
	/* RECORD_CHILD: recorder_start() starts it, instead of the child's exec */
	bool late_start;
	/*
	 * bytes of the user stack to copy with each sample, a multiple of 8 below 64 KiB, and the user
	 * registers (sample_regs_user); 0: none
	 */
	uint32_t user_stack_bytes;
	/* without copies too, if a program follows the switches (sched_probe.h) */
	uint64_t user_registers;
	/*
	 * offsets in the kernel's struct pt_regs, as in struct sched_probe_registers; borrowed as `pids` is;
	 * none: unknown
	 */
	const uint16_t *kernel_registers;
	uint32_t kernel_register_count;
	/* not 0: recorder_copy_small() can reduce the copies to this size */
	uint32_t user_stack_small_bytes;
	/* with `switches`: the largest copies with a context switch, and with a waking */
	uint32_t switch_stack_bytes;
	uint32_t waking_stack_bytes;
	bool switches;      /* context switches, with stacks where the rights allow it */
	bool waking_stacks; /* with `switches`: the stacks of the wakers too */
	bool prefer_cpus;   /* processes: the rings of CPUs, however many samples that takes */
	/* USDT probes: machine-wide rings only; recorder_usdt() attaches them */
	bool usdt;
	bool usdt_by_events; /* as usdt_probe_open() has it */
	bool tracepoints; /* tracepoints: machine-wide rings only; recorder_add_tracepoint() adds them */
	/* with `usdt` or `tracepoints`: of the largest stack copy in the sample of an event */
	uint32_t hit_stack_bytes;
	bool no_hardware; /* cpu-clock even if there are hardware cycles */
	/* not NULL: no perf events; targets are tracked, and info->limit becomes this */
	const struct diag *instead;
	const struct rights *rights; /* borrowed as `pids` is; NULL: the rights of this process */
};

/* The configuration that was opened. */
struct recorder_info {
	enum record_clock clock;
	/* PERF_SAMPLE_* bits; struct perf_layout of perf/perf_record.h takes it */
	uint64_t sample_type;
	uint64_t period_ns;    /* CPU time that a sample represents */
	uint32_t frequency_hz; /* the requested frequency */
	/* limit of frames in the kernel's callchains (perf_event_max_stack) */
	uint32_t max_stack;
	uint32_t ring_count;
	uint32_t cpu_max;      /* the highest number of a CPU that has a ring */
	uint32_t event_count;  /* open perf events */
	uint32_t thread_count; /* RECORD_PIDS without filter_by_pid: threads found when opening */
	size_t ring_bytes;     /* of each ring */
	uint32_t user_stack_bytes; /* of the stack in each sample; 0: no copies */
	bool copies_vary;          /* recorder_copy_small() is supported */
	bool kernel_excluded;      /* user code and user stacks only */
	bool idle_excluded;        /* no samples of idle CPUs */
	bool build_ids;            /* mmap2 records carry them */
	bool lost_counts;          /* the kernel counts lost samples in each event */
	/* the rings are machine-wide: the caller drops records of other processes */
	bool filter_by_pid;
	bool switches; /* context switches are recorded */
	/* with `switches`: the tracepoints, and why they are not used */
	struct sched_events sched;
	/* limit.error: a right is missing, so less is recorded; with a remedy */
	struct diag limit;
};

#endif
