/* See clocks.h. */
#include "base/clocks.h"

#include <limits.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now); /* fails only for a clock that the kernel does not have */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_utc_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

static uint64_t left_ns(uint64_t deadline_ns, uint64_t now_ns)
{
	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

struct timespec clock_left(uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t ns = left_ns(deadline_ns, now_ns);

	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S) };
}

int clock_left_ms(uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t ns = left_ns(deadline_ns, now_ns);
	uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);

	if (deadline_ns == UINT64_MAX)
		return -1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}
