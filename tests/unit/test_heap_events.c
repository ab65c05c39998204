/*
 * Reads a complete snapshot from the fuzz corpus, and reports why other snapshots are incomplete.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "heap/heap_events.h"
#include "trace/heap_graph.h"

#define BASE UINT64_C(0x7f0000001000)

/* {id, size low, size high, payload}..., the input format of tests/fuzz/fuzz_heap_events.c. */
static void take_file(const char *name, struct heap_events *heap)
{
	char path[512];
	uint8_t data[4096];

	snprintf(path, sizeof(path), TEST_DATA "/../fuzz/corpus/heap_events/%s", name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t size = fread(data, 1, sizeof(data), file);
	fclose(file);
	for (size_t at = 0; at + 3 <= size;) {
		size_t payload = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
		assert_true(at + 3 + payload <= size);
		assert_true(heap_events_take(heap, data[at] == 154, data[at], data + at + 3,
				    payload) >= 0);
		/* No prefix of a payload is accepted as complete. */
		struct heap_graph scratch;
		struct heap_events torn = { .graph = &scratch, .begun = true };
		assert_int_equal(heap_graph_init(&scratch), 0);
		for (size_t cut = 0; cut < payload; cut++)
			(void)heap_events_take(&torn, data[at] == 154, data[at], data + at + 3,
				cut);
		heap_graph_done(&scratch);
		at += 3 + payload;
	}
}

static void test_whole(void **state)
{
	struct heap_graph graph;
	struct heap_events heap = { .graph = &graph };
	char room[64];
	uint32_t count;

	(void)state;
	assert_int_equal(heap_graph_init(&graph), 0);
	take_file("whole", &heap);
	assert_string_equal(heap_events_missing(&heap), "");
	assert_int_equal(heap.collection, 7);
	assert_int_equal(heap_graph_resolve(&graph), 0);
	assert_int_equal(graph.object_count, 3);
	assert_int_equal(graph.size_bytes, 72);
	assert_int_equal(graph.nameless_bytes, 0);
	assert_int_equal(graph.dangling_edges, 0);
	uint32_t array = heap_graph_find(&graph, BASE + 48);
	assert_string_equal(heap_graph_type_name(&graph, heap_graph_node_type(&graph, array), room,
				    sizeof(room)),
		"Shop.Order[]");
	assert_string_equal(strtab_get(&graph.strings,
				    graph.types.items[heap_graph_node_type(&graph, array)].module),
		"/app/Shop.dll");
	const uint32_t *edges = heap_graph_edges(&graph, array, &count);
	assert_int_equal(count, 2);
	assert_int_equal(heap_graph_address(&graph, edges[0]), BASE);
	assert_int_equal(heap_graph_address(&graph, edges[1]), BASE + 24);
	(void)heap_graph_edges(&graph, graph.root, &count);
	assert_int_equal(count, 3); /* static vars, local vars, other roots */
	heap_graph_done(&graph);
}

static void expect_missing(const char *file, const char *missing)
{
	struct heap_graph graph;
	struct heap_events heap = { .graph = &graph };

	assert_int_equal(heap_graph_init(&graph), 0);
	take_file(file, &heap);
	assert_string_equal(heap_events_missing(&heap), missing);
	assert_int_equal(heap_graph_resolve(&graph), 0);
	heap_graph_done(&graph);
}

static void test_missing(void **state)
{
	(void)state;
	expect_missing("gap", "blocks of it were lost on the way");
	expect_missing("no_end", "the collection did not come to its end");
}

static void collection(struct heap_events *heap, bool end, uint32_t number, uint32_t depth,
	uint32_t reason)
{
	uint8_t payload[26] = { (uint8_t)number, [4] = (uint8_t)depth, [8] = (uint8_t)reason };

	assert_true(heap_events_take(heap, 0, end ? 2 : 1, payload, end ? 10 : 26) >= 0);
}

/* A block of one object. */
static void block(struct heap_events *heap, uint32_t index)
{
	uint8_t payload[42] = {
		(uint8_t)index, [4] = 1, [10] = (uint8_t)(8 * (index + 1)), [18] = 24, [26] = 5
	};

	assert_true(heap_events_take(heap, 0, 18, payload, sizeof(payload)) >= 0);
}

/* The program also collects garbage; its own collections send no blocks. */
static void test_own_collections(void **state)
{
	struct heap_graph graph;
	struct heap_events heap = { .graph = &graph };

	(void)state;
	assert_int_equal(heap_graph_init(&graph), 0);
	collection(&heap, false, 7, 2, 1);
	collection(&heap, true, 7, 2, 1);
	assert_false(heap.begun);
	collection(&heap, false, 8, 2, 1); /* the event of its end is lost */
	collection(&heap, false, 9, 0, 0);
	assert_false(heap.begun);
	collection(&heap, true, 9, 0, 0);
	collection(&heap, false, 10, 2, 1);
	collection(&heap, false, 11, 2, 1);
	block(&heap, 0);
	collection(&heap, true, 11, 2, 1);
	assert_true(heap.ended);
	assert_int_equal(heap.collection, 11);
	collection(&heap, false, 12, 2, 1);
	block(&heap, 0);
	assert_string_equal(heap_events_missing(&heap), "");
	assert_int_equal(graph.object_count, 1);
	heap_graph_done(&graph);
}

/*
 * The event of the end of the collection is lost. The events of the next collection end the wait
 * and are not used.
 */
static void test_end_lost(void **state)
{
	(void)state;
	for (unsigned end = 0; end < 2; end++) {
		struct heap_graph graph;
		struct heap_events heap = { .graph = &graph };
		assert_int_equal(heap_graph_init(&graph), 0);
		collection(&heap, false, UINT32_MAX & 0xff, 2, 1);
		block(&heap, 0);
		collection(&heap, true, 3, 0, 0); /* an earlier collection */
		assert_false(heap.end_lost);
		collection(&heap, end, 0, 0, 0);
		assert_false(heap.end_lost);
		heap.collection = UINT32_MAX; /* numbers wrap */
		collection(&heap, end, 0, 0, 0);
		assert_true(heap.end_lost);
		block(&heap, 1);
		collection(&heap, true, 255, 2, 1);
		assert_false(heap.ended);
		assert_int_equal(graph.object_count, 1);
		assert_string_equal(heap_events_missing(&heap),
			"the end of the collection was lost on the way");
		heap_graph_done(&graph);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_own_collections),
		cmocka_unit_test(test_end_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
