/*
 * See clr_event.h. The lists become tables of texts, fields, and events that refer to both by
 * 16-bit offsets: a third of the size of structs with pointers, and no relocations.
 */
#include "trace/clr_event.h"

#include <assert.h>
#include <string.h>

struct clr_texts {
#define CLR_TEXT(identifier, text) char text_##identifier[sizeof(text)];
#include "trace/clr_events.def"
#define CLR_TEXT(identifier, text) char text_##identifier[sizeof(text)];
#include "trace/universal_events.def"
};

static const struct clr_texts texts = {
#define CLR_TEXT(identifier, text) text,
#include "trace/clr_events.def"
#define CLR_TEXT(identifier, text) text,
#include "trace/universal_events.def"
};

#define TEXT_AT(identifier) offsetof(struct clr_texts, text_##identifier)

static_assert(sizeof(struct clr_texts) <= UINT16_MAX, "offsets of texts have 16 bits");
static_assert(sizeof(struct clr_field) == 4, "a field is four bytes");

struct layouts {
	struct clr_field layout_none[1]; /* of events without fields */
#define CLR_LAYOUT(identifier, count, fields) struct clr_field layout_##identifier[count];
#include "trace/clr_events.def"
#define CLR_LAYOUT(identifier, count, fields) struct clr_field layout_##identifier[count];
#include "trace/universal_events.def"
};

#define FIELD(letter, name)          { TEXT_AT(name), letter, 0 },
#define ARRAY(letter, name, counter) { TEXT_AT(name), letter, CLR_COUNT_BY_FIELD | (counter) },
#define FIXED(letter, name, count)   { TEXT_AT(name), letter, CLR_COUNT_FIXED | (count) },
#define STRUCT(name, counter)        { TEXT_AT(name), '{', CLR_COUNT_BY_FIELD | (counter) },
#define END                          { 0, '}', 0 },

static const struct layouts layouts = {
	{ { 0 } },
#define CLR_LAYOUT(identifier, count, fields) { fields },
#include "trace/clr_events.def"
#define CLR_LAYOUT(identifier, count, fields) { fields },
#include "trace/universal_events.def"
};

struct packed_event {
	uint8_t provider; /* enum provider_kind */
	uint8_t version;
	uint8_t field_count;
	uint16_t id;
	uint16_t symbol;
	uint16_t name;
	uint16_t fields;
};

#define PACKED(provider, id, version, symbol, name, layout, count)      \
	{ provider, version, count, id, TEXT_AT(symbol), TEXT_AT(name), \
		offsetof(struct layouts, layout_##layout) / sizeof(struct clr_field) },

/* Sorted by provider, id and version. */
static const struct packed_event events[] = {
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) \
	PACKED(provider, id, version, symbol, name, layout, count)
#include "trace/universal_events.def"
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) \
	PACKED(provider, id, version, symbol, name, layout, count)
#include "trace/clr_events.def"
};

/* By the index of `events`. */
static const uint64_t event_keywords[] = {
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) keywords,
#include "trace/universal_events.def"
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) keywords,
#include "trace/clr_events.def"
};

static const uint8_t event_levels[] = {
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) level,
#include "trace/universal_events.def"
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) level,
#include "trace/clr_events.def"
};

static uint64_t key_of(uint32_t provider, uint32_t id, uint32_t version)
{
	return (uint64_t)provider << 40 | (uint64_t)id << 8 | version;
}

bool clr_event_find(enum provider_kind provider, uint32_t id, uint32_t version,
	struct clr_event *ret_event)
{
	uint64_t wanted = key_of((uint32_t)provider, id, version < UINT8_MAX ? version : UINT8_MAX);
	size_t begin = 0;
	size_t end = sizeof(events) / sizeof(events[0]);

	/* The last event whose key is not above the wanted key. */
	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;
		const struct packed_event *event = &events[middle];
		if (key_of(event->provider, event->id, event->version) <= wanted)
			begin = middle + 1;
		else
			end = middle;
	}
	if (!begin)
		return false;
	const struct packed_event *found = &events[begin - 1];

	if (found->provider != provider || found->id != id)
		return false;
	*ret_event = (struct clr_event){
		.symbol = (const char *)&texts + found->symbol,
		.name = (const char *)&texts + found->name,
		.fields = (const struct clr_field *)&layouts + found->fields,
		.field_count = found->field_count,
		.version = found->version,
	};
	return true;
}

bool clr_event_find_symbol(enum provider_kind provider, const char *symbol,
	struct clr_identity *ret_identity)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const struct packed_event *event = &events[i];
		if (event->provider != provider ||
			strcmp((const char *)&texts + event->symbol, symbol) != 0)
			continue;
		*ret_identity = (struct clr_identity){ .keywords = event_keywords[i],
			.id = event->id,
			.version = event->version,
			.level = event_levels[i] };
		return true;
	}
	return false;
}

const char *clr_field_name(const struct clr_field *field)
{
	return (const char *)&texts + field->name;
}

bool clr_event_provider(enum provider_kind provider)
{
	return provider >= PROVIDER_CLR && provider <= PROVIDER_MONO_PROFILER;
}

uint8_t clr_field_type(const struct clr_field *field)
{
	if (field->count)
		return 0;
	switch (field->type) {
	case 'S':
		return FIELD_TEXT16;
	case '1':
		return FIELD_U8;
	case '2':
		return FIELD_U16;
	case '4':
		return FIELD_U32;
	case '8':
	case 'X':
	case 'P':
		return FIELD_U64;
	case 'I':
		return FIELD_I32;
	case 'L':
		return FIELD_I64;
	case 'B':
		return FIELD_BOOL;
	case 'D':
		return FIELD_F64;
	case 'G':
		return FIELD_GUID;
	default:
		return 0;
	}
}
