/*
 * What happens to the machine's clocks while a recording runs: it was suspended, or somebody set the time of day. CLOCK_MONOTONIC, which
 * everything is stamped with, stands still in the first case and takes no notice of the second; a reader wants to know of both.
 *
 *   clock_watch_begin(&watch, clock_watch_read());
 *   now and then:  switch (clock_watch_look(&watch, clock_watch_read(), &by_ns)) ...
 */
#ifndef SPOOR_PIPELINE_CLOCK_WATCH_H
#define SPOOR_PIPELINE_CLOCK_WATCH_H

#include <stdint.h>

/* Less is taken for the time between reading one clock and the next. */
#define CLOCK_WATCH_STEP_NS INT64_C(20000000)

/* The three clocks as of (nearly) the same moment. */
struct clock_reading {
	int64_t monotonic_ns;
	int64_t boot_ns;         /* goes on while the machine sleeps */
	int64_t real_ns;
};

struct clock_watch {
	struct clock_reading last;
};

enum clock_change {
	CLOCK_STEADY,
	CLOCK_SLEPT,             /* the machine was suspended for by_ns */
	CLOCK_SET,               /* the time of day was set by by_ns, negative: back */
};

struct clock_reading clock_watch_read(void);

void clock_watch_begin(struct clock_watch *watch, struct clock_reading now);

/* What happened since the last look. Both: the sleep now, the rest at the next look. */
enum clock_change clock_watch_look(struct clock_watch *watch, struct clock_reading now, int64_t *ret_by_ns);

#endif
