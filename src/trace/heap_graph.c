/* See heap_graph.h. */
#include "trace/heap_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/partition_point.h"

#define COUNT_MAX    (UINT32_C(1) << 31)
#define UNIT         4u /* objects of a 32-bit process are aligned to it, others to 8 */
#define BLOCK_SPAN   (UINT64_C(1) << 34)
#define SPLIT_ROUNDS 8u
#define BLOCK_GAP    (UINT64_C(1) << 16) /* beyond it another part of the heap may lie between */

int heap_graph_init(struct heap_graph *graph)
{
	*graph = (struct heap_graph){ 0 };
	if (!vec_push(&graph->types) || !vec_push(&graph->address) || !vec_push(&graph->type_low) ||
		!vec_push(&graph->size) || !vec_push(&graph->edge_at)) {
		heap_graph_done(graph);
		return -ENOMEM;
	}
	return 0;
}

void heap_graph_done(struct heap_graph *graph)
{
	strtab_done(&graph->strings);
	vec_done(&graph->types);
	vec_done(&graph->blocks);
	vec_done(&graph->by_base);
	vec_done(&graph->roots);
	vec_done(&graph->address);
	vec_done(&graph->type_low);
	vec_done(&graph->type_high);
	vec_done(&graph->size);
	vec_done(&graph->edge_at);
	vec_done(&graph->reported_edges);
	vec_done(&graph->read_edges);
	vec_done(&graph->large);
	free(graph->edges);
	map_done(&graph->type_by_id);
	map_done(&graph->module_by_id);
	map_done(&graph->large_sizes);
	*graph = (struct heap_graph){ 0 };
}

uint32_t heap_graph_type(struct heap_graph *graph, uint64_t type_id)
{
	uint32_t index = map_get(&graph->type_by_id, type_id);

	if (index)
		return index;
	struct heap_type *type = vec_push(&graph->types);

	if (!type || !map_put(&graph->type_by_id, type_id, graph->types.count - 1))
		return 0;
	type->id = type_id;
	return graph->types.count - 1;
}

/* A type of our own, by its name. */
static uint32_t heap_graph_own_type(struct heap_graph *graph, const char *name)
{
	struct heap_type *type = vec_push(&graph->types);

	if (!type)
		return 0;
	type->name = strtab_add_z(&graph->strings, name);
	type->flags = HEAP_TYPE_ROOT;
	return graph->types.count - 1;
}

static bool push_type(struct heap_graph *graph, uint32_t type)
{
	if (type >> 16) {
		while (graph->type_high.count < graph->type_low.count)
			if (!vec_add(&graph->type_high, 0))
				return false;
		if (!vec_add(&graph->type_high, (uint8_t)(type >> 16)))
			return false;
	}
	return vec_add(&graph->type_low, (uint16_t)type);
}

/* The columns of a node; the place of its address is the caller's business. */
static int push_node(struct heap_graph *graph, uint32_t unit, uint64_t size_bytes, uint32_t type)
{
	uint32_t node = graph->type_low.count;

	if (node >= COUNT_MAX || graph->edge_count >= COUNT_MAX || type >> 24)
		return -EOVERFLOW;
	if (size_bytes >= HEAP_SIZE_LARGE) {
		if (!vec_add(&graph->large, size_bytes) ||
			!map_put(&graph->large_sizes, node, graph->large.count))
			return -ENOMEM;
		size_bytes = HEAP_SIZE_LARGE;
	}
	if (!vec_add(&graph->address, unit) || !push_type(graph, type) ||
		!vec_add(&graph->size, (uint32_t)size_bytes) ||
		!vec_add(&graph->edge_at, (uint32_t)graph->edge_count))
		return -ENOMEM;
	return 0;
}

static void count_object(struct heap_graph *graph, uint64_t size_bytes, uint32_t type)
{
	struct heap_type *row = &graph->types.items[type];

	if (!row->count++)
		row->first_size = size_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)size_bytes;
	row->size_bytes += size_bytes;
	graph->object_count++;
	graph->size_bytes += size_bytes;
}

