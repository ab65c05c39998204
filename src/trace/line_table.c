/* See line_table.h. */
#include "trace/line_table.h"

#include <string.h>

static uint64_t hash_place(const struct line_place *place)
{
	return hash_u64(place->offset ^
			hash_u64(place->begin ^
				 hash_u64(place->method_id ^ hash_u64(place->mapping_id))));
}

static bool is_same(const struct line_place *a, const struct line_place *b)
{
	return a->mapping_id == b->mapping_id && a->begin == b->begin &&
	       a->method_id == b->method_id && a->offset == b->offset;
}

static const struct line_entry *find(const struct line_table *table, const struct line_place *place)
{
	for (struct map_walk w = map_find(&table->index, hash_place(place)); w.value; map_next(&w))
		if (is_same(&table->entries.items[w.value - 1].place, place))
			return &table->entries.items[w.value - 1];
	return NULL;
}

bool line_table_add(struct line_table *table, const struct line_place *place,
	const struct line_frame *frames, uint32_t count)
{
	struct line_entry entry = {
		.place = *place, .frame_at = table->frames.count, .frame_count = count
	};

	if (find(table, place))
		return true;
	for (uint32_t i = 0; i < count; i++)
		if (!vec_add(&table->frames, frames[i]))
			return false;
	return vec_add(&table->entries, entry) &&
	       map_add(&table->index, hash_place(place), table->entries.count);
}

const struct line_frame *line_table_find(const struct line_table *table,
	const struct line_place *place, uint32_t *ret_count)
{
	const struct line_entry *entry = find(table, place);

	*ret_count = entry ? entry->frame_count : 0;
	return entry ? table->frames.items + entry->frame_at : NULL;
}

static uint64_t hash_body(uint64_t mapping_id, uint64_t begin, uint64_t method_id)
{
	return hash_u64(begin ^ hash_u64(method_id ^ hash_u64(mapping_id)));
}

const struct line_body *line_table_body(const struct line_table *table,
	const struct line_place *place)
{
	uint64_t hash = hash_body(place->mapping_id, place->begin, place->method_id);

	for (struct map_walk w = map_find(&table->body_index, hash); w.value; map_next(&w)) {
		const struct line_body *body = &table->bodies.items[w.value - 1];
		if (body->mapping_id == place->mapping_id && body->begin == place->begin &&
			body->method_id == place->method_id)
			return body;
	}
	return NULL;
}

bool line_table_add_body(struct line_table *table, const struct line_body *body,
	const uint32_t *native, const uint32_t *il, uint32_t count)
{
	const struct line_place place = { body->mapping_id, body->begin, body->method_id, 0 };
	struct line_body added = *body;

	if (line_table_body(table, &place))
		return true;
	added.at = table->il.count;
	added.count = count;
	for (uint32_t i = 0; i < count; i++)
		if (!vec_add(&table->il, ((struct il_offset){ native[i], il[i] })))
			return false;
	return vec_add(&table->bodies, added) &&
	       map_add(&table->body_index,
		       hash_body(body->mapping_id, body->begin, body->method_id),
		       table->bodies.count);
}

bool line_table_fill_body(struct line_table *table, uint32_t index, const struct il_offset *offsets,
	uint32_t count)
{
	struct line_body *body = &table->bodies.items[index];

	if (body->count || !count)
		return true;
	if (!vec_reserve(&table->il, count))
		return false;
	memcpy(table->il.items + table->il.count, offsets, count * sizeof(*offsets));
	body->at = table->il.count;
	body->count = count;
	table->il.count += count;
	return true;
}

void line_table_done(struct line_table *table)
{
	vec_done(&table->bodies);
	vec_done(&table->il);
	map_done(&table->body_index);
	vec_done(&table->entries);
	vec_done(&table->frames);
	map_done(&table->index);
}
