/*
 * The heap of the reference collector without a runtime: allocating, marking by hand, sweeping,
 * allocating again.
 */
#include "unit/test.h"

#include <errno.h>

#include "gc/collector/collector_regions.h"
#include "made_types.h"

static void open_heap(struct heap *h, size_t size, uint64_t limit)
{
	types_make();
	assert_int_equal(heap_open(h, size, limit), 0);
	h->free_type = types.free;
}

static struct run take(struct heap *h, size_t size, enum region_kind kind)
{
	enum heap_shortage shortage;
	struct run taken;

	heap_take(h, size, kind, false, &taken, &shortage);
	assert_int_equal(shortage, HEAP_ENOUGH);
	for (const uint8_t *at = taken.at; at < taken.end; at++)
		assert_int_equal(*at, 0);
	return taken;
}

static struct gc_object *make_bytes(struct run at, size_t size)
{
	struct gc_object *o = cell_object(at.at);

	o->type = types.bytes;
	o->count = (uint32_t)(size - CELL_MIN);
	memset((uint8_t *)o + 16, 0xEE, size - CELL_MIN);
	return o;
}

/* Sets the mark bits as marking does. */
static void mark(struct heap *h, struct gc_object *o)
{
	size_t at = heap_offset(h, object_cell(o)), size = object_size(o);
	size_t first = at >> MARK_SHIFT, last = (at + size - CELL_ALIGN) >> MARK_SHIFT;

	h->marks[first >> 6] |= (uint64_t)1 << (first & 63);
	h->marks[last >> 6] |= (uint64_t)1 << (last & 63);
	heap_region(h, (uint32_t)(at >> REGION_SHIFT))->live += (uint32_t)size;
}

static void begin(struct heap *h)
{
	heap_make_walkable(h);
	for (uint32_t i = 0; i < h->region_end; i++)
		heap_region(h, i)->live = 0;
}

static void pieces_are_zero_and_used_again(void **state)
{
	struct heap h;
	uint8_t *first = NULL;

	(void)state;
	open_heap(&h, 1, 0);
	assert_int_equal(h.size, (size_t)GROUP_REGIONS << REGION_SHIFT);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 1000; i++) {
			struct run piece = take(&h, 40, REGION_SMALL);

			if (!first)
				first = piece.at;
			if (round > 0)
				assert_true(heap_offset(&h, piece.at) < 9u << REGION_SHIFT);
			assert_true(piece.end - piece.at >= 40 + PIECE_RESERVE);
			heap_note_begin(&h, piece.at);
			make_bytes(piece, (size_t)(piece.end - piece.at));
		}
		begin(&h);
		heap_release(&h);
		/* Nothing was marked: all regions are free, and the lowest is used again. */
		for (uint32_t i = 0; i < h.region_end; i++)
			assert_int_equal(heap_region(&h, i)->kind, REGION_FREE);
	}
	assert_ptr_equal(take(&h, 40, REGION_SMALL).at, first);
	heap_close(&h);
}

/*
 * Cells of random sizes fill regions; some live. The cells of a swept region are consecutive, live
 * ones at their place, the others free.
 */
