/*
 * Fixed and random heaps: the address of a node number, roots as nodes, and retained sizes compared
 * with their definition.
 */
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "heap/heap_retained.h"
#include "trace/heap_graph.h"

#define BASE UINT64_C(0x7f0000000000)

static uint64_t object(uint32_t i)
{
	return BASE + (uint64_t)i * 24;
}

static void add(struct heap_graph *graph, uint32_t i, uint64_t size, uint64_t edges)
{
	assert_int_equal(heap_graph_add_node(graph, object(i), size,
				 heap_graph_type(graph, 0x1000 + i % 3), edges),
		0);
}

static void test_roots_and_sizes(void **state)
{
	struct heap_graph graph;
	char room[64];
	uint32_t count;

	(void)state;
	assert_int_equal(heap_graph_init(&graph), 0);
	add(&graph, 1, 24, 2);
	add(&graph, 2, UINT64_C(5) << 32, 0);
	add(&graph, 3, 100, 1);
	assert_int_equal(heap_graph_add_edge(&graph, object(2)), 0);
	assert_int_equal(heap_graph_add_edge(&graph, object(9)), 0); /* no object */
	assert_int_equal(heap_graph_add_edge(&graph, object(1)), 0);
	const struct heap_root roots[] = {
		{ .object = object(1),
			.is_static = true,
			.name = strtab_add_z(&graph.strings, "Shop.All") },
		{ .object = object(3),
			.is_static = true,
			.name = strtab_add_z(&graph.strings, "Shop.All") },
		{ .object = object(3), .kind = HEAP_ROOT_HANDLE, .flags = HEAP_ROOT_PINNING },
		{ .object = object(2), .kind = HEAP_ROOT_HANDLE, .flags = HEAP_ROOT_WEAK },
		{ .object = object(2), .key = object(7), .dependent = true },
		{ .object = object(7), .kind = HEAP_ROOT_STACK },
	};
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		assert_int_equal(heap_graph_add_root(&graph, &roots[i]), 0);
	assert_int_equal(heap_graph_add_module(&graph, 0, "/app/Shop.dll", 13), 0);
	assert_int_equal(heap_graph_resolve(&graph), 0);
	assert_int_equal(graph.object_count, 3);
	assert_int_equal(graph.dangling_edges, 1);
	assert_int_equal(heap_graph_size(&graph, 2), UINT64_C(5) << 32);
	assert_int_equal(graph.size_bytes, (UINT64_C(5) << 32) + 124);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(heap_graph_address(&graph, i), object(i));
		assert_int_equal(heap_graph_find(&graph, object(i)), i);
		assert_int_equal(heap_graph_find(&graph, object(i) + 8), 0);
	}
	const uint32_t *edges = heap_graph_edges(&graph, 1, &count);
	assert_int_equal(count, 2);
	assert_int_equal(edges[0], 2);
	assert_int_equal(edges[1], 0);
	/*
	 * [.NET Roots] -> [static vars] -> Shop.All -> 1, 3; -> [other roots] -> [pinning Handles]
	 * -> 3
	 */
	edges = heap_graph_edges(&graph, graph.root, &count);
	assert_int_equal(count, 2);
	assert_string_equal(heap_graph_type_name(&graph, heap_graph_node_type(&graph, edges[0]),
				    room, sizeof(room)),
		"[static vars]");
	assert_string_equal(heap_graph_type_name(&graph, heap_graph_node_type(&graph, edges[1]),
				    room, sizeof(room)),
		"[other roots]");
	edges = heap_graph_edges(&graph, edges[0], &count);
	assert_int_equal(count, 1);
	edges = heap_graph_edges(&graph, edges[0], &count);
	assert_int_equal(count, 2);
	assert_int_equal(edges[0], 1);
	assert_int_equal(edges[1], 3);
	assert_string_equal(heap_graph_type_name(&graph, 1, room, sizeof(room)), "UNKNOWN 0x1001");
	assert_int_equal(graph.nameless_bytes, graph.size_bytes);
	heap_graph_done(&graph);
}

