/*
 * Folded stacks: "process;outermost;...;leaf count", a line for each distinct stack, sorted by
 * text. What other flame graph tools read.
 */
#ifndef SPOOR_RENDER_FOLDED_H
#define SPOOR_RENDER_FOLDED_H

#include <stdbool.h>

struct bytes;
struct call_tree;
struct symbolmap;
struct trace;

/*
 * The tree gets sorted. `by_weight`: the numbers are weights in place of samples. In names ';' becomes ':' and what would break a line or a terminal is
 * escaped.
 */
void folded_write(struct call_tree *tree, const struct trace *trace, const struct symbolmap *names,
	bool by_weight, struct bytes *out);

#endif
