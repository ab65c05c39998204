/*
 * The distribution of durations: sixteen sizes for each power of two, so percentiles are within 3 %.
 * All zero is empty.
 */
#ifndef SPOOR_ANALYSIS_DURATIONS_H
#define SPOOR_ANALYSIS_DURATIONS_H

#include <stdint.h>

#define DURATION_SIZES_A_HALF 16u
#define DURATION_SIZES        (64u * DURATION_SIZES_A_HALF)

struct durations {
	uint64_t count;
	uint64_t total_ns;
	uint64_t longest_ns;
	uint64_t longest_at_ns; /* its begin, since the recording's begin */
	uint32_t sizes[DURATION_SIZES];
};

void durations_add(struct durations *durations, uint64_t at_ns, uint64_t lasts_ns);

/* The duration that this share of them does not exceed. */
uint64_t durations_percentile(const struct durations *durations, double share);

#endif
