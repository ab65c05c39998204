/* See heap_retained.h. */
#include "heap/heap_retained.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "trace/heap_graph.h"

#define CACHE_SLOTS (1u << 14)
#define ITEMS_MAX   (1u << 24)          /* of all sets: 64 MiB */
#define WORK_MAX    (UINT64_C(1) << 29) /* items looked at, about a second */
#define SET_UNKNOWN 0u                  /* no way to the node was seen yet */
#define SET_EMPTY   1u

/* Groups in rising order, items[first] to items[first + count - 1]. */
struct group_set {
	uint32_t first;
	uint32_t count;
	uint64_t size_bytes; /* of the nodes that have this set */
};

/* The last result for a set of a node, the set that is passed to it, and the group of the node. */
struct combined {
	uint32_t own;
	uint32_t passed;
	uint32_t group;
	uint32_t result;
};

struct retaining {
	const struct heap_graph *graph;
	const struct heap_order *order;
	const struct heap_groups *groups;
	uint32_t *set;    /* of each node of the graph */
	uint8_t *changed; /* a bit a place in the order: its set has to be passed on */
	uint32_t *place;  /* of each node in the order */
	VEC(struct group_set) sets;
	VEC(uint32_t) items;
	VEC(uint32_t) scratch;
	struct map by_content; /* hash -> set */
	struct combined *cache;
	uint64_t work;
};

int heap_order_init(struct heap_order *order, const struct heap_graph *graph)
{
	size_t nodes = heap_graph_node_count(graph);
	uint8_t *seen = calloc(nodes / 8 + 1, 1);

	*order = (struct heap_order){ .node = malloc(nodes * sizeof(*order->node)) };
	if (!seen || !order->node) {
		free(seen);
		heap_order_done(order);
		return -ENOMEM;
	}
	order->node[order->count++] = graph->root;
	seen[graph->root / 8] |= (uint8_t)(1u << graph->root % 8);
	for (uint32_t at = 0; at < order->count; at++) {
		uint32_t edge_count;
		const uint32_t *edges = heap_graph_edges(graph, order->node[at], &edge_count);
		for (uint32_t i = 0; i < edge_count; i++) {
			uint8_t bit = (uint8_t)(1u << edges[i] % 8);
			if (!edges[i] || seen[edges[i] / 8] & bit)
				continue;
			seen[edges[i] / 8] |= bit;
			order->node[order->count++] = edges[i];
		}
	}
	free(seen);
	return 0;
}

void heap_order_done(struct heap_order *order)
{
	free(order->node);
	*order = (struct heap_order){ 0 };
}

/*
 * The number of the set in `scratch`, made when it is new. 0 without memory, or beyond the limit.
 */
static uint32_t intern(struct retaining *r)
{
	uint32_t count = r->scratch.count;

	if (!count)
		return SET_EMPTY;
	uint64_t hash = hash_bytes(r->scratch.items, count * sizeof(uint32_t));

	for (struct map_walk walk = map_find(&r->by_content, hash); walk.value; map_next(&walk)) {
		const struct group_set *set = &r->sets.items[walk.value];
		if (set->count == count && memcmp(r->items.items + set->first, r->scratch.items,
						   count * sizeof(uint32_t)) == 0)
			return walk.value;
	}
	struct group_set set = { .first = r->items.count, .count = count };

	for (uint32_t i = 0; i < count; i++)
		if (!vec_add(&r->items, r->scratch.items[i]))
			return 0;
	if (!vec_add(&r->sets, set) || !map_add(&r->by_content, hash, r->sets.count - 1))
		return 0;
	return r->sets.count - 1;
}

/*
 * What `own` and `passed` have in common, and the node's own group. Of a node that was not reached
 * before: all that is passed.
 */
