/*
 * The attributes of spoor's events: the optional ones, and which of them this kernel accepts.
 *
 * A kernel refuses a whole attribute struct for one unknown bit (EINVAL) and does not say which. So
 * the newest options are dropped one by one until the kernel accepts the rest; then each dropped
 * option is tried again alone. An old kernel therefore loses only the options that it does not
 * know.
 */
#ifndef SPOOR_PERF_ATTRIBUTE_H
#define SPOOR_PERF_ATTRIBUTE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The sampling event with all options that the kernel accepts, disabled. `cycles` requests hardware
 * cycles. -ENOENT and the like: this machine has no such event. It is probed on the calling thread
 * for user code, which needs the least rights; -EACCES and -EPERM mean that not even that is
 * allowed.
 */
int attribute_probe(struct perf_event_attr *ret_attr, bool cycles, uint32_t frequency_hz);

/*
 * Whether this error of attribute_probe() means that the event does not exist (rather than that a
 * right is missing).
 */
bool attribute_missing(int error);

/* The event that owns a ring into which other events write; it produces no samples. */
void attribute_anchor(struct perf_event_attr *ret_attr, const struct perf_event_attr *sampling);

/*
 * The period of cpu-clock for a frequency. It is never a multiple of a usual tick (1, 2.5, 10/3, 4,
 * 10 ms): work that runs at each tick would be sampled always or never.
 */
uint64_t attribute_clock_period_ns(uint32_t frequency_hz);

#endif
