/* See record_events.h. */
#include "cli/record_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "cli/message.h"
#include "dotnet/ipc.h"
#include "dotnet/record_profiles.h"

#define PROVIDERS_MAX 60u
/*
 * The keywords of dotnet-common and of contention, without those whose events are many times as
 * frequent as the thing they describe: each wait of a pool thread, and all events of an exception
 * but its throw (catch, finally, filter, their ends). The monitoring keyword (0x200000000) has the
 * throw alone. With the exceptions keyword (0x8000) the runtime would format method names for the
 * other events even if their ids were left out.
 */
#define COMMON_EVENTS  PROVIDER_CLR_NAME ":0x120003401D:4"
#define COMMON_WITHOUT PROVIDER_CLR_NAME ":-57"
/*
 * Events of level 5 that no profile is for: allocation ticks, pinned and finalized objects, joins
 * of the collector, counts and queues of the thread pool, memory for compiled code, IL maps.
 */
#define VERBOSE_WITHOUT \
	PROVIDER_CLR_NAME ":-6,-10,-29,-33,-56,-60,-61,-62,-63,-64,-65,-146,-190,-203"

static const struct provider_choice *runtime_choice(const struct record_events *events)
{
	for (uint32_t i = 0; i < events->providers.items.count; i++)
		if (strcmp(events->providers.items.items[i].name, PROVIDER_CLR_NAME) == 0)
			return &events->providers.items.items[i];
	return NULL;
}

/* --providers replaces the other choices for the runtime's own provider. */
static int add_runtime(struct record_events *events, const struct record_events_values *values,
	struct diag *diag)
{
	bool own_choice = runtime_choice(events) != NULL;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < values->profiles.list.count; i++)
		result = record_profiles_add(&events->providers, values->profiles.list.items[i],
			&events->stack_kinds, diag);
	if (result == 0 && !values->profiles.list.count)
		result = provider_list_add_text(&events->providers, COMMON_EVENTS, "the default",
			diag);
	const struct provider_choice *runtime = runtime_choice(events);

	if (result == 0 && runtime && !own_choice)
		result = provider_list_add_event_ids(&events->providers, COMMON_WITHOUT, diag);
	if (result == 0 && runtime && !own_choice && runtime->level >= IPC_LEVEL_MAX)
		result = provider_list_add_event_ids(&events->providers, VERBOSE_WITHOUT, diag);
	return result;
}

int record_events_choose(struct record_events *events, const struct record_events_values *values,
	struct diag *diag)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < values->providers.list.count; i++)
		result = provider_list_add_text(&events->providers, values->providers.list.items[i],
			"--providers", diag);
	events->stack_kinds = values->stacks ? STACKS_OF_ALL : 0;
	if (result == 0)
		result = add_runtime(events, values, diag);
	events->switches = events->stack_kinds & STACKS_OF_SWITCHES;
	events->stack_kinds &= STACKS_OF_ALL;
	if (result == 0 && (events->stack_kinds || values->activities) &&
		!events->providers.items.count)
		result = provider_list_add_text(&events->providers, PROVIDER_CLR_NAME ":0x0:0",
			values->activities ? "--activities" : "--event-stacks", diag);
	if (result == 0 && events->providers.items.count > PROVIDERS_MAX)
		result = diag_set(diag, -EINVAL, "--providers takes at most %u providers",
			PROVIDERS_MAX);
	for (uint32_t i = 0; result == 0 && i < values->user_providers.list.count; i++)
		result = provider_list_add_text(&events->user_providers,
			values->user_providers.list.items[i], "--dotnet-user-events", diag);
	if (result == 0 && events->user_providers.items.count > PROVIDERS_MAX)
		result = diag_set(diag, -EINVAL, "--dotnet-user-events takes at most %u providers",
			PROVIDERS_MAX);
	provider_list_describe(&events->providers, &events->text);
	provider_list_describe(&events->user_providers, &events->user_text);
	events->requested = provider_list_request(&events->providers);
	events->user_requested = provider_list_request(&events->user_providers);
	if (result == 0 && (!events->requested || !events->user_requested))
		result = diag_set(diag, -ENOMEM, "no memory for the providers");
	return result;
}

int record_events_list_profiles(void)
{
#define RECORD_PROFILE(name, text, providers, stacks) printf("%-11s %s\n", name, text);
#include "dotnet/record_profiles.def"
	printf("%-11s %s\n", "all", "all of these but thread-time");
	return message_finish_output();
}

void record_events_done(struct record_events *events)
{
	provider_list_done(&events->providers);
	provider_list_done(&events->user_providers);
	bytes_done(&events->text);
	bytes_done(&events->user_text);
	free(events->requested);
	free(events->user_requested);
}
