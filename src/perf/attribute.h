/*
 * The attributes of spoor's events: the optional ones, and which of them this kernel accepts.
 *
 * A kernel refuses all attributes for one unknown bit (EINVAL) and does not say which. So the
 * newest options are dropped one by one until it accepts the rest; then each dropped option is
 * tried again alone.
 */
#ifndef SPOOR_PERF_ATTRIBUTE_H
#define SPOOR_PERF_ATTRIBUTE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The sampling event, disabled, with all options that the kernel accepts. `cycles` requests
 * hardware cycles; -ENOENT and the like: the machine has none. Probed on the calling thread for
 * user code; -EACCES and -EPERM mean that not even that is allowed.
 */
int attribute_probe(struct perf_event_attr *ret_attr, bool cycles, uint32_t frequency_hz);

/* Whether attribute_probe() failed as the event does not exist, not as a right is missing. */
bool attribute_missing(int error);

/* Adds user registers and a stack copy to samples. `size_bytes`: a multiple of 8 below 64 KiB. */
void attribute_copy_stacks(struct perf_event_attr *attr, uint64_t registers, uint32_t size_bytes);

/*
 * Divides the sampling event: *ret_sideband produces its records about processes, and no samples; `sampling`
 * keeps the samples.
 */
void attribute_divide(struct perf_event_attr *sampling, struct perf_event_attr *ret_sideband);

/* The event that owns a ring into which other events write; it produces no samples. */
void attribute_anchor(struct perf_event_attr *ret_attr, const struct perf_event_attr *sampling);

/*
 * An event beside the sampling event, disabled: a sample with the same fields each time that it
 * happens, and with at most `stack_bytes` of a stack copy. `user_only`, `kernel_only`: of the call
 * chain. The caller sets type and config.
 */
void attribute_each(const struct perf_event_attr *sampling, uint32_t stack_bytes, bool user_only,
	bool kernel_only, struct perf_event_attr *ret_attr);

/*
 * If the samples of its ring have user registers, those of this event have only one, as the kernel refuses none,
 * and no stack copy; perf_record_decode() knows such samples.
 */
void attribute_drop_registers(struct perf_event_attr *attr);

/*
 * The period of cpu-clock. It is never a multiple of a usual tick (1, 2.5, 10/3, 4, 10 ms): work
 * that runs at each tick would be sampled always or never.
 */
uint64_t attribute_clock_period_ns(uint32_t frequency_hz);

#endif
