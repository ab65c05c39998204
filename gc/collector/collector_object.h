/*
 * The runtime's layout of objects, as a collector needs it.
 *
 *   address  content
 *   o - 8    header: upper half sync block, hash code, lock; bit 30 of it: the finalizer has run or is suppressed
 *   o        method table
 *   o + 8    number of elements (u32), if the type has elements
 *
 * An object of `size` bytes takes the cell [o - 8, o + size - 8). Cells are consecutive, multiples
 * of 8 and at least 24 bytes; an unused stretch is a cell of the runtime's "free object" type, an
 * array of bytes. The method table begins with flags (low half: bytes for each element) and base
 * size; the words before it describe the references:
 *
 *   mt - 8   n. n > 0: n pairs, the i-th at mt - 24 - 16 i: length less the object's size (i64), offset of the first reference (i64).
 *            n < 0: an array of structs: at mt - 16 offset of the first element's first reference; then -n items downward from mt - 24, each
 *            a count of references (low half) and bytes to skip after them (high half); all of them again for each element.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_OBJECT_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_OBJECT_H

#include "gc/interface.h"

enum {
	CELL_MIN = 24,
	CELL_ALIGN = 8,
	CELL_HEADER = 8, /* from the begin of a cell to its object */
};

enum method_table_flag {
	TYPE_HAS_ELEMENTS = (int32_t)0x80000000,
	TYPE_HAS_REFERENCES = 0x01000000,
	TYPE_HAS_FINALIZER = 0x00100000,
	TYPE_CRITICAL_FINALIZER = 0x00000002,   /* .NET 9 and later; only without elements */
	TYPE_CRITICAL_FINALIZER_8 = 0x08000000, /* .NET 8 */
};

#define HEADER_FINALIZER_RUN 0x40000000u

struct method_table {
	uint32_t flags;
	uint32_t base_size;
};

struct gc_object {
	struct method_table *type;
	uint32_t count;
};

static inline uint32_t *object_header(struct gc_object *o)
{
	return (uint32_t *)((uint8_t *)o - 4);
}

static inline size_t object_size_of(const struct gc_object *o, const struct method_table *type)
{
	size_t size = type->base_size;

	if (type->flags & (uint32_t)TYPE_HAS_ELEMENTS)
		size += (size_t)(type->flags & 0xffff) * o->count;
	return (size + CELL_ALIGN - 1) & ~(size_t)(CELL_ALIGN - 1);
}

static inline size_t object_size(const struct gc_object *o)
{
	return object_size_of(o, o->type);
}

static inline uint8_t *object_cell(struct gc_object *o)
{
	return (uint8_t *)o - CELL_HEADER;
}

static inline struct gc_object *cell_object(uint8_t *cell)
{
	return (struct gc_object *)(cell + CELL_HEADER);
}

/*
 * Calls visit(context, slot) for every word of `o` that holds a reference. Only for a type with
 * TYPE_HAS_REFERENCES. Always inlined with `visit`, because marking spends most of its time here. A
 * `visit` that returns false ends the walk.
 */
static inline __attribute__((always_inline)) bool object_each_reference(struct gc_object *o,
	const struct method_table *type, size_t size,
	bool (*visit)(void *context, struct gc_object **slot), void *context)
{
	const int64_t *before = (const int64_t *)type;
	int64_t n = before[-1];

	if (n > 0) {
		for (const int64_t *pair = before - 3; n > 0; n--, pair -= 2) {
			struct gc_object **slot = (struct gc_object **)((uint8_t *)o + pair[1]);
			struct gc_object **end =
				(struct gc_object **)((uint8_t *)slot + pair[0] + (int64_t)size);

			for (; slot < end; slot++) {
				if (!visit(context, slot))
					return false;
			}
		}
		return true;
	}
	const uint8_t *elements_end = (const uint8_t *)o + size - CELL_HEADER;
	uint8_t *at = (uint8_t *)o + before[-2];
	while (at < elements_end) {
		for (int64_t i = 0; i > n; i--) {
			uint32_t count = (uint32_t)before[i - 3];
			uint32_t skip = (uint32_t)((uint64_t)before[i - 3] >> 32);
			struct gc_object **end = (struct gc_object **)at + count;

			for (struct gc_object **slot = (struct gc_object **)at; slot < end;
				slot++) {
				if (!visit(context, slot))
					return false;
			}
			at = (uint8_t *)end + skip;
		}
	}
	return true;
}

#endif
