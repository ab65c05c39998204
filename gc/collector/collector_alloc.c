/*
 * Memory for objects: pieces that threads fill, and single cells for larger objects.
 *
 * Pieces are cut from the front of one run after the other: free stretches of swept regions, in the
 * order of addresses; then free regions. Larger objects take the first run that fits in regions of
 * their own kind; huge ones take whole regions.
 */
#include <string.h>

#include "gc/collector/collector_heap.h"
#include "gc/collector/collector_regions.h"

/*
 * The cell of a run is a free object with one more word: the offset of the next run in the region.
 */
struct run_cell {
	uint64_t header;
	struct method_table *type;
	uint64_t length;
	uint32_t next;
	uint32_t spare;
};
static_assert(sizeof(struct run_cell) == LARGE_RUN_MIN, "the shortest run holds its own link");

static size_t run_length(const struct run_cell *run)
{
	return run->length + CELL_MIN;
}

void heap_fill(struct heap *h, uint8_t *begin, uint8_t *end)
{
	if (begin == end)
		return;
	struct run_cell *cell = (struct run_cell *)begin;

	cell->header = 0;
	cell->type = h->free_type;
	cell->length = (uint64_t)(end - begin) - CELL_MIN;
}

void heap_free_cell(struct heap *h, uint8_t *begin, uint8_t *end)
{
	size_t at = heap_offset(h, begin);
	struct region *r = heap_region(h, (uint32_t)(at >> REGION_SHIFT));
	size_t length = (size_t)(end - begin), written = sizeof(struct run_cell);
	uint32_t dirty_end =
		(uint32_t)((at & (REGION_SIZE - 1)) + (length < written ? length : written));

	heap_fill(h, begin, end);
	if (r->dirty_end < dirty_end)
		r->dirty_end = dirty_end;
}

void heap_link_run(struct heap *h, uint32_t region, uint8_t *begin, uint8_t *end, uint32_t *link)
{
	struct region *r = heap_region(h, region);
	uint32_t length = (uint32_t)(end - begin);

	heap_free_cell(h, begin, end);
	((struct run_cell *)begin)->next = REGION_SIZE;
	*link = (uint32_t)(heap_offset(h, begin) & (REGION_SIZE - 1));
	if (r->run_largest < length)
		r->run_largest = length;
}

uint32_t *heap_run_next(uint8_t *run)
{
	return &((struct run_cell *)run)->next;
}

void heap_note_begin(struct heap *h, uint8_t *cell)
{
	size_t at = heap_offset(h, cell);
	uint16_t *brick = &h->bricks[at >> BRICK_SHIFT];
	uint16_t value = (uint16_t)(((at & ((1 << BRICK_SHIFT) - 1)) >> MARK_SHIFT) + 1);
	uint16_t known = __atomic_load_n(brick, __ATOMIC_RELAXED);

	/* Two threads may do this at the same time: the cell of either is valid. */
	if (known == 0 || known > value)
		__atomic_store_n(brick, value, __ATOMIC_RELAXED);
}

/*
 * A stretch that was taken from [run begin, ...): the part that must be cleared, after the region's
 * `dirty_end` was advanced.
 */
struct clearing {
	uint8_t *begin;
	size_t length;
};

static struct clearing claim(struct heap *h, uint8_t *begin, uint8_t *end)
{
	size_t at = heap_offset(h, begin);
	struct region *r = heap_region(h, (uint32_t)(at >> REGION_SHIFT));
	uint32_t from = (uint32_t)(at & (REGION_SIZE - 1));
	uint32_t to = from + (uint32_t)(end - begin);
	uint32_t dirty = r->dirty_end < from ? from : r->dirty_end < to ? r->dirty_end : to;

	if (r->dirty_end < to)
		r->dirty_end = to;
	return (struct clearing){ begin, dirty - from };
}

/* Makes the rest of the run for pieces a free cell again. */
void heap_close_run(struct heap *h)
{
	if (h->run.at == h->run.end)
		return;
	heap_free_cell(h, h->run.at, h->run.end);
	heap_note_begin(h, h->run.at);
	h->run = (struct run){ 0 };
}

