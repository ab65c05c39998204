/* Offset of perf events' time from CLOCK_MONOTONIC: the kernel does not confirm use_clockid. */
#ifndef SPOOR_PERF_CLOCK_PROBE_H
#define SPOOR_PERF_CLOCK_PROBE_H

#include <stdint.h>

struct clock_probe {
	int64_t offset_ns; /* perf's time minus CLOCK_MONOTONIC */
	uint64_t error_ns; /* the bound of the offset's error, in both directions */
};

/*
 * Reads the clock before and after each of some records about the calling thread; the closest pair
 * counts. It takes some microseconds and one event: a negative errno if that cannot be opened.
 */
int clock_probe_perf(struct clock_probe *ret_probe);

#endif
