/*
 * The entries of the registry (provider.h), by index and by description. Indexes are permanent. The
 * table only grows. registry_entry() and registry_entry_end() are for any thread; the caller of the
 * other functions holds the registry's lock.
 */
#ifndef SPOOR_LIB_EVENT_EVENT_TABLE_H
#define SPOOR_LIB_EVENT_EVENT_TABLE_H

#include <stdint.h>

#include <spoor/spoor.h>

#include "lib/event/event_entry.h"

#define REGISTRY_EVENTS_MAX (1u << 20)

/* The entry of an index, without a lock. NULL: no entry has this index. */
const struct event_entry *registry_entry(uint32_t index);

/* Entries have the indexes from 1 to this number - 1. Any thread. */
uint32_t registry_entry_end(void);

/*
 * Finds or makes the entry with this description. 0, -EINVAL (a name or the fields), -ENOMEM, or
 * -ENOSPC: there are REGISTRY_EVENTS_MAX entries, or 256 definitions of one provider and id.
 */
int event_table_find(const struct spoor_event_info *info, uint32_t flags,
	struct event_entry **ret_entry);

/* Calls `record` for each entry, and from here on for each new one. */
void event_table_record(void (*record)(const struct event_entry *entry));

#endif
