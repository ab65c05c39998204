/* See attribute.h. */
#include "perf/attribute.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf/kernel_event.h"

#define NS_PER_SECOND 1000000000ull

/* Constants that older headers do not have. */
#define READ_FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, 6.0 */

/* Optional attributes, newest first; the comments give the kernel version that added them. */
enum attribute_wish { WISH_LOST, WISH_BUILD_ID, WISH_COMM_EXEC, WISH_EXCLUDE_IDLE, WISH_COUNT };

static void set_wish(struct perf_event_attr *attr, enum attribute_wish wish, bool on)
{
	switch (wish) {
	case WISH_LOST: /* 6.0 */
		attr->read_format = on ? READ_FORMAT_LOST : 0;
		break;
	case WISH_BUILD_ID: /* 5.12 */
		attr->build_id = on;
		break;
	case WISH_COMM_EXEC: /* 3.16 */
		attr->comm_exec = on;
		break;
	case WISH_EXCLUDE_IDLE: /* some processors' counters refuse it */
		attr->exclude_idle = on;
		break;
	case WISH_COUNT:
		break;
	}
}

static bool refused(int error)
{
	return error == -EINVAL || error == -E2BIG || error == -EOPNOTSUPP;
}

bool attribute_missing(int error)
{
	return refused(error) || error == -ENOENT || error == -ENODEV || error == -ENXIO ||
	       error == -EBUSY;
}

/* Opens and closes an event on the calling thread, for user code only. */
static int try_attribute(const struct perf_event_attr *attr)
{
	struct perf_event_attr own = *attr;

	own.exclude_kernel = 1;
	own.exclude_hv = 1;
	int fd = event_open(&own, 0, -1);
	if (fd < 0)
		return fd;
	(void)close(fd); /* a try only */
	return 0;
}

static uint64_t distance_to_multiple(uint64_t value, uint64_t unit)
{
	uint64_t rest = value % unit;

	return rest < unit - rest ? rest : unit - rest;
}

void attribute_each(const struct perf_event_attr *sampling, uint32_t stack_bytes, bool user_only,
	bool kernel_only, struct perf_event_attr *ret_attr)
{
	memset(ret_attr, 0, sizeof(*ret_attr));
	ret_attr->size = sizeof(*ret_attr);
	ret_attr->sample_period = 1;
	ret_attr->sample_type = sampling->sample_type;
	ret_attr->sample_regs_user = sampling->sample_regs_user;
	ret_attr->sample_stack_user = sampling->sample_stack_user;
	if (ret_attr->sample_stack_user > stack_bytes)
		ret_attr->sample_stack_user = stack_bytes;
	ret_attr->read_format = sampling->read_format;
	ret_attr->sample_id_all = 1;
	ret_attr->use_clockid = 1;
	ret_attr->clockid = sampling->clockid;
	ret_attr->disabled = 1;
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = sampling->wakeup_watermark;
	ret_attr->exclude_callchain_kernel = user_only;
	ret_attr->exclude_callchain_user = kernel_only;
}

void attribute_drop_registers(struct perf_event_attr *attr)
{
	attr->sample_regs_user &= ~(attr->sample_regs_user - 1); /* the lowest bit */
	attr->sample_stack_user = 0;
}

uint64_t attribute_clock_period_ns(uint32_t frequency_hz)
{
	static const uint64_t ticks_ns[] = { 1000000, 2500000, 3333333, 4000000, 10000000 };
	uint64_t period = NS_PER_SECOND / frequency_hz;

	for (size_t i = 0; i < sizeof(ticks_ns) / sizeof(ticks_ns[0]); i++) {
		uint64_t longer = period > ticks_ns[i] ? period : ticks_ns[i];
		uint64_t shorter = period > ticks_ns[i] ? ticks_ns[i] : period;
		/* Equal phases within 0.05 %: they would drift too slowly for many recordings. */
		if (distance_to_multiple(longer, shorter) <= longer / 2000)
			return period + period / 101;
	}
	return period;
}

int attribute_probe(struct perf_event_attr *ret_attr, bool cycles, uint32_t frequency_hz)
{
	struct perf_event_attr attr;
	bool dropped[WISH_COUNT] = { false };

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.sample_type =
		PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN;
	if (cycles) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
		attr.freq = 1;
		attr.sample_freq = frequency_hz;
		attr.sample_type |= PERF_SAMPLE_PERIOD;
	} else {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = attribute_clock_period_ns(frequency_hz);
	}
	attr.disabled = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.sample_id_all = 1;
	attr.watermark = 1;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.comm = 1;
	attr.task = 1;
	for (enum attribute_wish wish = 0; wish < WISH_COUNT; wish++)
		set_wish(&attr, wish, true);

	int r = try_attribute(&attr);
	for (enum attribute_wish wish = 0; refused(r) && wish < WISH_COUNT; wish++) {
		set_wish(&attr, wish, false);
		dropped[wish] = true;
		r = try_attribute(&attr);
	}
	if (r < 0)
		return r;
	for (enum attribute_wish wish = 0; wish < WISH_COUNT; wish++) {
		if (!dropped[wish])
			continue;
		set_wish(&attr, wish, true);
		if (try_attribute(&attr) < 0)
			set_wish(&attr, wish, false);
	}
	*ret_attr = attr;
	return 0;
}

void attribute_copy_stacks(struct perf_event_attr *attr, uint64_t registers, uint32_t size_bytes)
{
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = registers;
	attr->sample_stack_user = size_bytes;
}

void attribute_divide(struct perf_event_attr *sampling, struct perf_event_attr *ret_sideband)
{
	attribute_anchor(ret_sideband, sampling);
	ret_sideband->mmap = sampling->mmap;
	ret_sideband->mmap2 = sampling->mmap2;
	ret_sideband->comm = sampling->comm;
	ret_sideband->comm_exec = sampling->comm_exec;
	ret_sideband->task = sampling->task;
	ret_sideband->context_switch = sampling->context_switch;
	ret_sideband->build_id = sampling->build_id;
	sampling->mmap = sampling->mmap2 = sampling->comm = sampling->comm_exec = 0;
	sampling->task = sampling->context_switch = sampling->build_id = 0;
}

void attribute_anchor(struct perf_event_attr *ret_attr, const struct perf_event_attr *sampling)
{
	memset(ret_attr, 0, sizeof(*ret_attr));
	ret_attr->size = sizeof(*ret_attr);
	ret_attr->type = PERF_TYPE_SOFTWARE;
	ret_attr->config = PERF_COUNT_SW_DUMMY;
	ret_attr->disabled = 1;
	/* it counts nothing; without this bit it would need the right to sample the kernel */
	ret_attr->exclude_kernel = 1;
	/* All events that write into one ring must use the same clock. */
	ret_attr->use_clockid = 1;
	ret_attr->clockid = sampling->clockid;
	ret_attr->sample_type =
		sampling->sample_type & ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	ret_attr->sample_id_all = 1;
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = sampling->wakeup_watermark;
}
