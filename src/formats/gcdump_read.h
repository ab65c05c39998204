/*
 * Reading `.gcdump` files, ours and those of PerfView, dotnet-gcdump and Visual Studio, into a heap graph (docs/formats/gcdump.md).
 */
#ifndef SPOOR_FORMATS_GCDUMP_READ_H
#define SPOOR_FORMATS_GCDUMP_READ_H

#include <stddef.h>
#include <stdint.h>

struct diag;
struct heap_graph;

/* What the file says of its origin, as far as it does: empty texts and 0 otherwise. */
struct gcdump_origin {
	char machine[256];
	char process_name[256];
	uint32_t pid;
	uint64_t utc_ns;      /* since 1970 */
	char missing[256];    /* why the heap is not whole, if one of our files says so */
};

/*
 * Fills `graph`, which is initialised; it is resolved afterwards. `name` is for messages. -EBADMSG: it is none, or torn; the graph is then to be
 * thrown away. -ENOMEM.
 */
int gcdump_read(const uint8_t *data, size_t size, const char *name, struct heap_graph *graph,
	struct gcdump_origin *ret_origin, struct diag *diag);

#endif
