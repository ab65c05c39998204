/*
 * An amount over time, in at most TIMELINE_PLACES intervals of equal length. The intervals double
 * whenever a time lies after the last one, so the length of the recording need not be known.
 */
#ifndef SPOOR_ANALYSIS_TIMELINE_H
#define SPOOR_ANALYSIS_TIMELINE_H

#include <stdint.h>

#define TIMELINE_PLACES 64u

/* All zero is empty. */
struct timeline {
	uint64_t amounts[TIMELINE_PLACES];
	uint8_t doublings;
};

/* Length of an interval. */
uint64_t timeline_width_ns(const struct timeline *line);

void timeline_add(struct timeline *line, uint64_t time_ns, uint64_t amount);

/* An amount that is spread evenly over `lasts_ns`. */
void timeline_spread(struct timeline *line, uint64_t time_ns, uint64_t lasts_ns, uint64_t amount);

/* A time of `lasts_ns`, each part of it in its interval. */
void timeline_add_time(struct timeline *line, uint64_t time_ns, uint64_t lasts_ns);

/* The number of intervals that cover `span_ns`; at most TIMELINE_PLACES. */
uint32_t timeline_count(const struct timeline *line, uint64_t span_ns);

/* The interval with the largest amount; 0 when it is empty. */
uint32_t timeline_peak(const struct timeline *line);

#endif
