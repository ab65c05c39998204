/*
 * Memory that .NET processes allocated, in bytes by type and stack, from samples of allocations.
 *
 * GCAllocationTick comes after each 100 kB or so, and carries the bytes since the last one: these
 * are credited to the type and the stack of the object that was allocated then.
 * AllocationSampled (.NET 10) samples bytes at random, one in 102,400 on average; an object counts
 * for its size divided by the probability that it is sampled, so that sums have no bias. For a
 * process with both, only the latter counts. A process that was observed in windows only
 * (recording/event_windows.h) is scaled to the whole time.
 */
#ifndef SPOOR_ANALYSIS_ALLOCATIONS_H
#define SPOOR_ANALYSIS_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event_texts.h"
#include "analysis/tally.h"

struct runtime_event;

enum allocation_kind {
	ALLOCATION_SMALL,
	ALLOCATION_LARGE,  /* on the large object heap */
	ALLOCATION_PINNED, /* on the pinned object heap */
	ALLOCATION_KINDS,
};

/* key.kind: an allocation_kind, and this bit for those of AllocationSampled. */
#define ALLOCATION_IS_SAMPLED 4u

/* A time in which a process was not observed (EventGap), since the recording's begin. */
struct allocation_gap {
	uint32_t process;
	uint64_t from_ns;
	uint64_t to_ns;
};

struct allocation_share {
	uint32_t process;
	double observed; /* part of the selected time */
};

struct allocations {
	/* key: text = type, kind, stack; amounts are bytes */
	struct tally tally;
	struct tally ticks; /* until allocations_choose() */
	struct event_texts types;
	VEC(struct allocation_gap) gaps;
	VEC(struct allocation_share) shares; /* of processes with gaps; after allocations_scale() */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int allocations_event(struct allocations *allocations, const struct runtime_event *event);

/* Once, before tally_finish(): chooses the events of each process. 0, or -ENOMEM. */
int allocations_choose(struct allocations *allocations);

/*
 * After tally_finish(): multiplies the bytes of processes that were not observed all the time, for the
 * selected time [from_ns, to_ns). 0, or -ENOMEM.
 */
int allocations_scale(struct allocations *allocations, uint64_t from_ns, uint64_t to_ns);

/*
 * The bytes of this process that `amount` of its observed bytes stand for, in the selected time
 * [from_ns, to_ns): the same as allocations_scale() makes of them.
 */
uint64_t allocations_scaled(const struct allocations *allocations, uint32_t process,
	uint64_t amount, uint64_t from_ns, uint64_t to_ns);

/* The part of the selected time in which the process was observed, 0 to 1. */
double allocations_observed(const struct allocations *allocations, uint32_t process);

/* The bytes of one kind that a process allocated. */
uint64_t allocations_of_kind(const struct allocations *allocations,
	const struct tally_process *process, enum allocation_kind kind);

/* Whether the process's rows are of AllocationSampled. */
bool allocations_are_sampled(const struct allocations *allocations,
	const struct tally_process *process);

/* "small", "large", "pinned". */
const char *allocation_kind(uint32_t kind);

void allocations_done(struct allocations *allocations);

#endif
