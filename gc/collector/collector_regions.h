/*
 * What collector_heap.c, collector_alloc.c and collector_sweep.c need of one another; for nobody else. The heap's lock is held, or the world is
 * stopped.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_REGIONS_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_REGIONS_H

#include "gc/collector/collector_layout.h"

static inline struct region *heap_region(const struct heap *h, uint32_t index)
{
	return &h->regions[index];
}

/* That many free regions side by side become regions of this kind, accessible. */
enum heap_shortage heap_take_regions(
	struct heap *h, uint32_t count, enum region_kind kind, uint32_t *ret_first);

/* A free cell in memory that nobody has been given. */
void heap_free_cell(struct heap *h, uint8_t *begin, uint8_t *end);

/* [begin, end), at least LARGE_RUN_MIN long, becomes a free cell and the last run of its region; *link is where the one before keeps its next. */
void heap_link_run(struct heap *h, uint32_t region, uint8_t *begin, uint8_t *end, uint32_t *link);

/* Where a run keeps its next. */
uint32_t *heap_run_next(uint8_t *run);

/* Ends the run for pieces: its rest becomes a free cell. */
void heap_close_run(struct heap *h);

#endif
