/*
 * Marking without a runtime: every layout of types, deep and wide graphs, a stack that overflows.
 */
#include "unit/test.h"

#include "gc/collector/collector_mark.h"
#include "gc/collector/collector_regions.h"
#include "made_types.h"

/* A runtime with one function: the object that keeps the type of an unloadable object alive. */
static struct gc_object *loader;

static struct gc_object *loader_of(struct gc_to_clr *self, struct gc_object *o)
{
	(void)self;
	(void)o;
	return loader;
}

static const struct gc_to_clr_table table = { .GetLoaderAllocatorObjectForGC = loader_of };
static struct gc_to_clr ee = { .table = &table };

struct scene {
	struct heap heap;
	struct marker marker;
	struct run piece;
};

static void open_scene(struct scene *s, size_t stack_limit)
{
	memset(s, 0, sizeof(*s));
	types_make();
	assert_int_equal(heap_open(&s->heap, 1, 0), 0);
	s->heap.free_type = types.free;
	assert_int_equal(marker_open(&s->marker, &s->heap, &ee, COLLECTIBLE, stack_limit), 0);
}

static void close_scene(struct scene *s)
{
	marker_close(&s->marker);
	heap_close(&s->heap);
}

static struct gc_object *make(struct scene *s, struct method_table *type, uint32_t count)
{
	struct gc_object probe = { .type = type, .count = count };
	size_t size = object_size_of(&probe, type);
	enum heap_shortage shortage;
	struct gc_object *o;

	if (size <= SMALL_MAX) {
		if (!s->piece.at || s->piece.at + size + PIECE_RESERVE > s->piece.end) {
			if (s->piece.at)
				heap_fill(&s->heap, s->piece.at, s->piece.end);
			heap_take(&s->heap, size, REGION_SMALL, false, &s->piece, &shortage);
			assert_int_equal(shortage, HEAP_ENOUGH);
			heap_note_begin(&s->heap, s->piece.at);
		}
		o = cell_object(s->piece.at);
		s->piece.at += size;
	} else {
		struct run cell;

		heap_take(&s->heap, size, REGION_LARGE, false, &cell, &shortage);
		assert_int_equal(shortage, HEAP_ENOUGH);
		o = cell_object(cell.at);
	}
	o->type = type;
	if (type != types.pair)
		o->count = count;
	return o;
}

static struct pair *make_pair(struct scene *s, struct gc_object *left, struct gc_object *right)
{
	struct pair *p = (struct pair *)make(s, types.pair, 0);

	p->left = left;
	p->right = right;
	/* A number that looks like an address of the heap. */
	p->number = (uintptr_t)s->heap.base + 4096;
	return p;
}

static void stop(struct scene *s)
{
	if (s->piece.at)
		heap_fill(&s->heap, s->piece.at, s->piece.end);
	s->piece = (struct run){ 0 };
	heap_make_walkable(&s->heap);
	marker_begin(&s->marker);
}

static bool lives(struct scene *s, void *o)
{
	return marker_lives(&s->marker, o);
}

static void every_shape(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, 0);
	struct gc_object *dead = make(&s, types.bytes, 10);
	struct gc_object *bytes = make(&s, types.bytes, 33);
	struct pair *pair = make_pair(&s, bytes, NULL);
	struct gc_object *references = make(&s, types.references, 1000);
	struct gc_object *gaps = make(&s, types.gaps, 50);
	struct gc_object *leaves[1000];

	for (uint32_t i = 0; i < 1000; i++) {
		leaves[i] = make(&s, types.bytes, i % 50);
		references_of(references)[i] = leaves[i];
	}
	references_of(references)[500] = (struct gc_object *)pair;
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t *element = (uint64_t *)((uint8_t *)gaps + 16 + (size_t)i * GAPS_ELEMENT);

		/* number, reference, number, two references: the numbers look like objects. */
		element[0] = element[2] = (uintptr_t)dead;
		element[1] = (uintptr_t)make(&s, types.bytes, 1);
		element[3] = i == 7 ? (uintptr_t)references : 0;
		element[4] = (uintptr_t)make(&s, types.bytes, 2);
	}
	/* Addresses outside of the heap are ignored. */
	static struct {
		uint64_t header;
		struct pair pair;
	} outside;
	outside.pair = (struct pair){ .type = types.pair, .left = dead };
	pair->right = (struct gc_object *)&outside.pair;

	stop(&s);
	marker_root(&s.marker, (struct gc_object *)&outside.pair);
	assert_int_equal(s.marker.sums.objects, 0);
	marker_root(&s.marker, NULL);
	marker_root(&s.marker, gaps);
	marker_root(&s.marker, gaps);
	assert_true(lives(&s, gaps) && lives(&s, references) && lives(&s, pair) &&
		    lives(&s, bytes) && lives(&s, &outside.pair));
	assert_false(lives(&s, dead));
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(lives(&s, leaves[i]), i != 500);
	assert_int_equal(s.marker.sums.objects, 1 + 100 + 1 + 999 + 2);
	marker_end(&s.marker);
	assert_true(s.marker.sums.bytes == s.marker.sums.bytes_of_kind[REGION_SMALL] +
						   s.marker.sums.bytes_of_kind[REGION_LARGE]);
	assert_true(s.marker.sums.bytes_of_kind[REGION_LARGE] == object_size(references));
	close_scene(&s);
}

