/*
 * Converts marks to free cells, a region at a time, without reading an object.
 *
 * A marked object has two bits, at the first and at the last word of its cell. So, in ascending
 * order, bits come in pairs, and the exclusive-or of all bits up to a place (its parity) tells
 * whether the place is inside of an object. For a whole word of marks, 512 bytes of heap, that
 * takes six shifts:
 *
 *   bits     ..1...1..11..   an object, a gap, an object of ... (first, last, first, last)
 *   parity   ..1111.... 1.   1 from a first bit to just before its last
 *   covered  = parity | bits
 *   begins   = parity & bits
 *
 * Most words of a region are covered completely or not at all, and need no further steps.
 */
#include <string.h>

#include "gc/collector/collector_heap.h"
#include "gc/collector/collector_regions.h"

static uint64_t parity_of(uint64_t bits)
{
	bits ^= bits << 1;
	bits ^= bits << 2;
	bits ^= bits << 4;
	bits ^= bits << 8;
	bits ^= bits << 16;
	bits ^= bits << 32;
	return bits;
}

enum { BRICK_WORDS = (1 << BRICK_SHIFT) >> (MARK_SHIFT + 6), NO_RUN = -1 };

struct sweep {
	struct heap *heap;
	uint8_t *begin;
	uint32_t index;
	uint32_t run_min;
	uint32_t *link;  /* the link of the previous run */
	uint16_t *brick; /* of the region */
};

/* The words [from, to) of the region contain no object. */
static void free_stretch(struct sweep *s, int32_t from, int32_t to)
{
	uint8_t *begin = s->begin + ((size_t)from << MARK_SHIFT),
		*end = s->begin + ((size_t)to << MARK_SHIFT);

	s->heap->sums.free_bytes += (uint64_t)(end - begin);
	if (end - begin < (ptrdiff_t)s->run_min) {
		heap_free_cell(s->heap, begin, end);
	} else {
		heap_link_run(s->heap, s->index, begin, end, s->link);
		s->link = heap_run_next(begin);
		s->heap->sums.runs++;
	}
	uint16_t *brick = &s->brick[(begin - s->begin) >> BRICK_SHIFT];
	uint16_t value =
		(uint16_t)(((begin - s->begin) & ((1 << BRICK_SHIFT) - 1)) / CELL_ALIGN + 1);
	if (*brick == 0 || *brick > value)
		*brick = value;
}

void heap_sweep(struct heap *h, uint32_t index)
{
	struct region *r = heap_region(h, index);
	uint64_t *marks = h->marks + (size_t)index * REGION_MARK_WORDS;
	struct sweep s = {
		.heap = h,
		.begin = heap_region_begin(h, index),
		.index = index,
		.run_min = r->kind == REGION_SMALL || r->kind == REGION_MEDIUM ? SMALL_RUN_MIN
									       : LARGE_RUN_MIN,
		.link = &r->run,
		.brick = h->bricks + (size_t)index * REGION_BRICKS,
	};
	uint64_t inside = 0; /* all ones while an object of the previous word continues */
	int32_t run = NO_RUN;

	r->run = REGION_SIZE;
	r->run_largest = 0;
	memset(s.brick, 0, REGION_BRICKS * sizeof(uint16_t));
	for (int32_t w = 0; w < REGION_MARK_WORDS; w++) {
		uint64_t bits = marks[w];
		uint64_t parity = parity_of(bits) ^ inside;
		uint64_t begins = parity & bits;
		uint64_t gaps = ~(parity | bits);

		if (begins && s.brick[w / BRICK_WORDS] == 0)
			s.brick[w / BRICK_WORDS] =
				(uint16_t)((w % BRICK_WORDS) * 64 + __builtin_ctzll(begins) + 1);
		inside = 0 - (parity >> 63);
		if (gaps == ~(uint64_t)0) {
			if (run == NO_RUN)
				run = w * 64;
			continue;
		}
		/*
		 * Each round ends the open run, if there is one, and opens the next one in this
		 * word.
		 */
		int32_t at = 0;
		for (;;) {
			if (run == NO_RUN) {
				uint64_t rest = gaps >> at;
				if (rest == 0)
					break;
				at += __builtin_ctzll(rest);
				run = w * 64 + at;
			}
			uint64_t objects = ~gaps >> at;
			if (objects == 0)
				break;
			at += __builtin_ctzll(objects);
			free_stretch(&s, run, w * 64 + at);
			run = NO_RUN;
		}
	}
	if (run != NO_RUN)
		free_stretch(&s, run, REGION_MARK_WORDS * 64);
	memset(marks, 0, REGION_MARK_WORDS * sizeof(uint64_t));
	r->is_swept = true;
}

void heap_make_walkable(struct heap *h)
{
	heap_close_run(h);
	for (uint32_t i = 0; i < h->region_end; i++) {
		struct region *r = heap_region(h, i);

		if (r->kind != REGION_FREE && r->kind != REGION_HUGE && r->kind != REGION_TAIL &&
			!r->is_swept) {
			heap_sweep(h, i);
			h->sums.regions_in_pause++;
		}
	}
}
