/*
 * From the counter that events are stamped with to CLOCK_MONOTONIC, behind the events: at each pass over the rings one pair (counter, clock) is taken, and a
 * stamp between two pairs lies on the line between them. So the error is that of reading a pair (the clock read between two reads of the counter, best of
 * a few tries: some 20 ns), whatever the counter's frequency does over time.
 *
 * With CLOCK_MONOTONIC stamps the line is the identity. Loop thread only, but for clock_is_counter().
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
	uint32_t count; /* of pairs taken */
	struct clock_pair pairs[CLOCK_PAIRS]; /* the newest is (count - 1) % CLOCK_PAIRS */
	uint64_t scale; /* ns per tick between the two newest, 32 bits behind the point */
	uint64_t width_ns; /* how long reading the newest pair took: twice its greatest error */
};

/* One piece of the line: stamps from from_ticks on. */
struct clock_segment {
	uint64_t from_ticks;
	uint64_t from_ns;
	uint64_t scale; /* as above */
};

void clock_line_init(struct clock_line *line, bool counter);

/* Takes a new pair. Two pairs are never less than a microsecond apart: then the one before stays. */
struct clock_pair clock_line_advance(struct clock_line *line);

/* The segment a stamp lies in. Returns the first stamp that lies beyond it; UINT64_MAX: none does. */
uint64_t clock_line_segment(const struct clock_line *line, uint64_t ticks, struct clock_segment *ret_segment);

uint64_t clock_line_ns_slow(const struct clock_line *line, uint64_t ticks);

static inline uint64_t clock_segment_ns(const struct clock_segment *segment, uint64_t ticks)
{
	return segment->from_ns + (uint64_t)(((unsigned __int128)(ticks - segment->from_ticks) * segment->scale) >> 32);
}

static inline uint64_t clock_line_ns(const struct clock_line *line, uint64_t ticks)
{
	if (!line->counter)
		return ticks;

	const struct clock_pair *before = &line->pairs[(line->count - 2) % CLOCK_PAIRS];
	if (__builtin_expect(ticks < before->ticks, 0))
		return clock_line_ns_slow(line, ticks);
	return before->ns + (uint64_t)(((unsigned __int128)(ticks - before->ticks) * line->scale) >> 32);
}

#endif
