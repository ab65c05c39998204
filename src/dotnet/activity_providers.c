/* See activity_providers.h. */
#include "dotnet/activity_providers.h"

#include "dotnet/ipc.h"
#include "trace/activity_event.h"
#include "trace/provider_kind.h"
#include "trace/source_event.h"

/* The ids of all providers, in the order of the list. */
static const struct provider_row {
	uint32_t provider;
	uint32_t event_id;
} rows[] = {
#define ACTIVITY_EVENT(provider, event_id, kind, step) { ACTIVITY_PROVIDER_##provider, event_id },
#include "trace/activity_events.def"
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

void activity_providers(struct activity_providers *ret, bool can_filter)
{
	*ret = (struct activity_providers){ .providers = {
#define ACTIVITY_PROVIDER(provider, text, mask, limit) \
	[ACTIVITY_PROVIDER_##                          \
		provider] = { .name = (text), .keywords = UINT64_C(mask), .level = (limit) },
#include "trace/activity_events.def"
					    } };

	_Static_assert(ROW_COUNT <= ACTIVITY_IDS_MAX, "there is room for all of them");
	for (uint32_t i = 0; can_filter && i < ROW_COUNT; i++) {
		struct ipc_provider *provider = &ret->providers[rows[i].provider];
		ret->ids[i] = rows[i].event_id;
		provider->only_event_ids = true;
		if (!provider->event_id_count++)
			provider->event_ids = &ret->ids[i];
	}
}