int heap_graph_add_node(struct heap_graph *graph, uint64_t address, uint64_t size_bytes,
	uint32_t type, uint64_t edge_count)
{
	struct heap_block *block = graph->blocks.count ? vec_last(&graph->blocks) : NULL;

	if (edge_count > COUNT_MAX || graph->edge_count + edge_count > COUNT_MAX)
		return -EOVERFLOW;
	/* A block's nodes have consecutive numbers: a node without an address ends it. */
	if (!block || block->first + block->count != graph->type_low.count ||
		address <= block->last || block->count == HEAP_BLOCK_NODES ||
		address - block->last >= BLOCK_GAP || address - block->base >= BLOCK_SPAN ||
		(address - block->base) % UNIT) {
		block = vec_push(&graph->blocks);
		if (!block)
			return -ENOMEM;
		block->base = address;
		block->first = graph->type_low.count;
	}
	int error = push_node(graph, (uint32_t)((address - block->base) / UNIT), size_bytes, type);

	if (error)
		return error;
	block->last = address;
	block->count++;
	graph->edge_count += edge_count;
	count_object(graph, size_bytes, type);
	return 0;
}

int heap_graph_add_edge(struct heap_graph *graph, uint64_t address)
{
	return vec_add(&graph->reported_edges, address) ? 0 : -ENOMEM;
}

int heap_graph_add_root(struct heap_graph *graph, const struct heap_root *root)
{
	if (!root->object || (root->flags & HEAP_ROOT_WEAK))
		return 0;
	return vec_add(&graph->roots, *root) ? 0 : -ENOMEM;
}

int heap_graph_add_module(struct heap_graph *graph, uint64_t module_id, const char *path,
	size_t len)
{
	uint32_t text = strtab_add(&graph->strings, path, len);

	return !text || map_put(&graph->module_by_id, module_id, text) ? 0 : -ENOMEM;
}

int heap_graph_add_resolved(struct heap_graph *graph, uint64_t address, uint64_t size_bytes,
	uint32_t type)
{
	bool is_root = graph->types.items[type].flags & HEAP_TYPE_ROOT;

	if (!is_root && address)
		return heap_graph_add_node(graph, address, size_bytes, type, 0);
	int error = push_node(graph, 0, size_bytes, type);

	/* Other programs write objects with a size and no address; with neither, it is none. */
	if (!error && !is_root && size_bytes)
		count_object(graph, size_bytes, type);
	return error;
}

int heap_graph_add_resolved_edge(struct heap_graph *graph, uint32_t node)
{
	if (graph->edge_count >= COUNT_MAX)
		return -EOVERFLOW;
	if (!vec_add(&graph->read_edges, node))
		return -ENOMEM;
	graph->edge_count++;
	return 0;
}

static int compare_blocks(const void *left, const void *right, void *context)
{
	const struct heap_graph *graph = context;
	const struct heap_block *a = &graph->blocks.items[*(const uint32_t *)left];
	const struct heap_block *b = &graph->blocks.items[*(const uint32_t *)right];

	return a->base < b->base ? -1 : a->base > b->base;
}

/* Nodes from the first one at or above `address` become a new block. False: no memory. */
static bool split_block(struct heap_graph *graph, uint32_t index, uint64_t address)
{
	struct heap_block *block = &graph->blocks.items[index];
	uint32_t *units = graph->address.items + block->first;
	uint32_t at = 0;

	while (block->base + (uint64_t)units[at] * UNIT < address)
		at++;
	struct heap_block rest = { .base = block->base + (uint64_t)units[at] * UNIT,
		.last = block->last,
		.first = block->first + at,
		.count = block->count - at };
	uint32_t shift = units[at];

	block->count = at;
	block->last = block->base + (uint64_t)units[at - 1] * UNIT;
	for (uint32_t i = at; i < at + rest.count; i++)
		units[i] -= shift;
	return vec_add(&graph->blocks, rest);
}

