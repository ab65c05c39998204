/*
 * Threads that two events may watch.
 *
 * While the threads of a process are being attached one by one, one of them may start another. Whether that newcomer has inherited the event
 * cannot be known: attaching it too may count it twice, leaving it may lose it. So it is attached, noted here, and the samples tell: the
 * first one with the id of an inherited event proves it, and the newcomer's own event on that CPU is stopped.
 */
#ifndef SPOOR_PERF_TWINS_H
#define SPOOR_PERF_TWINS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct twin {
	uint64_t own_id;         /* of the event opened for the thread itself */
	int fd;                  /* its descriptor, borrowed */
	int32_t cpu;
	uint32_t tid;
	bool inherited;          /* proved: own_id's samples are doubles */
};

struct twins {
	VEC(struct twin) items;  /* item 0 stands for value 1 of the index */
	struct map index;        /* (tid, cpu) */
};

/* False when there is no memory. */
bool twins_add(struct twins *twins, uint32_t tid, int32_t cpu, uint64_t own_id, int fd);

/* Is this sample a double, to be dropped? The record begins with header, id, pid, tid. */
bool twins_drop(struct twins *twins, int32_t cpu, const uint8_t *record, uint32_t size);

void twins_done(struct twins *twins);

#endif
