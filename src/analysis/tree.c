/*
 * See tree.h.
 *
 * Stacks are put in order from the tree's root first. Then each shares with the one before it all
 * that it shares with any earlier one: where they part, a new node begins, and no node is ever
 * looked up.
 */
#include "analysis/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/profile.h"
#include "base/text.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* A stack as the tree sees it: from which end, and from where on. */
struct tree_path {
	const uint32_t *functions; /* leaf first */
	const uint32_t *bodies;    /* the same, as they were compiled */
	uint32_t count;
	uint32_t process; /* the step before all others; 0 when the tree has none */
	uint32_t stack;   /* in the profile */
};

struct tree_paths {
	VEC(struct tree_path) list;
	VEC(uint32_t) nodes; /* of the path before, by step */
};

/* Whether name[0..len) is `pattern`, or ends in it after a separator. */
static bool ends_as(const char *pattern, const char *name, size_t len)
{
	size_t pattern_len = strlen(pattern);

	if (pattern_len > len || memcmp(name + len - pattern_len, pattern, pattern_len) != 0)
		return false;
	if (pattern_len == len)
		return true;
	char before = name[len - pattern_len - 1];
	return before == '.' || before == ':' || before == '+';
}

bool tree_name_matches(const char *pattern, const char *name)
{
	size_t len = strlen(name);
	/* Where the arguments begin. A name that opens with "(" is a kind, not a signature. */
	const char *arguments = *name ? strchr(name + 1, '(') : NULL;
	size_t head_len = arguments && name[0] != '(' ? (size_t)(arguments - name) : len;

	if (!*pattern)
		return false;
	if (ends_as(pattern, name, len) || ends_as(pattern, name, head_len))
		return true;
	if (!strpbrk(pattern, "*?"))
		return false;
	if (text_glob(pattern, name))
		return true;
	char *head = strndup(name, head_len);
	bool matches = head && text_glob(pattern, head);

	free(head);
	return matches;
}

/* Steps that two paths have in common; the process is not counted. */
static uint32_t common_steps(const struct tree_path *a, const struct tree_path *b, bool from_leaf)
{
	uint32_t most = a->count < b->count ? a->count : b->count;
	uint32_t i = 0;

	if (!most)
		return 0;
	if (from_leaf) {
		while (i < most && a->functions[i] == b->functions[i])
			i++;
	} else {
		const uint32_t *p = a->functions + a->count - 1;
		const uint32_t *q = b->functions + b->count - 1;
		for (; i < most && *p == *q; i++) {
			p--;
			q--;
		}
	}
	return i;
}

static uint32_t path_step(const struct tree_path *path, uint32_t at, bool from_leaf)
{
	return path->functions[from_leaf ? at : path->count - 1 - at];
}

static int compare_paths(const struct tree_path *a, const struct tree_path *b, bool from_leaf)
{
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	uint32_t common = common_steps(a, b, from_leaf);
	if (common == a->count || common == b->count)
		return a->count < b->count ? -1 : a->count > b->count;
	return path_step(a, common, from_leaf) < path_step(b, common, from_leaf) ? -1 : 1;
}

static int compare_from_leaf(const void *a, const void *b)
{
	return compare_paths(a, b, true);
}

static int compare_from_root(const void *a, const void *b)
{
	return compare_paths(a, b, false);
}

/* Adds the path after that of `before`, sharing their common prefix. False without memory. */
static bool add_path(struct call_tree *tree, struct tree_paths *paths,
	const struct symbolmap *names, const struct tree_path *before, const struct tree_path *path,
	const struct profile_stack *stack)
{
	uint32_t processes = tree->by_process ? 1 : 0;
	uint32_t shared = 0;

	if (before && before->process == path->process)
		shared = processes + common_steps(before, path, tree->reversed);
	paths->nodes.count = shared;
	for (uint32_t at = shared; at < processes + path->count; at++) {
		uint32_t above = at ? paths->nodes.items[at - 1] : CALL_TREE_ROOT;
		uint32_t what = at < processes ? path->process
					       : path_step(path, at - processes, tree->reversed);
		uint32_t node = call_tree_add(tree, above, what);
		if (!node || !vec_add(&paths->nodes, node))
			return false;
	}
	for (uint32_t at = processes; at < processes + path->count; at++) {
		uint32_t step = at - processes;
		uint32_t body = path->bodies[tree->reversed ? step : path->count - 1 - step];
		enum function_tier tier = function_tier(&names->functions.items[body]);
		if (tier < FUNCTION_TIER_COUNT)
			tree->nodes.items[paths->nodes.items[at]].tiers |= 1u << tier;
	}
	struct call_node *last =
		&tree->nodes.items[paths->nodes.count ? *vec_last(&paths->nodes) : CALL_TREE_ROOT];
	last->self_ns += stack->weight_ns;
	last->self_count += stack->count;
	return true;
}