static void pointers_into_objects(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, 0);
	struct gc_object *first = make(&s, types.bytes, 100);
	struct gc_object *second = make(&s, types.bytes, 100);
	struct pair *third = make_pair(&s, first, NULL);
	stop(&s);
	marker_pointer(&s.marker, (uint8_t *)third + 30);
	assert_true(lives(&s, third) && lives(&s, first) && !lives(&s, second));
	marker_pointer(&s.marker, (uint8_t *)second + 123);
	assert_true(lives(&s, second));
	/* Free memory, the end of the range, and random numbers. */
	uint64_t before = s.marker.sums.objects;
	marker_pointer(&s.marker, (uint8_t *)third + 400);
	marker_pointer(&s.marker, s.heap.base + s.heap.size - 1);
	marker_pointer(&s.marker, s.heap.base);
	marker_pointer(&s.marker, (void *)8);
	assert_true(s.marker.sums.objects == before);
	marker_end(&s.marker);
	close_scene(&s);
}

static void deep_and_wide(void **state)
{
	enum { DEEP = 300000 };
	struct scene s;
	struct gc_object *list = NULL;

	(void)state;
	/* Without a limit, and with a stack that is far too small for the wide array. */
	for (size_t limit = 0; limit <= 65536; limit += 65536) {
		open_scene(&s, limit);
		list = NULL;
		for (int i = 0; i < DEEP; i++)
			list = (struct gc_object *)make_pair(&s, list, NULL);
		struct gc_object *wide = make(&s, types.references, 60000);
		for (uint32_t i = 0; i < 60000; i++)
			references_of(wide)[i] =
				(struct gc_object *)make_pair(&s, make(&s, types.bytes, 0), NULL);
		references_of(wide)[3] = list;
		struct gc_object *dead = make(&s, types.bytes, 0);
		stop(&s);
		marker_root(&s.marker, wide);
		assert_int_equal(s.marker.sums.objects, DEEP + 1 + 2 * 60000 - 2);
		assert_false(lives(&s, dead));
		assert_int_equal(s.marker.sums.overflows > 0, limit > 0);
		marker_end(&s.marker);
		/* The bits are pairs: a sweep finds every object and nothing else. */
		heap_release(&s.heap);
		heap_make_walkable(&s.heap);
		assert_ptr_equal(heap_object_at(&s.heap, list), list);
		assert_null(heap_object_at(&s.heap, dead));
		close_scene(&s);
	}
}

static void what_keeps_a_type(void **state)
{
	static struct made_type unloadable;
	struct scene s;

	(void)state;
	open_scene(&s, 0);
	unloadable.table = (struct method_table){ COLLECTIBLE, CELL_MIN };
	loader = make(&s, types.bytes, 5);
	struct gc_object *plain = make(&s, types.bytes, 6);
	struct gc_object *o = make(&s, &unloadable.table, 0);
	stop(&s);
	marker_root(&s.marker, plain);
	assert_false(lives(&s, loader));
	marker_root(&s.marker, o);
	assert_true(lives(&s, loader));
	marker_end(&s.marker);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shape),
		cmocka_unit_test(pointers_into_objects),
		cmocka_unit_test(deep_and_wide),
		cmocka_unit_test(what_keeps_a_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
