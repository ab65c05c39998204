/*
 * The counters that the user has chosen: providers (EventSources and Meters), each whole or by
 * names.
 *
 *   System.Runtime                              all of it
 *   System.Runtime[cpu-usage,gc-heap-size]      two of it
 *   EventCounters\System.Runtime                its EventCounters, although it has a Meter of the same name
 *   a list of these with commas between them
 *
 * Names of Meters may end with * (from .NET 8 on; `*` alone is every Meter).
 */
#ifndef SPOOR_COUNTERS_COUNTER_CHOICE_H
#define SPOOR_COUNTERS_COUNTER_CHOICE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/vec.h"

struct bytes;
struct diag;

#define COUNTER_PROVIDERS_MAX 256u
#define COUNTER_TEXT_MAX      1000u /* of one provider's or counter's name */

struct counter_provider {
	const char *name;
	VEC(const char *) counters; /* empty: all */
	bool only_event_counters;
};

struct counter_choice {
	struct arena arena;
	VEC(struct counter_provider) providers;
};

/* Whether its name, or its pattern with a * at the end, is that of a provider. */
bool counter_provider_fits(const struct counter_provider *provider, const char *name);

/* Adds the providers and counters of a list. -EINVAL with a sentence, -ENOMEM. */
int counter_choice_add(struct counter_choice *choice, const char *text, struct diag *diag);

/* Whether a Meter's instrument is chosen. */
bool counter_choice_has_instrument(const struct counter_choice *choice, const char *meter,
	const char *instrument);

/*
 * Whether an EventCounter is chosen; `meter_exists`: a Meter has its provider's name, and publishes
 * the same values with more detail.
 */
bool counter_choice_has_event_counter(const struct counter_choice *choice, const char *provider,
	const char *counter, bool meter_exists);

/* Whether a provider of this name, or any of its counters, is chosen. */
bool counter_choice_has_provider(const struct counter_choice *choice, const char *provider);

/* The Meters, with commas between them; nothing when there is none. */
void counter_choice_add_meters(const struct counter_choice *choice, struct bytes *out);

void counter_choice_done(struct counter_choice *choice);

#endif
