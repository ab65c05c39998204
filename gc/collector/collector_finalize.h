/*
 * Objects with finalizers: those that are alive, and those that are dead and wait for their
 * finalizer.
 *
 * There are three lists. `registered` has every object whose finalizer has not run. A collection
 * moves those that are otherwise unreachable into one of the other two; critical ones have a list
 * of their own, because they run last. Both lists are roots from then on. The runtime's finalizer
 * thread takes objects from them.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_FINALIZE_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_FINALIZE_H

#include <pthread.h>

#include "gc/collector/collector_mark.h"

struct object_list {
	struct gc_object **items;
	size_t count;
	size_t capacity;
	size_t taken; /* items before this index were returned */
};

struct finalizers {
	pthread_mutex_t lock;
	struct object_list registered;
	struct object_list ready;
	struct object_list ready_critical;
	uint64_t promoted_count; /* number of objects that the last collection has moved */
	uint64_t promoted_bytes;
};

void finalizers_init(struct finalizers *f);
void finalizers_done(struct finalizers *f);

/*
 * false: no memory. Reserves room in the other lists as well, so that a collection needs no memory.
 */
bool finalizers_add(struct finalizers *f, struct gc_object *o);

/* The next object whose finalizer is to run, or NULL. */
struct gc_object *finalizers_next(struct finalizers *f);
size_t finalizers_waiting(struct finalizers *f);

/* ---- for collections ---- */

/* Marks objects that have waited for their finalizer since an earlier collection. */
void finalizers_mark_ready(struct finalizers *f, struct marker *m);

/*
 * Moves the dead objects of `registered`, and marks them and all objects they reach. Suppressed
 * ones are only removed, and so are those that the runtime finalizes eagerly. `critical_flag` is
 * one of a method table, valid for types without elements.
 */
void finalizers_find_dead(struct finalizers *f, struct marker *m, uint32_t critical_flag);

#endif
