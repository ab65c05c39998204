/*
 * The growable array. All zero is empty.
 *
 *   VEC(struct mapping) mappings = {0};
 *   struct mapping *m = vec_push(&mappings);      a new, zeroed element, or NULL when there is no memory
 *   vec_each (each, &mappings) ... each->begin ...
 *   vec_done(&mappings);
 *
 * Elements move when the array grows: keep indexes, not pointers.
 */
#ifndef SPOOR_BASE_VEC_H
#define SPOOR_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VEC(type)                  \
	struct {                   \
		type *items;       \
		uint32_t count;    \
		uint32_t capacity; \
	}

/* Room for `extra` more elements; false when there is no memory or the count would pass 2^31. */
#define vec_reserve(v, extra) \
	vec_grow_((void **)&(v)->items, &(v)->capacity, (v)->count, (extra), sizeof(*(v)->items))

/* A new last element, all zero, to be filled in place; NULL when there is no memory. */
#define vec_push(v)                                                                         \
	(vec_reserve((v), 1) ? (__typeof__((v)->items))vec_zero_(&(v)->items[(v)->count++], \
				       sizeof(*(v)->items))                                 \
			     : (__typeof__((v)->items))NULL)

/* Appends a copy of `value`; false when there is no memory. */
#define vec_add(v, value) (vec_reserve((v), 1) ? ((v)->items[(v)->count++] = (value), true) : false)

/* The same, with the test for room where it is called: for what is added in the innermost loops. */
#define vec_add_quick(v, value)                                                  \
	((v)->count < (v)->capacity ? ((v)->items[(v)->count++] = (value), true) \
				    : vec_add(v, value))

/* A loop over pointers to the elements; the array does not grow meanwhile. */
#define vec_each(item, v)                                                                          \
	for (__typeof__((v)->items + 0) item = (v)->items; item && item < (v)->items + (v)->count; \
		item++)

#define vec_last(v) (&(v)->items[(v)->count - 1])

#define vec_reset(v) ((void)((v)->count = 0))

#define vec_done(v) (vec_free_((v)->items), (v)->items = NULL, (v)->count = (v)->capacity = 0)

bool vec_grow_(void **items, uint32_t *capacity, uint32_t count, size_t extra, size_t size);
void *vec_zero_(void *item, size_t size);
void vec_free_(void *items);

#endif
