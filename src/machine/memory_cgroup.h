/*
 * What is left of the memory that a control group may use: what a recorder takes inside its target's group, rings, tables and the pages of
 * the files it writes, counts against the target's limit.
 *
 * Both versions of control groups, in a container or not. Of the limits of a group and of those above it, the one that leaves least counts.
 */
#ifndef SPOOR_MACHINE_MEMORY_CGROUP_H
#define SPOOR_MACHINE_MEMORY_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_CGROUP_PATH_MAX 1024u

struct memory_cgroup {
	uint64_t limit_bytes;
	uint64_t used_bytes;     /* without the pages of files that the kernel can take back at once */
	uint64_t left_bytes;
	char path[MEMORY_CGROUP_PATH_MAX]; /* of the group with that limit, as /proc/PID/cgroup would name it */
};

/*
 * The limit that our own process lives under. -ENOENT when there is none (a limit beyond the machine's memory is none). `root` stands before
 * /proc and /sys: "" but in tests.
 */
int memory_cgroup_read(const char *root, struct memory_cgroup *ret_group);

/* The bytes that a process may still take: what its control groups and the machine's free memory leave. UINT64_MAX when neither is known. */
uint64_t memory_cgroup_left(const char *root, uint32_t pid);

/* Whether a process lives under that limit too. */
bool memory_cgroup_holds(const char *root, const struct memory_cgroup *group, uint32_t pid);

#endif