static void sweeping_leaves_cells_end_to_end(void **state)
{
	enum { MAKE = 40000 };
	static struct gc_object *objects[MAKE];
	static uint8_t lives[MAKE];
	struct heap h;
	uint32_t seed = 1;

	(void)state;
	open_heap(&h, 1, 0);
	for (int round = 0; round < 6; round++) {
		int count = 0;
		uint8_t *at = NULL, *end = NULL;
		int kept = 0;

		/* Live cells of the previous round stay at the front of the list. */
		for (int i = 0; round > 0 && i < MAKE; i++) {
			if (lives[i])
				objects[kept++] = objects[i];
		}
		count = kept;
		while (count < MAKE) {
			seed = seed * 1664525 + 1013904223;
			size_t size = CELL_MIN + (seed >> 24) / 8 * 8;
			if (!at || at + size + PIECE_RESERVE > end) {
				if (at)
					heap_fill(&h, at, end);
				struct run piece = take(&h, size, REGION_SMALL);
				heap_note_begin(&h, piece.at);
				at = piece.at;
				end = piece.end;
			}
			objects[count] = make_bytes((struct run){ at, at + size }, size);
			object_header(objects[count])[0] = 7;
			count++;
			at += size;
		}
		heap_fill(&h, at, end);
		begin(&h);
		for (int i = 0; i < MAKE; i++) {
			seed = seed * 1664525 + 1013904223;
			/* In some rounds nearly all cells live, in others nearly none. */
			lives[i] = (seed >> 24) < (round % 3 == 0          ? 250u
							  : round % 3 == 1 ? 10u
									   : 128u);
			if (lives[i])
				mark(&h, objects[i]);
		}
		heap_release(&h);
		heap_make_walkable(&h);
		int seen = 0;
		uint64_t free_bytes = 0;
		for (uint32_t i = 0; i < h.region_end; i++) {
			uint8_t *cell = heap_region_begin(&h, i), *region_end = cell + REGION_SIZE;

			if (heap_region(&h, i)->kind == REGION_FREE)
				continue;
			while (cell < region_end) {
				struct gc_object *o = cell_object(cell);
				size_t size = object_size(o);

				assert_true(size >= CELL_MIN && cell + size <= region_end);
				if (heap_is_free_cell(&h, o)) {
					free_bytes += size;
					assert_null(heap_object_at(&h, (uint8_t *)o + size / 2));
				} else {
					seen++;
					assert_int_equal(object_header(o)[0], 7);
					assert_int_equal(((uint8_t *)o)[size - CELL_HEADER - 1] ==
									 0xEE ||
								 size == CELL_MIN,
						1);
					assert_ptr_equal(heap_object_at(&h, o), o);
					assert_ptr_equal(
						heap_object_at(&h, (uint8_t *)o + size - 1), o);
				}
				cell += size;
			}
			for (int w = 0; w < REGION_MARK_WORDS; w++)
				assert_int_equal(h.marks[(size_t)i * REGION_MARK_WORDS + (size_t)w],
					0);
		}
		int expected = 0;
		for (int i = 0; i < MAKE; i++)
			expected += lives[i];
		assert_int_equal(seen, expected);
		assert_true(h.sums.free_bytes == free_bytes);
		h.sums = (struct sweep_sums){ 0 };
	}
	heap_close(&h);
}

static void cells_of_other_kinds(void **state)
{
	static struct gc_object *objects[3][200];
	static const enum region_kind kinds[3] = { REGION_SMALL, REGION_LARGE, REGION_PINNED };
	struct heap h;

	(void)state;
	open_heap(&h, 1, 0);
	for (int round = 0; round < 4; round++) {
		for (int k = 0; k < 3; k++) {
			for (int i = 0; i < 200; i++) {
				/*
				 * Small objects above SMALL_MAX become medium ones; pinned objects
				 * may be small.
				 */
				size_t size = (kinds[k] == REGION_LARGE           ? 85000u
						      : kinds[k] == REGION_PINNED ? 24u
										  : 9000u) +
					      (size_t)8 * (unsigned)(i * 7 % 400);
				if (round > 0 && i % 3 != 0)
					continue;
				objects[k][i] = make_bytes(take(&h, size, kinds[k]), size);
			}
		}
		begin(&h);
		for (int k = 0; k < 3; k++) {
			for (int i = 0; i < 200; i++) {
				struct gc_object *o = objects[k][i];
				enum region_kind kind = (enum region_kind)heap_region(&h,
					(uint32_t)(heap_offset(&h, o) >> REGION_SHIFT))
								->kind;

				assert_int_equal(kind, k == 0 ? REGION_MEDIUM : kinds[k]);
				assert_ptr_equal(heap_object_at(&h, (uint8_t *)o + 20), o);
				if (i % 3 != 0)
					mark(&h, o);
			}
		}
		heap_release(&h);
	}
	/* 200 large objects of about 87 KB, a third of them replaced: free memory was reused. */
	assert_true(h.region_end < 3 * 20 + 10);
	heap_close(&h);
}

