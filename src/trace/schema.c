/* See schema.h. */
#include "trace/schema.h"

#include <stddef.h>
#include <string.h>

#include "trace/event.h"

const struct known_event_info known_events[KNOWN_EVENT_COUNT] = {
#define EVENT(symbol, provider_, id_, name_, kind_, fields_)                                       \
	[symbol] = { .provider = (provider_), .event_id = (id_), .name = (name_), .kind = (kind_),  \
		.fields = (fields_) },
#include "trace/spoor_events.def"
#undef EVENT
};

static const char *const provider_names[] = {
	[PROVIDER_UNIVERSAL_SYSTEM] = "Universal.System",
	[PROVIDER_UNIVERSAL_EVENTS] = "Universal.Events",
	[PROVIDER_SPOOR] = "Spoor",
	[PROVIDER_CLR] = "Microsoft-Windows-DotNETRuntime",
	[PROVIDER_CLR_RUNDOWN] = "Microsoft-Windows-DotNETRuntimeRundown",
	[PROVIDER_EVENTPIPE] = "Microsoft-DotNETCore-EventPipe",
	[PROVIDER_SAMPLE] = "Microsoft-DotNETCore-SampleProfiler",
};

#define PROVIDER_COUNT (sizeof(provider_names) / sizeof(provider_names[0]))

/*
 * 8f717c64-ef1e-4fa7-a6e7-80cfa959daf2, chosen so that it is no hash of a name: a reader takes any guid whose third group begins with 5 for an
 * EventSource, and its stacks for CPU time.
 */
static const uint8_t spoor_guid[16] = { 0x64, 0x7c, 0x71, 0x8f, 0x1e, 0xef, 0xa7, 0x4f, 0xa6, 0xe7,
	0x80, 0xcf, 0xa9, 0x59, 0xda, 0xf2 };

bool field_type_has_element(uint8_t type)
{
	return type == FIELD_ARRAY || type == FIELD_FIXED_ARRAY || type == FIELD_REL_LOC || type == FIELD_DATA_LOC;
}

uint32_t schema_fields_end(const struct schema *schema, uint32_t i)
{
	uint16_t depth = schema->fields.items[i].depth;

	do
		i++;
	while (i < schema->fields.count && schema->fields.items[i].depth > depth);
	return i;
}

const char *provider_name(enum provider_kind kind)
{
	return (size_t)kind < PROVIDER_COUNT ? provider_names[kind] : NULL;
}

enum provider_kind provider_kind_of(const char *name)
{
	for (size_t i = 1; i < PROVIDER_COUNT; i++)
		if (strcmp(provider_names[i], name) == 0)
			return (enum provider_kind)i;
	return PROVIDER_OTHER;
}

const uint8_t *provider_guid(enum provider_kind kind)
{
	return kind == PROVIDER_SPOOR ? spoor_guid : NULL;
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