/* The functions that `pattern` means, one byte each. NULL when there is no memory. */
static uint8_t *match_functions(const struct profile *profile, const struct symbolmap *names,
	const char *pattern)
{
	uint8_t *matches = calloc((size_t)names->functions.count + 1, 1);

	for (uint32_t i = 1; matches && i < names->functions.count; i++) {
		const struct function *function = &names->functions.items[i];
		matches[i] =
			tree_name_matches(pattern,
				trace_text(profile->trace, function->full_name)) ||
			tree_name_matches(pattern, trace_text(profile->trace, function->name)) ||
			(function->plain && tree_name_matches(pattern,
						    trace_text(profile->trace, function->plain)));
	}
	return matches;
}

/* For each process the first one with the same name, or itself. NULL without memory. */
static uint32_t *first_of_name(const struct trace *trace)
{
	uint32_t *first = calloc((size_t)trace->processes.count + 1, sizeof(*first));
	struct map by_name = { 0 };

	for (uint32_t i = 0; first && i < trace->processes.count; i++) {
		uint32_t name = trace->processes.items[i].name;
		first[i] = name ? map_get(&by_name, name) : i;
		if (!first[i]) {
			first[i] = i;
			if (i && name)
				/* without memory they stay apart */
				(void)map_put(&by_name, name, i);
		}
	}
	map_done(&by_name);
	return first;
}

int tree_build(struct call_tree *tree, const struct profile *profile, const struct symbolmap *names,
	enum tree_form form, const char *pattern)
{
	bool from_leaf = form == TREE_REVERSED || form == TREE_CALLERS;
	bool by_process = form == TREE_BY_PROCESS || form == TREE_BY_PROCESS_NAME;
	uint8_t *matches = NULL;
	uint32_t *first = NULL;
	struct tree_paths paths = { 0 };
	int error = call_tree_init(tree, by_process, from_leaf);

	if (error)
		return error;
	if (form == TREE_CALLERS) {
		matches = match_functions(profile, names, pattern);
		if (!matches)
			return -ENOMEM;
	}
	if (form == TREE_BY_PROCESS_NAME) {
		first = first_of_name(profile->trace);
		if (!first)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < profile->stacks.count && !error; i++) {
		const struct profile_stack *stack = &profile->stacks.items[i];
		struct tree_path path = { .functions = profile->functions.items + stack->at,
			.bodies = profile->bodies.items + stack->at,
			.count = stack->frame_count,
			.stack = i };
		if (by_process)
			path.process = first ? first[stack->process] : stack->process;
		while (matches && path.count && !matches[*path.functions]) {
			path.functions++;
			path.bodies++;
			path.count--;
		}
		if ((!matches || path.count) && !vec_add(&paths.list, path))
			error = -ENOMEM;
	}
	if (paths.list.count > 1)
		qsort(paths.list.items, paths.list.count, sizeof(paths.list.items[0]),
			from_leaf ? compare_from_leaf : compare_from_root);
	for (uint32_t i = 0; i < paths.list.count && !error; i++) {
		const struct tree_path *path = &paths.list.items[i];
		if (!add_path(tree, &paths, names, i ? path - 1 : NULL, path,
			    &profile->stacks.items[path->stack]))
			error = -ENOMEM;
	}
	call_tree_sum(tree);
	free(matches);
	free(first);
	vec_done(&paths.list);
	vec_done(&paths.nodes);
	return error;
}
