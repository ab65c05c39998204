/* See heap_paths.h. */
#include "heap/heap_paths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "heap/heap_report.h"
#include "heap/heap_retained.h"
#include "trace/heap_graph.h"

#define LENGTH_MAX 10000u /* of a path; lists make longer ones */

struct heap_path_search {
	struct heap_report *report;
	const struct heap_order *order;
	uint32_t *row;  /* of each node: its row of report->paths + 1 */
	uint32_t *from; /* of each place: the place that it was first reached from */
	/* of each place: of the types on the way to it; runs of one type count once */
	uint64_t *hash;
	struct map index; /* hash -> row + 1 */
};

static uint32_t type_at(const struct heap_path_search *p, uint32_t at)
{
	return heap_graph_node_type(p->report->graph, p->order->node[at]);
}

/* Places are in breadth-first order: the first that refers to one is on a shortest way to it. */
static int walk(struct heap_path_search *p)
{
	const struct heap_graph *graph = p->report->graph;
	const struct heap_order *order = p->order;
	uint32_t *place = calloc(heap_graph_node_count(graph), sizeof(*place));

	if (!place)
		return -ENOMEM;
	for (uint32_t at = 0; at < order->count; at++)
		place[order->node[at]] = at;
	for (uint32_t at = 0; at < order->count; at++) {
		uint32_t count;
		const uint32_t *edges = heap_graph_edges(graph, order->node[at], &count);
		for (uint32_t i = 0; i < count; i++) {
			uint32_t to = edges[i] ? place[edges[i]] : 0;
			if (to && !p->from[to] && p->hash[to] == 0) {
				p->from[to] = at;
				p->hash[to] =
					type_at(p, to) == type_at(p, at) && at
						? p->hash[at]
						: hash_u64(p->hash[at] ^ hash_u64(type_at(p, to))) |
							  1;
			}
		}
	}
	free(place);
	return 0;
}

/* The types on the way, each run once, from the root down. */
static int add_path(struct heap_path_search *p, uint32_t at, struct heap_path_row *row)
{
	struct heap_report *report = p->report;
	uint32_t last = 0;

	row->first = report->path_types.count;
	for (uint32_t steps = 0; at && steps < LENGTH_MAX; at = p->from[at], steps++) {
		uint32_t type = type_at(p, at);
		if (type == last)
			continue;
		if (!vec_add(&report->path_types, type))
			return -ENOMEM;
		last = type;
	}
	row->length = report->path_types.count - row->first;
	for (uint32_t i = 0; i < row->length / 2; i++) {
		uint32_t *types = report->path_types.items + row->first;
		uint32_t swap = types[i];
		types[i] = types[row->length - 1 - i];
		types[row->length - 1 - i] = swap;
	}
	return 0;
}

static int count_object(struct heap_path_search *p, uint32_t at)
{
	struct heap_report *report = p->report;
	uint32_t index = map_get(&p->index, p->hash[at]);

	if (!index) {
		struct heap_path_row row = { 0 };
		int error = add_path(p, at, &row);
		if (error)
			return error;
		if (!vec_add(&report->paths, row) ||
			!map_put(&p->index, p->hash[at], report->paths.count))
			return -ENOMEM;
		index = report->paths.count;
	}
	struct heap_path_row *row = &report->paths.items[index - 1];

	row->count++;
	row->size_bytes += heap_graph_size(report->graph, p->order->node[at]);
	p->row[p->order->node[at]] = index;
	return 0;
}

static uint32_t row_of(const void *context, uint32_t node)
{
	const uint32_t *row = context;

	return row[node];
}

static int count_retained(struct heap_path_search *p)
{
	struct heap_report *report = p->report;
	const struct heap_groups groups = {
		.group_of = row_of, .context = p->row, .count = report->paths.count + 1
	};
	uint64_t *bytes = calloc(groups.count, sizeof(*bytes));
	int error = bytes ? heap_retained_count(report->graph, p->order, &groups, bytes) : -ENOMEM;

	for (uint32_t i = 0; i < report->paths.count && !error; i++)
		report->paths.items[i].retained_bytes = bytes[i + 1];
	report->retained_unknown |= error == -EOVERFLOW;
	free(bytes);
	return error == -EOVERFLOW ? 0 : error;
}

static int compare_paths(const void *left, const void *right)
{
	const struct heap_path_row *a = left;
	const struct heap_path_row *b = right;

	if (a->retained_bytes != b->retained_bytes)
		return a->retained_bytes > b->retained_bytes ? -1 : 1;
	if (a->size_bytes != b->size_bytes)
		return a->size_bytes > b->size_bytes ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* "Order" is Shop.Order too, but not Shop.PreOrder. */
static bool fits(const char *pattern, const char *name)
{
	size_t len = strlen(name);
	size_t last = strlen(pattern);

	if (text_glob(pattern, name))
		return true;
	return len > last && strcmp(name + len - last, pattern) == 0 &&
	       (name[len - last - 1] == '.' || name[len - last - 1] == '+');
}

int heap_paths_find(struct heap_report *report, const struct heap_order *order,
	const char *type_name, uint32_t *ret_matches)
{
	const struct heap_graph *graph = report->graph;
	struct heap_path_search p = { .report = report, .order = order };
	bool *wanted = calloc(graph->types.count, sizeof(*wanted));
	char room[32];
	uint32_t matches = 0;

	p.from = calloc((size_t)order->count + 1, sizeof(*p.from));
	p.hash = calloc((size_t)order->count + 1, sizeof(*p.hash));
	p.row = calloc(heap_graph_node_count(graph), sizeof(*p.row));
	int error = wanted && p.from && p.hash && p.row ? 0 : -ENOMEM;
	for (uint32_t i = 1; i < graph->types.count && !error; i++) {
		const struct heap_type *type = &graph->types.items[i];
		if (!type->count || type->flags & HEAP_TYPE_ROOT)
			continue;
		wanted[i] = fits(type_name, heap_graph_type_name(graph, i, room, sizeof(room)));
		matches += wanted[i];
	}
	if (!error && matches)
		error = walk(&p);
	for (uint32_t at = 1; at < order->count && !error && matches; at++)
		if (wanted[type_at(&p, at)])
			error = count_object(&p, at);
	if (!error && report->paths.count)
		error = count_retained(&p);
	if (report->paths.count)
		qsort(report->paths.items, report->paths.count, sizeof(report->paths.items[0]),
			compare_paths);
	free(wanted);
	free(p.from);
	free(p.hash);
	free(p.row);
	map_done(&p.index);
	*ret_matches = matches;
	return error;
}
