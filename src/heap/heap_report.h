/*
 * The contents of a heap report, as plain data: filled by heap_types.c, heap_retained.c and
 * heap_paths.c, printed by heap_text.c.
 */
#ifndef SPOOR_HEAP_HEAP_REPORT_H
#define SPOOR_HEAP_HEAP_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct heap_graph;

struct heap_type_row {
	uint32_t type; /* of the graph */
	uint64_t count;
	uint64_t size_bytes;
	/* size of the objects that no root reaches without this type's (heap/heap_retained.h) */
	uint64_t retained_bytes;
};

/* One group of the root tree: what it leads to and none of those before it does. */
struct heap_root_row {
	uint32_t node;
	uint64_t reached_bytes;
};

/* One way from the roots to objects of a type: the same types on the way, whatever the objects. */
struct heap_path_row {
	uint32_t first; /* of its types in heap_report.path_types, from the root down */
	uint32_t length;
	uint64_t count; /* objects at its end */
	uint64_t size_bytes;
	uint64_t retained_bytes; /* of the objects at its end together */
};

struct heap_diff_row {
	uint32_t before; /* type of the first graph; 0 none */
	uint32_t after;  /* type of the second; 0 none */
	int64_t count;   /* more of them: positive */
	int64_t size_bytes;
};

struct heap_report {
	const struct heap_graph *graph;
	const char *file;      /* borrowed; NULL: it was not saved */
	const char *process;   /* borrowed: "shop (4711)"; "" unknown */
	const char *runtime;   /* borrowed: "10.0.12"; "" unknown */
	const char *missing;   /* why it is not whole; "" */
	uint64_t utc_ns;       /* 0 unknown */
	uint64_t stream_bytes; /* 0: read from a file */
	uint64_t took_ns;
	uint64_t pause_ns;
	bool retained_unknown; /* retained bytes could not be counted: they are 0 */
	uint64_t reachable_bytes;
	uint64_t reachable_count;
	VEC(struct heap_type_row) types; /* sorted as asked */
	VEC(struct heap_root_row) roots; /* in the order of the root tree */
	VEC(struct heap_path_row) paths; /* most first */
	VEC(uint32_t) path_types;
	VEC(struct heap_diff_row) diff; /* most changed first */
};

void heap_report_done(struct heap_report *report);

#endif
