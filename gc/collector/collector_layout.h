/*
 * The data structures of the reference collector's heap, and the functions that only read these.
 * Functions that change the heap are in collector_heap.h (for every user of the heap) and
 * collector_regions.h (for the parts of the heap).
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_LAYOUT_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_LAYOUT_H

#include <pthread.h>

#include "gc/collector/collector_object.h"

enum {
	REGION_SHIFT = 20,
	REGION_SIZE = 1 << REGION_SHIFT,
	MARK_SHIFT = 3, /* bytes for each mark bit */
	REGION_MARK_WORDS = REGION_SIZE >> (MARK_SHIFT + 6),
	BRICK_SHIFT = 12,
	REGION_BRICKS = REGION_SIZE >> BRICK_SHIFT,
	CARD_SHIFT = 11,
	BUNDLE_SHIFT = 21,
	/*
	 * Tables are made accessible for this many regions at a time, so that each part of a table
	 * is whole pages.
	 */
	GROUP_SHIFT = 7,
	GROUP_REGIONS = 1 << GROUP_SHIFT,
	/*
	 * A thread gets pieces of this size, zeroed directly before: small enough to stay in the
	 * first-level cache until the thread fills them.
	 */
	PIECE_SIZE = 8 << 10,
	/*
	 * Reserved at the end of a thread's piece, so that its rest can always become a free cell.
	 */
	PIECE_RESERVE = CELL_MIN,
	/*
	 * Larger objects go into regions of their own kind if a thread's run has no room for them.
	 */
	SMALL_MAX = 2 << 10,
	/* Shorter free stretches are not used until their neighbours die. */
	SMALL_RUN_MIN = 128,
	LARGE_RUN_MIN = 32,
	/* Larger objects get regions of their own. */
	HUGE_MIN = REGION_SIZE / 2,
	LARGE_OBJECT_MIN = 85000,
};

enum region_kind {
	REGION_FREE,
	REGION_SMALL,
	REGION_MEDIUM,
	REGION_LARGE,
	REGION_PINNED,
	REGION_HUGE, /* the first region of a huge object */
	REGION_TAIL, /* a further region of a huge object */
	REGION_KINDS,
};

struct region {
	uint8_t kind;
	bool is_committed;
	bool is_swept;
	uint8_t idle;         /* number of collections since it became free */
	uint32_t run;         /* offset of the first free run; REGION_SIZE: none */
	uint32_t run_largest; /* no run is longer */
	uint32_t dirty_end;
	uint32_t
		/*
		 * bytes marked by the last collection; of a huge object the part in its first
		 * region
		 */
		live;
	uint32_t count; /* regions of a huge object; in a tail: distance to the first */
	uint32_t spare[2];
};
static_assert(sizeof(struct region) == 32, "the regions of a group are a page");

/* The free stretch from which allocation cuts pieces. */
struct run {
	uint8_t *at;
	uint8_t *end;
};

/* Sums since the last collection, for its events. */
struct sweep_sums {
	uint32_t regions_lazy;
	uint32_t regions_in_pause;
	uint64_t runs;
	uint64_t free_bytes;
};

struct heap {
	uint8_t *base;
	size_t size;           /* of the range of address space */
	uint32_t region_count; /* of the range of address space */
	uint32_t region_end;   /* regions from here on were never used */
	struct region *regions;
	uint64_t *marks;
	uint16_t *bricks;
	uint8_t *cards;
	uint8_t *bundles;
	uint32_t groups_ready; /* groups of regions whose tables are accessible */
	uint8_t *tables;
	size_t tables_size;
	struct method_table *free_type;

	pthread_mutex_t lock;
	struct run run;                /* the run from which pieces are cut */
	uint32_t cursor[REGION_KINDS]; /* where the next search for a region of that kind begins */
	uint32_t free_hint;            /* no free region is below this index */
	uint64_t committed;            /* bytes of regions */
	uint64_t commit_limit;         /* 0: none */
	uint64_t allocated;            /* bytes allocated since the last collection */
	uint64_t allocated_before;     /* bytes allocated before the last collection */
	struct sweep_sums sums;
};

/* Why an allocation has failed. */
enum heap_shortage { HEAP_ENOUGH, HEAP_RANGE_FULL, HEAP_LIMIT_REACHED, HEAP_NO_MEMORY };

static inline size_t heap_offset(const struct heap *h, const void *address)
{
	return (size_t)((uintptr_t)address - (uintptr_t)h->base);
}

static inline bool heap_has(const struct heap *h, const void *address)
{
	return heap_offset(h, address) < h->size;
}

static inline uint8_t *heap_region_begin(const struct heap *h, uint32_t region)
{
	return h->base + ((size_t)region << REGION_SHIFT);
}

static inline bool heap_is_marked(const struct heap *h, const struct gc_object *o)
{
	size_t bit = heap_offset(h, (const uint8_t *)o - CELL_HEADER) >> MARK_SHIFT;

	return h->marks[bit >> 6] >> (bit & 63) & 1;
}

static inline bool heap_is_free_cell(const struct heap *h, const struct gc_object *o)
{
	return o->type == h->free_type;
}

#endif
