/*
 * See event_entry.h. The plan is made from the fields when the entry is made, so that sinks need not
 * look at types when they encode an event.
 */
#include "lib/event/event_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/event_metadata.h"
#include "lib/event/field_size.h"

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_fields(uint64_t hash, const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		hash = hash_text(hash, fields[i].name);
		hash = hash_bytes(hash, &fields[i].type, sizeof(fields[i].type));
		hash = hash_bytes(hash, &fields[i].field_count, sizeof(fields[i].field_count));
		hash = hash_fields(hash, fields[i].fields, fields[i].field_count);
	}
	return hash;
}

uint64_t event_info_hash(const struct spoor_event_info *info, uint32_t flags)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	uint32_t numbers[5] = { info->id, info->version, info->level, info->opcode, flags };

	hash = hash_text(hash, info->provider);
	hash = hash_text(hash, info->name);
	hash = hash_bytes(hash, numbers, sizeof(numbers));
	hash = hash_bytes(hash, &info->keywords, sizeof(info->keywords));
	return hash_fields(hash, info->fields, info->field_count);
}

static bool same_fields(const struct spoor_field *a, const struct spoor_field *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(a[i].name, b[i].name) != 0 || a[i].type != b[i].type ||
			a[i].field_count != b[i].field_count ||
			!same_fields(a[i].fields, b[i].fields, a[i].field_count))
			return false;
	return true;
}

bool event_info_same_content(const struct spoor_event_info *a, const struct spoor_event_info *b)
{
	return a->version == b->version && a->level == b->level && a->opcode == b->opcode &&
	       a->keywords == b->keywords && a->field_count == b->field_count &&
	       strcmp(a->provider, b->provider) == 0 && strcmp(a->name, b->name) == 0 &&
	       same_fields(a->fields, b->fields, a->field_count);
}

bool event_info_same(const struct spoor_event_info *a, const struct spoor_event_info *b)
{
	return a->id == b->id && event_info_same_content(a, b);
}

int event_fields_check(const struct spoor_field *fields, uint32_t count, uint32_t depth,
	uint32_t *total)
{
	if (depth > REGISTRY_FIELD_DEPTH || count > REGISTRY_FIELDS_MAX || (count && !fields))
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY;
		if (++*total > REGISTRY_FIELDS_MAX || !fields[i].name ||
			strlen(fields[i].name) > REGISTRY_NAME_MAX)
			return -EINVAL;
		if (type < SPOOR_TYPE_BOOLEAN || type > SPOOR_TYPE_STRUCT ||
			(type != SPOOR_TYPE_STRUCT && fields[i].field_count))
			return -EINVAL;
		int r = type == SPOOR_TYPE_STRUCT ? event_fields_check(fields[i].fields,
							    fields[i].field_count, depth + 1, total)
						  : 0;
		if (r)
			return r;
	}
	return 0;
}

static void free_fields(const struct spoor_field *fields, uint32_t count)
{
	if (!fields)
		return;
	for (uint32_t i = 0; i < count; i++) {
		free((void *)(uintptr_t)fields[i].name);
		free_fields(fields[i].fields, fields[i].field_count);
	}
	free((void *)(uintptr_t)fields);
}

static int copy_fields(const struct spoor_field *fields, uint32_t count,
	const struct spoor_field **ret_fields)
{
	struct spoor_field *copy = calloc(count ? count : 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		copy[i].type = fields[i].type;
		copy[i].name = strdup(fields[i].name);
		if (!copy[i].name ||
			copy_fields(fields[i].fields, fields[i].field_count, &copy[i].fields)) {
			free_fields(copy, count);
			return -ENOMEM;
		}
		copy[i].field_count = fields[i].field_count;
	}
	*ret_fields = copy;
	return 0;
}

/*
 * Appends the steps of these fields. Consecutive fields of fixed size become one step, but not
 * across the border of an array of structs.
 */
static uint32_t plan_fields(const struct spoor_field *fields, uint32_t count,
	struct plan_step *plan, uint32_t at, uint32_t from)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY;
		uint32_t size = (uint32_t)field_fixed_size(type);
		if (fields[i].type & SPOOR_TYPE_ARRAY) {
			if (type == SPOOR_TYPE_STRUCT) {
				uint32_t own = at++;
				at = plan_fields(fields[i].fields, fields[i].field_count, plan, at,
					at);
				plan[own] = (struct plan_step){ PLAN_STRUCTS, at - own - 1 };
				from = at;
			} else {
				plan[at++] =
					(struct plan_step){ type == SPOOR_TYPE_TEXT ? PLAN_TEXTS
							    : type == SPOOR_TYPE_TEXT16
								    ? PLAN_TEXT16S
								    : PLAN_ARRAY,
						size };
			}
		} else if (type == SPOOR_TYPE_STRUCT) {
			at = plan_fields(fields[i].fields, fields[i].field_count, plan, at, from);
		} else if (type == SPOOR_TYPE_TEXT || type == SPOOR_TYPE_TEXT16) {
			plan[at++] = (struct plan_step){
				type == SPOOR_TYPE_TEXT ? PLAN_TEXT : PLAN_TEXT16, 0
			};
		} else if (at > from && plan[at - 1].op == PLAN_FIXED) {
			plan[at - 1].size += size;
		} else {
			plan[at++] = (struct plan_step){ PLAN_FIXED, size };
		}
	}
	return at;
}

static bool has_text(const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if ((fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY) == SPOOR_TYPE_TEXT ||
			has_text(fields[i].fields, fields[i].field_count))
			return true;
	return false;
}

static void entry_free(struct event_entry *entry)
{
	if (!entry)
		return;
	free((void *)(uintptr_t)entry->info.provider);
	free((void *)(uintptr_t)entry->info.name);
	free_fields(entry->info.fields, entry->info.field_count);
	free((void *)(uintptr_t)entry->plan);
	free((void *)(uintptr_t)entry->metadata);
	free(entry);
}

int event_entry_new(const struct spoor_event_info *info, uint32_t flags, uint8_t stream_version,
	uint32_t fields_total, uint64_t hash, struct event_entry **ret_entry)
{
	struct event_entry *entry = calloc(1, sizeof(*entry));
	struct plan_step *plan = NULL;
	uint8_t *metadata = NULL;

	if (!entry)
		return -ENOMEM;
	entry->info = *info;
	entry->info.fields = NULL;
	entry->info.field_count = 0;
	entry->info.provider = strdup(info->provider);
	entry->info.name = strdup(info->name);
	entry->hash = hash;
	entry->flags = flags;
	entry->stream_version = stream_version;
	plan = calloc(fields_total + 1, sizeof(*plan));
	entry->plan = plan;
	if (!entry->info.provider || !entry->info.name || !plan ||
		copy_fields(info->fields, info->field_count, &entry->info.fields))
		goto failed;
	entry->info.field_count = info->field_count;
	entry->plan_count = plan_fields(entry->info.fields, entry->info.field_count, plan, 0, 0);
	if (!has_text(entry->info.fields, entry->info.field_count))
		entry->flags |= ENTRY_VERBATIM;
	if (entry->plan_count == 1 && plan[0].op == PLAN_FIXED)
		entry->fixed_size = plan[0].size;
	if (event_metadata_make(&entry->info, stream_version,
		    (entry->flags & ENTRY_WELL_KNOWN) != 0, &metadata, &entry->metadata_size))
		goto failed;
	entry->metadata = metadata;
	*ret_entry = entry;
	return 0;
failed:
	entry_free(entry);
	return -ENOMEM;
}
