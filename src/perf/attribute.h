/*
 * The attributes of our events: what we would like, and what this kernel takes of it.
 *
 * A kernel refuses a whole attribute for one bit it does not know (EINVAL) and does not say which. So the newest wishes are dropped one by
 * one until it is taken, and then each dropped one is tried again alone: an old kernel costs what it lacks, not more.
 */
#ifndef SPOOR_PERF_ATTRIBUTE_H
#define SPOOR_PERF_ATTRIBUTE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* perf_event_open(2): the descriptor or a negative errno. `group` is always none. */
int event_open(const struct perf_event_attr *attr, pid_t pid, int cpu);

/*
 * The sampling event, as much of it as the kernel takes, disabled. `cycles` asks for hardware cycles. -ENOENT and its like: no such event here.
 * Probed on our own thread and user code, which needs the least rights; -EACCES and -EPERM mean not even that is allowed.
 */
int attribute_probe(struct perf_event_attr *ret_attr, bool cycles, uint32_t frequency_hz);

/* Does this error of attribute_probe() mean that there is no such event, rather than no right to it? */
bool attribute_missing(int error);

/* The silent event that owns a ring while others write into it. */
void attribute_anchor(struct perf_event_attr *ret_attr, const struct perf_event_attr *sampling);

/*
 * The period of cpu-clock for a frequency. Not in step with the usual ticks (1, 2.5, 10/3, 4, 10 ms): work that runs at each tick would be seen always or
 * never.
 */
uint64_t attribute_clock_period_ns(uint32_t frequency_hz);

#endif
