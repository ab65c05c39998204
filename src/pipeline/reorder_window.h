/*
 * The reorder window: sorts the records and events of all live sources by time.
 *
 * Each CPU's ring is sorted, but rings are drained one after the other, and EventPipe delivers
 * events late. So decoded items wait here, 48 bytes each, and leave in time order when they are
 * older than the window. An item that arrives after later items have left gets the time of the last
 * one, and is marked with its delay: it is moved, not lost.
 */
#ifndef SPOOR_PIPELINE_REORDER_WINDOW_H
#define SPOOR_PIPELINE_REORDER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define REORDER_WINDOW_NS UINT64_C(250000000)

enum pending_kind {
	PENDING_SAMPLE,
	PENDING_MAPPING, /* side: struct pending_mapping */
	PENDING_COMM,    /* value: strtab index of the name; flag: exec */
	PENDING_FORK,    /* value: parent pid and tid */
	PENDING_EXIT,
	PENDING_LOST, /* value: number of lost samples */
	PENDING_THROTTLE,
	PENDING_UNTHROTTLE,
	PENDING_EVENT, /* of a stream; side: see relay.c */
	PENDING_LTTNG, /* an event of LTTng; side: see live_lttng.c */
	PENDING_USDT,  /* a hit of a USDT probe; value: unreadable arguments; side: see hits.c */
	PENDING_USER_EVENT, /* an event of user_events; side: see hits.c */
	/* CPU time by a thread's clock; value: ns, and number of samples in the upper 16 bits */
	PENDING_SHARE,
	/* pid: process index; value: ns of CPU time; flag: of the rest of the process, no thread */
	PENDING_CLOCK,
	/* pid: process index; stack_index: code index; value: its begin address */
	PENDING_CODE_REMOVED,
	/* a method that a sample is in; side: see memory_names.c */
	PENDING_CODE,
	/* flag: the thread left the CPU, with value: see intake.h; else it came back */
	PENDING_SWITCH,
	/* other code is in known addresses of the process: stacks that were learned before are not valid */
	PENDING_CODE_CHANGED,
	/* of the waker; value: tid of the woken thread; flag: in an interrupt */
	PENDING_WAKING,
};

struct pending {
	uint64_t time_ns;
	uint64_t value;
	/* on the heap, owned by the item, freed by the code that takes the item */
	void *side;
	uint32_t sequence; /* order of arrival, for equal times */
	uint32_t pid;
	uint32_t tid;
	uint32_t stack_index;
	int16_t cpu;
	uint8_t kind; /* enum pending_kind */
	bool flag;
};

struct reorder_window {
	VEC(struct pending) items;
	VEC(struct pending) spare; /* scratch: holds items while two runs are merged */
	uint32_t taken;            /* items before this index have left */
	uint32_t ordered; /* items before this index are sorted; only later ones need sorting */
	uint32_t ready;   /* items before this index are sorted and may leave */
	uint32_t sequence;
	uint64_t watermark_ns; /* time of the last item that left */
};

/* A new item for the caller to fill in, with its sequence set; NULL without memory. */
struct pending *reorder_window_add(struct reorder_window *window);

/* Makes all items up to `until_ns` ready, sorted by time. Without memory none becomes ready. */
void reorder_window_sort(struct reorder_window *window, uint64_t until_ns);

/*
 * The next ready item, borrowed until the next call of any function here; NULL if there is none. If
 * the item is older than the last one that left, its time_ns is moved to that time, and
 * *ret_late_ns is the difference.
 */
struct pending *reorder_window_next(struct reorder_window *window, uint64_t *ret_late_ns);

/* Frees the items and their side data, except that of PENDING_EVENT. */
void reorder_window_done(struct reorder_window *window);

#endif
