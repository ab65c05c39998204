/* See event_counts.h. */
#include "analysis/event_counts.h"

#include <stdlib.h>
#include <string.h>

uint32_t event_counts_of_schema(const struct event_counts *counts, uint32_t schema_index)
{
	return schema_index < counts->by_schema.count ? counts->by_schema.items[schema_index] : 0;
}

uint32_t event_counts_row(struct event_counts *counts, const char *provider, size_t provider_len,
	const char *name, size_t name_len)
{
	/* Row 1 is that of the rest. */
	while (counts->rows.count < 2)
		if (!vec_push(&counts->rows))
			return 0;
	counts->strings.full = counts->rows.count >= EVENT_COUNTS_MAX;
	struct event_count fresh = {
		.provider = strtab_add(&counts->strings, provider, provider_len),
		.name = strtab_add(&counts->strings, name, name_len),
	};
	uint64_t key = (uint64_t)fresh.provider << 32 | fresh.name;

	if ((name_len && !fresh.name) || (provider_len && !fresh.provider) || !key)
		return 1;
	uint32_t row = map_get(&counts->index, key);

	if (row)
		return row;
	if (counts->strings.full)
		return 1;
	row = counts->rows.count;
	if (!vec_add(&counts->rows, fresh))
		return 0;
	if (!map_add(&counts->index, key, row)) {
		counts->rows.count--;
		return 0;
	}
	return row;
}

void event_counts_remember(struct event_counts *counts, uint32_t schema_index, uint32_t row)
{
	while (counts->by_schema.count <= schema_index)
		if (!vec_add(&counts->by_schema, 0))
			return;
	counts->by_schema.items[schema_index] = row;
}

void event_counts_add(struct event_counts *counts, uint32_t row, uint64_t count,
	uint64_t size_bytes)
{
	counts->rows.items[row].count += count;
	counts->rows.items[row].size_bytes += size_bytes;
}

static int compare(const void *left, const void *right)
{
	const struct event_count *a = left;
	const struct event_count *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->provider != b->provider) /* in the order of their first events */
		return a->provider < b->provider ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void event_counts_sort(struct event_counts *counts)
{
	if (counts->rows.count > 1)
		qsort(counts->rows.items + 1, counts->rows.count - 1, sizeof(struct event_count),
			compare);
}

void event_counts_done(struct event_counts *counts)
{
	strtab_done(&counts->strings);
	vec_done(&counts->rows);
	vec_done(&counts->by_schema);
	map_done(&counts->index);
	memset(counts, 0, sizeof(*counts));
}
