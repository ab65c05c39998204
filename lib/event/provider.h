/*
 * The registry: the providers, their events, and which sessions enable them.
 *
 * An event gets an entry when its provider is registered: a copy of its description at a stable
 * index. The entry stays when the provider is unregistered, because rings and files may still
 * contain such events. If the same event is registered again (dlopen after dlclose), it gets the
 * same entry. Entries are read without a lock; the rest of the registry is guarded by
 * registry_lock(). Any thread; functions return 0 or a negative errno.
 *
 * The mask `sessions` of each event is computed here, at registration and whenever a session starts
 * or ends.
 */
#ifndef SPOOR_LIB_EVENT_PROVIDER_H
#define SPOOR_LIB_EVENT_PROVIDER_H

#include <spoor/spoor.h>

#include "lib/event/event_table.h"
#include "lib/event/session_wants.h"

/*
 * Each session has a slot, which is its bit in an event's mask. The last slots belong to loggers
 * (lib/logger/logger.h), which record an event on the thread that fires it.
 */
#define SLOTS_MAX    64u
#define LOGGERS_MAX  4u
#define SESSIONS_MAX (SLOTS_MAX - LOGGERS_MAX)
#define LOGGER_SLOTS (UINT64_MAX << SESSIONS_MAX)

/*
 * Makes an entry for an event that only session_emit() writes: it is not registered with a
 * provider, and no session can enable it. The entry is permanent. `event` needs provider->name,
 * name, id and so on, as for registration; its index is set. -ENOMEM, -EINVAL, -ENOSPC.
 */
int registry_describe(struct spoor_event *event);

/*
 * Calls `record` for each entry, and from here on for each new one, with the lock held. The file of
 * the rings keeps the entries, with which its events can be read (recover_file.h).
 */
void registry_record_entries(void (*record)(const struct event_entry *entry));

/* Calls `report`, without the lock held, when a registration ends with -EEXIST. */
void registry_report_conflicts(void (*report)(const char *message));

/* As spoor_provider_register(), for a provider that may have no event yet. */
int registry_add_provider(struct spoor_provider *provider);

/*
 * As spoor_provider_register(), for a provider of the library whose events are made for single
 * sessions: no logger can enable it.
 */
int registry_add_unlogged(struct spoor_provider *provider);

/* Registers one more event of a registered provider (events that are made at run time). */
int registry_add_event(struct spoor_provider *provider, struct spoor_event *event);

/*
 * Does any session enable events of this level and these keywords? May return true although no
 * single event is enabled. Any thread, no lock.
 */
bool registry_provider_wanted(const struct spoor_provider *provider, uint32_t level,
	uint64_t keywords);

/* ---- For lib/logger ---- */

/*
 * From here on `added` is called when events were registered, without a lock held, on the thread
 * that registered them. `refused` then tells by the index of an event whether a logger cannot show
 * it to its tools: any thread, no lock. NULL: no more.
 */
void registry_announce_to(void (*added)(void), bool (*refused)(uint32_t index));
/* Calls it now: the caller has registered an event by registry_add_event(). */
void registry_announce(void);
bool registry_is_announcing(void);
bool registry_is_refused(const struct spoor_event *event);

/*
 * Sets or clears the logger's bit in the mask of each event, as `is_on` answers for its entry, and
 * runs enable callbacks with the highest level and all keywords of the events that are on.
 */
void registry_logger_set(uint32_t slot, uint64_t logger_id,
	bool (*is_on)(uint32_t slot, const struct event_entry *entry));

/* ---- For pipe_session.c ---- */

/*
 * registry_session_set() sets the session's bit in the masks of the events that it enables, and
 * runs enable callbacks. registry_session_clear() reverts that.
 */
int registry_session_set(uint32_t slot, uint64_t session_id, const struct session_wants *wants);
void registry_session_clear(uint32_t slot);

/* In event_source.c, for fork(): taken before the registry's lock. */
void event_sources_lock(void);
void event_sources_unlock(void);
void event_sources_lock_reset(void);

void registry_forget_sessions(void); /* child of a fork() */
void registry_lock(void);
void registry_unlock(void);
void registry_lock_reset(void); /* child of a fork() */

#endif
