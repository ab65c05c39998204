/*
 * The recorder: opens perf events, probes which attributes the kernel accepts, maps the rings.
 *
 *   recorder_open(&options, &recorder, &diag);
 *   recorder_start(recorder);                             (with RECORD_CHILD the child's exec starts it, but for late_start and filter_by_pid)
 *   each turn:  recorder_await(recorder, &set); poll_set_wait(&set); recorder_note_wait(recorder, &set);
 *               for each ring: ring_begin/next/end
 *   recorder_stop(recorder); drain once more; recorder_close(recorder);
 *
 * One ring for each CPU holds the samples and the sideband (mmap2, comm, fork, exit, lost,
 * throttle) of that CPU, ordered by time, in the layout of info->sample_type (with sample_id_all):
 * a sample is {[IDENTIFIER] TID TIME CPU [PERIOD] CALLCHAIN [REGS_USER STACK_USER]}, and all other records end with {TID
 * TIME CPU [IDENTIFIER]}. IDENTIFIER exists only if threads are recorded one by one, PERIOD only
 * for hardware cycles; the callchain begins with the IP. The time is CLOCK_MONOTONIC. With
 * `switches`, `usdt` or `tracepoints`, every sample has RAW data; with `switches` there are records of context switches,
 * or rings of them (recorder_switches()).
 */
#ifndef SPOOR_PERF_RECORDER_H
#define SPOOR_PERF_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf/recorder_options.h"

struct known_block;
struct poll_set;
struct recorder;
struct ring;
struct switch_ring;
struct usdt_probe;

/*
 * The recorder does not run yet. -EACCES: rights are missing (the diag has a remedy). -ESRCH: the
 * process has ended. -ENXIO: one of `cpus` is offline. -EMFILE: more events than files are allowed,
 * and the right to record machine-wide is missing.
 */
int recorder_open(const struct recorder_options *options, struct recorder **ret_recorder,
	struct diag *diag);

/* Whether this process may open any perf event at all: 0, or -EACCES with the reason. */
int recorder_refusal(struct diag *diag);

void recorder_close(struct recorder *recorder);

const struct recorder_info *recorder_info(const struct recorder *recorder);

int recorder_start(struct recorder *recorder, struct diag *diag);
void recorder_stop(struct recorder *recorder);

/* Rings 0 to info->ring_count - 1. */
struct ring *recorder_ring(struct recorder *recorder, uint32_t index);

/*
 * Adds a descriptor for each ring (readable when a quarter full) and each target process (readable
 * when it has ended). recorder_note_wait() notes those that have ended or hung up.
 */
void recorder_await(struct recorder *recorder, struct poll_set *set);
void recorder_note_wait(struct recorder *recorder, const struct poll_set *set);

/* Targets (pids of the options) that were alive at the last recorder_note_wait(). */
uint32_t recorder_targets_left(const struct recorder *recorder);

/*
 * Machine-wide: opens events for CPUs that came online, cheaply; once a second. A CPU that comes
 * back keeps its ring. Returns the number of new CPUs; info->ring_count grows, ring pointers stay
 * valid. `changed` is called for each CPU that came online or went offline. Negative errno: the events of
 * a CPU cannot be opened, which is not tried again until it comes online once more. The others are recorded.
 */
typedef void recorder_cpu_fn(void *context, uint32_t cpu, bool online);
int recorder_follow_cpus(struct recorder *recorder, recorder_cpu_fn *changed, void *context,
	struct diag *diag);

/*
 * Machine-wide, with user_stack_small_bytes: from now on samples have small copies, or large ones again.
 * False: this recorder cannot.
 */
bool recorder_copy_small(struct recorder *recorder, bool small);

/*
 * One bit for each pid (sched_probe_muted()): a process whose bit is set has no records of sched_switch. NULL: this
 * recorder cannot leave them out. Valid until recorder_close().
 */
uint64_t *recorder_muted(struct recorder *recorder);

/*
 * The ring of switches of the CPU of recorder_ring(index); NULL: they are records of perf. Valid until
 * recorder_close().
 */
struct switch_ring *recorder_switches(struct recorder *recorder, uint32_t index);

/*
 * The rows of known blocks (known_block.h), which the caller fills. NULL: this recorder does not recognize blocks.
 * Valid until recorder_close().
 */
struct known_block *recorder_known_blocks(struct recorder *recorder);

/* sched_probe_learn_stack(), if there is a probe. */
void recorder_learn_stack(struct recorder *recorder, bool sized, uint32_t tid, uint64_t stack_end);

/* With options.usdt: what attaches probes; NULL without it. Valid until recorder_close(). */
struct usdt_probe *recorder_usdt(struct recorder *recorder);

/*
 * With options.tracepoints: the events of a tracepoint, by its id, are samples with its raw data and the call chain of
 * user code from now on. -EMFILE: too many files are open. -EACCES, -EPERM: a right is missing. -ENOENT: there is no
 * such tracepoint. -ENOMEM.
 */
int recorder_add_tracepoint(struct recorder *recorder, uint16_t id);

#endif
