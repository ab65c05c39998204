/* See durations.h. */
#include "analysis/durations.h"

static unsigned size_of(uint64_t ns)
{
	unsigned power = ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
	unsigned part =
		power >= 4 ? (unsigned)(ns >> (power - 4)) & (DURATION_SIZES_A_HALF - 1) : 0;

	return power * DURATION_SIZES_A_HALF + part;
}

/* The middle of a size. */
static uint64_t middle_of(unsigned size)
{
	unsigned power = size / DURATION_SIZES_A_HALF;
	double part = (double)(size % DURATION_SIZES_A_HALF) + 0.5;

	return (uint64_t)((double)(UINT64_C(1) << power) *
			  (1 + (power >= 4 ? part / DURATION_SIZES_A_HALF : 0)));
}

void durations_add(struct durations *durations, uint64_t at_ns, uint64_t lasts_ns)
{
	durations->count++;
	durations->total_ns += lasts_ns;
	durations->sizes[size_of(lasts_ns)]++;
	if (lasts_ns < durations->longest_ns)
		return;
	durations->longest_ns = lasts_ns;
	durations->longest_at_ns = at_ns;
}

uint64_t durations_percentile(const struct durations *durations, double share)
{
	uint64_t below = 0;

	for (unsigned i = 0; i < DURATION_SIZES; i++) {
		below += durations->sizes[i];
		if (below && (double)below >= share * (double)durations->count) {
			uint64_t ns = middle_of(i);
			return ns < durations->longest_ns ? ns : durations->longest_ns;
		}
	}
	return 0;
}
