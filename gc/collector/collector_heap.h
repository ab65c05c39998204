/*
 * The heap of the reference collector: one range of address space, divided into regions of 1 MB,
 * and tables.
 *
 *   range   | region 0 | region 1 | ...            reserved at the start, made accessible region by region
 *   marks   one bit for 8 bytes of range           set by marking, cleared by sweeping
 *   bricks  one u16 for 4 KB of range              offset of the first cell that begins there: finds the object of an interior pointer
 *   cards   one byte for 2 KB, bundles for 2 MB    written by the runtime's server write barrier, not read
 *
 * A region holds consecutive cells, objects and free cells, of one kind: small objects (allocated
 * in pieces that threads fill), medium ones, large ones, those on the pinned heap; or it is part of
 * one huge object; or it is free.
 *
 * How memory is reused: marking sets two bits for each object, one for the first and one for the
 * last word of its cell, so that a sweep reads bits and not objects: words between a last bit and
 * the next first bit are free. A region without any bit is free and needs no sweep. Other regions
 * are swept when allocation needs them, the remaining ones before the next collection: free
 * stretches become free cells, the longer of which are linked into the region's list of runs, from
 * which pieces are cut.
 *
 * Invariants:
 * - Between collections every cell of a swept region can be walked from its begin, after
 *   heap_make_walkable() has written the free cells that allocation left open. Dead objects of a
 *   region that is not swept are never read, because their types may have been unloaded.
 * - Bytes of a region from `dirty_end` on are zero. Free memory below it may have any content.
 * - Outside of a collection, marks of a swept region are zero.
 * - A thread that allocates holds `lock`. A collection need not: all threads that allocate are
 *   suspended, and none of them holds it.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_HEAP_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_HEAP_H

#include "gc/collector/collector_layout.h"

/*
 * Reserves a range of `size` bytes, rounded up to whole groups. 0; -ENOMEM: no address space of
 * that size. `commit_limit` 0: none.
 */
int heap_open(struct heap *h, size_t size, uint64_t commit_limit);
void heap_close(struct heap *h);

/*
 * Allocates memory for one object of `size` bytes (a multiple of 8, at least CELL_MIN) and stores
 * it in *ret: for small objects a piece with room for it and PIECE_RESERVE, else a cell of exactly
 * that size. It is zeroed; with `dirty_ok` only its begin is. NULL in ret->at: no memory, and
 * *ret_shortage has the reason.
 */
void heap_take(struct heap *h, size_t size, enum region_kind kind, bool dirty_ok, struct run *ret,
	enum heap_shortage *ret_shortage);

/*
 * Makes a free cell of [begin, end), the rest of a piece: empty or at least CELL_MIN long. Needs no
 * lock.
 */
void heap_fill(struct heap *h, uint8_t *begin, uint8_t *end);

/*
 * Records that a cell begins here, so that interior pointers find it. heap_take() does that for
 * cells; for a piece its owner does, because a piece may begin with the end of a cell of the
 * previous piece. Needs no lock.
 */
void heap_note_begin(struct heap *h, uint8_t *cell);

/* Makes memory for so many further bytes accessible now, for a no-GC region. */
bool heap_commit_ahead(struct heap *h, uint64_t bytes);

/* ---- for collections: all threads are suspended ---- */

/*
 * Sweeps the regions that are not swept, and writes the free cells that allocation has left open.
 */
void heap_make_walkable(struct heap *h);

/*
 * After marking: regions without a mark become free, the others wait for their sweep. Returns the
 * number of bytes in free regions.
 */
uint64_t heap_release(struct heap *h);

/* Returns free regions to the system: those that have been free for `idle` collections; 0: all. */
void heap_trim(struct heap *h, uint8_t idle);

void heap_sweep(struct heap *h, uint32_t region);

/* The object that contains `address`; NULL: none. The heap is walkable. */
struct gc_object *heap_object_at(struct heap *h, const void *address);

/*
 * The next consecutive regions of one kind, from *region on; false: no more. Huge ones count as
 * large.
 */
bool heap_stretch(struct heap *h, uint32_t *region, enum region_kind *ret_kind, uint8_t **ret_begin,
	uint8_t **ret_end);

#endif
