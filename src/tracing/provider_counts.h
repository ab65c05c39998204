/*
 * The number of events of each chosen provider, in the order of a struct provider_list. All zero is
 * empty. Without memory events are not counted.
 */
#ifndef SPOOR_TRACING_PROVIDER_COUNTS_H
#define SPOOR_TRACING_PROVIDER_COUNTS_H

#include <stdint.h>

#include "base/vec.h"

struct event;
struct provider_list;
struct trace;

struct provider_counts {
	const struct provider_list *providers; /* borrowed */
	VEC(uint64_t) events;                  /* as `providers` */
	uint64_t rundown_events; /* of the runtimes' rundown provider, if not chosen */
	/* index + 1 in `providers`; 0: not looked up, UINT32_MAX: of no chosen one */
	VEC(uint32_t) provider_of_schema;
};

/* The list is complete by now. */
void provider_counts_begin(struct provider_counts *counts, const struct provider_list *providers);

void provider_counts_add(struct provider_counts *counts, const struct trace *trace,
	const struct event *event);

void provider_counts_done(struct provider_counts *counts);

#endif