static bool crumble_block(struct heap_graph *graph, uint32_t index)
{
	while (graph->blocks.items[index].count > 1) {
		const struct heap_block *block = &graph->blocks.items[index];
		uint32_t last = block->first + block->count - 1;
		struct heap_block one = {
			.base = block->last, .last = block->last, .first = last, .count = 1
		};
		uint64_t base = block->base;
		graph->address.items[last] = 0;
		if (!vec_add(&graph->blocks, one))
			return false;
		struct heap_block *rest = &graph->blocks.items[index];
		rest->count--;
		rest->last = base + (uint64_t)graph->address.items[last - 1] * UNIT;
	}
	return true;
}

static int compare_first(const void *left, const void *right)
{
	const struct heap_block *a = left;
	const struct heap_block *b = right;

	return a->first < b->first ? -1 : a->first > b->first;
}

static int sort_by_base(struct heap_graph *graph)
{
	vec_reset(&graph->by_base);
	for (uint32_t i = 0; i < graph->blocks.count; i++)
		if (!vec_add(&graph->by_base, i))
			return -ENOMEM;
	if (graph->by_base.count)
		qsort_r(graph->by_base.items, graph->by_base.count, sizeof(graph->by_base.items[0]),
			compare_blocks, graph);
	return 0;
}

/* Splits a block around another, as the search goes by where blocks begin. */
static int sort_blocks(struct heap_graph *graph)
{
	bool split = true;
	int error = 0;

	for (unsigned round = 0; split && !error; round++) {
		split = false;
		error = sort_by_base(graph);
		for (uint32_t i = 0; i + 1 < graph->by_base.count && !error; i++) {
			uint32_t index = graph->by_base.items[i];
			uint64_t next = graph->blocks.items[graph->by_base.items[i + 1]].base;
			if (graph->blocks.items[index].last < next ||
				graph->blocks.items[index].base == next)
				continue;
			split = true;
			/* The addresses still alternate: then each node becomes a block. */
			if (round < SPLIT_ROUNDS ? !split_block(graph, index, next)
						 : !crumble_block(graph, index))
				error = -ENOMEM;
		}
	}
	if (error || !graph->blocks.count)
		return error;
	qsort(graph->blocks.items, graph->blocks.count, sizeof(graph->blocks.items[0]),
		compare_first);
	return sort_by_base(graph);
}

/* The place in by_base of the last block that begins at or before the address, plus one; 0 none. */
static uint32_t find_block(const struct heap_graph *graph, uint64_t address)
{
	return partition_point(graph->by_base.count, i,
		graph->blocks.items[graph->by_base.items[i]].base <= address);
}

static const struct heap_block *block_at(const struct heap_graph *graph, uint32_t place)
{
	return &graph->blocks.items[graph->by_base.items[place - 1]];
}

static uint32_t find_in(const struct heap_graph *graph, const struct heap_block *block,
	uint64_t address)
{
	if (address < block->base || address > block->last || (address - block->base) % UNIT)
		return 0;
	uint32_t unit = (uint32_t)((address - block->base) / UNIT);
	const uint32_t *units = graph->address.items + block->first;
	uint32_t low = partition_point(block->count, i, units[i] < unit);

	return low < block->count && units[low] == unit ? block->first + low : 0;
}

int heap_graph_end_resolved(struct heap_graph *graph, uint32_t root)
{
	if (!vec_add(&graph->edge_at, (uint32_t)graph->edge_count) ||
		!vec_add(&graph->read_edges, 0))
		return -ENOMEM;
	graph->edges = graph->read_edges.items;
	graph->read_edges.items = NULL;
	vec_done(&graph->read_edges);
	graph->root = root;
	return sort_blocks(graph);
}

uint32_t heap_graph_find(const struct heap_graph *graph, uint64_t address)
{
	uint32_t place = find_block(graph, address);

	return place ? find_in(graph, block_at(graph, place), address) : 0;
}

/* Most references are to nearby addresses: the block of the last find is tried first. */
static uint32_t find_near(const struct heap_graph *graph, uint64_t address, uint32_t *near)
{
	uint32_t place = *near;

	if (!place || address < block_at(graph, place)->base ||
		(place < graph->by_base.count && address >= block_at(graph, place + 1)->base))
		place = find_block(graph, address);
	*near = place;
	return place ? find_in(graph, block_at(graph, place), address) : 0;
}

