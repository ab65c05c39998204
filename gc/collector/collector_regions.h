/*
 * Functions that collector_heap.c, collector_alloc.c and collector_sweep.c share; not for other
 * files. The heap's lock is held, or all threads are suspended.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_REGIONS_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_REGIONS_H

#include "gc/collector/collector_layout.h"

static inline struct region *heap_region(const struct heap *h, uint32_t index)
{
	return &h->regions[index];
}

/* Makes that many consecutive free regions accessible, as regions of this kind. */
enum heap_shortage heap_take_regions(struct heap *h, uint32_t count, enum region_kind kind,
	uint32_t *ret_first);

/* Writes a free cell into memory that is not allocated. */
void heap_free_cell(struct heap *h, uint8_t *begin, uint8_t *end);

/*
 * Makes a free cell of [begin, end), at least LARGE_RUN_MIN long, and appends it to the region's
 * list of runs; *link is the link of the previous run.
 */
void heap_link_run(struct heap *h, uint32_t region, uint8_t *begin, uint8_t *end, uint32_t *link);

/* The link of a run to the next one. */
uint32_t *heap_run_next(uint8_t *run);

/* Ends the run for pieces: its rest becomes a free cell. */
void heap_close_run(struct heap *h);

#endif
