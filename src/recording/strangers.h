/*
 * The pids of processes that are not recorded, where the CPUs are sampled and only some processes are wanted: a bit each, so that their records are dropped
 * before they cost anything. A pid that is not in it is one of ours, or not judged yet.
 *
 * A pid is a stranger's until the kernel tells of the end of that process, or gives the number out anew. All zero is empty.
 */
#ifndef SPOOR_RECORDING_STRANGERS_H
#define SPOOR_RECORDING_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct perf_record;

struct strangers {
	VEC(uint64_t) words; /* bit pid % 64 of word pid / 64 */
};

void strangers_done(struct strangers *strangers);

bool strangers_has(const struct strangers *strangers, uint32_t pid);

/* Without memory it stays unjudged: it is looked at again with its next record. */
void strangers_add(struct strangers *strangers, uint32_t pid);

void strangers_remove(struct strangers *strangers, uint32_t pid);

/* A record as it comes from a ring: true when nobody wants it. Whom strangers start is one; what anybody else starts is not judged here. */
bool strangers_sift(struct strangers *strangers, const struct perf_record *record);

#endif
