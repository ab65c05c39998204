/*
 * The CPU limits (cgroup quotas) of recorded processes, and how much they were throttled during the
 * recording.
 *
 * The limit is looked up at a process's first sample, one time for all processes of the same
 * control groups. An event is written when the limit is found, then every ten seconds and at the
 * end, each with the totals since the limit was found.
 */
#ifndef SPOOR_RECORDING_THROTTLING_H
#define SPOOR_RECORDING_THROTTLING_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "machine/cpu_limit.h"

struct session_writer;

#define THROTTLING_LIMITS_MAX 64u
#define THROTTLING_EVERY_NS   UINT64_C(10000000000)

struct throttled_group {
	struct cpu_limit first; /* first reading */
	uint32_t pid;           /* of a process in the group */
	uint32_t container;     /* strtab; 0: none */
};

struct throttling {
	struct session_writer *writer; /* borrowed; set by the session */
	VEC(struct throttled_group) groups;
	struct map known; /* hash of a process's control groups -> 1: was looked up */
	uint64_t reported_ns;
};

/*
 * Looks up the limit of a process that was just written to the file. `groups_hash` is the hash of
 * its /proc/PID/cgroup.
 */
void throttling_look(struct throttling *throttling, uint32_t process, uint64_t groups_hash);

/* Writes the events that are due at `now_ns`; UINT64_MAX: all of them, at the end. */
void throttling_tell(struct throttling *throttling, uint64_t now_ns);

void throttling_done(struct throttling *throttling);

#endif
