/*
 * The CPU limits that recorded processes live under, and how much they were throttled while the recording ran.
 *
 * A limit is looked for when a process is first hit by a sample, once for all processes of the same control groups; it is told when it is found, every ten seconds,
 * and at the end, each time with what has added up since it was found.
 */
#ifndef SPOOR_RECORDING_THROTTLING_H
#define SPOOR_RECORDING_THROTTLING_H

#include <stdint.h>

struct live;
struct throttling;

/* A process that is now part of the recording. `groups_hash` is of its /proc/PID/cgroup. */
void throttling_look(struct live *live, uint32_t process, uint64_t groups_hash);

/* Tells again what is due at `now_ns`; UINT64_MAX: all of it, at the end. */
void throttling_tell(struct live *live, uint64_t now_ns);

void throttling_done(struct throttling *throttling);

#endif
