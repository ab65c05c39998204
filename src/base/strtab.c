/* See strtab.h. */
#include "base/strtab.h"

#include <string.h>

static uint32_t find(const struct strtab *table, const char *text, size_t len, uint64_t hash)
{
	for (struct map_walk w = map_find(&table->index, hash); w.value; map_next(&w)) {
		const struct strtab_entry *entry = &table->entries.items[w.value - 1];
		if (entry->len == len && memcmp(entry->text, text, len) == 0)
			return w.value;
	}
	return 0;
}

uint32_t strtab_find(const struct strtab *table, const char *text, size_t len)
{
	return len && len <= STRTAB_TEXT_MAX ? find(table, text, len, hash_bytes(text, len)) : 0;
}

uint32_t strtab_add(struct strtab *table, const char *text, size_t len)
{
	if (!len)
		return 0;
	if (len > STRTAB_TEXT_MAX)
		len = STRTAB_TEXT_MAX;
	uint64_t hash = hash_bytes(text, len);
	uint32_t known = find(table, text, len, hash);

	if (known)
		return known;
	if (table->full)
		return 0;
	char *copy = arena_alloc(&table->arena, len + 1);
	struct strtab_entry *entry = copy ? vec_push(&table->entries) : NULL;
	if (!entry)
		return 0;
	memcpy(copy, text, len);
	copy[len] = '\0';
	entry->text = copy;
	entry->len = (uint32_t)len;
	if (!map_add(&table->index, hash, table->entries.count)) {
		table->entries.count--;
		return 0;
	}
	return table->entries.count;
}

uint32_t strtab_add_z(struct strtab *table, const char *text)
{
	return strtab_add(table, text, strlen(text));
}

const char *strtab_get(const struct strtab *table, uint32_t index)
{
	return index && index <= table->entries.count ? table->entries.items[index - 1].text : "";
}

size_t strtab_len(const struct strtab *table, uint32_t index)
{
	return index && index <= table->entries.count ? table->entries.items[index - 1].len : 0;
}

size_t strtab_size_bytes(const struct strtab *table)
{
	return table->arena.total_bytes + map_size_bytes(&table->index) +
	       table->entries.capacity * sizeof(struct strtab_entry);
}

void strtab_done(struct strtab *table)
{
	arena_done(&table->arena);
	vec_done(&table->entries);
	map_done(&table->index);
}
