/* See instructions.h. */
#include "analysis/instructions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/function_match.h"
#include "analysis/profile.h"
#include "trace/line_table.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* Describes the body that has an address; false: its bounds are not known. */
static bool describe(const struct symbolmap *names, const struct profile_stack *stack,
	uint64_t address, struct instruction_body *ret_body, uint64_t *ret_key)
{
	const struct trace *trace = names->trace;
	struct line_place place;
	uint32_t mapping;
	uint32_t code;
	uint32_t symbol;

	if (!symbolmap_place(names, stack->process, address, stack->epoch, false, &place, &mapping,
		    &code))
		return false;
	*ret_body = (struct instruction_body){
		.process = stack->process, .mapping = mapping, .code = code
	};
	if (code) {
		const struct code_range *range =
			&trace->processes.items[stack->process].codes.items[code - 1];
		ret_body->begin = range->begin;
		ret_body->end = range->end;
		*ret_key = hash_u64((uint64_t)stack->process << 32 | code);
		return true;
	}
	if (!symbolmap_native(names, stack->process, address, &mapping, &symbol) || !symbol)
		return false;
	const struct mapping *image = &trace->mappings.items[mapping];
	ret_body->begin = trace->symbols.items[symbol - 1].begin;
	ret_body->end = trace->symbols.items[symbol - 1].end;
	/* The same place of the same file in every process. */
	*ret_key = hash_u64(ret_body->begin - image->begin + image->file_offset) ^
		   hash_u64((uint64_t)image->path << 32 | image->build_id);
	return ret_body->begin <= address && address < ret_body->end;
}

/* 0: no memory; else its index plus one. */
static uint32_t body_of(struct instructions *all, const struct instruction_body *found,
	uint64_t key)
{
	uint32_t known = map_get(&all->body_index, key);

	if (known)
		return known;
	if (!vec_add(&all->bodies, *found) || !map_add(&all->body_index, key, all->bodies.count))
		return 0;
	return all->bodies.count;
}

static bool add_hit(struct instructions *all, uint32_t body, uint32_t offset,
	const struct profile_stack *stack)
{
	uint64_t key = hash_u64((uint64_t)body << 32 | offset);
	uint32_t known = map_get(&all->hit_index, key);

	if (!known) {
		const struct instruction_hits hits = { .body = body, .offset = offset };
		if (!vec_add(&all->hits, hits) || !map_add(&all->hit_index, key, all->hits.count))
			return false;
		known = all->hits.count;
	}
	struct instruction_hits *hits = &all->hits.items[known - 1];
	hits->ns += stack->weight_ns;
	hits->count += stack->count;
	all->bodies.items[body].self_ns += stack->weight_ns;
	all->bodies.items[body].self_count += stack->count;
	return true;
}

static bool count_stack(struct instructions *all, const struct profile *profile,
	const struct symbolmap *names, const uint8_t *matches, const struct profile_stack *stack)
{
	struct instruction_body found;
	uint32_t count;
	uint64_t key;
	const uint64_t *frames = stack_table_get(&profile->trace->stacks, stack->stack, &count);

	if (!count || !stack->frame_count || !matches[profile->functions.items[stack->at]])
		return true;
	all->self_ns += stack->weight_ns;
	all->self_count += stack->count;
	if (!describe(names, stack, frames[0], &found, &key)) {
		all->without_body_ns += stack->weight_ns;
		return true;
	}
	found.function = profile->bodies.items[stack->at];
	uint32_t body = body_of(all, &found, key);
	return body && add_hit(all, body - 1, (uint32_t)(frames[0] - found.begin), stack);
}

static int compare_hits(const void *left, const void *right)
{
	const struct instruction_hits *a = left;
	const struct instruction_hits *b = right;

	if (a->body != b->body)
		return a->body < b->body ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int compare_bodies(const void *left, const void *right)
{
	const struct instruction_body *a = left;
	const struct instruction_body *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void sort(struct instructions *all)
{
	if (all->hits.count)
		qsort(all->hits.items, all->hits.count, sizeof(*all->hits.items), compare_hits);
	for (uint32_t i = 0; i < all->hits.count; i++) {
		struct instruction_body *body = &all->bodies.items[all->hits.items[i].body];
		if (!body->hit_count++)
			body->hits_at = i;
	}
	if (all->bodies.count)
		qsort(all->bodies.items, all->bodies.count, sizeof(*all->bodies.items),
			compare_bodies);
	/* they refer to the order of arrival */
	map_done(&all->body_index);
	map_done(&all->hit_index);
}

int instructions_count(struct instructions *all, const struct profile *profile,
	const struct symbolmap *names, const char *pattern)
{
	uint8_t *matches = function_match(names, pattern, &all->functions);
	bool done = matches != NULL;

	for (uint32_t i = 0; i < profile->stacks.count && done; i++)
		done = count_stack(all, profile, names, matches, &profile->stacks.items[i]);
	if (done)
		sort(all);
	free(matches);
	return done ? 0 : -ENOMEM;
}

struct line_place instructions_place(const struct trace *trace, const struct instruction_body *body,
	uint32_t offset)
{
	const struct mapping *mapping = &trace->mappings.items[body->mapping];

	if (!body->code)
		return (struct line_place){ .mapping_id = mapping->id,
			.offset = body->begin - mapping->begin + offset };
	const struct code_range *range =
		&trace->processes.items[body->process].codes.items[body->code - 1];
	return (struct line_place){ range->mapping_id, range->begin, range->method_id, offset };
}

void instructions_done(struct instructions *all)
{
	vec_done(&all->bodies);
	vec_done(&all->hits);
	vec_done(&all->functions);
	map_done(&all->body_index);
	map_done(&all->hit_index);
}
