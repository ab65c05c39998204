/* See blocked_profile.h. */
#include "analysis/blocked_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/blocks.h"
#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/thread_role.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

static int add(struct profile *profile, const struct event_stacks *stacks, uint32_t process,
	uint32_t index, const struct tally_row *row, enum thread_role role)
{
	struct profile_stack stack = { .process = process,
		.weight_ns = row->amount,
		.count = row->count,
		.role = (uint8_t)role };

	if (index) {
		stack.stack = stacks->items.items[index].stack;
		stack.epoch = stacks->items.items[index].epoch;
	}
	return profile_add(profile, &stack);
}

/* The waker may be of another process than those that are selected. */
static int add_waker(struct profile *profile, const struct blocks *blocks,
	const struct event_stacks *stacks, const struct tally_row *row)
{
	if (!row->key.detail || !profile_wants_process(profile, row->key.process))
		return 0;
	const struct block_waker *waker = &blocks->wakers.items[row->key.detail - 1];

	return add(profile, stacks, profile->trace->threads.items[waker->thread].process,
		waker->stack, row, THREAD_OTHER);
}

static enum thread_role role_of(const struct trace *trace, const struct tally_row *row)
{
	const char *name = trace_text(trace, trace->threads.items[row->key.id].name);
	enum thread_role role = thread_role_of(name);

	return role == THREAD_OTHER && thread_role_is_own(name) ? THREAD_SERVICE : role;
}

static int add_all(struct profile *profile, const struct event_stacks *stacks,
	const struct tally *tally)
{
	int error = 0;

	for (uint32_t i = 0; i < tally->rows.list.count && !error; i++) {
		const struct tally_row *row = &tally->rows.list.items[i];
		error = add(profile, stacks, row->key.process, row->key.stack, row,
			role_of(profile->trace, row));
	}
	return error;
}

int blocked_profile_fill(const struct blocks *blocks, const struct event_stacks *stacks,
	enum blocked_form form, struct profile *profile)
{
	const struct tally *blocked = &blocks->blocked;
	int error = 0;

	if (form == BLOCKED_WAKERS) {
		profile->ignores_pids = true;
		for (uint32_t i = 0; i < blocked->rows.list.count && !error; i++)
			error = add_waker(profile, blocks, stacks, &blocked->rows.list.items[i]);
		return error;
	}
	error = add_all(profile, stacks, blocked);
	if (!error && form == BLOCKED_WALL)
		error = add_all(profile, stacks, &blocks->runnable);
	return error;
}

static bool is_of_scheduler(const struct symbolmap *names, uint32_t index)
{
	/* the first one: several programs follow the switches */
	static const char *const starts[] = { "__traceiter_sched_switch", "__schedule", "schedule",
		"io_schedule", "preempt_schedule" };
	const struct function *function = &names->functions.items[index];

	if (function->kind != FUNCTION_KERNEL)
		return false;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(trace_text(names->trace, function->name), starts[i],
			    strlen(starts[i])) == 0)
			return true;
	return false;
}

int blocked_profile_mark(struct profile *profile, struct symbolmap *names)
{
	for (uint32_t i = 0; i < profile->stacks.count; i++) {
		struct profile_stack *stack = &profile->stacks.items[i];
		uint32_t *functions = profile->functions.items + stack->at;
		uint32_t *bodies = profile->bodies.items + stack->at;
		struct wait_place place;
		char text[64];
		uint32_t drop = 0;
		while (drop < stack->frame_count && is_of_scheduler(names, functions[drop]))
			drop++;
		if (!drop)
			continue;
		wait_place_find(names, functions, stack->frame_count, &place);
		bool is_idle = place.idle || (!place.where && stack->role != THREAD_OTHER);
		/* of our own words: it fits */
		(void)snprintf(text, sizeof(text), "[%s]",
			is_idle ? "idle" : block_cause_words(place.cause));
		uint32_t mark = symbolmap_label(names, text, FUNCTION_BLOCKED);
		if (!mark)
			return -ENOMEM;
		if (is_idle) {
			drop = stack->frame_count;
			stack->role = THREAD_OTHER;
		}
		drop--;
		stack->at += drop;
		stack->frame_count -= drop;
		functions[drop] = bodies[drop] = mark;
	}
	return 0;
}
