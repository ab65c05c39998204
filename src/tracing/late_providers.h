/*
 * Separates the providers that must not be enabled before a runtime has started.
 *
 * EventCounters that are enabled during the start can deadlock a runtime permanently: its first
 * thread holds the lock of the list of EventSources while the thread that reads the counters
 * creates some of these (dotnet/runtime issues 119014 and 105682). So the providers with
 * EventCounters get a second session, which is opened after the start (dotnet/runtime_start.h).
 *
 *   late_providers_split(&late, providers, count);
 *   ... late.early, late.late ...                 for a runtime that is starting; for all others `providers` unchanged
 *   late_providers_done(&late);
 */
#ifndef SPOOR_TRACING_LATE_PROVIDERS_H
#define SPOOR_TRACING_LATE_PROVIDERS_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_provider;

struct late_providers {
	struct ipc_provider *early; /* NULL: none */
	struct ipc_provider *late;  /* NULL: none */
	uint32_t early_count;
	uint32_t late_count;
};

/* True if the provider's EventCounters are requested. */
bool late_providers_has(const struct ipc_provider *provider);

/* The strings of the providers are borrowed. Returns 0 or -ENOMEM. */
int late_providers_split(struct late_providers *late, const struct ipc_provider *providers,
	uint32_t count);

/*
 * True if the runtime of a process has started; false while it waits to be resumed. `pid` is in the
 * recorder's pid namespace.
 */
bool late_providers_has_begun(uint32_t pid);

void late_providers_done(struct late_providers *late);

#endif
