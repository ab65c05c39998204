/* See event_stacks.h. */
#include "analysis/event_stacks.h"

#include <errno.h>
#include <string.h>

#include "analysis/own_function.h"
#include "analysis/profile.h"
#include "analysis/wait_place.h"
#include "trace/event.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

int event_stacks_add(struct event_stacks *stacks, uint32_t process, const struct event *event,
	uint32_t *ret_index)
{
	const struct trace *trace = stacks->trace;

	*ret_index = 0;
	if (!event->stack_index)
		return 0;
	uint32_t epoch =
		process < trace->processes.count ? trace->processes.items[process].code_epoch : 0;
	const struct event_stack *last = stacks->last ? &stacks->items.items[stacks->last] : NULL;
	if (last && last->process == process && last->stack == event->stack_index &&
		last->epoch == epoch) {
		*ret_index = stacks->last;
		return 0;
	}
	uint64_t hash = hash_u64((uint64_t)process << 32 | event->stack_index) + epoch;

	for (struct map_walk w = map_find(&stacks->index, hash); w.value; map_next(&w)) {
		const struct event_stack *known = &stacks->items.items[w.value];
		if (known->process == process && known->stack == event->stack_index &&
			known->epoch == epoch) {
			*ret_index = stacks->last = w.value;
			return 0;
		}
	}
	const struct event_stack fresh = {
		.process = process, .stack = event->stack_index, .epoch = epoch
	};
	if (!stacks->items.count && !vec_push(&stacks->items))
		return -ENOMEM;
	if (!vec_add(&stacks->items, fresh) ||
		!map_add(&stacks->index, hash, stacks->items.count - 1))
		return -ENOMEM;
	*ret_index = stacks->last = stacks->items.count - 1;
	return 0;
}

int event_stacks_find(struct event_stacks *stacks, struct symbolmap *names)
{
	map_done(&stacks->index);
	for (uint32_t i = 1; i < stacks->items.count; i++) {
		struct event_stack *stack = &stacks->items.items[i];
		const uint64_t *frames =
			stack_table_get(&stacks->trace->stacks, stack->stack, &stack->frame_count);
		stack->at = stacks->functions.count;
		if (!vec_reserve(&stacks->functions, stack->frame_count))
			return -ENOMEM;
		for (uint32_t f = 0; f < stack->frame_count; f++) {
			uint32_t function =
				symbolmap_find(names, stack->process, frames[f], stack->epoch);
			if (!function)
				return -ENOMEM;
			stacks->functions.items[stacks->functions.count++] = function;
		}
	}
	return 0;
}

/* The runtime's own methods that write an event, which are on the stack of each that a library writes. */
static bool writes_events(const struct symbolmap *names, uint32_t function)
{
	const struct function *f = &names->functions.items[function];
	const char *name = trace_text(names->trace, f->full_name);

	return (f->kind == FUNCTION_JIT || f->kind == FUNCTION_READYTORUN) &&
	       (strncmp(name, "System.Diagnostics.Tracing.", 27) == 0 ||
		       strstr(name, "Telemetry.") || strstr(name, "EventSource."));
}

static bool has_managed(const struct symbolmap *names, const uint32_t *functions, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint8_t kind = (uint8_t)names->functions.items[functions[i]].kind;
		if (kind == FUNCTION_JIT || kind == FUNCTION_READYTORUN)
			return true;
	}
	return false;
}

void event_stacks_place(struct event_stacks *stacks, const struct symbolmap *names)
{
	for (uint32_t i = 1; i < stacks->items.count; i++) {
		struct event_stack *stack = &stacks->items.items[i];
		uint32_t *functions = stacks->functions.items + stack->at;
		for (uint32_t f = 0; f < stack->frame_count; f++)
			functions[f] = names->functions.items[functions[f]].method;
		uint32_t first =
			0; /* of the user's own; or a mark, where it may have been missed */
		while (first < stack->frame_count && !own_function(names, functions[first]) &&
			!own_function_is_missed(names, functions[first]))
			first++;
		uint32_t own = first;
		while (own < stack->frame_count && !own_function(names, functions[own]))
			own++;
		uint32_t leaf = 0;
		while (leaf + 1 < stack->frame_count && writes_events(names, functions[leaf]))
			leaf++;
		stack->leaf = stack->frame_count ? functions[leaf] : 0;
		if (own < stack->frame_count)
			stack->own = functions[first];
		else if (!has_managed(names, functions, stack->frame_count))
			stack->own = wait_place_own(names, functions, stack->frame_count);
		stack->own = stack->own ? stack->own : stack->leaf;
	}
}

bool event_stacks_has_module(const struct event_stacks *stacks, const struct symbolmap *names,
	uint32_t index, const char *const *patterns, uint32_t count)
{
	if (index >= stacks->items.count)
		return false;
	const struct event_stack *stack = &stacks->items.items[index];

	for (uint32_t f = 0; f < stack->frame_count; f++) {
		uint32_t function = stacks->functions.items[stack->at + f];
		const char *module =
			trace_text(stacks->trace, names->functions.items[function].module);
		for (uint32_t i = 0; i < count; i++)
			if (profile_matches_module(module, patterns[i]))
				return true;
	}
	return false;
}

void event_stacks_done(struct event_stacks *stacks)
{
	vec_done(&stacks->items);
	vec_done(&stacks->functions);
	map_done(&stacks->index);
	*stacks = (struct event_stacks){ 0 };
}