static void huge_objects(void **state)
{
	struct heap h;

	(void)state;
	open_heap(&h, 1, 0);
	for (int round = 0; round < 10; round++) {
		size_t size = ((size_t)3 << REGION_SHIFT) + (size_t)8 * (unsigned)round;
		struct gc_object *dies = make_bytes(take(&h, size, REGION_LARGE), size);
		struct gc_object *lives = make_bytes(take(&h, size, REGION_LARGE), size);

		begin(&h);
		assert_ptr_equal(heap_object_at(&h, (uint8_t *)dies + size - 16), dies);
		assert_ptr_equal(heap_object_at(&h, (uint8_t *)lives + ((size_t)2 << REGION_SHIFT)),
			lives);
		/* No object is after its end, though the region continues. */
		assert_null(heap_object_at(&h, (uint8_t *)lives + size + 64));
		mark(&h, lives);
		heap_release(&h);
		assert_null(heap_object_at(&h, dies));
		assert_ptr_equal(heap_object_at(&h, lives), lives);
		assert_false(heap_is_marked(&h, lives));
		/* It can be freed, too. */
		begin(&h);
		heap_release(&h);
		assert_null(heap_object_at(&h, lives));
	}
	heap_close(&h);
}

static void a_full_range_and_a_limit(void **state)
{
	enum heap_shortage shortage;
	struct run taken;
	struct heap h;
	uint32_t count = 0;

	(void)state;
	open_heap(&h, 1, 0);
	for (;; count++) {
		heap_take(&h, HUGE_MIN, REGION_LARGE, false, &taken, &shortage);
		if (shortage != HEAP_ENOUGH)
			break;
		make_bytes(taken, HUGE_MIN);
	}
	assert_int_equal(shortage, HEAP_RANGE_FULL);
	assert_int_equal(count, GROUP_REGIONS);
	assert_null(taken.at);
	heap_take(&h, 40, REGION_SMALL, false, &taken, &shortage);
	assert_int_equal(shortage, HEAP_RANGE_FULL);
	heap_take(&h, h.size * 2, REGION_LARGE, false, &taken, &shortage);
	assert_int_equal(shortage, HEAP_RANGE_FULL);
	begin(&h);
	heap_release(&h);
	heap_trim(&h, 0);
	assert_true(h.committed == 0);
	take(&h, 40, REGION_SMALL);
	heap_close(&h);

	open_heap(&h, 1, (uint64_t)10 << REGION_SHIFT);
	for (count = 0;; count++) {
		heap_take(&h, HUGE_MIN, REGION_LARGE, false, &taken, &shortage);
		if (shortage != HEAP_ENOUGH)
			break;
		make_bytes(taken, HUGE_MIN);
	}
	assert_int_equal(shortage, HEAP_LIMIT_REACHED);
	assert_int_equal(count, 10);
	/* Free regions are returned to the system, so that consecutive ones fit under the limit. */
	begin(&h);
	heap_release(&h);
	take(&h, (size_t)10 << REGION_SHIFT, REGION_LARGE);
	assert_true(h.committed == (uint64_t)10 << REGION_SHIFT);
	assert_false(heap_commit_ahead(&h, 1));
	heap_close(&h);
	assert_int_equal(heap_open(&h, (size_t)1 << 60, 0), -ENOMEM);
}

static void what_nobody_clears(void **state)
{
	enum heap_shortage shortage;
	struct run taken;
	struct heap h;

	(void)state;
	open_heap(&h, 1, 0);
	for (int round = 0; round < 3; round++) {
		for (size_t size = 100; size < 4000000; size = size * 3 / 8 * 8) {
			heap_take(&h, size / 8 * 8, REGION_SMALL, true, &taken, &shortage);
			assert_int_equal(shortage, HEAP_ENOUGH);
			/*
			 * A piece is zeroed nevertheless, and so are the words of a cell that the
			 * runtime reads.
			 */
			size_t zeros =
				size <= SMALL_MAX ? (size_t)(taken.end - taken.at) : CELL_MIN;
			for (size_t i = 0; i < zeros; i++)
				assert_int_equal(taken.at[i], 0);
			heap_note_begin(&h, taken.at);
			make_bytes(taken, (size_t)(taken.end - taken.at));
		}
		begin(&h);
		heap_release(&h);
	}
	heap_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_zero_and_used_again),
		cmocka_unit_test(sweeping_leaves_cells_end_to_end),
		cmocka_unit_test(cells_of_other_kinds),
		cmocka_unit_test(huge_objects),
		cmocka_unit_test(a_full_range_and_a_limit),
		cmocka_unit_test(what_nobody_clears),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
