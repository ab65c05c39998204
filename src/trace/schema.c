/* See schema.h. */
#include "trace/schema.h"

#include <string.h>

#include "trace/event.h"

const struct known_event_info known_events[KNOWN_EVENT_COUNT] = {
#define EVENT(symbol, provider_, id_, name_, kind_, fields_) \
	[symbol] = { .provider = (provider_),                \
		.event_id = (id_),                           \
		.name = (name_),                             \
		.kind = (kind_),                             \
		.fields = (fields_) },
#include "trace/spoor_events.def"
#undef EVENT
};

bool field_type_has_element(uint8_t type)
{
	return type == FIELD_ARRAY || type == FIELD_FIXED_ARRAY || type == FIELD_REL_LOC ||
	       type == FIELD_DATA_LOC;
}

uint32_t schema_fields_end(const struct schema *schema, uint32_t i)
{
	uint16_t depth = schema->fields.items[i].depth;

	do
		i++;
	while (i < schema->fields.count && schema->fields.items[i].depth > depth);
	return i;
}

void schema_done(struct schema *schema)
{
	vec_done(&schema->fields);
}

bool schema_has_same_fields(const struct schema *a, const struct schema *b)
{
	if (a->fields.count != b->fields.count)
		return false;
	for (uint32_t i = 0; i < a->fields.count; i++) {
		const struct field *x = &a->fields.items[i];
		const struct field *y = &b->fields.items[i];
		if (x->name != y->name || x->type != y->type || x->element != y->element ||
			x->depth != y->depth || x->count != y->count)
			return false;
	}
	return true;
}

bool schema_is_same(const struct schema *a, const struct schema *b)
{
	return a->provider == b->provider && a->event_id == b->event_id && a->name == b->name &&
	       a->keywords == b->keywords && a->version == b->version && a->level == b->level &&
	       a->opcode == b->opcode && a->has_guid == b->has_guid &&
	       memcmp(a->guid, b->guid, sizeof(a->guid)) == 0 && schema_has_same_fields(a, b);
}
