/*
 * The reference collector: suspends all threads, marks reachable objects and frees the others in
 * place. It does not move objects and has no generations.
 *
 * One object holds all of its state; struct gc_heap, which the runtime calls, is its first member.
 * spoorgc.c makes it and fills the tables; the tables' functions use the functions of this header.
 *
 *   collector_alloc()     what Alloc() does: from the context, else a new piece, else a collection, else NULL
 *   collector_collect()   one collection
 *   collector_walk...()   for heap snapshots, profilers and debuggers
 *
 * Locks, in the order in which they may be taken: `collecting` (one collection at a time; never
 * held by a thread that the collection must wait for), then one of the heap's, the finalizers', the
 * handles' or `frozen_lock`. A thread that holds one of the latter waits for memory only.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_H

#include <pthread.h>

#include "gc/collector/collector_finalize.h"
#include "gc/collector/collector_handles.h"
#include "gc/collector/collector_heap.h"
#include "gc/collector/collector_mark.h"
#include "gc/collector/collector_settings.h"
#include "gc/interface.h"

enum {
	GENERATIONS = 3,
	GENERATION_OLDEST = 2,
	GENERATION_LARGE = 3,
	GENERATION_PINNED = 4,
	GENERATIONS_ALL = 5
};
/* The result of WhichGeneration() for objects outside of the heap. */
#define GENERATION_NONE 0x7fffffffu

/* The reason of a collection: the numbers of the event GCStart. */
enum collect_reason {
	COLLECT_ALLOC_SMALL = 0,
	COLLECT_INDUCED = 1,
	COLLECT_LOW_MEMORY = 2,
	COLLECT_ALLOC_LARGE = 4,
	COLLECT_OUT_OF_SPACE_SMALL = 5,
	COLLECT_OUT_OF_SPACE_LARGE = 6,
	COLLECT_INDUCED_NOT_FORCED = 7,
	COLLECT_INDUCED_COMPACTING = 10,
};

enum collect_mode {
	COLLECT_NON_BLOCKING = 1,
	COLLECT_BLOCKING = 2,
	COLLECT_OPTIMIZED = 4,
	COLLECT_COMPACTING = 8,
	COLLECT_AGGRESSIVE = 16,
};

struct collect_request {
	enum collect_reason reason;
	uint32_t mode; /* enum collect_mode */
	bool is_induced;
	bool only_if_count; /* do nothing if the number of collections is no longer `count` */
	uint32_t count;
};

/*
 * Results of a collection, for events and GC.GetGCMemoryInfo(). Sizes in bytes, by generation (0
 * and 1 are always empty).
 */
struct collect_record {
	uint64_t index;
	uint64_t heap_bytes; /* regions in use */
	uint64_t live_bytes;
	uint64_t committed_bytes;
	uint64_t size_before[GENERATIONS_ALL];
	uint64_t size_after[GENERATIONS_ALL];
	uint64_t free_before[GENERATIONS_ALL];
	uint64_t free_after[GENERATIONS_ALL];
	uint64_t pinned_count;
	uint64_t pending_count; /* finalizers to run */
	int64_t start_ns;
	int64_t pause_ns;
	uint32_t memory_load; /* percent */
};

/* Objects outside of the heap, which are never freed. */
struct gc_segment {
	struct gc_segment *next;
	uint8_t *begin; /* the first object's cell */
	uint8_t *end;   /* of the allocated part */
	uint8_t *reserved;
};

/*
 * A gate that is open or closed. Threads that wait at it do not delay the suspension of the
 * runtime.
 */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t opened;
	bool is_open;
};

struct no_gc_region {
	bool is_active; /* atomic; `bytes` is set before it */
	uint64_t bytes; /* number of bytes that may be allocated until it ends */
	/* atomic; the result of EndNoGCRegion() if another event has ended the region; else 0 */
	int32_t ended_by;
};

struct collector {
	struct gc_heap border; /* first: `self` of the tables' functions */
	struct gc_handle_manager manager;
	struct gc_handle_store store;
	struct gc_to_clr *ee;
	const struct gc_runtime *runtime;
	uint32_t critical_flag;

	struct settings settings;
	struct heap heap;
	struct marker marker;
	struct handles handles;
	struct finalizers finalizers;
	pthread_mutex_t frozen_lock;
	struct gc_segment *frozen;

	pthread_mutex_t collecting;
	struct gate gate;
	bool is_in_progress; /* as SetGCInProgress() says; atomic */
	/* this collector has suspended all threads: walks may read everything */
	bool is_stopped;
	uint32_t count;    /* number of collections; atomic */
	uint64_t budget;   /* bytes to allocate until the next collection; atomic */
	uint64_t live;     /* bytes after the last collection; atomic */
	uint64_t ticks[3]; /* bytes since the last GCAllocationTick, by kind; atomic */
	struct collect_record last;
	int64_t paused_ns; /* total time of all pauses */
	int64_t started_ns;
	int64_t load_at_ns;
	struct no_gc_region no_gc;
	int32_t latency_mode;
	int32_t compaction_mode;
	uint64_t pinned_count; /* roots that pin, in the current collection */
};

/*
 * GC_OK, or GC_E_FAIL or GC_E_OUTOFMEMORY after a message to the host: what failed and what to do.
 */
int32_t collector_open(struct collector *c, struct gc_to_clr *ee, const struct gc_runtime *runtime);
/* The part of the start that needs the runtime: the type of free objects, its write barrier. */
int32_t collector_start(struct collector *c);
void collector_close(struct collector *c);

struct gc_object *collector_alloc(struct collector *c, struct gc_alloc_context *context,
	size_t size, uint32_t flags);

/* The rest of a context's piece becomes a free cell; the context is empty. */
void collector_retire(struct collector *c, struct gc_alloc_context *context);

void collector_collect(struct collector *c, struct collect_request request);

/*
 * 0: done, else enum start_no_gc_region_status of the runtime: 1 no memory, 2 too large, 3 in
 * progress.
 */
int32_t collector_no_gc_begin(struct collector *c, uint64_t bytes);
/* 0: done, else: 1 not in progress, 2 a collection was induced, 3 more was allocated. */
int32_t collector_no_gc_end(struct collector *c);

uint32_t collector_generation(const struct collector *c, const struct gc_object *o);
int64_t collector_now_ns(void);

/* ---- collector_walk.c; all threads are suspended ---- */

void collector_walk_heap(struct collector *c, gc_walk_object_fn *walk, void *context,
	bool walk_large);
void collector_walk_references(struct gc_object *o, gc_walk_object_fn *walk, void *context);
void collector_walk_slots(struct gc_object *o, gc_walk_object2_fn *walk, void *context);
void collector_walk_handles(struct collector *c, gc_scan_handle_fn *scan,
	struct gc_scan_context *context, bool is_dependent);
void collector_walk_ready(struct collector *c, gc_promote_fn *scan,
	struct gc_scan_context *context);
void collector_walk_ready_kinds(struct collector *c, gc_walk_finalizer_fn *walk);
void collector_describe(struct collector *c, gc_generation_fn *describe, void *context);
uint32_t collector_generation_range(struct collector *c, struct gc_object *o, uint8_t **ret_begin,
	uint8_t **ret_end);

#endif
