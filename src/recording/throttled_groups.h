/* The control groups with a CPU limit in which recorded processes run: the state of throttling.c. */
#ifndef SPOOR_RECORDING_THROTTLED_GROUPS_H
#define SPOOR_RECORDING_THROTTLED_GROUPS_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "machine/cpu_limit.h"

#define THROTTLING_LIMITS_MAX 64u
#define THROTTLING_EVERY_NS   UINT64_C(10000000000)

struct throttled_group {
	struct cpu_limit first;    /* as found */
	uint32_t pid;              /* somebody who lives there */
	uint32_t container;        /* strtab; 0 none */
};

struct throttling {
	VEC(struct throttled_group) groups;
	struct map known;          /* hash of a process's control groups -> 1: looked at */
	uint64_t told_ns;
};

#endif
