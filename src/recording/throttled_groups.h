/*
 * The control groups with a CPU limit in which recorded processes run: the state of throttling.c.
 */
#ifndef SPOOR_RECORDING_THROTTLED_GROUPS_H
#define SPOOR_RECORDING_THROTTLED_GROUPS_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "machine/cpu_limit.h"

#define THROTTLING_LIMITS_MAX 64u
#define THROTTLING_EVERY_NS   UINT64_C(10000000000)

struct throttled_group {
	struct cpu_limit first; /* first reading */
	uint32_t pid;           /* of a process in the group */
	uint32_t container;     /* strtab; 0: none */
};

struct throttling {
	VEC(struct throttled_group) groups;
	struct map known; /* hash of a process's control groups -> 1: was looked up */
	uint64_t told_ns;
};

#endif
