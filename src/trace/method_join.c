/* See method_join.h. */
#include "trace/method_join.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"
#include "trace/symbolmap.h"

static bool is_method(const struct function *function)
{
	return function->named &&
	       (function->kind == FUNCTION_JIT || function->kind == FUNCTION_READYTORUN);
}

/* The functions of one method, in one module. */
struct method_group {
	uint32_t first;
	uint32_t heaviest;
	uint32_t count;
	uint32_t module;
	uint32_t method;
};

struct joining {
	VEC(struct method_group) groups;
	struct map by_name;   /* full name -> function */
	struct map by_method; /* (full name, module) -> group + 1 */
	/* of each function, plus one; 0 for a function that is not a method */
	uint32_t *group_of;
};

/* The first method with this name; of several, the first one whose module is known. 0 none. */
static uint32_t method_named(const struct symbolmap *map, const struct map *by_name,
	uint32_t full_name)
{
	uint32_t first = 0;

	for (struct map_walk w = map_find(by_name, full_name); w.value; map_next(&w)) {
		bool known = map->functions.items[w.value].module != map->jit_module;
		bool first_known = first && map->functions.items[first].module != map->jit_module;
		if (!first || known > first_known || (known == first_known && w.value < first))
			first = w.value;
	}
	return first;
}

static bool group_method(struct symbolmap *map, struct joining *joining, uint32_t index,
	const uint64_t *weights)
{
	const struct function *function = &map->functions.items[index];
	uint32_t module = function->module;

	if (module == map->jit_module)
		module = map->functions
				 .items[method_named(map, &joining->by_name, function->full_name)]
				 .module;
	uint64_t key = (uint64_t)function->full_name << 32 | module;
	uint32_t number = map_get(&joining->by_method, key);

	if (!number) {
		if (!vec_add(&joining->groups,
			    ((struct method_group){
				    .first = index, .heaviest = index, .module = module })))
			return false;
		number = joining->groups.count;
		if (!map_add(&joining->by_method, key, number))
			return false;
	}
	struct method_group *group = &joining->groups.items[number - 1];

	group->count++;
	if (weights[index] > weights[group->heaviest])
		group->heaviest = index;
	joining->group_of[index] = number;
	return true;
}

static bool join_group(struct symbolmap *map, struct method_group *group)
{
	struct function joined = map->functions.items[group->heaviest];

	group->method = group->first;
	if (group->count == 1)
		return true;
	joined.module = group->module;
	joined.method = group->method = map->functions.count;
	return vec_add(&map->functions, joined);
}

int method_join(struct symbolmap *map, const uint64_t *weights)
{
	uint32_t count = map->functions.count;
	struct joining joining = {
		.group_of = calloc((size_t)count + 1, sizeof(*joining.group_of)),
	};
	bool done = joining.group_of != NULL;

	for (uint32_t i = 1; i < count && done; i++)
		done = !is_method(&map->functions.items[i]) ||
		       map_add(&joining.by_name, map->functions.items[i].full_name, i);
	for (uint32_t i = 1; i < count && done; i++)
		done = !is_method(&map->functions.items[i]) ||
		       group_method(map, &joining, i, weights);
	for (uint32_t i = 0; i < joining.groups.count && done; i++)
		done = join_group(map, &joining.groups.items[i]);
	for (uint32_t i = 1; i < count && done; i++)
		if (joining.group_of[i])
			map->functions.items[i].method =
				joining.groups.items[joining.group_of[i] - 1].method;
	free(joining.group_of);
	vec_done(&joining.groups);
	map_done(&joining.by_name);
	map_done(&joining.by_method);
	return done ? 0 : -ENOMEM;
}