/* In place: a node number takes 4 bytes where an address took 8. */
static void resolve_edges(struct heap_graph *graph)
{
	uint64_t *reported = graph->reported_edges.items;
	uint32_t *edges = (uint32_t *)(void *)reported;
	uint32_t near = 0;

	for (uint32_t i = 0; i < graph->reported_edges.count; i++) {
		uint64_t address;
		memcpy(&address, reported + i, sizeof(address));
		uint32_t node = find_near(graph, address, &near);
		graph->dangling_edges += !node;
		memcpy(edges + i, &node, sizeof(node)); /* below the address that was read last */
	}
}

static const char *const root_kinds[] = {
	[HEAP_ROOT_STACK] = "[local vars]",
	[HEAP_ROOT_FINALIZER] = "[finalizer Handles]",
	[HEAP_ROOT_HANDLE] = "[strong Handles]",
	[HEAP_ROOT_OLDER] = "[other Handles]",
	[HEAP_ROOT_SIZED] = "[other Handles]",
	[HEAP_ROOT_OVERFLOW] = "[other Handles]",
};

/* The group node above a root, with the name that viewers of .gcdump use. */
static const char *group_of(const struct heap_root *root)
{
	if (root->is_static)
		return root->thread_static ? "[thread static vars]" : "[static vars]";
	if (root->kind == HEAP_ROOT_HANDLE && root->flags == HEAP_ROOT_PINNING)
		return "[pinning Handles]";
	if (root->kind == HEAP_ROOT_HANDLE && (root->flags & HEAP_ROOT_REFCOUNTED))
		return "[COM/WinRT Objects]";
	return root_kinds[root->kind <= HEAP_ROOT_OVERFLOW ? root->kind : HEAP_ROOT_OVERFLOW];
}

/* A node of the root tree: its parent's number in the same list, its name, its reference. */
struct root_node {
	uint32_t parent;
	uint32_t name;   /* strtab */
	uint32_t object; /* 0 for a group */
};

struct root_tree {
	VEC(struct root_node) nodes;
	struct map by_name; /* (parent, name) -> node of the list + 1 */
};

static int add_root_node(struct root_tree *tree, uint32_t parent, uint32_t name,
	uint32_t *ret_index)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t found = map_get(&tree->by_name, key);

	if (!found) {
		struct root_node node = { .parent = parent, .name = name };
		if (!vec_add(&tree->nodes, node) ||
			!map_put(&tree->by_name, key, tree->nodes.count))
			return -ENOMEM;
		found = tree->nodes.count;
	}
	*ret_index = found - 1;
	return 0;
}

static int add_object(struct root_tree *tree, uint32_t parent, uint32_t object)
{
	struct root_node node = { .parent = parent, .object = object };

	return vec_add(&tree->nodes, node) ? 0 : -ENOMEM;
}

/* "[static var all (Shop.Order[])]": the runtime does not report the class of a static variable. */
static uint32_t name_static(struct heap_graph *graph, const struct heap_root *root)
{
	cleanup(bytes_done) struct bytes name = { 0 };
	const char *type =
		root->type ? strtab_get(&graph->strings, graph->types.items[root->type].name) : "";

	bytes_printf(&name, "[%sstatic var %s", root->thread_static ? "thread " : "",
		strtab_get(&graph->strings, root->name));
	if (*type)
		bytes_printf(&name, " (%s)", type);
	bytes_text(&name, "]");
	return strtab_add(&graph->strings, (const char *)name.data, name.len);
}

/*
 * The value of a conditional weak table lives as long as its key, which refers to it in the graph.
 */
struct dependent {
	uint32_t key;
	uint32_t value;
};

struct dependents {
	VEC(struct dependent) items; /* in order of the keys */
};

