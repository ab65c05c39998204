/* See heap_types.h. */
#include "heap/heap_types.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "heap/heap_report.h"
#include "heap/heap_retained.h"
#include "trace/heap_graph.h"

/*
 * For each group of roots in turn: the objects it leads to that no earlier group leads to. Nearly
 * all static variables are held by a handle too, so the objects that a group alone keeps alive
 * would be few.
 */
static int count_roots(struct heap_report *report)
{
	const struct heap_graph *graph = report->graph;
	uint32_t *queue = malloc((size_t)heap_graph_node_count(graph) * sizeof(*queue));
	uint8_t *seen = calloc((size_t)heap_graph_node_count(graph) / 8 + 1, 1);
	uint32_t group_count;
	const uint32_t *groups = heap_graph_edges(graph, graph->root, &group_count);
	int error = seen && queue ? 0 : -ENOMEM;

	for (uint32_t g = 0; g < group_count && !error; g++) {
		struct heap_root_row row = { .node = groups[g] };
		uint32_t count = 0;
		if (!groups[g] || seen[groups[g] / 8] & 1u << groups[g] % 8)
			continue;
		seen[groups[g] / 8] |= (uint8_t)(1u << groups[g] % 8);
		queue[count++] = groups[g];
		for (uint32_t at = 0; at < count; at++) {
			uint32_t edge_count;
			const uint32_t *edges = heap_graph_edges(graph, queue[at], &edge_count);
			row.reached_bytes += heap_graph_size(graph, queue[at]);
			for (uint32_t i = 0; i < edge_count; i++) {
				uint8_t bit = (uint8_t)(1u << edges[i] % 8);
				if (!edges[i] || seen[edges[i] / 8] & bit)
					continue;
				seen[edges[i] / 8] |= bit;
				queue[count++] = edges[i];
			}
		}
		if (!vec_add(&report->roots, row))
			error = -ENOMEM;
	}
	free(seen);
	free(queue);
	return error;
}

