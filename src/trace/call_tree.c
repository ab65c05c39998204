/* See call_tree.h. */
#include "trace/call_tree.h"

#include <errno.h>
#include <stdlib.h>

int call_tree_init(struct call_tree *tree, bool by_process, bool reversed)
{
	*tree = (struct call_tree){ .by_process = by_process, .reversed = reversed };
	if (!vec_push(&tree->nodes) || !vec_push(&tree->nodes)) {
		call_tree_done(tree);
		return -ENOMEM;
	}
	return 0;
}

uint32_t call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t what)
{
	uint32_t node = tree->nodes.count;
	struct call_node *child = vec_push(&tree->nodes);

	if (!child)
		return 0;
	struct call_node *above = &tree->nodes.items[parent];
	child->what = what;
	child->parent = parent;
	child->depth = above->depth + 1;
	child->sibling = above->child;
	above->child = node;
	if (child->depth > tree->depth_max)
		tree->depth_max = child->depth;
	return node;
}

void call_tree_sum(struct call_tree *tree)
{
	for (uint32_t i = CALL_TREE_ROOT; i < tree->nodes.count; i++) {
		struct call_node *node = &tree->nodes.items[i];
		node->total_ns = node->self_ns;
		node->total_count = node->self_count;
	}
	for (uint32_t i = tree->nodes.count; i-- > CALL_TREE_ROOT + 1;) {
		const struct call_node *node = &tree->nodes.items[i];
		struct call_node *above = &tree->nodes.items[node->parent];
		above->total_ns += node->total_ns;
		above->total_count += node->total_count;
	}
}

struct call_tree_order {
	const struct call_tree *tree;
	int (*compare)(const struct call_tree *tree, uint32_t a, uint32_t b, void *context);
	void *context;
};

static int compare_children(const void *left, const void *right, void *context)
{
	const struct call_tree_order *sort = context;

	return sort->compare(sort->tree, *(const uint32_t *)left, *(const uint32_t *)right,
		sort->context);
}

bool call_tree_sort(struct call_tree *tree,
	int (*compare)(const struct call_tree *tree, uint32_t a, uint32_t b, void *context),
	void *context)
{
	struct call_tree_order sort = { .tree = tree, .compare = compare, .context = context };
	VEC(uint32_t) children = { 0 };
	bool complete = true;

	for (uint32_t i = CALL_TREE_ROOT; i < tree->nodes.count; i++) {
		struct call_node *node = &tree->nodes.items[i];
		if (!node->child || !tree->nodes.items[node->child].sibling)
			continue;
		vec_reset(&children);
		bool all = true;
		for (uint32_t c = node->child; c && all; c = tree->nodes.items[c].sibling)
			all = vec_add(&children, c);
		if (!all) {
			complete = false;
			break;
		}
		qsort_r(children.items, children.count, sizeof(uint32_t), compare_children, &sort);
		uint32_t next = 0;
		for (uint32_t c = children.count; c-- > 0;) {
			tree->nodes.items[children.items[c]].sibling = next;
			next = children.items[c];
		}
		node->child = next;
	}
	vec_done(&children);
	return complete;
}

void call_tree_done(struct call_tree *tree)
{
	vec_done(&tree->nodes);
	*tree = (struct call_tree){ 0 };
}
