/*
 * How far the kernel's perf events are from CLOCK_MONOTONIC, measured: they were asked for that clock (use_clockid), which is no proof.
 */
#ifndef SPOOR_PERF_CLOCK_PROBE_H
#define SPOOR_PERF_CLOCK_PROBE_H

#include <stdint.h>

struct clock_probe {
	int64_t offset_ns;   /* perf's time minus CLOCK_MONOTONIC */
	uint64_t error_ns;   /* the offset is known to within this, either way */
};

/*
 * Makes the kernel write a record about our own thread, reading CLOCK_MONOTONIC before and after, several times; the closest pair counts. Costs a
 * few microseconds and an event for that long. A negative errno where the event cannot be opened.
 */
int clock_probe_perf(struct clock_probe *ret_probe);

#endif
