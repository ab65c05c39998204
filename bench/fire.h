/*
 * The timing of both firing programs (fire.c, fire_lttng.c). The time stamp counter measures the
 * cost of a batch of events; the result is the median of many batches, so that batches that were
 * interrupted or had to wait do not count. Each program defines FIRE(i, text) and FIRE_REST().
 */
#ifndef SPOOR_BENCH_FIRE_H
#define SPOOR_BENCH_FIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <x86intrin.h>

#define BATCH  1000u
#define BURST  8u
#define ROUNDS 250u

static const char *volatile fire_texts[4] = { "abcdefghijklmn", "bbcdefghijklmn", "cbcdefghijklmn",
	"dbcdefghijklmn" };

static inline uint64_t fire_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline double fire_ns_per_tick(void)
{
	static double ns;

	if (ns == 0) {
		uint64_t t = __rdtsc();
		uint64_t from = fire_now_ns();
		while (fire_now_ns() - from < 20000000)
			;
		ns = (double)(fire_now_ns() - from) / (double)(__rdtsc() - t);
	}
	return ns;
}

static inline int fire_compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double fire_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), fire_compare);
	return values[count / 2];
}

#ifdef FIRE
/* Cost of an event in ns. FIRE_REST() pauses between bursts of batches, so that no buffer fills. */
static double fire_cost(void)
{
	static __thread double costs[BURST * ROUNDS];
	size_t count = 0;
	uint32_t n = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned b = 0; b < BURST; b++) {
			uint64_t before = __rdtsc();
			for (unsigned i = 0; i < BATCH; i++, n++)
				FIRE(n, fire_texts[n & 3]);
			costs[count++] = (double)(__rdtsc() - before) / BATCH;
		}
		FIRE_REST();
	}
	return fire_median(costs, count) * fire_ns_per_tick();
}

/*
 * Cost of a disabled event: the time of a loop with it, minus the time of the empty loop. The
 * alignment of a loop of one cycle changes its time by a cycle, so the result is the median over
 * sixteen alignments.
 */
#define FIRE_SITE(n)                                                        \
	static __attribute__((noinline)) double fire_site_##n(bool with)    \
	{                                                                   \
		double best = 1e9;                                          \
		for (int r = 0; r < 30; r++) {                              \
			uint64_t before = __rdtsc();                        \
			if (with) {                                         \
				__asm__ volatile(".skip " #n ", 0x90");     \
				for (uint32_t i = 0; i < 20000; i++) {      \
					__asm__ volatile("" : "+r"(i));     \
					FIRE(i, fire_texts[0]);             \
				}                                           \
			} else {                                            \
				__asm__ volatile(".skip " #n ", 0x90");     \
				for (uint32_t i = 0; i < 20000; i++)        \
					__asm__ volatile("" : "+r"(i));     \
			}                                                   \
			double cost = (double)(__rdtsc() - before) / 20000; \
			if (cost < best)                                    \
				best = cost;                                \
		}                                                           \
		return best;                                                \
	}

/* clang-format off */
FIRE_SITE(0) FIRE_SITE(3) FIRE_SITE(5) FIRE_SITE(8)
FIRE_SITE(11) FIRE_SITE(14) FIRE_SITE(17) FIRE_SITE(21)
FIRE_SITE(24) FIRE_SITE(27) FIRE_SITE(32) FIRE_SITE(36)
FIRE_SITE(41) FIRE_SITE(45) FIRE_SITE(50) FIRE_SITE(57)
	/* clang-format on */

	static double fire_disabled(void)
{
	static double (*const sites[])(bool) = { fire_site_0, fire_site_3, fire_site_5, fire_site_8,
		fire_site_11, fire_site_14, fire_site_17, fire_site_21, fire_site_24, fire_site_27,
		fire_site_32, fire_site_36, fire_site_41, fire_site_45, fire_site_50,
		fire_site_57 };
	double costs[16];

	for (int i = 0; i < 16; i++)
		costs[i] = sites[i](true) - sites[i](false);
	return fire_median(costs, 16) * fire_ns_per_tick();
}
#endif

#endif
