/*
 * The objects that groups of objects keep alive: the objects of a type, or those at the end of one
 * path from the roots.
 *
 *   heap_order_init(&order, &graph);
 *   heap_retained_count(&graph, &order, &groups, bytes);
 *   heap_order_done(&order);
 *
 * A group retains the objects that could not be reached from a root any more without the group: its
 * own reachable objects, and those that are reached through them only. An object that two objects
 * of a group refer to, and nothing else, counts, although neither of the two retains it alone.
 *
 * An object is retained by the groups that lie on every way from the roots to it. That is its own
 * group, and the groups that retain all objects that refer to it. So each object passes its set of
 * groups to those it refers to, which keep the common part, until nothing changes. Few sets differ:
 * they are stored once and have a number. 4 bytes a node for the order, 4 for the sets.
 */
#ifndef SPOOR_HEAP_HEAP_RETAINED_H
#define SPOOR_HEAP_HEAP_RETAINED_H

#include <stdint.h>

struct heap_graph;

/*
 * All nodes that the root leads to, breadth first: the first node that refers to another one is on
 * a shortest way to it.
 */
struct heap_order {
	uint32_t count;
	uint32_t *node; /* node[0] is the root */
};

/* -ENOMEM. The graph is resolved. */
int heap_order_init(struct heap_order *order, const struct heap_graph *graph);
void heap_order_done(struct heap_order *order);

struct heap_groups {
	uint32_t (*group_of)(const void *context, uint32_t node); /* 0: none; else below `count` */
	const void *context;
	uint32_t count;
};

/*
 * Adds to bytes[group] what each group retains. -ENOMEM. -EOVERFLOW: the groups of this graph are
 * nested too deeply; `bytes` is untouched.
 */
int heap_retained_count(const struct heap_graph *graph, const struct heap_order *order,
	const struct heap_groups *groups, uint64_t *bytes);

#endif
