/*
 * The processor's time stamp counter, with which events may be stamped. platform_counter_is_clock()
 * tells whether it can be converted to time.
 */
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