static int combine(struct retaining *r, uint32_t own, uint32_t passed, uint32_t group,
	uint32_t *ret_set)
{
	uint64_t key = hash_u64((uint64_t)own << 32 | passed) ^ hash_u64(group);
	struct combined *cached = &r->cache[key % CACHE_SLOTS];

	if (cached->result && cached->own == own && cached->passed == passed &&
		cached->group == group) {
		*ret_set = cached->result;
		return 0;
	}
	const struct group_set *a = &r->sets.items[own ? own : passed];
	const struct group_set *b = &r->sets.items[passed];
	bool placed = !group;
	uint32_t i = 0, k = 0;

	r->work += a->count + b->count;
	if (r->work > WORK_MAX || (uint64_t)r->items.count + a->count + 1 > ITEMS_MAX)
		return -EOVERFLOW;
	vec_reset(&r->scratch);
	while (i < a->count || !placed) {
		uint32_t item = i < a->count ? r->items.items[a->first + i] : UINT32_MAX;
		if (!placed && group <= item) {
			placed = true;
			i += group == item;
			item = group;
		} else {
			while (k < b->count && r->items.items[b->first + k] < item)
				k++;
			i++;
			if (k == b->count || r->items.items[b->first + k] != item)
				continue;
		}
		if (!vec_add(&r->scratch, item))
			return -ENOMEM;
	}
	uint32_t result = intern(r);

	if (!result)
		return -ENOMEM;
	*cached =
		(struct combined){ .own = own, .passed = passed, .group = group, .result = result };
	*ret_set = result;
	return 0;
}

/* One pass in order passes changed sets on. *ret_changed: a set earlier in the order changed. */
static int pass_on(struct retaining *r, bool *ret_changed)
{
	int error = 0;

	*ret_changed = false;
	for (uint32_t at = 0; at < r->order->count && !error; at++) {
		if (!(r->changed[at / 8] & 1u << at % 8))
			continue;
		r->changed[at / 8] &= (uint8_t) ~(1u << at % 8);
		uint32_t count;
		uint32_t from = r->order->node[at];
		const uint32_t *edges = heap_graph_edges(r->graph, from, &count);
		for (uint32_t i = 0; i < count && !error; i++) {
			uint32_t to = edges[i];
			uint32_t set = 0;
			/*
			 * Nothing retains the root. A set that is equal has all common groups and
			 * its own.
			 */
			if (!to || to == r->graph->root || r->set[to] == r->set[from])
				continue;
			error = combine(r, r->set[to], r->set[from],
				r->groups->group_of(r->groups->context, to), &set);
			if (error || set == r->set[to])
				continue;
			r->set[to] = set;
			r->changed[r->place[to] / 8] |= (uint8_t)(1u << r->place[to] % 8);
			*ret_changed |= r->place[to] <= at;
		}
	}
	return error;
}

static int find_sets(struct retaining *r)
{
	struct group_set none = { 0 };
	bool again = true;
	int error = 0;

	for (uint32_t i = SET_UNKNOWN; i <= SET_EMPTY; i++)
		if (!vec_add(&r->sets, none))
			return -ENOMEM;
	for (uint32_t at = 0; at < r->order->count; at++)
		r->place[r->order->node[at]] = at;
	r->set[r->graph->root] = SET_EMPTY;
	r->changed[0] = 1;
	while (again && !error)
		error = pass_on(r, &again);
	return error;
}

int heap_retained_count(const struct heap_graph *graph, const struct heap_order *order,
	const struct heap_groups *groups, uint64_t *bytes)
{
	struct retaining r = { .graph = graph, .order = order, .groups = groups };
	size_t nodes = heap_graph_node_count(graph);

	r.set = calloc(nodes, sizeof(*r.set));
	r.place = malloc(nodes * sizeof(*r.place));
	r.changed = calloc(order->count / 8 + 1, 1);
	r.cache = calloc(CACHE_SLOTS, sizeof(*r.cache));
	int error = r.set && r.place && r.changed && r.cache ? find_sets(&r) : -ENOMEM;

	for (uint32_t at = 0; at < order->count && !error; at++)
		r.sets.items[r.set[order->node[at]]].size_bytes +=
			heap_graph_size(graph, order->node[at]);
	for (uint32_t i = SET_EMPTY; i < r.sets.count && !error; i++)
		for (uint32_t k = 0; k < r.sets.items[i].count; k++)
			bytes[r.items.items[r.sets.items[i].first + k]] +=
				r.sets.items[i].size_bytes;
	free(r.set);
	free(r.place);
	free(r.changed);
	free(r.cache);
	vec_done(&r.sets);
	vec_done(&r.items);
	vec_done(&r.scratch);
	map_done(&r.by_content);
	return error;
}
