/*
 * Objects with finalizers: those that wait to die, and those that are dead and wait for their finalizer.
 *
 * Three lists. `registered`: every object whose finalizer is still to run. A collection moves those that nothing else reaches into one of the other two, the
 * critical ones apart since theirs run last; both are roots from then on. The runtime's finalizer thread takes from them.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_FINALIZE_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_FINALIZE_H

#include <pthread.h>

#include "gc/collector/collector_mark.h"

struct object_list {
	struct gc_object **items;
	size_t count;
	size_t capacity;
	size_t taken; /* items before it have been handed out */
};

struct finalizers {
	pthread_mutex_t lock;
	struct object_list registered;
	struct object_list ready;
	struct object_list ready_critical;
	uint64_t promoted_count; /* moved by the last collection */
	uint64_t promoted_bytes;
};

void finalizers_init(struct finalizers *f);
void finalizers_done(struct finalizers *f);

/* false: no memory. Makes room in the other lists as well, so that a collection needs none. */
bool finalizers_add(struct finalizers *f, struct gc_object *o);

/* The next one whose finalizer is to run, or NULL. */
struct gc_object *finalizers_next(struct finalizers *f);
size_t finalizers_waiting(struct finalizers *f);

/* ---- for collections ---- */

/* Marks what waits for its finalizer since an earlier collection. */
void finalizers_mark_ready(struct finalizers *f, struct marker *m);

/*
 * Moves the dead of `registered` and marks them, and all they reach. Suppressed ones are only forgotten, and those that the runtime finalizes by itself
 * (eagerly). `critical_flag` of a method table, unless it has elements.
 */
void finalizers_find_dead(struct finalizers *f, struct marker *m, uint32_t critical_flag);

#endif
