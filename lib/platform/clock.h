/*
 * Converts the counter with which events are stamped to CLOCK_MONOTONIC. Each pass over the rings
 * takes one pair (counter, clock), and a stamp between two pairs is interpolated linearly. The
 * error is therefore that of reading a pair (the clock is read between two reads of the counter;
 * the shortest of a few tries takes some 20 ns), whatever the frequency of the counter does.
 *
 * With CLOCK_MONOTONIC stamps the conversion returns the stamp. All functions are called on the
 * loop thread. They do not fail.
 */
#ifndef SPOOR_LIB_PLATFORM_CLOCK_H
#define SPOOR_LIB_PLATFORM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_PAIRS 8u

struct clock_pair {
	uint64_t ticks;
	uint64_t ns;
};

struct clock_line {
	bool counter;
	uint32_t count;                       /* number of pairs taken */
	struct clock_pair pairs[CLOCK_PAIRS]; /* the newest is (count - 1) % CLOCK_PAIRS */
	/* ns per tick between the two newest pairs, a fixed-point number with 32 fractional bits */
	uint64_t scale;
};

/* One linear piece of the conversion: stamps from from_ticks on. */
struct clock_segment {
	uint64_t from_ticks;
	uint64_t from_ns;
	uint64_t scale; /* as in struct clock_line */
};

void clock_line_init(struct clock_line *line, bool counter);

/*
 * Takes a new pair and returns the newest. Pairs are at least 1 us apart; if the last one is
 * younger, no pair is taken.
 */
struct clock_pair clock_line_advance(struct clock_line *line);

/*
 * The segment that contains the stamp. Returns the first stamp after the segment; UINT64_MAX: the
 * segment has no end.
 */
uint64_t clock_line_segment(const struct clock_line *line, uint64_t ticks,
	struct clock_segment *ret_segment);

uint64_t clock_line_ns_slow(const struct clock_line *line, uint64_t ticks);

static inline uint64_t clock_segment_ns(const struct clock_segment *segment, uint64_t ticks)
{
	return segment->from_ns +
	       (uint64_t)(((unsigned __int128)(ticks - segment->from_ticks) * segment->scale) >>
			  32);
}

static inline uint64_t clock_line_ns(const struct clock_line *line, uint64_t ticks)
{
	if (!line->counter)
		return ticks;

	const struct clock_pair *before = &line->pairs[(line->count - 2) % CLOCK_PAIRS];
	if (__builtin_expect(ticks < before->ticks, 0))
		return clock_line_ns_slow(line, ticks);
	return before->ns +
	       (uint64_t)(((unsigned __int128)(ticks - before->ticks) * line->scale) >> 32);
}

#endif
