/*
 * libspoorgcproxy.so: stands between the runtime and its own collector, changes nothing, and tells what the collector itself does not.
 *
 * proxy.c        loads the collector, makes the objects that each side sees of the other, exports
 * proxy_forward  what passes unseen
 * proxy_pause    each pause: why, how long, its phases; fires and logs at its end
 * proxy_count    allocations and handles, counted as they pass
 * proxy_log      statistics without a session: one line a pause into the file that SPOOR_GC_LOG names
 *
 * What the functions here are called for is said in docs/gc.md and, event by event, in docs/gc-events.md.
 */
#ifndef SPOOR_GC_PROXY_PROXY_H
#define SPOOR_GC_PROXY_PROXY_H

#include <stddef.h>
#include <stdint.h>

#include "gc/interface.h"

/* The two real sides; set before anything else runs. */
struct proxy {
	struct gc_to_clr *ee;
	struct gc_sink *sink;
	struct gc_heap *heap;
	struct gc_handle_manager *handles;
	const struct gc_runtime *runtime;
	char collector[512]; /* the file that was loaded */
};
extern struct proxy proxy;

/* Replaces some forwarders of a table by functions of the pause's, or of the counts'. */
void proxy_pause_watch_ee(struct gc_to_clr_table *table);
void proxy_pause_watch_sink(struct gc_sink_table *table);
void proxy_pause_watch_heap(struct gc_heap_table *table);
void proxy_count_watch_handles(struct gc_handle_manager_table *table);
void proxy_count_watch_store(struct gc_handle_store_table *table);

/* The collector's own store that stands behind ours; proxy.c keeps the two together. */
struct gc_handle_store *proxy_store_behind(struct gc_handle_store *store);

/* What has passed since the start, all threads together. */
struct proxy_counts {
	uint64_t
		refills; /* allocations that reached the collector: mostly an empty context that asks for its next piece */
	uint64_t large_objects;
	uint64_t large_bytes;
	uint64_t pinned_objects;
	uint64_t pinned_bytes;
	uint64_t handles_created[GC_HANDLE_TYPES];
	uint64_t handles_destroyed[GC_HANDLE_TYPES];
};
void proxy_counts(struct proxy_counts *ret_counts);
void proxy_count_allocation(size_t size, uint32_t flags);

/* Why a collection was started, as far as the proxy sees. */
enum proxy_trigger {
	TRIGGER_UNKNOWN, /* on a thread of the collector's own, without a session */
	TRIGGER_ALLOCATION,
	TRIGGER_LARGE_ALLOCATION,
	TRIGGER_PINNED_ALLOCATION,
	TRIGGER_INDUCED, /* GC.Collect, memory pressure and the like */
	TRIGGER_LOW_MEMORY,
	TRIGGER_BACKGROUND, /* a later pause of a background collection */
};

/* A pause, when it has ended. Phases follow one another and add up to `pause_ns`; one that did not take place is 0. */
struct proxy_pause {
	uint32_t collection;
	uint32_t threads; /* whose roots were scanned */
	uint32_t contexts;
	uint32_t trigger_thread; /* 0 unknown */
	uint64_t trigger_bytes;
	uint8_t trigger; /* enum proxy_trigger */
	uint8_t reason;  /* GCStart's; 255 when no session wanted GCStart */
	uint8_t generation;
	bool background;
	bool moved;
	uint64_t pause_ns;
	uint64_t suspend_ns; /* until all threads stood */
	uint64_t prepare_ns;
	uint64_t roots_ns;
	uint64_t mark_ns;
	uint64_t reclaim_ns;
	uint64_t finish_ns;
	uint64_t restart_ns;       /* after it, not part of it */
	uint64_t context_bytes;    /* that contexts had left over */
	struct proxy_counts since; /* since the pause before */
	uint64_t handles_live[GC_HANDLE_TYPES];
};

/* Opens what SPOOR_GC_LOG names, if it names something. */
void proxy_log_open(void);
bool proxy_log_on(void);
void proxy_log_pause(const struct proxy_pause *pause);

#endif
