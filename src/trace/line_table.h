/*
 * The source lines of a trace: which functions, files and lines a sampled address is from.
 *
 * A place is an offset in a mapping (native code), or in a method body (managed code: its begin and
 * method id, in its mapping). Places survive a change of the address space: they are what the file
 * stores. Of a caller, the place is the byte before its return address. All zero is empty.
 */
#ifndef SPOOR_TRACE_LINE_TABLE_H
#define SPOOR_TRACE_LINE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "code/codemap.h"

struct line_place {
	uint64_t mapping_id;
	uint64_t begin;     /* of the method body; 0: native code */
	uint64_t method_id; /* 0: native code */
	uint64_t offset;    /* from `begin`, or from the mapping's begin */
};

/* Innermost inlined function first; the function that has the code last. */
struct line_frame {
	uint32_t function; /* strtab: of an inlined function; 0: the one that has the code */
	uint32_t file;     /* strtab: path; 0 unknown */
	uint32_t line;     /* 0 unknown */
};

struct line_entry {
	struct line_place place;
	uint32_t frame_at;
	uint32_t frame_count;
};

/* The IL offsets of a body of managed code, from which its lines are found with a symbol file. */
struct line_body {
	uint64_t mapping_id;
	uint64_t begin;
	uint64_t method_id;
	uint32_t token;    /* MethodDef */
	uint32_t assembly; /* strtab: path */
	uint8_t pdb_id[16];
	uint32_t at; /* in line_table.il */
	uint32_t count;
};

struct line_table {
	VEC(struct line_entry) entries;
	VEC(struct line_frame) frames;
	struct map index;
	VEC(struct line_body) bodies;
	VEC(struct il_offset) il;
	struct map body_index;
};

/* The first lines of a place remain. False: no memory. */
bool line_table_add(struct line_table *table, const struct line_place *place,
	const struct line_frame *frames, uint32_t count);

/* NULL: the place has no lines. */
const struct line_frame *line_table_find(const struct line_table *table,
	const struct line_place *place, uint32_t *ret_count);

/* The first IL offsets of a body remain. False: no memory. */
bool line_table_add_body(struct line_table *table, const struct line_body *body,
	const uint32_t *native, const uint32_t *il, uint32_t count);

/* Gives a body without IL offsets those that were found later. False: no memory. */
bool line_table_fill_body(struct line_table *table, uint32_t body, const struct il_offset *offsets,
	uint32_t count);

/* The body that `place` is in, or NULL. */
const struct line_body *line_table_body(const struct line_table *table,
	const struct line_place *place);

void line_table_done(struct line_table *table);

#endif
