/* Facts from readings of what a process uses: demand for CPUs, memory and descriptors that grow. */
#ifndef SPOOR_DIAGNOSE_PROCESS_GROWTH_H
#define SPOOR_DIAGNOSE_PROCESS_GROWTH_H

#include <stdint.h>

struct process_facts;
struct process_gauges;
struct process_use;

/* `uses` are in the order of their times. Fewer than three give no growth. */
void process_growth_gather(struct process_facts *process, const struct process_use *uses,
	uint32_t count);

/* Afterwards: divides the growth of memory into the collector's and the remainder. */
void process_growth_split(struct process_facts *process, const struct process_gauges *gauges);

#endif
