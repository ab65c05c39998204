/* A .gcdump file, and everything that `spoor heap report` and `spoor heap roots` do with it. */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "formats/gcdump_read.h"
#include "heap/heap_paths.h"
#include "heap/heap_report.h"
#include "heap/heap_retained.h"
#include "heap/heap_text.h"
#include "heap/heap_types.h"
#include "trace/heap_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap_graph graph;
	struct heap_report report = { .graph = &graph };
	struct gcdump_origin origin;
	struct heap_order order;
	struct diag diag = { 0 };

	if (heap_graph_init(&graph) < 0)
		return 0;
	if (gcdump_read(data, size, "input", &graph, &origin, &diag) == 0 &&
		heap_order_init(&order, &graph) == 0) {
		struct bytes out = { 0 };
		uint32_t matches;
		for (uint32_t node = 1; node < heap_graph_node_count(&graph); node++)
			(void)heap_graph_find(&graph, heap_graph_address(&graph, node));
		if (heap_paths_find(&report, &order, "*", &matches) == 0 &&
			heap_types_count(&report, &order, HEAP_BY_RETAINED) == 0 &&
			heap_types_compare(&report, &graph) == 0)
			heap_json(&report, &report, 0, &out);
		bytes_done(&out);
		heap_order_done(&order);
	}
	heap_report_done(&report);
	heap_graph_done(&graph);
	return 0;
}
