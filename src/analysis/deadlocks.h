/*
 * Circles of threads that wait for each other's locks: from waits that had not ended at the end of
 * the recording, whose events name the lock's owner.
 *
 *   deadlocks_add(&deadlocks, &wait)        for each such wait
 *   deadlocks_find(&deadlocks)              once
 *   ... deadlocks.waits, those with a circle ...
 *   deadlocks_done(&deadlocks)
 */
#ifndef SPOOR_ANALYSIS_DEADLOCKS_H
#define SPOOR_ANALYSIS_DEADLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct deadlock_wait {
	uint64_t lock;  /* address; 0 not known */
	uint64_t at_ns; /* its begin; since the recording's begin */
	uint32_t process;
	uint32_t tid;
	uint32_t owner; /* tid */
	uint32_t stack; /* of event_stacks; 0 none */
	/* set by deadlocks_find(): number of its circle from 1 on, 0 none; position of the owner's wait */
	uint32_t circle;
	uint32_t next;
};

struct deadlocks {
	VEC(struct deadlock_wait) waits;
	uint32_t circles;
};

/* 0, or -ENOMEM. */
int deadlocks_add(struct deadlocks *deadlocks, const struct deadlock_wait *wait);

void deadlocks_find(struct deadlocks *deadlocks);

/* Threads of this circle. */
uint32_t deadlocks_count(const struct deadlocks *deadlocks, uint32_t circle);

void deadlocks_done(struct deadlocks *deadlocks);

#endif
