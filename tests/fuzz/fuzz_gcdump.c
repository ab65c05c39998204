/* A .gcdump file from the bytes; what it makes is walked. */
#include <stddef.h>
#include <stdint.h>

#include "analyze/dominators.h"
#include "base/diag.h"
#include "format/gcdump_read.h"
#include "model/heap_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap_graph graph;
	struct gcdump_origin origin;
	struct dominators dominators;
	struct diag diag = { 0 };

	if (heap_graph_init(&graph) < 0)
		return 0;
	if (gcdump_read(data, size, "input", &graph, &origin, &diag) == 0 && dominators_init(&dominators, &graph) == 0)
		dominators_done(&dominators);
	heap_graph_done(&graph);
	return 0;
}
