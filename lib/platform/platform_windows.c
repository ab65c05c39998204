/* See platform.h: what a library without sessions needs of Windows (lib/start/start_direct.c). */
#define RtlGenRandom SystemFunction036
#include <windows.h>

#include <ntsecapi.h>

#include "lib/platform/platform.h"

#define SECOND UINT64_C(1000000000)

uint64_t platform_now_ns(void)
{
	LARGE_INTEGER now, frequency;

	(void)QueryPerformanceCounter(&now);
	(void)QueryPerformanceFrequency(&frequency);
	const uint64_t ticks = (uint64_t)now.QuadPart, a_second = (uint64_t)frequency.QuadPart;
	return ticks / a_second * SECOND + ticks % a_second * SECOND / a_second;
}

void platform_random(uint8_t *bytes, size_t size)
{
	if (RtlGenRandom(bytes, (ULONG)size))
		return;
	uint64_t seed = (uint64_t)GetCurrentProcessId() << 32 ^ platform_now_ns();
	for (size_t i = 0; i < size; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> 56);
	}
}

bool platform_is_secure(void)
{
	return false;
}
