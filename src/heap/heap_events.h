/*
 * A heap snapshot's events of the CLR, put into a heap graph.
 *
 *   struct heap_events heap = { .graph = &graph }; for each event of
 *   Microsoft-Windows-DotNETRuntime and of its rundown provider, in the stream's order:
 *           heap_events_take(&heap, rundown, event_id, payload, size);
 *   heap_events_missing(&heap)       the parts that are missing, by the events themselves
 *
 * The collection of the snapshot is the first induced, blocking one of the oldest generation that
 * has blocks of objects. A collection that the program induces itself has none: the runtime walks
 * the heap for the session's collection only. Blocks of nodes and of references are numbered by the
 * runtime: a gap makes the pairing wrong from there on, so later blocks are not taken. The event
 * that ends the collection can be lost as well; a collection with a higher number then ends it.
 *
 * Layouts: the ETW manifest of the runtime; checked to the byte against .NET 10.0.12 (facts:
 * counters-and-heap.md 3).
 */
#ifndef SPOOR_HEAP_HEAP_EVENTS_H
#define SPOOR_HEAP_HEAP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_graph;

#define HEAP_KEYWORD_GC        UINT64_C(0x1)
#define HEAP_KEYWORD_TYPE      UINT64_C(0x80000)
#define HEAP_KEYWORD_DUMP      UINT64_C(0x100000)
#define HEAP_KEYWORD_COLLECT   UINT64_C(0x800000)
#define HEAP_KEYWORD_TYPENAMES UINT64_C(0x1000000)

struct heap_events {
	struct heap_graph *graph;
	uint32_t collection;      /* Count of the snapshot's collection */
	uint32_t next_node_block; /* Index expected next */
	uint32_t next_edge_block;
	uint32_t next_root_block;
	uint32_t next_weak_block;
	uint64_t reported_edges;
	uint64_t bytes; /* of payloads taken */
	uint64_t
		/* events with objects, references or roots of the collection, without lost ones */
		blocks;
	bool begun;    /* GCStart was seen */
	bool ended;    /* GCEnd of the same collection too */
	bool end_lost; /* another collection began before that GCEnd */
	bool gap;      /* a block was missing */
};

/*
 * `rundown`: of the rundown provider, whose ids mean other events. 1: taken. 0: no event of a
 * snapshot. -EBADMSG: its payload is torn. -ENOMEM, -EOVERFLOW.
 */
int heap_events_take(struct heap_events *heap, int rundown, uint32_t event_id,
	const uint8_t *payload, size_t size);

/*
 * "" if nothing is missing, else the sentence part that names it: "blocks of it were lost on the
 * way". Call it before heap_graph_resolve().
 */
const char *heap_events_missing(const struct heap_events *heap);

#endif
