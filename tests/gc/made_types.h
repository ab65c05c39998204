/*
 * Types laid out as the runtime does, to test the reference collector without a runtime.
 *
 *   types.free        an array of bytes
 *   types.bytes       the same, but an object
 *   types.pair        two references and a number:  [left][right][number]
 *   types.references  an array of references
 *   types.gaps        an array of structs {number, reference, number, reference, reference}
 */
#ifndef SPOOR_TESTS_MADE_TYPES_H
#define SPOOR_TESTS_MADE_TYPES_H

#include <stdlib.h>
#include <string.h>

#include "gc/collector/collector_heap.h"

/* The words before a method table, and the table. */
struct made_type {
	int64_t words[8];
	struct method_table table;
	uint64_t more;
};

static struct {
	struct made_type free_type, bytes_type, pair_type, references_type, gaps_type;
	struct method_table *free, *bytes, *pair, *references, *gaps;
} types;

enum { GAPS_ELEMENT = 40, COLLECTIBLE = 0x00200000 };

struct pair {
	struct method_table *type;
	struct gc_object *left;
	struct gc_object *right;
	uint64_t number;
};

static void types_make(void)
{
	uint32_t array = (uint32_t)TYPE_HAS_ELEMENTS;

	types.free_type.table = (struct method_table){ array | 1, CELL_MIN };
	types.bytes_type.table = (struct method_table){ array | 1, CELL_MIN };
	/*
	 * One run of references from offset 8: all except header, type and number, which is 16 of
	 * 40 bytes.
	 */
	types.pair_type.table = (struct method_table){ TYPE_HAS_REFERENCES, 40 };
	types.pair_type.words[7] = 1;
	types.pair_type.words[6] = 8;
	types.pair_type.words[5] = 16 - 40;
	/* From offset 16 to the end: the object's size minus header, type and length. */
	types.references_type.table =
		(struct method_table){ array | TYPE_HAS_REFERENCES | 8, CELL_MIN };
	types.references_type.words[7] = 1;
	types.references_type.words[6] = 16;
	types.references_type.words[5] = -CELL_MIN;
	/*
	 * From offset 24: one reference, a gap of 8 bytes, two references, and a gap of 8 bytes to
	 * the first reference of the next element.
	 */
	types.gaps_type.table =
		(struct method_table){ array | TYPE_HAS_REFERENCES | GAPS_ELEMENT, CELL_MIN };
	types.gaps_type.words[7] = -2;
	types.gaps_type.words[6] = 24;
	types.gaps_type.words[5] = 1 | (int64_t)8 << 32;
	types.gaps_type.words[4] = 2 | (int64_t)8 << 32;
	types.free = &types.free_type.table;
	types.bytes = &types.bytes_type.table;
	types.pair = &types.pair_type.table;
	types.references = &types.references_type.table;
	types.gaps = &types.gaps_type.table;
}

static inline struct gc_object **references_of(struct gc_object *o)
{
	return (struct gc_object **)((uint8_t *)o + 16);
}

static inline size_t array_size(size_t element, size_t count)
{
	return (CELL_MIN + element * count + 7) & ~(size_t)7;
}

#endif