static uint32_t type_of(const void *context, uint32_t node)
{
	const struct heap_graph *graph = context;
	uint32_t type = heap_graph_node_type(graph, node);

	return graph->types.items[type].flags & HEAP_TYPE_ROOT ? 0 : type;
}

/*
 * Computes the retained bytes by their definition, slowly: the bytes that the root reaches, minus
 * those that it reaches without the objects of a group.
 */
static uint64_t reached_without(const struct heap_graph *graph, const struct heap_groups *groups,
	uint32_t group)
{
	uint32_t stack[512], depth = 0;
	bool seen[512] = { false };
	uint64_t bytes = 0;

	stack[depth++] = graph->root;
	seen[graph->root] = true;
	while (depth) {
		uint32_t count, at = stack[--depth];
		bytes += heap_graph_size(graph, at);
		const uint32_t *edges = heap_graph_edges(graph, at, &count);
		for (uint32_t i = 0; i < count; i++) {
			if (!edges[i] || seen[edges[i]] ||
				(group && groups->group_of(groups->context, edges[i]) == group))
				continue;
			seen[edges[i]] = true;
			stack[depth++] = edges[i];
		}
	}
	return bytes;
}

static uint32_t node_of(const void *graph, uint32_t node)
{
	return type_of(graph, node) ? node : 0;
}

static void check_groups(const struct heap_graph *graph, const struct heap_groups *groups)
{
	struct heap_order order;
	uint64_t bytes[512] = { 0 };

	assert_true(groups->count <= 512);
	assert_int_equal(heap_order_init(&order, graph), 0);
	assert_int_equal(heap_retained_count(graph, &order, groups, bytes), 0);
	assert_int_equal(bytes[0], 0);
	for (uint32_t group = 1; group < groups->count; group++)
		assert_int_equal(bytes[group],
			reached_without(graph, groups, 0) - reached_without(graph, groups, group));
	heap_order_done(&order);
}

/* For each object and for each type. */
static void check_retained(const struct heap_graph *graph)
{
	check_groups(graph, &(struct heap_groups){ .group_of = node_of,
				    .context = graph,
				    .count = heap_graph_node_count(graph) });
	check_groups(graph,
		&(struct heap_groups){
			.group_of = type_of, .context = graph, .count = graph->types.count });
}

static void test_retained(void **state)
{
	(void)state;
	srand(7);
	for (unsigned round = 0; round < 60; round++) {
		struct heap_graph graph;
		uint32_t count = 2 + (uint32_t)rand() % 40;
		uint32_t edges[512];
		uint32_t edge_count = 0;

		assert_int_equal(heap_graph_init(&graph), 0);
		for (uint32_t i = 1; i <= count; i++) {
			uint32_t own = (uint32_t)rand() % (round % 4 + 2);
			/* Addresses that do not all increase, so there are several blocks. */
			uint32_t at = round % 2 ? count + 1 - i : i;
			add(&graph, at, 24 + (uint64_t)rand() % 100, own);
			for (uint32_t e = 0; e < own; e++)
				edges[edge_count++] = 1 + (uint32_t)rand() % count;
		}
		for (uint32_t e = 0; e < edge_count; e++)
			assert_int_equal(heap_graph_add_edge(&graph, object(edges[e])), 0);
		for (uint32_t r = 0; r < 1 + round % 3; r++)
			assert_int_equal(
				heap_graph_add_root(&graph,
					&(struct heap_root){
						.object = object(1 + (uint32_t)rand() % count),
						.kind = HEAP_ROOT_STACK }),
				0);
		assert_int_equal(heap_graph_resolve(&graph), 0);
		assert_int_equal(graph.dangling_edges, 0);
		check_retained(&graph);
		heap_graph_done(&graph);
	}
}

