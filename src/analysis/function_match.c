/* See function_match.h. */
#include "analysis/function_match.h"

#include <stdlib.h>

#include "analysis/tree.h"
#include "base/map.h"
#include "base/vec.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

uint8_t *function_match(const struct symbolmap *names, const char *pattern, void *vec_of_u32)
{
	VEC(uint32_t) *found = vec_of_u32;
	const struct trace *trace = names->trace;
	uint8_t *matches = calloc((size_t)names->functions.count + 1, 1);
	struct map seen = { 0 };

	for (uint32_t i = 1; matches && i < names->functions.count; i++) {
		const struct function *function = &names->functions.items[i];
		uint32_t name = function->plain ? function->plain : function->name;
		matches[i] = tree_name_matches(pattern, trace_text(trace, name));
		if (!matches[i] || map_get(&seen, name))
			continue;
		if (!vec_add(found, name) || !map_add(&seen, name, 1)) {
			free(matches);
			matches = NULL;
		}
	}
	map_done(&seen);
	return matches;
}
