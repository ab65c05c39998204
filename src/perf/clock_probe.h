/*
 * Measures the offset between the time of perf events and CLOCK_MONOTONIC. Events are opened with
 * that clock (use_clockid), but the kernel does not confirm it.
 */
#ifndef SPOOR_PERF_CLOCK_PROBE_H
#define SPOOR_PERF_CLOCK_PROBE_H

#include <stdint.h>

struct clock_probe {
	int64_t offset_ns; /* perf's time minus CLOCK_MONOTONIC */
	uint64_t error_ns; /* the bound of the offset's error, in both directions */
};

/*
 * Lets the kernel write records about the calling thread, and reads CLOCK_MONOTONIC before and
 * after each. The closest pair of readings counts. It takes some microseconds and one event.
 * Returns a negative errno if the event cannot be opened.
 */
int clock_probe_perf(struct clock_probe *ret_probe);

#endif
