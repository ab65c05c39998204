/*
 * See clock.h. Invariant once initialized: count >= 2, and both ticks and ns of the pairs strictly
 * grow.
 */
#include "lib/platform/clock.h"

#include "lib/platform/platform.h"

#define TRIES 5

static uint64_t scale_of(const struct clock_pair *from, const struct clock_pair *to)
{
	return (uint64_t)(((unsigned __int128)(to->ns - from->ns) << 32) /
			  (to->ticks - from->ticks));
}

/* The clock, and the counter halfway through reading it. Of several tries the shortest is used. */
static struct clock_pair pair_read(bool counter)
{
	struct clock_pair best = { 0, 0 };
	uint64_t width = UINT64_MAX;

	if (!counter) {
		best.ns = best.ticks = platform_now_ns();
		return best;
	}
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = ticks_read();
		uint64_t ns = platform_now_ns();
		uint64_t after = ticks_read();
		if (after - before < width) {
			width = after - before;
			best.ticks = before + (after - before) / 2;
			best.ns = ns;
		}
	}
	return best;
}

void clock_line_init(struct clock_line *line, bool counter)
{
	*line = (struct clock_line){ .counter = counter };
	line->pairs[0] = pair_read(counter);
	line->count = 1;
	if (!counter) {
		line->count = 2;
		line->pairs[1] = line->pairs[0];
		return;
	}
	/*
	 * The first two pairs are 2 ms apart, so that two reading errors of some 20 ns do not
	 * change the slope.
	 */
	platform_sleep_ns(2000000);
	while (line->count < 2)
		(void)clock_line_advance(line);
}

struct clock_pair clock_line_advance(struct clock_line *line)
{
	struct clock_pair pair = pair_read(line->counter);
	const struct clock_pair *last = &line->pairs[(line->count - 1) % CLOCK_PAIRS];

	if (!line->counter) {
		line->pairs[(line->count - 1) % CLOCK_PAIRS] = pair;
		return pair;
	}
	if (pair.ns <= last->ns + 1000 || pair.ticks <= last->ticks + 1000)
		return *last;
	line->scale = scale_of(last, &pair);
	line->pairs[line->count % CLOCK_PAIRS] = pair;
	/* `count` is only used to find the newest pair. It must not wrap to a value below two. */
	line->count = line->count == UINT32_MAX - CLOCK_PAIRS
			      ? line->count % CLOCK_PAIRS + CLOCK_PAIRS + 1
			      : line->count + 1;
	return pair;
}

uint64_t clock_line_segment(const struct clock_line *line, uint64_t ticks,
	struct clock_segment *ret_segment)
{
	uint32_t known = line->count < CLOCK_PAIRS ? line->count : CLOCK_PAIRS;
	const struct clock_pair *from = NULL;
	const struct clock_pair *to = NULL;

	if (!line->counter) {
		*ret_segment = (struct clock_segment){ .scale = UINT64_C(1) << 32 };
		return UINT64_MAX;
	}
	for (uint32_t i = 2; i <= known; i++) {
		from = &line->pairs[(line->count - i) % CLOCK_PAIRS];
		to = &line->pairs[(line->count - i + 1) % CLOCK_PAIRS];
		if (ticks < from->ticks)
			continue;
		/* The segment of the newest pair has no end. */
		*ret_segment = (struct clock_segment){ from->ticks, from->ns,
			i == 2 ? line->scale : scale_of(from, to) };
		return i == 2 ? UINT64_MAX : to->ticks;
	}
	/* The oldest segment is extended backwards: this stamp gets a segment of its own. */
	uint64_t back =
		(uint64_t)(((unsigned __int128)(from->ticks - ticks) * scale_of(from, to)) >> 32);
	*ret_segment = (struct clock_segment){ ticks, back < from->ns ? from->ns - back : 0, 0 };
	return ticks + 1;
}

uint64_t clock_line_ns_slow(const struct clock_line *line, uint64_t ticks)
{
	struct clock_segment segment;

	(void)clock_line_segment(line, ticks, &segment);
	return clock_segment_ns(&segment, ticks);
}
