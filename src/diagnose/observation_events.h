/*
 * What `spoor diagnose` observed of running processes beside the samples, read from the events of its
 * recording (trace/spoor_events.def): readings of /proc (ProcessUse), stacks of all threads at some
 * moments (StackLook, LookStack, LookThread), and the levels that runtimes report.
 *
 *   struct observation_events observations = { .facts = &facts, .trace = &trace, .filter = &filter };
 *   observation_events_event(&observations, event)                for each event, in file order
 *   observation_events_has(&observations, process)                whether it was observed
 *   observation_events_mark(&observations, &facts), observation_events_gather(&observations, &facts)    facts_gather.h calls them
 *   observation_events_done(&observations)
 *
 * Other recordings have no such events, and give no facts.
 */
#ifndef SPOOR_DIAGNOSE_OBSERVATION_EVENTS_H
#define SPOOR_DIAGNOSE_OBSERVATION_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/runtime_gauges.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "diagnose/stack_observations.h"
#include "machine/process_use.h"

struct event;
struct facts;
struct profile_filter;
struct trace;

/* A stack of the current look. */
struct observed_stack {
	uint32_t frame_at; /* in observed_process.frames */
	uint32_t frame_count;
};

struct observed_process {
	uint32_t process; /* of the trace */
	VEC(struct process_use) uses;
	struct stack_observations observations;
	uint64_t look; /* number of the current one */
	VEC(struct observed_frame) frames;
	VEC(struct observed_stack) stacks;
	struct map by_number; /* to the position in `stacks` + 1 */
};

struct observation_events {
	/* borrowed; set by the caller */
	struct facts *facts; /* their table gets the texts */
	const struct trace *trace;
	const struct profile_filter *filter; /* its times */
	struct runtime_gauges gauges;
	VEC(uint8_t) by_schema; /* enum thread_interest */
	struct strtab texts;    /* of payloads */
	VEC(struct observed_process) processes;
	struct map by_process; /* to the position + 1 */
};

/* Ignores other events, and broken ones. 0, or -ENOMEM. */
int observation_events_event(struct observation_events *observations, const struct event *event);

bool observation_events_has(const struct observation_events *observations, uint32_t process);

/* Sets `observed` of the facts' rows. */
void observation_events_mark(const struct observation_events *observations,
	const struct facts *facts);

/* 0, or -ENOMEM. */
int observation_events_gather(const struct observation_events *observations, struct facts *facts);

void observation_events_done(struct observation_events *observations);

#endif
