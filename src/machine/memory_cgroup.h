/*
 * The memory that a control group may still use: the least of the group and its ancestors. In its
 * target's group, spoor's rings, tables and cached pages count against the target's limit.
 */
#ifndef SPOOR_MACHINE_MEMORY_CGROUP_H
#define SPOOR_MACHINE_MEMORY_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_CGROUP_PATH_MAX 1024u

struct memory_cgroup {
	uint64_t limit_bytes;
	/* without the page cache, which the kernel can reclaim immediately */
	uint64_t used_bytes;
	uint64_t left_bytes;
	/* of the group with that limit, as /proc/PID/cgroup names it */
	char path[MEMORY_CGROUP_PATH_MAX];
};

/* Of this process. -ENOENT: none, or above the machine's memory. `root` as in cgroup.h. */
int memory_cgroup_read(const char *root, struct memory_cgroup *ret_group);

/* Bytes a process may still use, by groups and the machine's free memory; UINT64_MAX: unknown. */
uint64_t memory_cgroup_left(const char *root, uint32_t pid);

/* Whether this limit applies to a process too. */
bool memory_cgroup_holds(const char *root, const struct memory_cgroup *group, uint32_t pid);

#endif
