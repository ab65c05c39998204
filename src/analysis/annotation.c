/* See annotation.h. */
#include "analysis/annotation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/function_match.h"
#include "analysis/profile.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* The row of a line, or NULL without memory. */
static struct annotated_line *line_of(struct annotation *annotation,
	const struct function *function)
{
	uint64_t key = (uint64_t)function->file << 32 | function->line;
	uint32_t known = map_get(&annotation->index, key);

	if (known)
		return &annotation->lines.items[known - 1];
	if (!vec_add(&annotation->lines,
		    ((struct annotated_line){ .file = function->file, .line = function->line })) ||
		!map_add(&annotation->index, key, annotation->lines.count))
		return NULL;
	return vec_last(&annotation->lines);
}

/*
 * A recorded frame is the functions that were inlined at its address, innermost first, and the
 * function that has the code. Its time counts at the innermost of them that matches.
 */
static bool count_stack(struct annotation *annotation, const struct profile *profile,
	const struct symbolmap *names, const uint8_t *matches, uint32_t index)
{
	const struct profile_stack *stack = &profile->stacks.items[index];
	bool leaf = true;   /* in the first recorded frame */
	bool found = false; /* in the present recorded frame */
	bool counted = false;

	for (uint32_t f = 0; f < stack->frame_count; f++) {
		uint32_t number = profile->functions.items[stack->at + f];
		const struct function *function = &names->functions.items[number];
		if (matches[number] && !found) {
			struct annotated_line *line = line_of(annotation, function);
			if (!line)
				return false;
			found = true;
			if (leaf) {
				line->self_ns += stack->weight_ns;
				line->self_count += stack->count;
				annotation->self_ns += stack->weight_ns;
				annotation->self_count += stack->count;
			}
			if (line->stack_mark != index + 1) {
				line->total_ns += stack->weight_ns;
				line->total_count += stack->count;
			}
			line->stack_mark = index + 1;
			counted = true;
		}
		if (!function->inlined)
			leaf = found = false;
	}
	annotation->total_ns += counted ? stack->weight_ns : 0;
	annotation->total_count += counted ? stack->count : 0;
	return true;
}

static int compare_lines(const void *left, const void *right, void *context)
{
	const struct trace *trace = context;
	const struct annotated_line *a = left;
	const struct annotated_line *b = right;

	if (a->file != b->file)
		return strcmp(trace_text(trace, a->file), trace_text(trace, b->file));
	return a->line < b->line ? -1 : a->line > b->line;
}

int annotation_count(struct annotation *annotation, const struct profile *profile,
	const struct symbolmap *names, const char *pattern)
{
	uint8_t *matches = function_match(names, pattern, &annotation->functions);
	bool done = matches != NULL;

	for (uint32_t i = 0; i < profile->stacks.count && done; i++)
		done = count_stack(annotation, profile, names, matches, i);
	if (done && annotation->lines.count > 1)
		qsort_r(annotation->lines.items, annotation->lines.count,
			sizeof(*annotation->lines.items), compare_lines, profile->trace);
	map_done(&annotation->index); /* sorting has moved the lines */
	free(matches);
	return done ? 0 : -ENOMEM;
}

void annotation_done(struct annotation *annotation)
{
	vec_done(&annotation->lines);
	vec_done(&annotation->functions);
	map_done(&annotation->index);
}
