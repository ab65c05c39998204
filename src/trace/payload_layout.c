/* See payload_layout.h. */
#include "trace/payload_layout.h"

#include <stddef.h>

#include "base/cursor.h"
#include "trace/schema.h"

struct layout_walk {
	const struct schema *schema;
	struct payload_layout layout;
	struct cursor payload;      /* all of it */
	unsigned depth;             /* objects and arrays that are open */
	size_t located;             /* bytes so far, against PAYLOAD_LOCATED_MAX */
	const uint8_t *located_end; /* end of the payload located last; NULL: none */
};

bool payload_is_used_up(const uint8_t *end, const uint8_t *located, const uint8_t *payload_end)
{
	if (!located)
		return end == payload_end;
	return payload_end - (located > end ? located : end) <= (ptrdiff_t)PAYLOAD_PAD_MAX;
}

bool payload_is_wide(struct payload_layout layout, const struct schema *schema, uint32_t i)
{
	return i < 64 && layout.wide >> i & 1 &&
	       !field_type_has_element(schema->fields.items[i].type);
}

size_t payload_fixed_size(unsigned type, struct payload_layout layout)
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

static bool skip_value(struct layout_walk *walk, uint32_t i, unsigned type, struct cursor *c);

static bool skip_fields(struct layout_walk *walk, uint32_t i, uint32_t end, struct cursor *c)
{
	for (; i < end; i = schema_fields_end(walk->schema, i))
		if (!skip_value(walk, i, walk->schema->fields.items[i].type, c))
			return false;
	return true;
}

/* The elements of field i: `count` of them, or as many as `at` has bytes for. */
static bool skip_elements(struct layout_walk *walk, uint32_t i, bool counted, uint32_t count,
	struct cursor *at)
{
	const struct field *field = &walk->schema->fields.items[i];
	bool nested = field_type_has_element(field->element);
	size_t size = payload_fixed_size(field->element, walk->layout);

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

static bool skip_array(struct layout_walk *walk, uint32_t i, struct cursor *c)
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

	if (!walk->located_end || at.end > walk->located_end)
		walk->located_end = at.end;
	return skip_elements(walk, i, false, 0, &at);
}

static bool skip_nested(struct layout_walk *walk, uint32_t i, unsigned type, struct cursor *c)
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

/* An int32 whose value has the type. */
static bool skip_wide(unsigned type, struct cursor *c)
{
	uint32_t u = cursor_u32(c);
	int32_t i = (int32_t)u;

	if (c->short_read)
		return false;
	switch (type) {
	case FIELD_I8:
		return i >= INT8_MIN && i <= INT8_MAX;
	case FIELD_U8:
		return u <= UINT8_MAX;
	case FIELD_I16:
		return i >= INT16_MIN && i <= INT16_MAX;
	default:
		return u <= UINT16_MAX;
	}
}

/* One value of the type. Field i describes it where the type has fields or elements. */
static bool skip_value(struct layout_walk *walk, uint32_t i, unsigned type, struct cursor *c)
{
	size_t size = payload_fixed_size(type, walk->layout);
	size_t units;

	if (type == FIELD_OBJECT || field_type_has_element((uint8_t)type))
		return skip_nested(walk, i, type, c);
	if (payload_is_wide(walk->layout, walk->schema, i))
		return skip_wide(type, c);
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
	struct layout_walk walk = {
		.schema = schema, .layout = layout, .payload = cursor_of(payload, size)
	};
	struct cursor c = walk.payload;

	return skip_fields(&walk, 0, schema->fields.count, &c) &&
	       payload_is_used_up(c.at, walk.located_end, walk.payload.end);
}

static bool can_be_wide(const struct field *field)
{
	return field->type == FIELD_I8 || field->type == FIELD_U8 || field->type == FIELD_I16 ||
	       field->type == FIELD_U16;
}

/* Single values and arrays of them, never nested: each try takes little time. */
static bool can_be_of_manifest(const struct field *field)
{
	if (field->type == FIELD_ARRAY)
		return !field->depth &&
		       payload_fixed_size(field->element, (struct payload_layout){ 0 });
	return !field->depth && field->type != FIELD_OBJECT && !field_type_has_element(field->type);
}

/* Adds the wide fields of the only layout that fits; false when none does, or several do. */
static bool find_wide(const struct schema *schema, const uint8_t *payload, uint32_t size,
	struct payload_layout *layout)
{
	uint64_t fields[PAYLOAD_WIDE_MAX];
	unsigned count = 0;
	uint64_t found = 0;

	for (uint32_t i = 0; i < schema->fields.count; i++) {
		if (!can_be_of_manifest(&schema->fields.items[i]))
			return false;
		if (!can_be_wide(&schema->fields.items[i]))
			continue;
		if (count == PAYLOAD_WIDE_MAX || i >= 64)
			return false;
		fields[count++] = UINT64_C(1) << i;
	}
	for (unsigned set = 1; set < 1u << count; set++) {
		struct payload_layout wide = { .counted_by_4 = true };
		for (unsigned i = 0; i < count; i++)
			wide.wide |= set >> i & 1 ? fields[i] : 0;
		if (!payload_layout_fits(schema, wide, payload, size))
			continue;
		if (found)
			return false;
		found = wide.wide;
		*layout = wide;
	}
	return found;
}

struct payload_layout payload_layout_of(const struct schema *schema, const uint8_t *payload,
	uint32_t size)
{
	static const struct payload_layout layouts[] = { { 0 }, { .byte_bools = true },
		{ .counted_by_4 = true }, { .byte_bools = true, .counted_by_4 = true } };
	struct payload_layout wide;
	bool open = false;

	vec_each(field, &schema->fields) {
		open |= field->type == FIELD_BOOL || field->element == FIELD_BOOL ||
			field->element == FIELD_U8 || can_be_wide(field);
	}
	for (size_t i = 0; open && i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (payload_layout_fits(schema, layouts[i], payload, size))
			return layouts[i];
	return open && find_wide(schema, payload, size, &wide) ? wide : layouts[0];
}
