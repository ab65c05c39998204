/*
 * The garbage collections of .NET processes: from the runtime's GC events to one row a collection,
 * and a summary for each process.
 *
 *   struct collections c = { .trace = &trace };
 *   collections_event(&c, event)         for each event, in any order
 *   collections_finish(&c, &profile, duration_ns)   once: sorts, pairs begins with ends, applies the filter
 *   ... c.processes, c.rows ...
 *   collections_done(&c)
 *
 * Pauses are defined as in TraceEvent's TraceGC: from the begin of the suspension of all threads to
 * the end of their restart. A background collection has several pauses, which are added up; those
 * of collections of younger generations in its course belong to these.
 */
#ifndef SPOOR_ANALYSIS_COLLECTIONS_H
#define SPOOR_ANALYSIS_COLLECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "base/vec.h"

struct event;
struct profile;
struct runtime_event;
struct trace;

#define COLLECTION_GENERATIONS 3u
/* Of its heap: generations 0, 1, 2, large and pinned objects. */
#define COLLECTION_HEAPS   5u
#define COLLECTION_REASONS 19u /* the last one is for reasons that are not known */

enum collection_type {
	COLLECTION_BLOCKING,
	COLLECTION_BACKGROUND,
	COLLECTION_FOREGROUND, /* in the course of a background collection */
};

struct collection {
	uint64_t begin_ns;   /* GCStart */
	uint64_t end_ns;     /* GCEnd; 0: it had not ended at the end of the recording */
	uint64_t pause_ns;   /* all of its pauses */
	uint64_t suspend_ns; /* the part of pause_ns until all threads were suspended */
	uint64_t heap_bytes; /* after it, all generations; valid if has_stats */
	uint64_t part_bytes[COLLECTION_HEAPS]; /* after it, each generation; valid if has_stats */
	uint64_t promoted_bytes;
	uint64_t free_bytes; /* of the heap after it: between objects; valid if has_free */
	uint32_t number;     /* counts in its process from 1 */
	uint32_t process;
	uint8_t generation;
	uint8_t reason;
	uint8_t type; /* enum collection_type */
	bool has_stats;
	bool has_free;
};

/* A process with at least one row. Rows are those of its collections that pass the filter. */
struct collections_process {
	uint32_t process;
	uint32_t row_at;
	uint32_t row_count;
	uint64_t pause_ns;
	uint64_t pause_median_ns;
	uint64_t pause_p95_ns;
	uint64_t pause_p99_ns;
	uint32_t longest; /* row */
	uint32_t by_generation[COLLECTION_GENERATIONS];
	uint32_t by_reason[COLLECTION_REASONS];
	uint32_t background_count;
	uint64_t promoted_bytes;
	uint64_t heap_last_bytes;
	uint64_t heap_most_bytes;
	uint64_t free_last_bytes; /* valid if has_free */
	bool has_free;
};

struct collection_event;

struct collections {
	/* what triggered collections: key kind = reason, stack; an amount is 1 */
	struct tally triggers;
	const struct trace *trace;
	VEC(struct collection_event) raw;          /* until collections_finish() */
	VEC(struct collection) rows;               /* by process, then by time */
	VEC(struct collections_process) processes; /* longest pauses first */
	uint64_t span_ns; /* the time that the filter selects, which shares are of */
};

/* Takes GCTriggered. 0, or -ENOMEM. Payloads that are too short are ignored. */
int collections_trigger(struct collections *collections, const struct runtime_event *event);

/* 0, or -ENOMEM. Other events are ignored, and payloads that are too short. */
int collections_event(struct collections *collections, const struct event *event);

/*
 * `profile` has the filter by process, and by time since the recording's begin; `duration_ns` is of
 * the whole recording. 0, or -ENOMEM.
 */
int collections_finish(struct collections *collections, const struct profile *profile,
	uint64_t duration_ns);

/* Whether the program called for a collection of this reason. */
bool collection_is_induced(uint32_t reason);

/*
 * The bytes of a part of the process's heap at the ends of `count` equal intervals of the selected
 * time, which begins at from_ns (of the recording's clock): those that its last collection left. 0
 * before the first one. Part COLLECTION_HEAPS: the whole heap.
 */
void collections_levels(const struct collections *collections,
	const struct collections_process *process, uint32_t part, uint64_t from_ns, uint32_t count,
	uint64_t *levels);

/* "small objects", "induced"; a constant text. */
const char *collection_reason(uint32_t reason);
const char *collection_type(enum collection_type type);

void collections_done(struct collections *collections);

#endif
