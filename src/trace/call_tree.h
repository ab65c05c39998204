/*
 * A call tree: stacks merged from the root or from the leaf, built by `analysis/tree.c`.
 *
 * Nodes are in order of creation, so a parent's index is lower than its children's; node 1 is the
 * root, which has all samples. Children are a list, unordered until call_tree_sort(). With
 * `by_process` the nodes at depth 1 are processes, and `what` is an index in trace.processes;
 * everywhere else it is a function of the symbolmap.
 */
#ifndef SPOOR_TRACE_CALL_TREE_H
#define SPOOR_TRACE_CALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define CALL_TREE_ROOT 1u

struct call_node {
	uint64_t total_ns;    /* with everything below */
	uint64_t self_ns;     /* stacks that end here */
	uint64_t total_count; /* samples */
	uint64_t self_count;
	/* function, or process at depth 1 of a tree by process; 0 for the root */
	uint32_t what;
	uint32_t parent;  /* 0 for the root */
	uint32_t child;   /* the first one; 0 none */
	uint32_t sibling; /* the next one; 0 none */
	uint32_t depth;   /* 0 for the root */
	uint32_t tiers;   /* of a method: set of 1 << enum function_tier */
};

struct call_tree {
	VEC(struct call_node) nodes; /* item 0 unused */
	uint32_t depth_max;
	bool by_process;
	bool reversed; /* merged from the leaf: children are callers */
};

/* The root, empty. */
int call_tree_init(struct call_tree *tree, bool by_process, bool reversed);

/* A new child of `parent`, which must have none that is `what`. 0 when there is no memory. */
uint32_t call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t what);

/* Sums self into total, from the leaves up. Call it once, when all is added. */
void call_tree_sum(struct call_tree *tree);

/* Sorts every list of children; `compare` as for qsort. False: no memory, some are not sorted. */
bool call_tree_sort(struct call_tree *tree,
	int (*compare)(const struct call_tree *tree, uint32_t a, uint32_t b, void *context),
	void *context);

void call_tree_done(struct call_tree *tree);

#endif
