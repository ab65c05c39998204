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

#include "gc/collector/collector_layout.h"

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

#endif