/*
 * More types than 16 bits can count. Each node keeps its type, whether it comes before or after
 * them.
 */
static void test_many_types(void **state)
{
	enum { COUNT = 70000 };
	struct heap_graph graph;

	(void)state;
	assert_int_equal(heap_graph_init(&graph), 0);
	for (uint32_t i = 1; i <= COUNT; i++)
		assert_int_equal(heap_graph_add_node(&graph, object(i), 24,
					 heap_graph_type(&graph, 0x1000 + i), 0),
			0);
	for (uint32_t i = 1; i <= 10; i++)
		assert_int_equal(heap_graph_add_node(&graph, object(COUNT + i), 24,
					 heap_graph_type(&graph, 0x1000 + i * 6999), 0),
			0);
	assert_int_equal(heap_graph_node_count(&graph), COUNT + 11);
	for (uint32_t i = 1; i <= COUNT + 10; i++) {
		uint64_t id = i <= COUNT ? 0x1000 + i : 0x1000 + (uint64_t)(i - COUNT) * 6999;
		assert_int_equal(graph.types.items[heap_graph_node_type(&graph, i)].id, id);
	}
	heap_graph_done(&graph);
}

/* Parts of a heap in any order, mixed with others: every object is found and has its address. */
static void test_interleaved(void **state)
{
	const uint32_t count = 20000;

	(void)state;
	for (uint32_t stride = 1; stride <= 17; stride += 4) {
		struct heap_graph graph;
		assert_int_equal(heap_graph_init(&graph), 0);
		/*
		 * Every stride-th object first, then those next to them, so that the address ranges
		 * of the runs overlap.
		 */
		for (uint32_t first = 0; first < stride; first++)
			for (uint32_t i = first; i < count; i += stride)
				add(&graph, i + 1, 24, 0);
		assert_int_equal(heap_graph_resolve(&graph), 0);
		for (uint32_t i = 1; i <= count; i++) {
			uint32_t node = heap_graph_find(&graph, object(i));
			assert_true(node);
			assert_int_equal(heap_graph_address(&graph, node), object(i));
		}
		assert_int_equal(heap_graph_find(&graph, object(0)), 0);
		assert_int_equal(heap_graph_find(&graph, object(count + 1)), 0);
		heap_graph_done(&graph);
	}
}

/* A list linked in both directions, and a long one. */
static void test_long_list(void **state)
{
	struct heap_graph graph;
	struct heap_order order;
	uint64_t bytes[8] = { 0 };
	const uint32_t count = 100000;

	(void)state;
	assert_int_equal(heap_graph_init(&graph), 0);
	for (uint32_t i = 1; i <= count; i++) {
		add(&graph, i, 24, (i > 1) + (uint64_t)(i < count));
		if (i > 1)
			assert_int_equal(heap_graph_add_edge(&graph, object(i - 1)), 0);
		if (i < count)
			assert_int_equal(heap_graph_add_edge(&graph, object(i + 1)), 0);
	}
	assert_int_equal(heap_graph_add_root(&graph, &(struct heap_root){ .object = object(1) }),
		0);
	assert_int_equal(heap_graph_resolve(&graph), 0);
	assert_int_equal(heap_order_init(&order, &graph), 0);
	assert_int_equal(order.count, count + 2); /* [.NET Roots], [local vars] */
	const struct heap_groups groups = {
		.group_of = type_of, .context = &graph, .count = graph.types.count
	};
	assert_int_equal(heap_retained_count(&graph, &order, &groups, bytes), 0);
	/* Three types alternate: each retains everything from its first object on. */
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(bytes[heap_graph_node_type(&graph, i)], (count + 1 - i) * 24);
	heap_order_done(&order);
	heap_graph_done(&graph);
}

static uint32_t own_group(const void *graph, uint32_t node)
{
	(void)graph;
	return node;
}

/*
 * Every object of a long list is a group, so the sets get too large. The function reports that
 * within bounded time and memory.
 */
