/* See timeline.h. */
#include "analysis/timeline.h"

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

void timeline_add(struct timeline *line, uint64_t time_ns, uint64_t amount)
{
	uint64_t place = time_ns / WIDTH_MIN_NS;

	while (place >> line->doublings >= TIMELINE_PLACES && line->doublings < DOUBLINGS_MAX)
		double_width(line);
	place >>= line->doublings;
	line->amounts[place < TIMELINE_PLACES ? place : TIMELINE_PLACES - 1] += amount;
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