/* The next run of at least `length` for pieces. */
static enum heap_shortage next_run(struct heap *h, size_t length)
{
	heap_close_run(h);
	for (; h->cursor[REGION_SMALL] < h->region_end; h->cursor[REGION_SMALL]++) {
		uint32_t index = h->cursor[REGION_SMALL];
		struct region *r = heap_region(h, index);

		if (r->kind != REGION_SMALL)
			continue;
		if (!r->is_swept) {
			heap_sweep(h, index);
			h->sums.regions_lazy++;
		}
		while (r->run < REGION_SIZE) {
			struct run_cell *run =
				(struct run_cell *)(heap_region_begin(h, index) + r->run);

			r->run = run->next;
			if (run_length(run) >= length) {
				h->run = (struct run){ (uint8_t *)run,
					(uint8_t *)run + run_length(run) };
				return HEAP_ENOUGH;
			}
		}
	}
	uint32_t taken;
	enum heap_shortage shortage = heap_take_regions(h, 1, REGION_SMALL, &taken);
	if (shortage != HEAP_ENOUGH)
		return shortage;
	uint8_t *begin = heap_region_begin(h, taken);
	h->run = (struct run){ begin, begin + REGION_SIZE };
	return HEAP_ENOUGH;
}

static enum heap_shortage take_piece(struct heap *h, size_t size, struct run *ret,
	struct clearing *ret_clearing)
{
	size_t least = size + PIECE_RESERVE;

	if ((size_t)(h->run.end - h->run.at) < least) {
		enum heap_shortage shortage = next_run(h, least);
		if (shortage != HEAP_ENOUGH)
			return shortage;
	}
	size_t length = least < PIECE_SIZE ? PIECE_SIZE : least;
	size_t left = (size_t)(h->run.end - h->run.at);
	/* A rest that is too short for further use is included. */
	if (left < length + SMALL_RUN_MIN)
		length = left;
	*ret = (struct run){ h->run.at, h->run.at + length };
	h->run.at += length;
	*ret_clearing = claim(h, ret->at, ret->end);
	return HEAP_ENOUGH;
}

/* Takes a cell from a run of a region, if one fits. */
static bool take_from_region(struct heap *h, uint32_t index, size_t size, struct run *ret,
	struct clearing *ret_clearing)
{
	struct region *r = heap_region(h, index);
	uint8_t *begin = heap_region_begin(h, index);
	uint32_t largest = 0;

	if (!r->is_swept) {
		heap_sweep(h, index);
		h->sums.regions_lazy++;
	}
	if (r->run_largest < size)
		return false;
	for (uint32_t *link = &r->run; *link < REGION_SIZE;) {
		struct run_cell *run = (struct run_cell *)(begin + *link);
		size_t length = run_length(run);
		/* The rest becomes a cell again, so it is empty or has room for one. */
		if (length < size || (length > size && length < size + CELL_MIN)) {
			if (largest < length)
				largest = (uint32_t)length;
			link = &run->next;
			continue;
		}
		uint8_t *cell = (uint8_t *)run;
		uint8_t *rest = cell + size;
		uint32_t next = run->next;

		*ret = (struct run){ cell, rest };
		*ret_clearing = claim(h, cell, rest);
		if (length - size >= LARGE_RUN_MIN) {
			heap_link_run(h, index, rest, cell + length, link);
			((struct run_cell *)rest)->next = next;
		} else {
			if (rest < cell + length)
				heap_free_cell(h, rest, cell + length);
			*link = next;
		}
		heap_note_begin(h, cell);
		if (rest < cell + length)
			heap_note_begin(h, rest);
		return true;
	}
	r->run_largest = largest;
	return false;
}

static enum heap_shortage take_cell(struct heap *h, size_t size, enum region_kind kind,
	struct run *ret, struct clearing *ret_clearing)
{
	bool all_full = true;

