/*
 * How much CPU time a control group grants its processes, and how often it has made them wait for more: a container at 100 % of its limit looks idle to
 * a profiler while it is throttled.
 */
#ifndef SPOOR_MACHINE_CPU_LIMIT_H
#define SPOOR_MACHINE_CPU_LIMIT_H

#include <stdint.h>

#include "machine/cgroup.h"

struct cpu_limit {
	char path[CGROUP_PATH_MAX]; /* of the group that has the limit: the process's own or one above */
	uint64_t quota_ns;          /* CPU time in each period */
	uint64_t period_ns;
	uint64_t periods;           /* since the group was made: with something to run */
	uint64_t throttled_periods; /* of these: used up, and somebody had to wait */
	uint64_t throttled_ns;      /* how long, added up over CPUs */
};

/* The tightest limit that a process (0: our own) lives under. -ENOENT: none. `root` as in cgroup.h. */
int cpu_limit_read(const char *root, uint32_t pid, struct cpu_limit *ret_limit);

#endif
