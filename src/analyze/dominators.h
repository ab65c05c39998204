/*
 * What each object of a heap keeps alive: the dominator tree. An object dominates all that would go if it went.
 *
 *   dominators_init(&dominators, &graph, &diag);
 *   dominators.retained_bytes(node) ...
 *   dominators_done(&dominators);
 *
 * 12 bytes a node while it is made, 12 when it is done, besides the graph. The tree is found by letting every object push what dominates it to those it
 * refers to, in breadth-first order from the roots, until nothing moves (after Cooper, Harvey and Kennedy: A Simple, Fast Dominance
 * Algorithm); no table of who is referred to by whom is needed.
 */
#ifndef SPOOR_ANALYZE_DOMINATORS_H
#define SPOOR_ANALYZE_DOMINATORS_H

#include <stdint.h>

struct heap_graph;

struct dominators {
	uint32_t count;        /* nodes that a root leads to; the places below go from 0 to count - 1 */
	uint32_t *node;        /* of each place, breadth first; node[0] is the root */
	uint32_t *above;       /* place of what dominates it directly; above[0] is 0 */
	uint32_t *retained;    /* of each place, in units of DOMINATORS_UNIT bytes, rounded up */
	uint32_t passes;       /* over all references, until nothing moved */
};

#define DOMINATORS_UNIT 16u

/* -ENOMEM. The graph is resolved. */
int dominators_init(struct dominators *dominators, const struct heap_graph *graph);
void dominators_done(struct dominators *dominators);

#endif
