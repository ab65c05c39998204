/* See platform.h: what a library without sessions needs of macOS (lib/start/start_direct.c). */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/platform/platform.h"

#define SECOND UINT64_C(1000000000)

uint64_t platform_now_ns(void)
{
	struct timespec now;

	/* The clock of EventPipe there; it stands still while the machine sleeps. */
	(void)clock_gettime(CLOCK_UPTIME_RAW, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

void platform_random(uint8_t *bytes, size_t size)
{
	arc4random_buf(bytes, size);
}

bool platform_is_secure(void)
{
	return issetugid() != 0;
}
