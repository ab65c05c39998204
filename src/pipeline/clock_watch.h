/*
 * Detects changes of the machine's clocks during a recording: the machine was suspended, or the
 * time of day was set. Events are stamped with CLOCK_MONOTONIC, which stops during a suspend and
 * ignores the time of day; so the recording reports both.
 *
 *   clock_watch_begin(&watch, clock_watch_read());
 *   regularly:  switch (clock_watch_look(&watch, clock_watch_read(), &by_ns)) ...
 */
#ifndef SPOOR_PIPELINE_CLOCK_WATCH_H
#define SPOOR_PIPELINE_CLOCK_WATCH_H

#include <stdint.h>

/* A smaller change is attributed to the delay between reading two clocks. */
#define CLOCK_WATCH_STEP_NS INT64_C(20000000)

/* The three clocks at nearly the same time. */
struct clock_reading {
	int64_t monotonic_ns;
	int64_t boot_ns; /* continues while the machine is suspended */
	int64_t real_ns;
};

struct clock_watch {
	struct clock_reading last;
};

enum clock_change {
	CLOCK_STEADY,
	CLOCK_SLEPT, /* the machine was suspended for by_ns */
	CLOCK_SET,   /* the time of day was set by by_ns; negative: back */
};

struct clock_reading clock_watch_read(void);

void clock_watch_begin(struct clock_watch *watch, struct clock_reading now);

/* The change since the last call. If both happened, the suspend; the next call has the rest. */
enum clock_change clock_watch_look(struct clock_watch *watch, struct clock_reading now,
	int64_t *ret_by_ns);

#endif