static void test_nested_too_deeply(void **state)
{
	struct heap_graph graph;
	struct heap_order order;
	const uint32_t count = 50000;
	uint64_t *bytes = calloc(count + 3, sizeof(*bytes));

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(heap_graph_init(&graph), 0);
	for (uint32_t i = 1; i <= count; i++) {
		add(&graph, i, 24, i < count);
		if (i < count)
			assert_int_equal(heap_graph_add_edge(&graph, object(i + 1)), 0);
	}
	assert_int_equal(heap_graph_add_root(&graph, &(struct heap_root){ .object = object(1) }),
		0);
	assert_int_equal(heap_graph_resolve(&graph), 0);
	assert_int_equal(heap_order_init(&order, &graph), 0);
	const struct heap_groups groups = {
		.group_of = own_group, .context = &graph, .count = heap_graph_node_count(&graph)
	};
	assert_int_equal(heap_retained_count(&graph, &order, &groups, bytes), -EOVERFLOW);
	assert_int_equal(bytes[1], 0);
	heap_order_done(&order);
	heap_graph_done(&graph);
	free(bytes);
}

static void check_references(const struct heap_graph *graph, uint32_t node, uint32_t own,
	const uint32_t *keys, const uint32_t *values, uint32_t pairs)
{
	uint32_t edge_count, expected = own;
	const uint32_t *edges = heap_graph_edges(graph, node, &edge_count);

	for (uint32_t i = 0; i < own; i++)
		assert_int_equal(edges[i], 1 + (node + i) % 30);
	for (uint32_t i = 0; i < pairs; i++) {
		bool found = keys[i] != node;
		for (uint32_t k = own; k < edge_count && !found; k++)
			found = edges[k] == values[i];
		assert_true(found);
		expected += keys[i] == node;
	}
	assert_int_equal(edge_count, expected);
}

/*
 * Values of a conditional weak table live as long as their keys, in any order of both. Values of
 * dead keys are dead.
 */
static void test_dependents(void **state)
{
	enum { COUNT = 30, PAIRS = 20 };

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct heap_graph graph;
		uint32_t own[COUNT + 1] = { 0 }, keys[PAIRS], values[PAIRS], root_count;
		srand(round);
		assert_int_equal(heap_graph_init(&graph), 0);
		for (uint32_t i = 1; i <= COUNT; i++) {
			own[i] = (uint32_t)rand() % 3;
			add(&graph, i, 24, own[i]);
		}
		for (uint32_t i = 1; i <= COUNT; i++)
			for (uint32_t k = 0; k < own[i]; k++)
				assert_int_equal(heap_graph_add_edge(&graph,
							 object(1 + (i + k) % COUNT)),
					0);
		for (uint32_t i = 0; i < PAIRS; i++) {
			keys[i] = 1 + (uint32_t)rand() % (COUNT + 2); /* the last two are dead */
			values[i] = 1 + (uint32_t)rand() % COUNT;
			assert_int_equal(heap_graph_add_root(&graph,
						 &(struct heap_root){ .object = object(values[i]),
							 .key = object(keys[i]),
							 .kind = HEAP_ROOT_HANDLE,
							 .dependent = true }),
				0);
		}
		assert_int_equal(
			heap_graph_add_root(&graph, &(struct heap_root){ .object = object(1) }), 0);
		assert_int_equal(heap_graph_resolve(&graph), 0);
		for (uint32_t i = 1; i <= COUNT; i++)
			check_references(&graph, i, own[i], keys, values, PAIRS);
		(void)heap_graph_edges(&graph, graph.root, &root_count);
		assert_int_equal(root_count, 1); /* [local vars]: the table itself is no root */
		check_retained(&graph);
		heap_graph_done(&graph);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roots_and_sizes),
		cmocka_unit_test(test_retained),
		cmocka_unit_test(test_many_types),
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_nested_too_deeply),
		cmocka_unit_test(test_dependents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
