/* See clock_watch.h. */
#include "pipeline/clock_watch.h"

#include <time.h>

#include "base/clocks.h"

#define TRIES 3

static int64_t read_clock(clockid_t id)
{
	return (int64_t)clock_ns(id);
}

struct clock_reading clock_watch_read(void)
{
	struct clock_reading best = { 0 };
	int64_t least = INT64_MAX;

	/* Another thread may run between two readings; the set with the shortest delay is used. */
	for (int i = 0; i < TRIES; i++) {
		struct clock_reading reading;
		reading.monotonic_ns = read_clock(CLOCK_MONOTONIC);
		reading.boot_ns = read_clock(CLOCK_BOOTTIME);
		reading.real_ns = read_clock(CLOCK_REALTIME);
		int64_t took = read_clock(CLOCK_MONOTONIC) - reading.monotonic_ns;
		if (took < least) {
			least = took;
			best = reading;
		}
	}
	return best;
}

void clock_watch_begin(struct clock_watch *watch, struct clock_reading now)
{
	watch->last = now;
}

enum clock_change clock_watch_look(struct clock_watch *watch, struct clock_reading now,
	int64_t *ret_by_ns)
{
	int64_t slept =
		(now.boot_ns - now.monotonic_ns) - (watch->last.boot_ns - watch->last.monotonic_ns);
	int64_t set = (now.real_ns - now.boot_ns) - (watch->last.real_ns - watch->last.boot_ns);

	if (slept >= CLOCK_WATCH_STEP_NS) {
		/* The time of day advances with boot time; a further change is left for later. */
		watch->last.boot_ns += slept;
		watch->last.real_ns += slept;
		*ret_by_ns = slept;
		return CLOCK_SLEPT;
	}
	watch->last = now;
	if (set >= CLOCK_WATCH_STEP_NS || set <= -CLOCK_WATCH_STEP_NS) {
		*ret_by_ns = set;
		return CLOCK_SET;
	}
	return CLOCK_STEADY;
}
