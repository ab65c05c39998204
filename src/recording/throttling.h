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

struct live;
struct throttling;

/*
 * Looks up the limit of a process that was just written to the file. `groups_hash` is the hash of
 * its /proc/PID/cgroup.
 */
void throttling_look(struct live *live, uint32_t process, uint64_t groups_hash);

/* Writes the events that are due at `now_ns`; UINT64_MAX: all of them, at the end. */
void throttling_tell(struct live *live, uint64_t now_ns);

void throttling_done(struct throttling *throttling);

#endif
