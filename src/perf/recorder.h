/*
 * The kernel-facing recorder: opens perf events, probes what the kernel takes, maps the rings. It parses no records.
 *
 *   recorder_open(&options, &recorder, &diag);
 *   recorder_start(recorder);                             (with RECORD_CHILD the child's exec starts it, but for late_start and filter_by_pid)
 *   poll() on recorder_poll_fds() and whatever else; after it recorder_note_poll(); then for each ring: ring_begin/next/end
 *   recorder_stop(recorder); drain once more; recorder_read_lost(); recorder_close(recorder);
 *
 * One ring a CPU holds samples and sideband (mmap2, comm, fork, exit, lost, throttle) of that CPU in the order of their time. Every record
 * has the layout of info->sample_type (with sample_id_all): a sample is {[IDENTIFIER] TID TIME CPU [PERIOD] CALLCHAIN}, everything else ends with
 * {TID TIME CPU [IDENTIFIER]}. IDENTIFIER is there only when threads are recorded one by one, PERIOD only for hardware cycles. There is
 * no IP: the callchain begins with it. Time is CLOCK_MONOTONIC.
 */
#ifndef SPOOR_PERF_RECORDER_H
#define SPOOR_PERF_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct pollfd;
struct recorder;
struct ring;

#define RECORDER_RINGS_BYTES_MAX (64u << 20) /* all rings together */
#define RECORDER_RING_BYTES      (2u << 20)  /* one, where that many fit */
#define RECORDER_TARGETS_MAX     4096u
#define RECORDER_HZ_MAX          100000u

enum record_scope {
	RECORD_MACHINE,          /* every CPU, every process */
	RECORD_PIDS,             /* all threads of some processes, and what they start from now on */
	RECORD_THREADS,          /* `pids` are threads: they alone, and nothing they start */
	RECORD_CHILD,            /* pids[0] is our own child that is about to exec: begins there, or before with filter_by_pid */
};

enum record_clock {
	RECORD_CLOCK_CYCLES,     /* hardware cycles, so many a second */
	RECORD_CLOCK_CPU,        /* the kernel's cpu-clock timer */
	RECORD_CLOCK_NONE,       /* nothing is sampled: there are targets, but no rings */
};

struct recorder_options {
	enum record_scope scope;
	uint32_t frequency_hz;   /* samples a second and CPU, at least 1 */
	const uint32_t *pids;    /* borrowed for the call of recorder_open() */
	size_t pid_count;
	const uint32_t *cpus;    /* these CPUs only; borrowed as `pids` are */
	size_t cpu_count;        /* 0: all */
	size_t ring_bytes;       /* 0: RECORDER_RING_BYTES; a power of two of pages otherwise */
	bool user_only;          /* leave the kernel out even where it is allowed */
	bool kernel_only;        /* leave user code and user stacks out */
	bool late_start;         /* RECORD_CHILD: recorder_start() starts it, not the child's exec */
	bool no_hardware;        /* cpu-clock even where there are hardware cycles */
	const struct diag *instead; /* no perf events at all: targets are held, info->limit is this; NULL: perf events */
};

/* What came of it. */
struct recorder_info {
	enum record_clock clock;
	uint64_t sample_type;    /* PERF_SAMPLE_* bits; struct perf_layout of perf/perf_record.h takes it */
	uint64_t period_ns;      /* CPU time a sample stands for */
	uint32_t frequency_hz;   /* as asked for */
	uint32_t max_stack;      /* frames the kernel takes at most (perf_event_max_stack) */
	uint32_t ring_count;
	uint32_t cpu_max;        /* the highest number of a CPU that has a ring */
	uint32_t event_count;    /* open perf events */
	uint32_t thread_count;   /* RECORD_PIDS without filter_by_pid: threads found when opening */
	size_t ring_bytes;       /* each */
	bool kernel_excluded;    /* user code and user stacks only */
	bool idle_excluded;      /* no samples of idle CPUs */
	bool build_ids;          /* mmap2 records carry them */
	bool lost_counts;        /* recorder_read_lost() knows */
	bool filter_by_pid;      /* RECORD_PIDS, RECORD_CHILD with machine-wide rings, where that is allowed and not too much: the caller drops others' records */
	struct diag limit;       /* limit.error: a right is missing and this much less is recorded; sentence and remedy */
};

/*
 * -EACCES: rights are missing (the diag says which and what to do). -ESRCH: no such process, or it has ended. -ENXIO: one of `cpus` is
 * not there or not online. -EMFILE: more
 * events than files may be open and no right to record machine-wide. The recorder does not run yet.
 */
int recorder_open(const struct recorder_options *options, struct recorder **ret_recorder,
	struct diag *diag);

/* Whether this process may open no perf event whatever, of its own threads neither: 0 it may, -EACCES and why it may not. A try of its own. */
int recorder_refusal(struct diag *diag);

void recorder_close(struct recorder *recorder);

const struct recorder_info *recorder_info(const struct recorder *recorder);

int recorder_start(struct recorder *recorder, struct diag *diag);
void recorder_stop(struct recorder *recorder);

/* Rings 0 to info->ring_count - 1. */
struct ring *recorder_ring(struct recorder *recorder, uint32_t index);

/*
 * Fills up to `room` entries: one a ring (readable when a quarter full), one a target process (readable when it has ended). Returns how many there
 * are in all, so NULL and 0 may ask. recorder_note_poll() gets the same entries after poll() and forgets those that hung up, so ask again
 * before the next poll().
 */
size_t recorder_poll_fds(const struct recorder *recorder, struct pollfd *fds, size_t room);
void recorder_note_poll(struct recorder *recorder, const struct pollfd *fds, size_t count);

/* Targets (pids of the options) that were alive when recorder_note_poll() was last called. */
uint32_t recorder_targets_left(const struct recorder *recorder);

/*
 * Machine-wide only: opens events for CPUs that came online since (same ring for a CPU that comes back). Call it about once a second; cheap
 * when nothing changed. Returns how many were added; info->ring_count grows, ring pointers stay valid. `changed` is called for each CPU that came or went.
 */
typedef void recorder_cpu_fn(void *context, uint32_t cpu, bool online);
int recorder_follow_cpus(struct recorder *recorder, recorder_cpu_fn *changed, void *context,
	struct diag *diag);

/* Records the kernel could not write, by its own count. False when it does not keep one. */
bool recorder_read_lost(const struct recorder *recorder, uint64_t *ret_lost);

#endif
