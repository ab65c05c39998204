/*
 * What a session requests to observe activities: the providers of trace/activity_events.def, each
 * with the ids of its events, by which .NET 10 and later filter.
 */
#ifndef SPOOR_DOTNET_ACTIVITY_PROVIDERS_H
#define SPOOR_DOTNET_ACTIVITY_PROVIDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "dotnet/ipc.h"
#include "trace/activity_event.h"

#define ACTIVITY_IDS_MAX 32u

/* Points into itself: it is not copied. */
struct activity_providers {
	struct ipc_provider providers[ACTIVITY_PROVIDERS];
	uint32_t ids[ACTIVITY_IDS_MAX];
};

/* `can_filter`: with event ids. Runtimes before .NET 10 refuse them, and send all events of the keywords. */
void activity_providers(struct activity_providers *ret, bool can_filter);

#endif
