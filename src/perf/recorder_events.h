/*
 * The events and rings of a recorder, opened with its attributes and options. Only recorder.c calls
 * this. Functions return 0 or a negative errno.
 */
#ifndef SPOOR_PERF_RECORDER_EVENTS_H
#define SPOOR_PERF_RECORDER_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "machine/box.h"
#include "machine/rights.h"
#include "perf/inherited_events.h"
#include "perf/recorder_options.h"

struct sched_probe;
struct usdt_probe;

struct recorder_event {
	int fd;
	int32_t cpu;
	uint32_t tid; /* 0: every process */
	bool anchor;
	bool tracepoint;
	bool copies;  /* one of two sampling events, by the size of their copies */
	bool small;   /* the one with small copies */
	bool retired; /* its CPU went offline and came back with other events */
};

struct recorder_target {
	uint32_t pid;
	int pidfd; /* -1: the kernel has no pidfds */
	bool ended;
};

struct recorder {
	struct recorder_info info;
	struct recorder_options options; /* pids: our own copy */
	struct rights rights;
	struct perf_event_attr attr;
	VEC(struct recorder_event) events;
	VEC(struct ring *) rings; /* each on the heap, so that its address does not change */
	VEC(struct recorder_target) targets;
	VEC(uint16_t) tracepoints; /* ids, of recorder_add_tracepoint() */
	struct cpu_list cpus;      /* the CPUs that have a ring */
	struct cpu_list online;    /* as of the last recorder_follow_cpus() */
	struct inherited_events inherited_events;
	struct sched_probe *probe; /* NULL: sched_switch has its own events */
	struct usdt_probe *usdt;   /* NULL: no USDT probes are recorded */
	uint8_t *scratch;
	size_t ring_bytes;
	uint32_t wait_first; /* of its descriptors in the set of the last recorder_await() */
	uint32_t wait_count;
	bool small_copies; /* those events run now */
	bool machine;      /* the rings cover the whole machine */
	bool followed;     /* `online` is set */
	bool running;
	bool started; /* it was running */
};

/*
 * Opens the events and rings of the machine or of the targets. Halves the rings as long as they exceed
 * the limit of locked memory. -EMFILE: too many events.
 */
int recorder_events_open(struct recorder *recorder);
/* 1, or 0 without an event: the CPU went offline meanwhile, which is no failure. */
int recorder_events_open_cpu(struct recorder *recorder, int32_t cpu);
void recorder_events_close(struct recorder *recorder);
/* Opens a tracepoint's events on all CPUs, and on those that come online; they do not run yet. Without it on failure. */
int recorder_events_add_tracepoint(struct recorder *recorder, uint16_t id);

/* Are there two sampling events for each CPU, with large and with small copies of the stack? */
bool recorder_divides(const struct recorder *recorder);
/* Would these threads need more events than files may be open? */
bool recorder_has_too_many(const struct recorder *recorder, uint32_t thread_count);
/* EPERM may mean the limit on locked memory: then the last event is open, without a ring. */
bool recorder_rings_too_large(const struct recorder *recorder, int error);

#endif