static int compare_dependents(const void *left, const void *right)
{
	const struct dependent *a = left;
	const struct dependent *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

/* Values of dead keys are dead and left out. */
static int find_dependents(const struct heap_graph *graph, struct dependents *dependents)
{
	vec_each(root, &graph->roots) {
		if (!root->dependent)
			continue;
		struct dependent item = { .key = heap_graph_find(graph, root->key),
			.value = heap_graph_find(graph, root->object) };
		if (item.key && item.value && !vec_add(&dependents->items, item))
			return -ENOMEM;
	}
	if (dependents->items.count)
		qsort(dependents->items.items, dependents->items.count,
			sizeof(dependents->items.items[0]), compare_dependents);
	return 0;
}

/*
 * In place, from the last node down to the first key: the references of each node move by the
 * number of those that are added before them.
 */
static void add_dependents(struct heap_graph *graph, const struct dependents *dependents,
	uint32_t edge_count)
{
	const struct dependent *items = dependents->items.items;
	uint32_t left = dependents->items.count;
	uint32_t end = edge_count;

	for (uint32_t node = graph->type_low.count; left && --node;) {
		uint32_t begin = graph->edge_at.items[node];
		uint32_t last = left;
		while (left && items[left - 1].key == node)
			left--;
		memmove(graph->edges + begin + left, graph->edges + begin,
			(size_t)(end - begin) * sizeof(*graph->edges));
		for (uint32_t i = left; i < last; i++)
			graph->edges[end + i] = items[i].value;
		graph->edge_at.items[node] = begin + left;
		end = begin;
	}
}

static int grow_roots(struct heap_graph *graph, struct root_tree *tree)
{
	struct strtab *strings = &graph->strings;
	uint32_t top;
	int error = add_root_node(tree, 0, strtab_add_z(strings, "[.NET Roots]"), &top);

	for (uint32_t i = 0; i < graph->roots.count && !error; i++) {
		const struct heap_root *root = &graph->roots.items[i];
		uint32_t object = heap_graph_find(graph, root->object);
		uint32_t at = top;
		/* Outside the objects, as a static variable may be; or of add_dependents(). */
		if (!object || root->dependent)
			continue;
		bool other = !root->is_static && root->kind != HEAP_ROOT_STACK;
		if (other)
			error = add_root_node(tree, at, strtab_add_z(strings, "[other roots]"),
				&at);
		if (!error)
			error = add_root_node(tree, at, strtab_add_z(strings, group_of(root)), &at);
		if (!error && root->name)
			error = add_root_node(tree, at, name_static(graph, root), &at);
		if (!error)
			error = add_object(tree, at, object);
	}
	return error;
}

/* The root tree's groups become nodes after the objects; children are gathered by counting. */
static int place_roots(struct heap_graph *graph, const struct root_tree *tree, uint32_t first_edge)
{
	uint32_t count = tree->nodes.count;
	/* node number of each group */
	uint32_t *place = calloc((size_t)count + 1, sizeof(*place));
	uint32_t *children = calloc((size_t)count + 1, sizeof(*children));
	struct map types = { 0 };
	int error = place && children ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < count && !error; i++)
		children[tree->nodes.items[i].parent]++;
	graph->edge_count = first_edge;
	for (uint32_t i = 0; i < count && !error; i++) {
		const struct root_node *node = &tree->nodes.items[i];
		if (node->object)
			continue;
		uint32_t type = map_get(&types, node->name);
		if (!type) {
			type = heap_graph_own_type(graph, strtab_get(&graph->strings, node->name));
			if (!type || !map_put(&types, node->name ? node->name : UINT32_MAX, type))
				error = -ENOMEM;
		}
		place[i] = graph->type_low.count;
		if (!error)
			error = push_node(graph, 0, 0, type);
		graph->edge_count += children[i];
		/* from now on: where its next child goes */
		children[i] = (uint32_t)graph->edge_count - children[i];
	}
	for (uint32_t i = 1; i < count && !error; i++) {
		const struct root_node *node = &tree->nodes.items[i];
		graph->edges[children[node->parent]++] = node->object ? node->object : place[i];
	}
	if (!error)
		graph->root = place[0];
	map_done(&types);
	free(place);
	free(children);
	return error;
}

