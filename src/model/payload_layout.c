/* See payload_layout.h. */
#include "model/payload_layout.h"

#include <stddef.h>

#include "base/cursor.h"
#include "model/schema.h"

struct walk {
	const struct schema *schema;
	struct payload_layout layout;
	struct cursor payload; /* all of it */
	unsigned depth;        /* objects and arrays that are open */
	size_t located;        /* bytes so far, against PAYLOAD_LOCATED_MAX */
};

/* 0: no type of a fixed size. */
static size_t size_of(unsigned type, struct payload_layout layout)
{
	switch (type) {
	case FIELD_BOOL:
		return layout.byte_bools ? 1 : 4;
	case FIELD_BOOL8:
	case FIELD_I8:
	case FIELD_U8:
	case FIELD_CHAR8:
		return 1;
	case FIELD_I16:
	case FIELD_U16:
	case FIELD_CHAR16:
		return 2;
	case FIELD_I32:
	case FIELD_U32:
	case FIELD_F32:
		return 4;
	case FIELD_I64:
	case FIELD_U64:
	case FIELD_TIME:
	case FIELD_F64:
		return 8;
	case FIELD_DECIMAL:
	case FIELD_GUID:
		return 16;
	default:
		return 0;
	}
}

static bool skip_value(struct walk *walk, uint32_t i, unsigned type, struct cursor *c);

static bool skip_fields(struct walk *walk, uint32_t i, uint32_t end, struct cursor *c)
{
	for (; i < end; i = schema_fields_end(walk->schema, i))
		if (!skip_value(walk, i, walk->schema->fields.items[i].type, c))
			return false;
	return true;
}

/* The elements of field i: `count` of them, or as many as `at` has bytes for. */
static bool skip_elements(
	struct walk *walk, uint32_t i, bool counted, uint32_t count, struct cursor *at)
{
	const struct field *field = &walk->schema->fields.items[i];
	bool nested = field_type_has_element(field->element);
	size_t size = size_of(field->element, walk->layout);

	if (nested && i + 1 >= schema_fields_end(walk->schema, i))
		return false;
	if (counted && size) {
		cursor_skip(at, count * size);
		return !at->short_read;
	}
	for (uint32_t n = 0; counted ? n < count : cursor_left(at) > 0; n++) {
		const uint8_t *before = at->at;
		if (!skip_value(walk, nested ? i + 1 : i, field->element, at))
			return false;
		if (at->at == before && count != 1) /* elements without bytes could be any number */
			return false;
	}
	return true;
}

static bool skip_array(struct walk *walk, uint32_t i, struct cursor *c)
{
	const struct field *field = &walk->schema->fields.items[i];

	if (field->type == FIELD_FIXED_ARRAY)
		return skip_elements(walk, i, true, field->count, c);
	if (field->type == FIELD_ARRAY) {
		bool wide = field->element == FIELD_U8 && walk->layout.counted_by_4;
		uint32_t count = wide ? cursor_u32(c) : cursor_u16(c);
		return !c->short_read && skip_elements(walk, i, true, count, c);
	}
	uint32_t place = cursor_u32(c);
	struct cursor from = field->type == FIELD_REL_LOC ? *c : walk->payload;
	size_t size = place >> 16;

	from.end = walk->payload.end;
	cursor_skip(&from, place & 0xffff);
	walk->located += size;
	if (c->short_read || from.short_read || cursor_left(&from) < size ||
		walk->located > PAYLOAD_LOCATED_MAX)
		return false;
	struct cursor at = cursor_of(from.at, size);

	return skip_elements(walk, i, false, 0, &at);
}

static bool skip_nested(struct walk *walk, uint32_t i, unsigned type, struct cursor *c)
{
	if (walk->depth >= PAYLOAD_DEPTH_MAX)
		return false;
	walk->depth++;
	bool whole = type == FIELD_OBJECT
			     ? skip_fields(walk, i + 1, schema_fields_end(walk->schema, i), c)
			     : skip_array(walk, i, c);
	walk->depth--;
	return whole;
}

/* One value of the type. Field i describes it where the type has fields or elements. */
static bool skip_value(struct walk *walk, uint32_t i, unsigned type, struct cursor *c)
{
	size_t size = size_of(type, walk->layout);
	size_t units;

	if (type == FIELD_OBJECT || field_type_has_element((uint8_t)type))
		return skip_nested(walk, i, type, c);
	if (size)
		cursor_skip(c, size);
	else if (type == FIELD_TEXT16)
		(void)cursor_utf16z(c, &units);
	else if (type == FIELD_VARINT || type == FIELD_VARUINT)
		(void)cursor_varuint(c);
	else
		return false;
	return !c->short_read;
}

bool payload_layout_fits(const struct schema *schema, struct payload_layout layout,
	const uint8_t *payload, uint32_t size)
{
	struct walk walk = {
		.schema = schema, .layout = layout, .payload = cursor_of(payload, size)
	};
	struct cursor c = walk.payload;

	return skip_fields(&walk, 0, schema->fields.count, &c) && !cursor_left(&c);
}

struct payload_layout payload_layout_of(
	const struct schema *schema, const uint8_t *payload, uint32_t size)
{
	static const struct payload_layout layouts[] = { { false, false }, { true, false },
		{ false, true }, { true, true } };
	bool open = false;

	for (uint32_t i = 0; i < schema->fields.count; i++) {
		const struct field *field = &schema->fields.items[i];
		open |= field->type == FIELD_BOOL || field->element == FIELD_BOOL ||
			field->element == FIELD_U8;
	}
	for (size_t i = 0; open && i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (payload_layout_fits(schema, layouts[i], payload, size))
			return layouts[i];
	return layouts[0];
}
