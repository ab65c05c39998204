/*
 * Call trees of a profile: from the root (callers before callees), from the leaf (the running
 * function, then its callers), or from one function to its callers.
 */
#ifndef SPOOR_ANALYSIS_TREE_H
#define SPOOR_ANALYSIS_TREE_H

#include <stdbool.h>

#include "trace/call_tree.h"

struct profile;
struct symbolmap;

enum tree_form {
	TREE_BY_PROCESS, /* root, process, outermost function, ... leaf */
	/*
	 * like TREE_BY_PROCESS, but processes of one name are merged (one of them represents all)
	 */
	TREE_BY_PROCESS_NAME,
	TREE_MERGED,   /* root, outermost function, ... leaf, over all processes */
	TREE_REVERSED, /* root, leaf, its caller, ... outermost function */
	TREE_CALLERS,  /* as TREE_REVERSED, but from the functions that `pattern` names */
};

/*
 * Builds and sums the tree; children are in no particular order. `pattern` is for TREE_CALLERS
 * alone. Where a stack has the function several times, the one nearest to the leaf is taken. 0 or
 * -ENOMEM; the caller ends the tree in any case.
 */
int tree_build(struct call_tree *tree, const struct profile *profile, const struct symbolmap *names,
	enum tree_form form, const char *pattern);

/*
 * Whether `pattern` from the command line matches the function called `name`: the whole name, a
 * glob, or its last parts ("Burn" and "Pricing.Burn" match "Shop.Pricing.Burn(int)").
 */
bool tree_name_matches(const char *pattern, const char *name);

#endif
