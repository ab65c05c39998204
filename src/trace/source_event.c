/* See source_event.h. */
#include "trace/source_event.h"

#include <string.h>

#include "trace/provider_kind.h"

static const struct source_event_row {
	const char *provider;
	uint32_t event_id;
	const char *name;
} rows[SOURCE_EVENTS] = {
#define SOURCE_EVENT(event, provider, event_id, name) \
	[SOURCE_##event] = { (provider), (event_id), (name) },
#include "trace/source_events.def"
#undef SOURCE_EVENT
};

enum source_event source_event_of(const char *provider, uint32_t event_id, const char *name)
{
	for (unsigned i = SOURCE_OTHER + 1; i < SOURCE_EVENTS; i++)
		if ((!rows[i].event_id || rows[i].event_id == event_id) &&
			(!*rows[i].name || strcmp(rows[i].name, name) == 0) &&
			strcmp(rows[i].provider, provider) == 0)
			return (enum source_event)i;
	return SOURCE_OTHER;
}
