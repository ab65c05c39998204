/*
 * The heap of the reference collector: one range of address space, cut into regions of 1 MB, and the tables beside it.
 *
 *   range   | region 0 | region 1 | ...            reserved whole at the start, made accessible region by region
 *   marks   one bit for 8 bytes of range           set by marking, cleared by sweeping
 *   bricks  one u16 for 4 KB of range              where the first cell that begins there begins: finds the object of an interior pointer
 *   cards   one byte for 2 KB, bundles for 2 MB    written by the runtime's server write barrier, read by nobody
 *
 * A region holds cells end to end, objects and free cells, of one kind: small objects (allocated in pieces that threads fill by themselves), medium ones,
 * large ones, those on the pinned heap; or it is part of one huge object; or free.
 *
 * How memory goes round: marking sets two bits an object, one for the first and one for the last word of its cell, so that a sweep reads bits, not
 * objects: what lies between a last bit and the next first bit is free. A region that has no bit at all is free at once. The others are swept when
 * allocation comes to them (or, those that are left, before the next collection): free stretches become free cells, the longer of them linked into the
 * region's list of runs, from which pieces are cut.
 *
 * Facts that hold:
 * - Between collections every cell of a swept region can be walked from its begin, once heap_make_walkable() has written the free cells that allocation
 *   left open. Dead objects of a region that is not swept are never read: their types may have gone.
 * - `dirty_end`: bytes of a region from there on are zero. Free memory below it holds anything.
 * - Marks of a swept region are zero outside of a collection.
 * - Whoever allocates holds `lock`; a collection need not, since all that allocate are suspended outside of it.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_HEAP_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_HEAP_H

#include <pthread.h>

#include "gc/collector/collector_object.h"

enum {
	REGION_SHIFT = 20,
	REGION_SIZE = 1 << REGION_SHIFT,
	MARK_SHIFT = 3, /* bytes a mark bit stands for */
	REGION_MARK_WORDS = REGION_SIZE >> (MARK_SHIFT + 6),
	BRICK_SHIFT = 12,
	REGION_BRICKS = REGION_SIZE >> BRICK_SHIFT,
	CARD_SHIFT = 11,
	BUNDLE_SHIFT = 21,
	/* Tables are made accessible for this many regions at once: each part of them is whole pages then. */
	GROUP_SHIFT = 7,
	GROUP_REGIONS = 1 << GROUP_SHIFT,
	/* A thread gets pieces of this size, zeroed when it gets them: small enough to stay in the first-level cache until it fills them. */
	PIECE_SIZE = 8 << 10,
	/* What a thread's piece keeps back at its end, so that its rest can always become a free cell. */
	PIECE_RESERVE = CELL_MIN,
	/* Objects beyond this go into regions of their own kind when a thread's run has no room for them. */
	SMALL_MAX = 2 << 10,
	/* Shorter free stretches are left until their neighbours die. */
	SMALL_RUN_MIN = 128,
	LARGE_RUN_MIN = 32,
	/* Objects beyond this get regions of their own. */
	HUGE_MIN = REGION_SIZE / 2,
	LARGE_OBJECT_MIN = 85000,
};

enum region_kind {
	REGION_FREE,
	REGION_SMALL,
	REGION_MEDIUM,
	REGION_LARGE,
	REGION_PINNED,
	REGION_HUGE, /* the first of a huge object */
	REGION_TAIL, /* the others */
	REGION_KINDS,
};

struct region {
	uint8_t kind;
	bool is_committed;
	bool is_swept;
	uint8_t idle;         /* collections that it has been free for */
	uint32_t run;         /* offset of the first free run, REGION_SIZE when there is none */
	uint32_t run_largest; /* no run is longer */
	uint32_t dirty_end;
	uint32_t
		live; /* bytes marked by the last collection; of a huge object: in its first region, what fits */
	uint32_t count; /* regions of a huge object; in a tail: how far back the first is */
	uint32_t spare[2];
};
static_assert(sizeof(struct region) == 32, "the regions of a group are a page");

/* What allocation is cutting pieces from. */
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
	size_t size;           /* of the range */
	uint32_t region_count; /* of the range */
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
	struct run run;                /* for pieces */
	uint32_t cursor[REGION_KINDS]; /* where the search of that kind goes on */
	uint32_t free_hint;            /* no free region lies below */
	uint64_t committed;            /* bytes of regions */
	uint64_t commit_limit;         /* 0: none */
	uint64_t allocated;            /* bytes handed out since the last collection */
	uint64_t allocated_before;     /* and before that */
	struct sweep_sums sums;
};

/* Why an allocation got nothing. */
enum heap_shortage { HEAP_ENOUGH, HEAP_RANGE_FULL, HEAP_LIMIT_REACHED, HEAP_NO_MEMORY };

/* Reserves a range of `size` bytes, rounded up to whole groups. -ENOMEM: there is no such room. `commit_limit` 0: none. */
int heap_open(struct heap *h, size_t size, uint64_t commit_limit);
void heap_close(struct heap *h);

/*
 * Memory for one object of `size` bytes (a multiple of 8, at least CELL_MIN). Into *ret: for small ones a piece that has at least room for it and
 * PIECE_RESERVE, else a cell of exactly that size. Zeroed, unless `dirty_ok`: then only the begin is. NULL in ret->at: none, *ret_shortage says why.
 */
void heap_take(struct heap *h, size_t size, enum region_kind kind, bool dirty_ok, struct run *ret,
	enum heap_shortage *ret_shortage);

/* Makes a free cell of [begin, end), which is the rest of a piece, empty or at least CELL_MIN long. Needs no lock. */
void heap_fill(struct heap *h, uint8_t *begin, uint8_t *end);

/*
 * A cell begins here, so that interior pointers find it. Taken cells are known; of a piece only its owner knows whether it begins with a cell, or with the end of
 * one that began in the piece before. Needs no lock.
 */
void heap_note_begin(struct heap *h, uint8_t *cell);

/* Accessible memory for that many bytes more, at once: for a region without collections. */
bool heap_commit_ahead(struct heap *h, uint64_t bytes);

/* ---- for collections: the world is stopped ---- */

/* Sweeps what is not yet swept, and writes the free cells that allocation has left open. */
void heap_make_walkable(struct heap *h);

/* After marking: whole regions without a mark are free, the others wait for their sweep. Bytes in free regions. */
uint64_t heap_release(struct heap *h);

/* Gives free regions back to the system: those that have been free for `idle` collections; 0 for all. */
void heap_trim(struct heap *h, uint8_t idle);

void heap_sweep(struct heap *h, uint32_t region);

/* The object that `address` points into or at; NULL when there is none. The heap is walkable. */
struct gc_object *heap_object_at(struct heap *h, const void *address);

/* The regions of a kind that lie side by side, from *region on: false when there are no more. Huge ones count as large. */
bool heap_stretch(struct heap *h, uint32_t *region, enum region_kind *ret_kind, uint8_t **ret_begin,
	uint8_t **ret_end);

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
