/*
 * The kernel's user_events in a live session: finds the tracepoints that programs have registered, also those that are
 * registered later, opens those that the patterns name, and writes their events with call chains
 * (user_event_table.h decodes them).
 *
 * A pattern's first part is compared with the provider of a tracepoint Provider_L4K1 and with the whole name; its
 * second part with the event's name. Events of processes that are not recorded are dropped.
 */
#ifndef SPOOR_RECORDING_LIVE_USER_EVENTS_H
#define SPOOR_RECORDING_LIVE_USER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "perf/user_tracepoints.h"
#include "recording/hits.h"
#include "recording/user_event_table.h"

struct diag;
struct perf_record;
struct poll_set;
struct process_table;
struct recorder;

/* All zero: no user_events are recorded. */
struct live_user_events {
	struct process_table *table; /* borrowed; NULL: not started */
	struct recorder *recorder;   /* borrowed */
	struct user_tracepoints tracefs;
	struct user_event_table events;
	struct map seen; /* hash of a tracepoint's group and name */
	VEC(uint8_t)
	decided; /* by schema: 1 the patterns do not name the event, 2 they do; 0: not asked yet */
	uint64_t looked_ns;
	struct hits hits;
	uint32_t refused;  /* tracepoints that could not be opened */
	int refused_error; /* of the last */
	char refused_text[160];
};

/*
 * Whether `patterns` (NULL: none; NULL-terminated, each PROVIDER or PROVIDER:EVENT, several with commas) can be used; `threads`:
 * single threads are recorded, for which there are no such events. 0 or -EINVAL.
 */
int live_user_events_check(const char *const *patterns, bool threads, struct diag *diag);

/* Opens the tracepoints that exist. Errors as of user_tracepoints_open(). */
int live_user_events_start(struct live_user_events *events, struct process_table *table,
	struct recorder *recorder, struct diag *diag);

/* What the names of tracepoints begin with that recorders register; --user-events does not record them. */
#define LIVE_USER_EVENTS_PREFIX "spoor_recorder_"

/*
 * Opens a tracepoint that this recorder has registered: .NET's events of this provider. 0 or a negative errno, which is
 * reported at the end.
 */
int live_user_events_add(struct live_user_events *events, const char *name, const char *provider);

void live_user_events_await(const struct live_user_events *events, struct poll_set *set);

/* Opens the tracepoints that were registered since the last call. */
void live_user_events_look(struct live_user_events *events, uint64_t now_ns);

/* Whether a sample with raw data is of these tracepoints. Cheap. */
bool live_user_events_is_hit(const struct live_user_events *events,
	const struct perf_record *record);

/* Puts such a sample into the window. */
void live_user_events_take(struct live_user_events *events, const struct perf_record *record,
	uint32_t stack_index);

/* Writes an item of kind PENDING_USER_EVENT that leaves the window. */
void live_user_events_write(struct live_user_events *events, const struct pending *item,
	uint64_t late_ns);

/* Events that were not written, apart from those that full rings lost. */
uint64_t live_user_events_lost(const struct live_user_events *events);

/* Writes notices about what could not be recorded. */
void live_user_events_tell(struct live_user_events *events);

void live_user_events_done(struct live_user_events *events);

#endif