/* The roots are no objects, and no group. */
static uint32_t type_of(const void *context, uint32_t node)
{
	const struct heap_graph *graph = context;
	uint32_t type = heap_graph_node_type(graph, node);

	return graph->types.items[type].flags & HEAP_TYPE_ROOT ? 0 : type;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

struct type_sorting {
	const struct heap_graph *graph;
	enum heap_sort by;
};

/* Equal ones go by name, so that the same heap gives the same report. */
static int compare_types(const void *left, const void *right, void *context)
{
	const struct type_sorting *sorting = context;
	const struct heap_type_row *a = left;
	const struct heap_type_row *b = right;
	char room_a[32], room_b[32];
	int order = 0;

	if (sorting->by == HEAP_BY_RETAINED)
		order = compare_u64(a->retained_bytes, b->retained_bytes);
	if (sorting->by == HEAP_BY_COUNT)
		order = compare_u64(a->count, b->count);
	if (!order)
		order = compare_u64(a->size_bytes, b->size_bytes);
	if (!order)
		order = compare_u64(a->count, b->count);
	if (!order)
		order = strcmp(heap_graph_type_name(sorting->graph, a->type, room_a,
				       sizeof(room_a)),
			heap_graph_type_name(sorting->graph, b->type, room_b, sizeof(room_b)));
	return order ? order : a->type < b->type ? -1 : a->type > b->type;
}

int heap_types_count(struct heap_report *report, const struct heap_order *order, enum heap_sort by)
{
	const struct heap_graph *graph = report->graph;
	struct type_sorting sorting = { .graph = graph, .by = by };
	const struct heap_groups groups = {
		.group_of = type_of, .context = graph, .count = graph->types.count
	};
	uint64_t *retained = calloc(graph->types.count, sizeof(*retained));
	int error = retained ? 0 : -ENOMEM;

	for (uint32_t at = 0; at < order->count; at++) {
		uint32_t type = heap_graph_node_type(graph, order->node[at]);
		report->reachable_bytes += heap_graph_size(graph, order->node[at]);
		report->reachable_count += !(graph->types.items[type].flags & HEAP_TYPE_ROOT);
	}
	if (!error)
		error = heap_retained_count(graph, order, &groups, retained);
	report->retained_unknown |= error == -EOVERFLOW;
	if (!error || error == -EOVERFLOW)
		error = count_roots(report);
	for (uint32_t i = 1; i < graph->types.count && !error; i++) {
		const struct heap_type *type = &graph->types.items[i];
		struct heap_type_row row = { .type = i,
			.count = type->count,
			.size_bytes = type->size_bytes,
			.retained_bytes = retained[i] };
		if (type->count && !(type->flags & HEAP_TYPE_ROOT) && !vec_add(&report->types, row))
			error = -ENOMEM;
	}
	if (report->types.count)
		qsort_r(report->types.items, report->types.count, sizeof(report->types.items[0]),
			compare_types, &sorting);
	free(retained);
	return error;
}

static uint64_t name_key(const struct heap_graph *graph, const struct heap_type *type)
{
	const char *name = strtab_get(&graph->strings, type->name);
	const char *module = strtab_get(&graph->strings, type->module);

	return hash_bytes(name, strlen(name)) ^ hash_u64(hash_bytes(module, strlen(module)));
}

static bool same_type(const struct heap_graph *a, const struct heap_type *x,
	const struct heap_graph *b, const struct heap_type *y)
{
	return strcmp(strtab_get(&a->strings, x->name), strtab_get(&b->strings, y->name)) == 0 &&
	       strcmp(strtab_get(&a->strings, x->module), strtab_get(&b->strings, y->module)) == 0;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static int compare_changes(const void *left, const void *right)
{
	const struct heap_diff_row *a = left;
	const struct heap_diff_row *b = right;
	int order = compare_u64(magnitude(a->size_bytes), magnitude(b->size_bytes));

	if (!order)
		order = compare_u64(magnitude(a->count), magnitude(b->count));
	if (!order)
		order = a->after < b->after ? -1 : a->after > b->after;
	return order ? order : a->before < b->before ? -1 : a->before > b->before;
}

/* The row of a type, by name and module: two of one name (a type loaded twice) are one row. */
static struct heap_diff_row *diff_row(struct heap_report *report, struct map *index,
	const struct heap_graph *before, const struct heap_graph *graph,
	const struct heap_type *type)
{
	uint64_t key = name_key(graph, type);

	for (struct map_walk walk = map_find(index, key); walk.value; map_next(&walk)) {
		struct heap_diff_row *row = &report->diff.items[walk.value - 1];
		const struct heap_graph *owner = row->before ? before : report->graph;
		const struct heap_type *other =
			&owner->types.items[row->before ? row->before : row->after];
		if (same_type(graph, type, owner, other))
			return row;
	}
	struct heap_diff_row *row = vec_push(&report->diff);

	return row && map_add(index, key, report->diff.count) ? row : NULL;
}

int heap_types_compare(struct heap_report *report, const struct heap_graph *before)
{
	struct map index = { 0 };
	int error = 0;

	for (unsigned pass = 0; pass < 2 && !error; pass++) {
		const struct heap_graph *graph = pass ? report->graph : before;
		for (uint32_t i = 1; i < graph->types.count && !error; i++) {
			const struct heap_type *type = &graph->types.items[i];
			if (!type->count || type->flags & HEAP_TYPE_ROOT)
				continue;
			struct heap_diff_row *row = diff_row(report, &index, before, graph, type);
			if (!row) {
				error = -ENOMEM;
				break;
			}
			*(pass ? &row->after : &row->before) = i;
			row->count += pass ? (int64_t)type->count : -(int64_t)type->count;
			row->size_bytes +=
				pass ? (int64_t)type->size_bytes : -(int64_t)type->size_bytes;
		}
	}
	uint32_t kept = 0;

	for (uint32_t i = 0; i < report->diff.count; i++)
		if (report->diff.items[i].count || report->diff.items[i].size_bytes)
			report->diff.items[kept++] = report->diff.items[i];
	report->diff.count = kept;
	if (kept)
		qsort(report->diff.items, kept, sizeof(report->diff.items[0]), compare_changes);
	map_done(&index);
	return error;
}
