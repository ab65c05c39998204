/*
 * Which events of .NET runtimes `record` requests: by --profile, --providers and --event-stacks, or
 * the default.
 */
#ifndef SPOOR_CLI_RECORD_EVENTS_H
#define SPOOR_CLI_RECORD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "cli/options.h"
#include "dotnet/providers.h"

struct diag;

struct record_events_values {
	struct texts profiles;
	struct texts providers;
	struct texts user_providers;
	bool stacks;
	uint64_t activities;
};

struct record_events {
	struct provider_list providers;      /* empty: no events */
	unsigned stack_kinds;                /* enum stacks_of */
	bool switches;                       /* a profile wants the context switches */
	struct bytes text;                   /* of the providers, for the file */
	struct provider_list user_providers; /* of user_events, and likewise */
	struct bytes user_text;
	/* arrays that borrow from the lists */
	struct ipc_provider *requested;
	struct ipc_provider *user_requested;
};

/* 0, -EINVAL or -ENOMEM with a sentence. */
int record_events_choose(struct record_events *events, const struct record_events_values *values,
	struct diag *diag);

/* --list-profiles: prints them, and what each is for. An exit code. */
int record_events_list_profiles(void);

void record_events_done(struct record_events *events);

#endif
