/* See provider_counts.h. */
#include "tracing/provider_counts.h"

#include <strings.h>

#include "dotnet/providers.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"

void provider_counts_begin(struct provider_counts *counts, const struct provider_list *providers)
{
	counts->providers = providers;
	for (uint32_t i = 0; i < providers->items.count; i++)
		if (!vec_add(&counts->events, 0))
			break;
}

/* Names of providers are compared without case. */
static uint32_t find(const struct provider_counts *counts, const char *name)
{
	for (uint32_t i = 0; i < counts->events.count; i++)
		if (strcasecmp(counts->providers->items.items[i].name, name) == 0)
			return i + 1;
	return UINT32_MAX;
}

void provider_counts_add(struct provider_counts *counts, const struct trace *trace,
	const struct event *event)
{
	const struct schema *schema = &trace->schemas.items[event->schema_index];

	while (counts->provider_of_schema.count <= event->schema_index)
		if (!vec_add(&counts->provider_of_schema, 0))
			return;
	uint32_t *place = &counts->provider_of_schema.items[event->schema_index];

	if (!*place)
		*place = find(counts, trace_text(trace, schema->provider));
	if (*place != UINT32_MAX)
		counts->events.items[*place - 1]++;
	else if (schema->provider_kind == PROVIDER_CLR_RUNDOWN)
		counts->rundown_events++;
}

void provider_counts_done(struct provider_counts *counts)
{
	vec_done(&counts->provider_of_schema);
	vec_done(&counts->events);
}
