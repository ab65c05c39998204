/*
 * The scheduler's tracepoints beside the sampling events: which thread leaves a CPU, why and in which
 * stack (sched_switch), and which thread wakes which (sched_waking). They write into the rings of the
 * sampling events, in the same layout: the first two bytes of a sample's raw data are the
 * tracepoint's id.
 */
#ifndef SPOOR_PERF_SCHED_EVENTS_H
#define SPOOR_PERF_SCHED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "perf/tracepoint.h"

struct perf_event_attr;
struct perf_record;
struct rights;

enum sched_event { SCHED_EVENT_SWITCH, SCHED_EVENT_WAKING, SCHED_EVENT_COUNT };

struct sched_tracepoint {
	bool wanted;        /* it is opened */
	bool no_stack;      /* its samples have no call chain */
	const char *filter; /* for event_filter(); NULL: all of it is recorded */
	struct tracepoint tracepoint;
	struct tracepoint_field field; /* prev_state, pid of the woken thread */
	bool by_probe;                 /* sched_probe.h writes its records */
};

struct sched_events {
	struct sched_tracepoint of[SCHED_EVENT_COUNT];
	/* limit.error: without stacks and reasons; with a remedy */
	struct diag limit;
};

/* Reads the tracepoints. What this user may not read stays unwanted, with the reason in limit. */
void sched_events_find(struct sched_events *events, bool waking_stacks);

/*
 * The attributes of one of them, in the layout and on the clock of the sampling event, with copies of at
 * most `stack_bytes` of the user stack.
 */
void sched_events_attribute(const struct sched_events *events, enum sched_event which,
	const struct perf_event_attr *sampling, uint32_t stack_bytes, bool user_only,
	bool kernel_only, struct perf_event_attr *ret_attr);

/* They were found and may not be opened: they become unwanted, with the reason in limit. */
void sched_events_refuse(struct sched_events *events, int error);

/* Which tracepoint a sample is of; SCHED_EVENT_COUNT: none. */
enum sched_event sched_events_which(const struct sched_events *events,
	const struct perf_record *record);

/* The field of the tracepoint that the sample is of. */
uint64_t sched_events_value(const struct sched_events *events, enum sched_event which,
	const struct perf_record *record);

/* Whether the sample was taken in an interrupt, so its thread has nothing to do with the event. */
bool sched_events_in_interrupt(const struct perf_record *record);

/* enum switch_state of a thread with this prev_state. */
unsigned sched_events_state(uint64_t prev_state);

/* The same of the state as the kernel has it inside (perf/switch_ring.h), and whether the thread has ended. */
unsigned sched_events_raw_state(uint32_t state);
bool sched_events_is_end(uint32_t state);

#endif
