/* Reads `.gcdump` of spoor, PerfView, dotnet-gcdump, Visual Studio (docs/formats/gcdump.md). */
#ifndef SPOOR_FORMATS_GCDUMP_READ_H
#define SPOOR_FORMATS_GCDUMP_READ_H

#include <stddef.h>
#include <stdint.h>

struct diag;
struct heap_graph;

/* The file's own description of its origin; missing texts are "" and missing numbers 0. */
struct gcdump_origin {
	char machine[256];
	char process_name[256];
	uint32_t pid;
	uint64_t utc_ns;   /* since 1970 */
	char missing[256]; /* why the heap is incomplete, in files of spoor */
};

/*
 * Fills the initialised `graph`; the caller resolves it afterwards. `name` is for messages.
 * -EBADMSG: malformed or truncated; the caller then discards the graph. -ENOMEM.
 */
int gcdump_read(const uint8_t *data, size_t size, const char *name, struct heap_graph *graph,
	struct gcdump_origin *ret_origin, struct diag *diag);

#endif