	for (uint32_t i = h->cursor[kind]; i < h->region_end; i++) {
		if (heap_region(h, i)->kind != kind)
			continue;
		/* The next search begins at the first region with free memory. */
		if (all_full)
			h->cursor[kind] = i;
		if (take_from_region(h, i, size, ret, ret_clearing))
			return HEAP_ENOUGH;
		if (heap_region(h, i)->run_largest >= SMALL_RUN_MIN)
			all_full = false;
	}
	uint32_t taken;
	enum heap_shortage shortage = heap_take_regions(h, 1, kind, &taken);
	if (shortage != HEAP_ENOUGH)
		return shortage;
	struct region *r = heap_region(h, taken);
	uint8_t *begin = heap_region_begin(h, taken);
	heap_link_run(h, taken, begin, begin + REGION_SIZE, &r->run);
	if (h->cursor[kind] > taken)
		h->cursor[kind] = taken;
	bool is_taken = take_from_region(h, taken, size, ret, ret_clearing);
	assert(is_taken);
	(void)is_taken;
	return HEAP_ENOUGH;
}

static enum heap_shortage take_huge(struct heap *h, size_t size, struct run *ret)
{
	uint32_t count = (uint32_t)((size + REGION_SIZE - 1) >> REGION_SHIFT);
	uint32_t first;
	enum heap_shortage shortage =
		size > h->size ? HEAP_RANGE_FULL : heap_take_regions(h, count, REGION_TAIL, &first);

	if (shortage != HEAP_ENOUGH)
		return shortage;
	for (uint32_t i = 0; i < count; i++)
		heap_region(h, first + i)->count = i;
	heap_region(h, first)->kind = REGION_HUGE;
	heap_region(h, first)->count = count;
	*ret = (struct run){ heap_region_begin(h, first), heap_region_begin(h, first) + size };
	return HEAP_ENOUGH;
}

/* Clears the dirty part of a huge object's regions. */
static void clear_huge(struct heap *h, struct run huge, bool dirty_ok)
{
	size_t left = (size_t)(huge.end - huge.at);

	for (uint32_t i = (uint32_t)(heap_offset(h, huge.at) >> REGION_SHIFT); left > 0; i++) {
		struct region *r = heap_region(h, i);
		size_t here = left < REGION_SIZE ? left : REGION_SIZE;
		size_t dirty = r->dirty_end < here ? r->dirty_end : here;

		if (dirty_ok && dirty > CELL_MIN)
			dirty = heap_region_begin(h, i) == huge.at ? CELL_MIN : 0;
		memset(heap_region_begin(h, i), 0, dirty);
		if (r->dirty_end < here)
			r->dirty_end = (uint32_t)here;
		left -= here;
	}
}

void heap_take(struct heap *h, size_t size, enum region_kind kind, bool dirty_ok, struct run *ret,
	enum heap_shortage *ret_shortage)
{
	struct clearing clearing = { 0 };
	enum heap_shortage shortage;

	*ret = (struct run){ 0 };
	pthread_mutex_lock(&h->lock);
	bool has_room = (size_t)(h->run.end - h->run.at) >= size + PIECE_RESERVE;
	if (size >= HUGE_MIN) {
		kind = REGION_HUGE;
		shortage = take_huge(h, size, ret);
	} else if (kind == REGION_SMALL &&
		   (size <= SMALL_MAX || (has_room && size <= PIECE_SIZE - PIECE_RESERVE))) {
		shortage = take_piece(h, size, ret, &clearing);
		/* Other cells will be cut from it, too. */
		dirty_ok = false;
	} else {
		if (kind == REGION_SMALL)
			kind = REGION_MEDIUM;
		shortage = take_cell(h, size, kind, ret, &clearing);
	}
	/* Read without the lock by threads that check whether a collection is due. */
	__atomic_store_n(&h->allocated, h->allocated + (uint64_t)(ret->end - ret->at),
		__ATOMIC_RELAXED);
	pthread_mutex_unlock(&h->lock);

	*ret_shortage = shortage;
	if (shortage != HEAP_ENOUGH)
		return;
	/*
	 * Outside of the lock: the memory belongs to this thread, and no collection reads it before
	 * this thread reaches a safe point.
	 */
	if (kind == REGION_HUGE)
		clear_huge(h, *ret, dirty_ok);
	else
		memset(clearing.begin, 0,
			dirty_ok && clearing.length > CELL_MIN ? CELL_MIN : clearing.length);
}
