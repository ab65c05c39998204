/*
 * The CPU limits that recorded processes live under, and how much they were throttled while the recording ran.
 *
 * A limit is looked for when a process is first hit by a sample, once for all processes of the same control groups; it is told when it is found, every ten seconds,
 * and at the end, each time with what has added up since it was found.
 */
#ifndef SPOOR_RECORDING_THROTTLING_H
#define SPOOR_RECORDING_THROTTLING_H

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

struct live;

/* A process that is now part of the recording. `groups_hash` is of its /proc/PID/cgroup. */
void throttling_look(struct live *live, uint32_t process, uint64_t groups_hash);

/* Tells again what is due at `now_ns`; UINT64_MAX: all of it, at the end. */
void throttling_tell(struct live *live, uint64_t now_ns);

void throttling_done(struct throttling *throttling);

#endif
