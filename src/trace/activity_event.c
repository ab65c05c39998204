/* See activity_event.h. */
#include "trace/activity_event.h"

#include <stddef.h>
#include <string.h>

#include "trace/provider_kind.h"
#include "trace/source_event.h"

static const char *const names[] = {
#define ACTIVITY_PROVIDER(provider, name, keywords, level) [ACTIVITY_PROVIDER_##provider] = name,
#include "trace/activity_events.def"
};

static const struct activity_row {
	uint32_t provider;
	uint32_t event_id;
	struct activity_event event;
} rows[] = {
#define ACTIVITY_EVENT(provider, event_id, kind, step) \
	{ ACTIVITY_PROVIDER_##provider, event_id, { kind, step } },
#include "trace/activity_events.def"
};

struct activity_event activity_event_of(const char *provider, uint32_t event_id)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].event_id == event_id && strcmp(names[rows[i].provider], provider) == 0)
			return rows[i].event;
	return (struct activity_event){ .kind = ACTIVITY_NONE };
}
