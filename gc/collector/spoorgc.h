/* The tables through which the runtime calls the reference collector. */
#ifndef SPOOR_GC_COLLECTOR_SPOORGC_H
#define SPOOR_GC_COLLECTOR_SPOORGC_H

#include "gc/collector/collector.h"

void spoorgc_fill_heap(struct collector *c);
/* Called by spoorgc_fill_heap(). */
void spoorgc_fill_walks(struct gc_heap_table *table);
void spoorgc_fill_handles(struct collector *c);

#endif
