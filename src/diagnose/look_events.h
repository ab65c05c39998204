/*
 * What `spoor diagnose` observed of running processes beside the samples, read from the events of its
 * recording (trace/spoor_events.def): readings of /proc (ProcessUse), stacks of all threads at some
 * moments (StackLook, LookStack, LookThread), and the levels that runtimes report.
 *
 *   struct look_events looks = { .facts = &facts, .trace = &trace, .filter = &filter };
 *   look_events_event(&looks, event)                for each event, in file order
 *   look_events_has(&looks, process)                whether it was observed
 *   look_events_mark(&looks, &facts), look_events_gather(&looks, &facts)    facts_gather.h calls them
 *   look_events_done(&looks)
 *
 * Other recordings have no such events, and give no facts.
 */
#ifndef SPOOR_DIAGNOSE_LOOK_EVENTS_H
#define SPOOR_DIAGNOSE_LOOK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/runtime_gauges.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "diagnose/stack_looks.h"
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
	struct stack_looks looks;
	uint64_t look; /* number of the current one */
	VEC(struct look_frame) frames;
	VEC(struct observed_stack) stacks;
	struct map by_number; /* to the position in `stacks` + 1 */
};

struct look_events {
	/* borrowed; set by the caller */
	struct facts *facts; /* their table gets the texts */
	const struct trace *trace;
	const struct profile_filter *filter; /* its times */
	struct runtime_gauges gauges;
	VEC(uint8_t) by_schema; /* enum look_interest */
	struct strtab texts;    /* of payloads */
	VEC(struct observed_process) processes;
	struct map by_process; /* to the position + 1 */
};

/* Ignores other events, and broken ones. 0, or -ENOMEM. */
int look_events_event(struct look_events *looks, const struct event *event);

bool look_events_has(const struct look_events *looks, uint32_t process);

/* Sets `observed` of the facts' rows. */
void look_events_mark(const struct look_events *looks, const struct facts *facts);

/* 0, or -ENOMEM. */
int look_events_gather(const struct look_events *looks, struct facts *facts);

void look_events_done(struct look_events *looks);

#endif
