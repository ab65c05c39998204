/*
 * The window in which all live sources are brought into one order.
 *
 * Each CPU's ring is in order, but rings are drained one after the other, and EventPipe delivers late. So what is decoded waits here,
 * 48 bytes an item, and leaves in time order once it is older than the window. What comes later than that is given out
 * at the place reached, marked with how late it was: moved, not lost.
 */
#ifndef SPOOR_PIPELINE_MERGE_H
#define SPOOR_PIPELINE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define MERGE_WINDOW_NS UINT64_C(250000000)

enum pending_kind {
	PENDING_SAMPLE,
	PENDING_MAPPING,      /* side: struct pending_mapping */
	PENDING_COMM,         /* value: strtab index of the name; flag: exec */
	PENDING_FORK,         /* value: parent pid and tid */
	PENDING_EXIT,
	PENDING_LOST,         /* value: how many */
	PENDING_THROTTLE,
	PENDING_UNTHROTTLE,
	PENDING_EVENT,        /* of a stream: relay.h knows what it carries */
	PENDING_SHARE,        /* of CPU time, by a thread's clock: value: ns, and samples in the upper 16 bits */
	PENDING_CLOCK,        /* pid: process index; value: ns of CPU time; flag: of no thread, but the rest of the process */
	PENDING_CODE_REMOVED, /* pid: process index; stack_index: code index; value: where it begins */
};

struct pending {
	uint64_t time_ns;
	uint64_t value;
	void *side;           /* on the heap, owned by the item, freed by its taker */
	uint32_t sequence;    /* order of arrival, for equal times */
	uint32_t pid;
	uint32_t tid;
	uint32_t stack_index;
	int16_t cpu;
	uint8_t kind;         /* enum pending_kind */
	bool flag;
};

struct merge {
	VEC(struct pending) items;
	VEC(struct pending) spare; /* what stands aside while two runs are merged */
	uint32_t taken;       /* items before this one have left */
	uint32_t ordered;     /* items before this one are in order: only what came behind them is looked at */
	uint32_t ready;       /* items before this one are in order and may leave */
	uint32_t sequence;
	uint64_t reached_ns;  /* time of the last item that left */
};

/* A new item to be filled in, or NULL when there is no memory. Its sequence is set. */
struct pending *merge_add(struct merge *merge);

/* All items up to `until_ns` become ready, in order; none when there is no memory to order them. */
void merge_sort(struct merge *merge, uint64_t until_ns);

/*
 * The next ready item, borrowed until the next call of any kind, or NULL. *ret_late_ns is how much earlier than the place reached it happened;
 * its time_ns is then moved there.
 */
struct pending *merge_next(struct merge *merge, uint64_t *ret_late_ns);

/* Frees the items and what hangs on them. */
void merge_done(struct merge *merge);

#endif
