/*
 * The threads of a host (host.h), and how a collection stops them. An attached thread that may
 * touch objects ("cooperative" in the runtime's words) holds a lock for reading; a collection takes
 * it for writing, so it begins when all have released it.
 */
#ifndef SPOOR_GC_HOST_THREADS_H
#define SPOOR_GC_HOST_THREADS_H

#include "gc/host/host.h"

struct gc_host_thread {
	struct gc_alloc_context context;
	struct gc_host *host;
	struct gc_host_thread *next;
	struct gc_object **roots;
	size_t root_count;
	size_t root_max;
	uint64_t os_thread_id;
	const struct gc_host_type *allocating; /* see GCAllocationTick; NULL: nothing */
	bool is_cooperative;
};

/* The attached thread that calls; NULL: it is not attached. */
struct gc_host_thread *host_thread_current(void);

/* For each thread; between host_threads_stop() and host_threads_continue(). */
struct gc_host_thread *host_threads_first(void);

/* The slots EnablePreemptiveGC and DisablePreemptiveGC, for any thread. */
bool host_thread_leave(void);
void host_thread_enter(void);
bool host_thread_is_cooperative(void);

/* Stops and continues all attached threads. The same thread calls both. */
void host_threads_stop(void);
void host_threads_continue(void);

/* A thread of the collector, which is not attached. False: it could not be started. */
bool host_threads_start_collector(gc_thread_fn *start, void *argument, const char *name);
bool host_thread_is_collectors(void);

#endif
