/*
 * See event_table.h. Entries are in chunks that never move, so that they can be read while others are
 * added. A hash table of indexes finds an entry by its description.
 */
#include "lib/event/event_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/session_wants.h"

#define CHUNK    1024u
#define VERSIONS 256u

static struct {
	struct event_entry **chunks[REGISTRY_EVENTS_MAX / CHUNK];
	uint32_t entry_count; /* the next index, index 0 is not used; atomic */
	uint32_t *table;      /* open addressing, entry indexes */
	uint32_t table_room;
	void (*record)(const struct event_entry *entry); /* called for each new entry; NULL: none */
} event_table = {
	.entry_count = 1,
};

const struct event_entry *registry_entry(uint32_t index)
{
	struct event_entry **chunk;

	if (!index || index >= REGISTRY_EVENTS_MAX)
		return NULL;
	chunk = __atomic_load_n(&event_table.chunks[index / CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? __atomic_load_n(&chunk[index % CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

uint32_t registry_entry_end(void)
{
	return __atomic_load_n(&event_table.entry_count, __ATOMIC_ACQUIRE);
}

static int table_grow(void)
{
	uint32_t room = event_table.table_room ? event_table.table_room * 2 : 256;
	uint32_t *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 1; i < event_table.entry_count; i++) {
		uint32_t at = (uint32_t)registry_entry(i)->hash & (room - 1);
		while (table[at])
			at = (at + 1) & (room - 1);
		table[at] = i;
	}
	free(event_table.table);
	event_table.table = table;
	event_table.table_room = room;
	return 0;
}

/*
 * The version of a new event in streams: its own, unless another definition with this provider and
 * id has that one there, such as that of a plug-in which was unloaded. Then the next one that none
 * has. -ENOSPC: there is none.
 */
static int free_version(const struct spoor_event_info *info, uint32_t flags, uint8_t *ret_version)
{
	bool taken[VERSIONS] = { false };

	*ret_version = info->version;
	if (flags & ENTRY_WELL_KNOWN) /* readers know these by their own version */
		return 0;
	for (uint32_t i = 1; i < event_table.entry_count; i++) {
		const struct event_entry *other = registry_entry(i);
		if (other->info.id == info->id &&
			provider_name_matches(other->info.provider, info->provider))
			taken[other->stream_version] = true;
	}
	for (uint32_t i = 0; i < VERSIONS; i++) {
		*ret_version = (uint8_t)(info->version + i);
		if (!taken[*ret_version])
			return 0;
	}
	return -ENOSPC;
}

int event_table_find(const struct spoor_event_info *info, uint32_t flags,
	struct event_entry **ret_entry)
{
	uint32_t total = 0;
	struct event_entry *entry;

	if (!info->provider || !info->name || !info->provider[0] ||
		strlen(info->provider) > REGISTRY_NAME_MAX ||
		strlen(info->name) > REGISTRY_NAME_MAX)
		return -EINVAL;
	int r = event_fields_check(info->fields, info->field_count, 0, &total);
	if (r)
		return r;
	if (event_table.entry_count * 2 >= event_table.table_room && (r = table_grow()))
		return r;

	/* The same event of the program and of the library is one entry. */
	uint64_t hash = event_info_hash(info, flags & ~(uint32_t)ENTRY_UNLOGGED);
	uint32_t at = (uint32_t)hash & (event_table.table_room - 1);
	for (; event_table.table[at]; at = (at + 1) & (event_table.table_room - 1)) {
		const struct event_entry *known = registry_entry(event_table.table[at]);
		if (known->hash == hash && event_info_same(&known->info, info)) {
			*ret_entry = (struct event_entry *)(uintptr_t)known;
			return 0;
		}
	}
	uint8_t version;
	if (event_table.entry_count == REGISTRY_EVENTS_MAX)
		return -ENOSPC;
	r = free_version(info, flags, &version);
	if (r)
		return r;
	uint32_t index = event_table.entry_count;
	if (!event_table.chunks[index / CHUNK]) {
		struct event_entry **chunk = calloc(CHUNK, sizeof(struct event_entry *));
		if (!chunk)
			return -ENOMEM;
		__atomic_store_n(&event_table.chunks[index / CHUNK], chunk, __ATOMIC_RELEASE);
	}
	r = event_entry_new(info, flags, version, total, hash, &entry);
	if (r)
		return r;
	entry->index = index;
	__atomic_store_n(&event_table.chunks[index / CHUNK][index % CHUNK], entry,
		__ATOMIC_RELEASE);
	event_table.table[at] = index;
	__atomic_store_n(&event_table.entry_count, index + 1, __ATOMIC_RELEASE);
	if (event_table.record)
		event_table.record(entry);
	*ret_entry = entry;
	return 0;
}

void event_table_record(void (*record)(const struct event_entry *entry))
{
	event_table.record = record;
	for (uint32_t i = 1; i < event_table.entry_count; i++)
		record(registry_entry(i));
}
