/*
 * libspoorgcproxy.so: a proxy between the runtime and its own collector. It changes nothing, and
 * fires events with facts that the collector does not report.
 *
 * proxy.c        loads the collector, makes the objects through which both sides call each other, exports
 * proxy_forward  forwards slots that are not observed
 * proxy_pause    each pause: cause, duration, phases; fires events and writes the log at its end
 * proxy_count    counts allocations and handles
 * proxy_log      statistics without a session: one line for each pause in the file that SPOOR_GC_LOG names
 *
 * docs/gc.md and docs/gc-events.md describe when the functions here are called, the latter for each
 * event.
 */
#ifndef SPOOR_GC_PROXY_PROXY_H
#define SPOOR_GC_PROXY_PROXY_H

#include <stddef.h>
#include <stdint.h>

#include "gc/interface.h"

/* The objects of the runtime and of the collector; set before any other function is called. */
struct proxy {
	struct gc_to_clr *ee;
	struct gc_sink *sink;
	struct gc_heap *heap;
	struct gc_handle_manager *handles;
	const struct gc_runtime *runtime;
	char collector[512]; /* the file that was loaded */
};
extern struct proxy proxy;

/* Replace some forwarders of a table by functions of proxy_pause.c or proxy_count.c. */
void proxy_pause_watch_ee(struct gc_to_clr_table *table);
void proxy_pause_watch_sink(struct gc_sink_table *table);
void proxy_pause_watch_heap(struct gc_heap_table *table);
void proxy_count_watch_handles(struct gc_handle_manager_table *table);
void proxy_count_watch_store(struct gc_handle_store_table *table);

/* The collector's store that belongs to the proxy's store. */
struct gc_handle_store *proxy_store_behind(struct gc_handle_store *store);

/* Counts since the start, over all threads. */
struct proxy_counts {
	uint64_t
		/*
		 * allocations that reached the collector: mostly an empty context that needs its
		 * next piece
		 */
		refills;
	uint64_t large_objects;
	uint64_t large_bytes;
	uint64_t pinned_objects;
	uint64_t pinned_bytes;
	uint64_t handles_created[GC_HANDLE_TYPES];
	uint64_t handles_destroyed[GC_HANDLE_TYPES];
};
void proxy_counts(struct proxy_counts *ret_counts);
void proxy_count_allocation(size_t size, uint32_t flags);

/* Why a collection was started, if the proxy can see it. */
enum proxy_trigger {
	TRIGGER_UNKNOWN, /* on a thread of the collector, without a session */
	TRIGGER_ALLOCATION,
	TRIGGER_LARGE_ALLOCATION,
	TRIGGER_PINNED_ALLOCATION,
	TRIGGER_INDUCED, /* GC.Collect, memory pressure and the like */
	TRIGGER_LOW_MEMORY,
	TRIGGER_BACKGROUND, /* a later pause of a background collection */
};

/*
 * A pause after its end. Phases follow one another and add up to `pause_ns`; one that did not occur
 * is 0.
 */
struct proxy_pause {
	uint32_t collection;
	uint32_t threads; /* number of threads whose roots were scanned */
	uint32_t contexts;
	uint32_t trigger_thread; /* 0 unknown */
	uint64_t trigger_bytes;
	uint8_t trigger; /* enum proxy_trigger */
	uint8_t reason;  /* GCStart's; 255: no session enabled GCStart */
	uint8_t generation;
	bool background;
	bool moved;
	uint64_t pause_ns;
	uint64_t suspend_ns; /* until all threads were suspended */
	uint64_t prepare_ns;
	uint64_t roots_ns;
	uint64_t mark_ns;
	uint64_t reclaim_ns;
	uint64_t finish_ns;
	uint64_t restart_ns;       /* after the pause, not part of it */
	uint64_t context_bytes;    /* unused bytes of allocation contexts */
	struct proxy_counts since; /* since the previous pause */
	uint64_t handles_live[GC_HANDLE_TYPES];
};

/* Opens the file that SPOOR_GC_LOG names, if it is set. */
void proxy_log_open(void);
bool proxy_log_on(void);
void proxy_log_pause(const struct proxy_pause *pause);

#endif
