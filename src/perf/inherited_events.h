/*
 * Detects threads that are recorded by two events.
 *
 * Whether a thread that is started while its process is attached has inherited the event is
 * unknown: attaching it may count it twice, not attaching may lose it. So it is attached and noted
 * here. A sample with the id of an inherited event proves that the thread inherited one; then the
 * thread's own event on that CPU is stopped.
 */
#ifndef SPOOR_PERF_INHERITED_EVENTS_H
#define SPOOR_PERF_INHERITED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct twin {
	uint64_t own_id; /* of the event that was opened for the thread itself */
	int fd;          /* its descriptor, borrowed */
	int32_t cpu;
	uint32_t tid;
	bool inherited; /* proved: samples with own_id are duplicates */
};

struct inherited_events {
	VEC(struct twin) items; /* item 0 has value 1 in the index */
	struct map index;       /* (tid, cpu) */
};

/* False if memory runs out. */
bool inherited_events_add(struct inherited_events *inherited_events, uint32_t tid, int32_t cpu,
	uint64_t own_id, int fd);

/* Whether to drop this sample as a duplicate. It begins with header, id, pid, tid. */
bool inherited_events_drop(struct inherited_events *inherited_events, int32_t cpu,
	const uint8_t *record, uint32_t size);

void inherited_events_done(struct inherited_events *inherited_events);

#endif
