/*
 * The levels that .NET runtimes report by EventCounters of System.Runtime, as a recording with that
 * provider has them: the memory that the collector holds, the queue of the thread pool.
 *
 *   struct runtime_gauges gauges = { .trace = &trace };
 *   saved_read(path, &trace, runtime_gauges_event, &gauges, &diag)
 *   ... gauges.processes ...
 *   runtime_gauges_done(&gauges)
 */
#ifndef SPOOR_ANALYSIS_RUNTIME_GAUGES_H
#define SPOOR_ANALYSIS_RUNTIME_GAUGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct event;
struct schema;
struct trace;

enum gauge {
	GAUGE_COMMITTED, /* megabytes that the collector held after its last collection */
	GAUGE_HEAP,      /* megabytes of objects, with those allocated since */
	GAUGE_QUEUE,     /* work items that wait for a thread of the pool */
	GAUGE_COUNT
};

struct runtime_gauge {
	uint32_t count; /* values; 0: the others are not known */
	double first;
	double last;
	double most;
};

struct process_gauges {
	uint32_t process;
	struct runtime_gauge gauges[GAUGE_COUNT];
};

struct runtime_gauges {
	const struct trace *trace;
	VEC(struct process_gauges) processes;
};

/* Whether events of this schema have levels. */
bool runtime_gauges_takes(const struct trace *trace, const struct schema *schema);

/* `context` is the runtime_gauges. Other events are ignored, and broken ones. 0, or -ENOMEM. */
int runtime_gauges_event(void *context, const struct event *event);

void runtime_gauges_done(struct runtime_gauges *gauges);

#endif
