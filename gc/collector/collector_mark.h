/*
 * Marking: from roots to everything that can be reached, with a stack of our own.
 *
 * An object is marked when it is first seen and pushed; when it is taken from the stack, its memory is asked for (prefetch) and it waits in a short
 * queue until that has come, then its references are visited. So the depth of the program's graphs does not matter, and misses overlap.
 *
 * The stack can fail to grow (no memory). Then an object's mark is taken back and a flag set; when the stack is empty, all marked objects are visited once more, as
 * often as it takes. Slow, and correct.
 *
 * Order of calls: marker_begin(), for each root marker_root() or marker_pointer(), marker_end(). Each call returns with an empty stack.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_MARK_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_MARK_H

#include "gc/collector/collector_heap.h"

struct mark_sums {
	uint64_t objects;
	uint64_t bytes;
	uint64_t bytes_of_kind[REGION_KINDS]; /* tails are in huge */
	uint64_t stack_most;
	uint32_t overflows;
};

struct marker {
	struct heap *heap;
	struct gc_to_clr *ee;
	uint32_t collectible_flag;
	bool is_overflowed;
	struct gc_object **stack; /* reserved for the worst case, accessible to `stack_ready` */
	struct gc_object **stack_ready;
	struct gc_object **top;
	size_t stack_reserved; /* bytes */
	size_t stack_limit;    /* bytes; for tests */
	struct mark_sums sums;
};

/* -ENOMEM: no address space for the stack. `stack_limit` 0: as much as it takes. */
int marker_open(struct marker *m, struct heap *heap, struct gc_to_clr *ee,
	uint32_t collectible_flag, size_t stack_limit);
void marker_close(struct marker *m);

void marker_begin(struct marker *m);
void marker_root(struct marker *m, struct gc_object *o);
/* An address inside of an object, or anything at all. */
void marker_pointer(struct marker *m, void *address);
void marker_end(struct marker *m);

/* Does it live, as far as marking has come? Objects outside of the heap always do. */
static inline bool marker_lives(const struct marker *m, const struct gc_object *o)
{
	return !heap_has(m->heap, o) || heap_is_marked(m->heap, o);
}

#endif
