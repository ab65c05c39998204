/*
 * Marking: finds all objects that are reachable from roots, with an explicit stack.
 *
 * An object is marked and pushed when it is first seen. When it is popped, its memory is prefetched
 * and it waits in a short queue; then its references are visited. So deep graphs need no deep
 * recursion, and cache misses overlap.
 *
 * If the stack cannot grow (no memory), the object's mark is removed and a flag set; when the stack
 * is empty, all marked objects are visited again, until the flag stays clear. That is slow, and
 * correct.
 *
 * Order of calls: marker_begin(), for each root marker_root() or marker_pointer(), marker_end().
 * Each call returns with an empty stack.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_MARK_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_MARK_H

#include "gc/collector/collector_heap.h"

struct mark_sums {
	uint64_t objects;
	uint64_t bytes;
	uint64_t bytes_of_kind[REGION_KINDS]; /* tails are included in huge */
	uint64_t stack_most;
	uint32_t overflows;
};

struct marker {
	struct heap *heap;
	struct gc_to_clr *ee;
	uint32_t collectible_flag;
	bool is_overflowed;
	/* address space for the worst case, accessible up to `stack_ready` */
	struct gc_object **stack;
	struct gc_object **stack_ready;
	struct gc_object **top;
	size_t stack_reserved; /* bytes */
	size_t stack_limit;    /* bytes; for tests */
	struct mark_sums sums;
};

/* 0; -ENOMEM: no address space for the stack. `stack_limit` 0: unlimited. */
int marker_open(struct marker *m, struct heap *heap, struct gc_to_clr *ee,
	uint32_t collectible_flag, size_t stack_limit);
void marker_close(struct marker *m);

void marker_begin(struct marker *m);
void marker_root(struct marker *m, struct gc_object *o);
/* `address` may be inside of an object, or have any other value. */
void marker_pointer(struct marker *m, void *address);
void marker_end(struct marker *m);

/* Is the object marked so far? Objects outside of the heap always count as marked. */
static inline bool marker_lives(const struct marker *m, const struct gc_object *o)
{
	return !heap_has(m->heap, o) || heap_is_marked(m->heap, o);
}

#endif
