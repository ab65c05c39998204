/*
 * The pid filter of CPU-wide sampling with some processes as targets: one bit for each pid of a
 * process that is not recorded, so that its records are dropped before they are processed. A pid
 * without the bit is recorded, or not yet decided.
 *
 * The bit is cleared when the kernel reports the exit of the process, or a fork that reuses the
 * pid. All zero is an empty filter.
 */
#ifndef SPOOR_RECORDING_PID_FILTER_H
#define SPOOR_RECORDING_PID_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct perf_record;

#define PID_FILTER_PIDS_MAX   (UINT32_C(1) << 22) /* PID_MAX_LIMIT of the kernel */
#define PID_FILTER_SHARED_MAX 2u

struct pid_filter {
	VEC(uint64_t) words; /* bit pid % 64 of word pid / 64 */
	/* the same bits for other readers, PID_FILTER_PIDS_MAX of them each; NULL: none */
	uint64_t *shared[PID_FILTER_SHARED_MAX];
};

void pid_filter_done(struct pid_filter *filter);

bool pid_filter_has(const struct pid_filter *filter, uint32_t pid);

/* Without memory the bit is not set; the next record of the pid decides again. */
void pid_filter_add(struct pid_filter *filter, uint32_t pid);

void pid_filter_remove(struct pid_filter *filter, uint32_t pid);

/*
 * Filters a record from a ring: true if it belongs to a process that is not recorded. Children of
 * filtered processes are added; other new processes are left undecided.
 */
bool pid_filter_sift(struct pid_filter *filter, const struct perf_record *record);

#endif
