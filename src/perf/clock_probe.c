/*
 * A thread that sets its name, even to the same one, gets a PERF_RECORD_COMM. The last eight bytes
 * of the record are the time (sample_id_all with TIME alone).
 */
#include "perf/clock_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "perf/kernel_event.h"
#include "perf/ring.h"

#define TRIES 8

/* The time of the COMM record; 0 if there was none. */
static uint64_t read_time(struct ring *ring)
{
	const uint8_t *record;
	uint32_t size;
	uint64_t time_ns = 0;

	(void)ring_begin(ring); /* an empty ring is no failure here */
	while (ring_next(ring, &record, &size)) {
		struct perf_event_header header;
		memcpy(&header, record, sizeof(header));
		if (header.type == PERF_RECORD_COMM && size >= sizeof(header) + sizeof(time_ns))
			memcpy(&time_ns, record + size - sizeof(time_ns), sizeof(time_ns));
	}
	ring_end(ring);
	return time_ns;
}

int clock_probe_perf(struct clock_probe *ret_probe)
{
	struct perf_event_attr attr;
	struct ring ring = { 0 };
	uint8_t scratch[4096];
	char name[16] = "";
	struct clock_probe best = { .error_ns = UINT64_MAX };

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	attr.comm = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.sample_type = PERF_SAMPLE_TIME;
	attr.sample_id_all = 1;
	cleanup(closep) int fd = event_open(&attr, 0, -1);
	if (fd < 0)
		return fd;
	int r = ring_map(&ring, fd, -1, (size_t)sysconf(_SC_PAGESIZE));
	if (r < 0)
		return r;
	/* at most one record wraps at the ring's end, and each is smaller than a page */
	ring.scratch = scratch;
	if (prctl(PR_GET_NAME, name) < 0)
		name[0] = '\0';
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = clock_monotonic_ns();
		(void)prctl(PR_SET_NAME, name); /* the name that it has already */
		uint64_t after = clock_monotonic_ns();
		uint64_t time_ns = read_time(&ring);
		uint64_t error_ns = (after - before + 1) / 2;
		if (!time_ns || error_ns >= best.error_ns)
			continue;
		best.error_ns = error_ns;
		best.offset_ns = (int64_t)(time_ns - (before + (after - before) / 2));
	}
	ring_unmap(&ring);
	if (best.error_ns == UINT64_MAX)
		return -ENODATA;
	*ret_probe = best;
	return 0;
}
