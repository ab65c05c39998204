/*
 * The memory that a control group may still use. If spoor runs in its target's group, its rings,
 * its tables and the cached pages of the files it writes count against the target's limit.
 *
 * Both versions of control groups, in a container or not. Among the limits of a group and its
 * ancestors, the one with the least free memory counts.
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

/*
 * The limit of this process. -ENOENT if there is none (a limit above the machine's memory counts as
 * none). `root` is a prefix of /proc and /sys: "" except in tests.
 */
int memory_cgroup_read(const char *root, struct memory_cgroup *ret_group);

/*
 * The bytes that a process may still use, by its control groups and by the machine's free memory.
 * UINT64_MAX if neither is known.
 */
uint64_t memory_cgroup_left(const char *root, uint32_t pid);

/* Whether this limit applies to a process too. */
bool memory_cgroup_holds(const char *root, const struct memory_cgroup *group, uint32_t pid);

#endif
