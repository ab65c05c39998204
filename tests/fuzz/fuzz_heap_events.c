/*
 * Payloads of heap events: {id, size low, size high, payload}...; then their graph, resolved and
 * walked.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "heap/heap_events.h"
#include "heap/heap_retained.h"
#include "trace/heap_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_FIXED    (1u << 20)
#define MEMORY_PER_BYTE 64u

static size_t size_bytes(const struct heap_graph *graph)
{
	size_t edges = graph->edges ? graph->edge_count * sizeof(uint32_t)
				    : (size_t)graph->reported_edges.capacity * sizeof(uint64_t);

	return strtab_size_bytes(&graph->strings) +
	       graph->types.capacity * sizeof(struct heap_type) +
	       graph->blocks.capacity * sizeof(struct heap_block) +
	       graph->by_base.capacity * sizeof(uint32_t) +
	       graph->roots.capacity * sizeof(struct heap_root) +
	       ((size_t)graph->address.capacity + graph->size.capacity + graph->edge_at.capacity) *
		       sizeof(uint32_t) +
	       graph->type_low.capacity * sizeof(uint16_t) + graph->type_high.capacity + edges +
	       map_size_bytes(&graph->type_by_id) + map_size_bytes(&graph->module_by_id) +
	       map_size_bytes(&graph->large_sizes) + graph->large.capacity * sizeof(uint64_t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap_graph graph;
	struct heap_events heap = { .graph = &graph };
	struct heap_order order;
	const size_t all_size = size;

	if (heap_graph_init(&graph) < 0)
		return 0;
	while (size >= 3) {
		size_t payload = (size_t)data[1] | (size_t)data[2] << 8;
		if (payload > size - 3)
			payload = size - 3;
		int error = heap_events_take(&heap, data[0] == 154, data[0], data + 3, payload);
		if (error < 0 && error != -EBADMSG)
			break;
		data += 3 + payload;
		size -= 3 + payload;
	}
	(void)heap_events_missing(&heap);
	int resolved = heap_graph_resolve(&graph);

	/* The memory depends on the number of received bytes, not on the numbers in them. */
	if (size_bytes(&graph) > MEMORY_FIXED + MEMORY_PER_BYTE * all_size)
		abort();
	if (resolved == 0 && heap_order_init(&order, &graph) == 0)
		heap_order_done(&order);
	heap_graph_done(&graph);
	return 0;
}
