/*
 * Writes heap snapshots as `.gcdump` files, which PerfView, Visual Studio and dotnet-gcdump open
 * (docs/formats/gcdump.md), through a small buffer: nothing of the graph is copied.
 */
#ifndef SPOOR_FORMATS_GCDUMP_WRITE_H
#define SPOOR_FORMATS_GCDUMP_WRITE_H

#include <stdint.h>

struct diag;
struct heap_graph;

/* First words of the log of an incomplete heap. */
#define GCDUMP_NOT_WHOLE "NOT WHOLE: "

struct gcdump_info {
	const char *machine;
	const char *process_name;
	const char *
		/* why the heap is incomplete, for the file's log; "" if it is complete */
		missing;
	const char *tool; /* "spoor 1.0" */
	uint32_t pid;
	uint64_t utc_ns;          /* since 1970 */
	uint64_t committed_bytes; /* 0 unknown */
	uint64_t working_set_bytes;
};

/*
 * Writes a resolved graph to `fd`, which stays the caller's; `name` is for messages. -EFBIG: the
 * records of the objects would exceed 2 GiB, the limit of the format.
 */
int gcdump_write(const struct heap_graph *graph, const struct gcdump_info *info, int fd,
	const char *name, struct diag *diag);

#endif
