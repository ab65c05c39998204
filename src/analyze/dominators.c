/* See dominators.h. */
#include "analyze/dominators.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/heap_graph.h"

#define NOWHERE UINT32_MAX

/* Numbers all that the root leads to, nearest first. `place` gets the number of each node. */
static uint32_t walk(const struct heap_graph *graph, uint32_t *order, uint32_t *place)
{
	uint32_t count = 0;

	order[count] = graph->root;
	place[graph->root] = count++;
	for (uint32_t at = 0; at < count; at++) {
		uint32_t edge_count;
		const uint32_t *edges = heap_graph_edges(graph, order[at], &edge_count);
		for (uint32_t i = 0; i < edge_count; i++) {
			if (!edges[i] || place[edges[i]] != NOWHERE)
				continue;
			order[count] = edges[i];
			place[edges[i]] = count++;
		}
	}
	return count;
}

/* What dominates both. A place is always above those with higher numbers. */
static uint32_t meet(const uint32_t *above, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (a > b)
			a = above[a];
		while (b > a)
			b = above[b];
	}
	return a;
}

/* One pass: true when something moved. */
static bool push(const struct heap_graph *graph, const uint32_t *order, const uint32_t *place, uint32_t count,
	uint32_t *above)
{
	bool moved = false;

	for (uint32_t at = 0; at < count; at++) {
		uint32_t edge_count;
		const uint32_t *edges = heap_graph_edges(graph, order[at], &edge_count);
		for (uint32_t i = 0; i < edge_count; i++) {
			uint32_t to = edges[i] ? place[edges[i]] : 0;
			if (!to) /* nothing dominates the root */
				continue;
			uint32_t now = above[to] == NOWHERE ? at : meet(above, above[to], at);
			if (now != above[to]) {
				above[to] = now;
				moved = true;
			}
		}
	}
	return moved;
}

static void add_up(const struct heap_graph *graph, struct dominators *d)
{
	for (uint32_t at = d->count; at-- > 0;) {
		uint64_t own = (heap_graph_size(graph, d->node[at]) + DOMINATORS_UNIT - 1) / DOMINATORS_UNIT;
		uint64_t sum = d->retained[at] + own;
		d->retained[at] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
		if (!at)
			break;
		sum = (uint64_t)d->retained[d->above[at]] + d->retained[at];
		d->retained[d->above[at]] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
	}
}

int dominators_init(struct dominators *d, const struct heap_graph *graph)
{
	size_t nodes = heap_graph_node_count(graph);
	uint32_t *place = malloc(nodes * sizeof(*place));

	*d = (struct dominators){ 0 };
	d->node = malloc(nodes * sizeof(*d->node));
	d->above = malloc(nodes * sizeof(*d->above));
	if (!place || !d->node || !d->above) {
		free(place);
		dominators_done(d);
		return -ENOMEM;
	}
	memset(place, 0xff, nodes * sizeof(*place));     /* NOWHERE */
	memset(d->above, 0xff, nodes * sizeof(*d->above));
	d->count = walk(graph, d->node, place);
	d->above[0] = 0;
	do
		d->passes++;
	while (push(graph, d->node, place, d->count, d->above));
	/* The numbers of the nodes are used up: the sums take their place. */
	d->retained = place;
	memset(d->retained, 0, nodes * sizeof(*d->retained));
	add_up(graph, d);
	return 0;
}

void dominators_done(struct dominators *d)
{
	free(d->node);
	free(d->above);
	free(d->retained);
	*d = (struct dominators){ 0 };
}
