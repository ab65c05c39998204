/* See group.h. */
#include "analysis/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/profile.h"
#include "base/map.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

struct grouping {
	struct report *report;
	const struct profile *profile;
	const struct symbolmap *names;
	struct map places; /* (name or 0, module or 0) -> place */
	struct map owners; /* (process name or 0, pid or 0) -> owner */
	struct map groups; /* (owner, place) -> group + 1 */
	/* of each group: the last stack that counted towards its total, plus one */
	VEC(uint32_t) marks;
	uint32_t *place_of; /* of each function; 0: not looked up yet */
	bool with_callers;
};

struct group_order {
	const struct trace *trace;
	bool by_total;
};

/* The number of a key, from 1 on, in order of first use; 0 when there is no memory. */
static uint32_t number_of(struct map *map, uint64_t key)
{
	uint32_t number = map_get(map, key);

	if (number)
		return number;
	number = map->count + 1;
	return map_put(map, key, number) ? number : 0;
}

static uint32_t place_of(struct grouping *g, uint32_t function_index)
{
	const struct function *function = &g->names->functions.items[function_index];
	unsigned keys = g->report->group_keys;

	if (!g->place_of[function_index])
		g->place_of[function_index] = number_of(&g->places,
			(uint64_t)(keys & GROUP_FUNCTION ? function->full_name : 0) << 32 |
				(keys & GROUP_MODULE ? function->module : 0));
	return g->place_of[function_index];
}

static struct report_group *group_of(struct grouping *g, uint32_t process_index, uint32_t owner,
	uint32_t function_index, uint32_t *ret_index)
{
	const struct process *process = &g->profile->trace->processes.items[process_index];
	const struct function *function = &g->names->functions.items[function_index];
	unsigned keys = g->report->group_keys;
	uint32_t place = place_of(g, function_index);
	uint64_t key = (uint64_t)owner << 32 | place;
	uint32_t index = place ? map_get(&g->groups, key) : 0;

	if (!place)
		return NULL;
	if (!index) {
		struct report_group group = {
			.process = process_index,
			.pid = keys & GROUP_PID ? process->pid : 0,
			.name = keys & GROUP_NAME ? process->name : 0,
			.module = keys & GROUP_MODULE ? function->module : 0,
			.function = function_index,
		};
		if (!vec_add(&g->report->groups, group) || !vec_add(&g->marks, 0))
			return NULL;
		index = g->report->groups.count;
		if (!map_put(&g->groups, key, index))
			return NULL;
	}
	*ret_index = index - 1;
	return &g->report->groups.items[index - 1];
}

static int count_stack(struct grouping *g, uint32_t at)
{
	const struct profile_stack *stack = &g->profile->stacks.items[at];
	const struct process *process = &g->profile->trace->processes.items[stack->process];
	unsigned keys = g->report->group_keys;
	uint32_t owner =
		number_of(&g->owners, (uint64_t)(keys & GROUP_NAME ? process->name : 0) << 32 |
					      (keys & GROUP_PID ? process->pid : 0));

	if (!owner)
		return -ENOMEM;
	for (uint32_t i = 0; i < (g->with_callers ? stack->frame_count : stack->frame_count != 0);
		i++) {
		uint32_t index;
		struct report_group *group = group_of(g, stack->process, owner,
			g->profile->functions.items[stack->at + i], &index);
		if (!group)
			return -ENOMEM;
		if (!i) {
			group->self_ns += stack->weight_ns;
			group->self_count += stack->count;
		}
		if (g->marks.items[index] == at + 1)
			continue;
		g->marks.items[index] = at + 1;
		group->total_ns += stack->weight_ns;
		group->total_count += stack->count;
	}
	return 0;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/*
 * Equal numbers are ordered by the printed text, so that the same recording gives the same report.
 */
static int compare_groups(const void *left, const void *right, void *context)
{
	const struct group_order *sort = context;
	const struct report_group *a = left;
	const struct report_group *b = right;
	int order = sort->by_total ? compare_numbers(a->total_ns, b->total_ns)
				   : compare_numbers(a->self_ns, b->self_ns);

	if (!order)
		order = sort->by_total ? compare_numbers(a->self_ns, b->self_ns)
				       : compare_numbers(a->total_ns, b->total_ns);
	if (!order)
		order = strcmp(trace_text(sort->trace, a->name), trace_text(sort->trace, b->name));
	if (!order)
		order = strcmp(trace_text(sort->trace, a->module),
			trace_text(sort->trace, b->module));
	if (!order)
		order = a->pid < b->pid ? -1 : a->pid > b->pid;
	return order ? order : a->function < b->function ? -1 : a->function > b->function;
}

int group_count(struct report *report, const struct profile *profile, const struct symbolmap *names,
	enum group_form form)
{
	struct grouping g = { .report = report,
		.profile = profile,
		.names = names,
		.with_callers = form != GROUP_SELF_ONLY };
	struct group_order sort = { .trace = profile->trace, .by_total = form == GROUP_BY_TOTAL };
	int error = 0;

	g.place_of = calloc((size_t)names->functions.count + 1, sizeof(*g.place_of));
	if (!g.place_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->stacks.count && !error; i++)
		error = count_stack(&g, i);
	if (!error && report->groups.count)
		qsort_r(report->groups.items, report->groups.count, sizeof(report->groups.items[0]),
			compare_groups, &sort);
	free(g.place_of);
	vec_done(&g.marks);
	map_done(&g.places);
	map_done(&g.owners);
	map_done(&g.groups);
	return error;
}
