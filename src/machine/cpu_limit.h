/* The CPU time that a control group grants. A throttled container looks idle to a profiler. */
#ifndef SPOOR_MACHINE_CPU_LIMIT_H
#define SPOOR_MACHINE_CPU_LIMIT_H

#include <stdint.h>

#include "machine/cgroup.h"

struct cpu_limit {
	/* of the group with the limit: the process's group or an ancestor */
	char path[CGROUP_PATH_MAX];
	uint64_t quota_ns; /* CPU time in each period */
	uint64_t period_ns;
	/* periods since the group was created in which a process was runnable */
	uint64_t periods;
	/* of these: the quota was used up while a process was runnable */
	uint64_t throttled_periods;
	uint64_t throttled_ns; /* throttled time, summed over CPUs */
};

/* The tightest limit (pid 0: of this process). -ENOENT: none. `root` as in cgroup.h. */
int cpu_limit_read(const char *root, uint32_t pid, struct cpu_limit *ret_limit);

#endif