static void name_modules(struct heap_graph *graph)
{
	for (uint32_t i = 1; i < graph->types.count; i++) {
		struct heap_type *type = &graph->types.items[i];
		if (!type->name && !(type->flags & HEAP_TYPE_ROOT))
			graph->nameless_bytes += type->size_bytes;
		type->module = map_get(&graph->module_by_id, type->module_id);
	}
}

/*
 * Nodes can claim more references than arrived: blocks were lost, or the process lies. Only those
 * that arrived take memory. Returns how many belong to nodes.
 */
static uint32_t drop_missing_edges(struct heap_graph *graph)
{
	uint32_t reported = graph->reported_edges.count;

	if (graph->edge_count <= reported)
		return (uint32_t)graph->edge_count;
	for (uint32_t i = graph->edge_at.count; i-- > 0 && graph->edge_at.items[i] > reported;)
		graph->edge_at.items[i] = reported;
	return reported;
}

int heap_graph_resolve(struct heap_graph *graph)
{
	struct root_tree tree = { 0 };
	struct dependents dependents = { 0 };
	uint32_t reported = graph->reported_edges.count;
	uint32_t claimed = drop_missing_edges(graph);

	int error = sort_blocks(graph);

	if (error)
		return error;
	resolve_edges(graph);
	name_modules(graph);
	error = grow_roots(graph, &tree);
	if (!error)
		error = find_dependents(graph, &dependents);
	/* At most one reference for each node of the tree. */
	uint64_t room = (uint64_t)reported + tree.nodes.count + dependents.items.count + 1;

	if (!error && room >= COUNT_MAX)
		error = -EOVERFLOW;
	if (!error) {
		graph->edges = realloc(graph->reported_edges.items, room * sizeof(*graph->edges));
		if (graph->edges)
			graph->reported_edges.items = NULL;
		else
			error = -ENOMEM;
	}
	vec_done(&graph->reported_edges);
	if (!error) {
		add_dependents(graph, &dependents, claimed);
		error = place_roots(graph, &tree, claimed + dependents.items.count);
	}
	if (!error && !vec_add(&graph->edge_at, (uint32_t)graph->edge_count))
		error = -ENOMEM;
	vec_done(&dependents.items);
	vec_done(&tree.nodes);
	map_done(&tree.by_name);
	vec_done(&graph->roots);
	return error;
}

/* The block that contains a node; NULL for a root. */
static const struct heap_block *block_of(const struct heap_graph *graph, uint32_t node)
{
	uint32_t low =
		partition_point(graph->blocks.count, i, graph->blocks.items[i].first <= node);
	const struct heap_block *block = low ? &graph->blocks.items[low - 1] : NULL;

	return block && node - block->first < block->count ? block : NULL;
}

uint64_t heap_graph_address(const struct heap_graph *graph, uint32_t node)
{
	const struct heap_block *block = block_of(graph, node);

	return block ? block->base + (uint64_t)graph->address.items[node] * UNIT : 0;
}

uint64_t heap_graph_size(const struct heap_graph *graph, uint32_t node)
{
	uint32_t size = graph->size.items[node];

	return size != HEAP_SIZE_LARGE ? size
				       : graph->large.items[map_get(&graph->large_sizes, node) - 1];
}

uint32_t heap_graph_node_type(const struct heap_graph *graph, uint32_t node)
{
	uint32_t high = node < graph->type_high.count ? graph->type_high.items[node] : 0;

	return high << 16 | graph->type_low.items[node];
}

uint32_t heap_graph_node_count(const struct heap_graph *graph)
{
	return graph->type_low.count;
}

const uint32_t *heap_graph_edges(const struct heap_graph *graph, uint32_t node, uint32_t *ret_count)
{
	uint32_t at = graph->edge_at.items[node];

	*ret_count = graph->edge_at.items[node + 1] - at;
	return graph->edges + at;
}

const char *heap_graph_type_name(const struct heap_graph *graph, uint32_t type, char *room,
	size_t room_size)
{
	const struct heap_type *row = &graph->types.items[type];

	if (row->name)
		return strtab_get(&graph->strings, row->name);
	/* cut if the room is small */
	(void)snprintf(room, room_size, "UNKNOWN 0x%" PRIx64, row->id);
	return room;
}
