/*
 * Providers that a runtime must not be asked for before it has started.
 *
 * EventCounters that are asked for then can lock it up for good: its first thread holds the list of EventSources while the thread that reads the counters makes
 * some of these (dotnet/runtime issues 119014 and 105682). So what asks for them goes into a session of its own, which is opened once the start is over.
 *
 *   late_providers_split(&late, providers, count);
 *   ... late.early, late.late ...                 for a runtime that is to start; for all others `providers` as they are
 *   late_providers_done(&late);
 */
#ifndef SPOOR_TRACING_LATE_PROVIDERS_H
#define SPOOR_TRACING_LATE_PROVIDERS_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_provider;

/* How long after it was told to go on a runtime's start is taken for over. */
#define LATE_PROVIDERS_NS UINT64_C(1000000000)

struct late_providers {
	struct ipc_provider *early; /* NULL: none */
	struct ipc_provider *late;  /* NULL: none */
	uint32_t early_count;
	uint32_t late_count;
};

/* It is asked for EventCounters. */
bool late_providers_has(const struct ipc_provider *provider);

/* What the providers point to is borrowed. -ENOMEM. */
int late_providers_split(struct late_providers *late, const struct ipc_provider *providers, uint32_t count);

/* Whether the runtime of the process, whose id is one of here, is past its own beginning: one that waits to be told to go on is not. */
bool late_providers_has_begun(uint32_t pid);

void late_providers_done(struct late_providers *late);

#endif
