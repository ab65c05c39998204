/* See timeline.h. */
#include "analysis/timeline.h"

#include <stdbool.h>
#include <string.h>

#define WIDTH_MIN_NS  UINT64_C(1000000)
#define DOUBLINGS_MAX 40u /* 200 days an interval */

uint64_t timeline_width_ns(const struct timeline *line)
{
	return WIDTH_MIN_NS << line->doublings;
}

static void double_width(struct timeline *line)
{
	for (uint32_t i = 0; i < TIMELINE_PLACES / 2; i++)
		line->amounts[i] = line->amounts[2 * i] + line->amounts[2 * i + 1];
	memset(&line->amounts[TIMELINE_PLACES / 2], 0, sizeof(line->amounts) / 2);
	line->doublings++;
}

static void make_room(struct timeline *line, uint64_t time_ns)
{
	while (time_ns / WIDTH_MIN_NS >> line->doublings >= TIMELINE_PLACES &&
		line->doublings < DOUBLINGS_MAX)
		double_width(line);
}

void timeline_add(struct timeline *line, uint64_t time_ns, uint64_t amount)
{
	make_room(line, time_ns);
	uint64_t place = time_ns / timeline_width_ns(line);
	line->amounts[place < TIMELINE_PLACES ? place : TIMELINE_PLACES - 1] += amount;
}

/* The part of the amount that falls into the first `done_ns`. */
static uint64_t part_of(uint64_t amount, uint64_t done_ns, uint64_t lasts_ns)
{
	if (done_ns >= lasts_ns)
		return amount;
	double part = (double)amount * ((double)done_ns / (double)lasts_ns) + 0.5;

	return part < (double)amount ? (uint64_t)part : amount;
}

void timeline_spread(struct timeline *line, uint64_t time_ns, uint64_t lasts_ns, uint64_t amount)
{
	uint64_t done_ns = 0;
	uint64_t done = 0;

	make_room(line, lasts_ns < UINT64_MAX - time_ns ? time_ns + lasts_ns : UINT64_MAX);
	const uint64_t width_ns = timeline_width_ns(line);
	do {
		uint64_t at_ns = time_ns + done_ns;
		uint64_t left_ns = width_ns - at_ns % width_ns;
		bool ends =
			at_ns / width_ns >= TIMELINE_PLACES - 1 || lasts_ns - done_ns <= left_ns;
		done_ns = ends ? lasts_ns : done_ns + left_ns;
		uint64_t upto = part_of(amount, done_ns, lasts_ns);
		timeline_add(line, at_ns, upto - done);
		done = upto;
	} while (done_ns < lasts_ns);
}

void timeline_add_time(struct timeline *line, uint64_t time_ns, uint64_t lasts_ns)
{
	timeline_spread(line, time_ns, lasts_ns, lasts_ns);
}

uint32_t timeline_count(const struct timeline *line, uint64_t span_ns)
{
	uint64_t count = span_ns / timeline_width_ns(line) + 1;

	return count < TIMELINE_PLACES ? (uint32_t)count : TIMELINE_PLACES;
}

uint32_t timeline_peak(const struct timeline *line)
{
	uint32_t peak = 0;

	for (uint32_t i = 1; i < TIMELINE_PLACES; i++)
		if (line->amounts[i] > line->amounts[peak])
			peak = i;
	return peak;
}
