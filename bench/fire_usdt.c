/*
 * The hand-written probe beside libspoor's in bench/run lib: the same event by SystemTap's header,
 * behind its semaphore, in a function that returns (as code that fires events does) or, with the
 * argument "loop", in the loop itself: the first return after a probe costs some 300 ns on the
 * machine of the figures. Waits until a tool has enabled the probe, except with "disabled", and prints "NAME VALUE"
 * lines.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

unsigned short spoor_bench_four_semaphore __attribute__((section(".probes")));

static inline uint64_t bits(double value)
{
	uint64_t result;

	memcpy(&result, &value, sizeof(result));
	return result;
}

static bool in_loop;

#define PROBE(i, text) \
	STAP_PROBE4(spoor_bench, four, (uint32_t)(i), (uint64_t)(i)*3, bits((i)*0.5), (text))

static __attribute__((noinline)) void probe(uint32_t i, const char *text)
{
	PROBE(i, text);
}

static inline void fire(uint32_t i, const char *text)
{
	if (!*(volatile unsigned short *)&spoor_bench_four_semaphore)
		return;
	if (in_loop)
		PROBE(i, text);
	else
		probe(i, text);
}

#define FIRE(i, text) fire((i), (text))
#define FIRE_REST()   (void)0
#include "fire.h"

#include <unistd.h>

int main(int argc, char **argv)
{
	in_loop = argc > 1 && strcmp(argv[1], "loop") == 0;
	if (argc > 1 && strcmp(argv[1], "disabled") == 0) {
		printf("event_ns %.3f\n", fire_disabled());
		return 0;
	}
	while (!*(volatile unsigned short *)&spoor_bench_four_semaphore)
		usleep(1000);
	/* The tool raises the semaphore, then the kernel writes the breakpoint, and the tool its program. */
	sleep(1);
	printf("event_ns %.2f\n", fire_cost());
	return 0;
}
