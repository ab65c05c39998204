/* The counters that a process offers: its Meters' instruments, and EventCounters that answered. */
#ifndef SPOOR_COUNTERS_COUNTERS_LIST_H
#define SPOOR_COUNTERS_COUNTERS_LIST_H

#include <stdint.h>

struct bytes;
struct counter_instrument;
struct counters;

struct counters_offer {
	const char *process;
	uint32_t pid;
	const char *runtime;
	const struct counters *counters; /* its texts, and the EventCounters */
	const struct counter_instrument *instruments;
	uint32_t instrument_count;
};

void counters_list_text(const struct counters_offer *offer, struct bytes *out);

/* One object: process, pid, runtime, counters: [{provider, name, source, type, unit, ...}]. */
void counters_list_json(const struct counters_offer *offer, struct bytes *out);

#endif
