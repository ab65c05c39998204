/*
 * See tree.h.
 *
 * The way of the stack before is kept: as far as the next stack goes the same way, no node is looked up.
 */
#include "analyze/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/profile.h"
#include "base/text.h"
#include "model/symbolmap.h"
#include "model/trace.h"

struct step {
	uint32_t what;
	uint32_t node;
};

struct way {
	VEC(struct step) steps;
};

/* Whether name[0..len) is `pattern`, or ends in it behind a separator. */
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

/* Goes one step; `at` counts them. False when there is no memory. */
static bool go(struct call_tree *tree, struct way *way, uint32_t at, uint32_t what, uint32_t *node,
	bool *same)
{
	if (*same && at < way->steps.count && way->steps.items[at].what == what) {
		*node = way->steps.items[at].node;
		return true;
	}
	*same = false;
	*node = call_tree_child(tree, *node, what);
	if (!*node)
		return false;
	way->steps.count = at;
	return vec_add(&way->steps, ((struct step){ .what = what, .node = *node }));
}

/* The functions that `pattern` means, one byte each. NULL when there is no memory. */
static uint8_t *match_functions(const struct profile *profile, const struct symbolmap *names,
	const char *pattern)
{
	uint8_t *matches = calloc((size_t)names->functions.count + 1, 1);

	for (uint32_t i = 1; matches && i < names->functions.count; i++)
		matches[i] = tree_name_matches(pattern,
			trace_text(profile->trace, names->functions.items[i].name));
	return matches;
}

/* For each process the first one with the same name: itself, where it has none. NULL when there is no memory. */
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
				(void)map_put(&by_name, name, i); /* without memory they stay apart */
		}
	}
	map_done(&by_name);
	return first;
}

int tree_build(struct call_tree *tree, const struct profile *profile,
	const struct symbolmap *names, enum tree_form form, const char *pattern)
{
	bool from_leaf = form == TREE_REVERSED || form == TREE_CALLERS;
	bool by_process = form == TREE_BY_PROCESS || form == TREE_BY_PROCESS_NAME;
	uint8_t *matches = NULL;
	uint32_t *first = NULL;
	struct way way = { 0 };
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
		const uint32_t *functions = profile->functions.items + stack->at;
		uint32_t count = stack->frame_count;
		uint32_t skip = 0; /* frames below the one asked for */
		uint32_t node = CALL_TREE_ROOT;
		uint32_t at = 0;
		bool same = true;
		bool done = true;

		if (matches) {
			while (skip < count && !matches[functions[skip]])
				skip++;
			if (skip == count)
				continue;
		}
		if (by_process)
			done = go(tree, &way, at++, first ? first[stack->process] : stack->process,
				&node, &same);
		for (uint32_t f = skip; f < count && done; f++)
			done = go(tree, &way, at++, from_leaf ? functions[f] : functions[count - 1 - f],
				&node, &same);
		if (!done) {
			error = -ENOMEM;
			break;
		}
		tree->nodes.items[node].self_ns += stack->weight_ns;
		tree->nodes.items[node].self_count += stack->count;
	}
	call_tree_sum(tree);
	free(matches);
	free(first);
	vec_done(&way.steps);
	return error;
}
