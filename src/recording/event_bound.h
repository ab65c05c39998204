/*
 * Bounds what a flood of events adds to the file.
 *
 *   event_bound_keeps(&bound, process, &event)   for each event of a bounded kind, in time order: true: write it
 *   event_bound_count(&bound, process, &event)   for each that is not written
 *   event_bound_write(&bound, each, context)     at each flush: the counts since the last one
 *   event_bound_done(&bound)
 *
 * Of one process at most `rate` events of one kind are written in a second: every n-th, where n
 * follows from the second before, so that they are spread over a steady flood. The others are counted
 * by type and stack, so that written plus counted is exact. Bounded kinds are events that mean
 * something one by one: exceptions. All zero bounds nothing.
 */
#ifndef SPOOR_RECORDING_EVENT_BOUND_H
#define SPOOR_RECORDING_EVENT_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

struct event;
struct schema;

/* How often events of one kind come from one process. */
struct event_flow {
	uint64_t interval_ns; /* begin of the present interval */
	uint32_t process;
	uint32_t schema_index;
	uint32_t seen; /* in the present interval */
	uint32_t kept;
	uint32_t stride; /* every so many are written */
};

/* Events that were not written. */
struct event_bound_row {
	uint32_t process;
	uint32_t schema_index;
	uint32_t type; /* in `types`; 0: of too many types */
	uint32_t stack_index;
	uint64_t count;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct event_bound {
	uint32_t rate; /* events of a kind a second and process; 0: no bound */
	VEC(struct event_flow) flows;
	struct map flow_index;
	VEC(struct event_bound_row) rows;
	struct map row_index;
	struct strtab types;
	struct bytes text; /* scratch */
	uint64_t counted;  /* in all */
};

bool event_bound_applies(const struct event_bound *bound, const struct schema *schema);

bool event_bound_keeps(struct event_bound *bound, uint32_t process, const struct event *event);

/* Without memory an event is counted without its type and stack. -ENOMEM: not even so. */
int event_bound_count(struct event_bound *bound, uint32_t process, const struct event *event);

/* `type` is "" for the rest of too many types. Empties the rows. */
void event_bound_write(struct event_bound *bound,
	void (*each)(void *context, const struct event_bound_row *row, const char *type),
	void *context);

void event_bound_done(struct event_bound *bound);

#endif
