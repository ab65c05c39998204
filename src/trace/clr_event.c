/* See clr_event.h. */
#include "trace/clr_event.h"

#include <stddef.h>

#include "trace/schema.h"

static const struct clr_event events[] = {
#define CLR_EVENT(provider, id, name, fields) { provider, id, name, fields },
#include "trace/clr_events.def"
#undef CLR_EVENT
};

const struct clr_event *clr_event_find(unsigned provider_kind, uint32_t id)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].provider_kind == provider_kind && events[i].id == id)
			return &events[i];
	return NULL;
}
