/* The counter that events may be stamped with: the processor's time stamp counter. platform_counter_is_clock() says whether it can be turned into time. */
#ifndef SPOOR_LIB_PLATFORM_TICKS_H
#define SPOOR_LIB_PLATFORM_TICKS_H

#include <stdint.h>

static inline uint64_t ticks_read(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	return 0;
#endif
}

#endif
