/*
 * See event_text.h.
 *
 * A payload is read field by field; one that ends early simply has no more fields. What a schema does not describe well enough (arrays of objects, a layout
 * that does not fit the bytes) ends the line with a mark rather than with nonsense.
 */
#include "export/event_text.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/text.h"
#include "model/clr_event.h"
#include "model/event.h"
#include "model/schema.h"
#include "model/trace.h"

#define TEXT_MAX       200u
#define ARRAY_MAX      16u
#define NAME_MAX_BYTES 64u

/* What is done with each field: NULL name ends nothing, it is an element without one. */
struct walk {
	struct bytes *out;
	const struct trace *trace;
	const char *wanted; /* only this field; NULL all */
	bool found;
	bool first;
};

static void add_text16(struct bytes *out, struct cursor *c, bool bare)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);
	struct bytes utf8 = { 0 };

	if (!text)
		return;
	text_add_utf16(&utf8, text, units < TEXT_MAX || bare ? units : TEXT_MAX);
	if (!bare)
		bytes_text(out, "\"");
	text_add_safe(out, bytes_z(&utf8), utf8.len);
	if (!bare)
		bytes_text(out, units > TEXT_MAX ? "\xe2\x80\xa6\"" : "\"");
	bytes_done(&utf8);
}

static void add_guid(struct bytes *out, struct cursor *c)
{
	uint32_t a = cursor_u32(c);
	uint16_t b = cursor_u16(c);
	uint16_t d = cursor_u16(c);
	const uint8_t *rest = cursor_take(c, 8);

	if (!rest)
		return;
	bytes_printf(out, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", a, b, d, rest[0],
		rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], rest[7]);
}

static double f64_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static float f32_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* False: of a type whose length is not known, so that nothing behind it can be read. */
static bool add_value(struct bytes *out, unsigned type, struct cursor *c, bool bare)
{
	switch (type) {
	case FIELD_BOOL:
		bytes_text(out, cursor_u32(c) ? "true" : "false");
		break;
	case FIELD_BOOL8:
		bytes_text(out, cursor_u8(c) ? "true" : "false");
		break;
	case FIELD_CHAR16:
		bytes_printf(out, "%u", cursor_u16(c));
		break;
	case FIELD_I8:
		bytes_printf(out, "%d", (int8_t)cursor_u8(c));
		break;
	case FIELD_U8:
	case FIELD_CHAR8:
		bytes_printf(out, "%u", cursor_u8(c));
		break;
	case FIELD_I16:
		bytes_printf(out, "%d", (int16_t)cursor_u16(c));
		break;
	case FIELD_U16:
		bytes_printf(out, "%u", cursor_u16(c));
		break;
	case FIELD_I32:
		bytes_printf(out, "%d", (int32_t)cursor_u32(c));
		break;
	case FIELD_U32:
		bytes_printf(out, "%u", cursor_u32(c));
		break;
	case FIELD_I64:
		bytes_printf(out, "%lld", (long long)cursor_u64(c));
		break;
	case FIELD_U64:
		bytes_printf(out, "%llu", (unsigned long long)cursor_u64(c));
		break;
	case FIELD_TIME: /* 100 ns since 1601 */
		bytes_printf(out, "%llu", (unsigned long long)cursor_u64(c));
		break;
	case FIELD_F32:
		bytes_printf(out, "%g", (double)f32_of(cursor_u32(c)));
		break;
	case FIELD_F64:
		bytes_printf(out, "%g", f64_of(cursor_u64(c)));
		break;
	case FIELD_DECIMAL:
		cursor_skip(c, 16);
		bytes_text(out, "?");
		break;
	case FIELD_GUID:
		add_guid(out, c);
		break;
	case FIELD_TEXT16:
		add_text16(out, c, bare);
		break;
	case FIELD_VARINT:
		bytes_printf(out, "%lld", (long long)cursor_varint(c));
		break;
	case FIELD_VARUINT:
		bytes_printf(out, "%llu", (unsigned long long)cursor_varuint(c));
		break;
	default:
		return false;
	}
	return true;
}

/* Begins a field; its text goes to *ret_out: the line, or nowhere when another one is wanted. */
static struct bytes *begin_field(struct walk *walk, const char *name, struct bytes *nowhere)
{
	if (walk->wanted && (walk->found || strcmp(name, walk->wanted) != 0))
		return nowhere;
	if (walk->wanted) {
		walk->found = true;
		return walk->out;
	}
	bytes_printf(walk->out, "%s%s=", walk->first ? "" : " ", name);
	walk->first = false;
	return walk->out;
}

static uint32_t behind(const struct schema *schema, uint32_t i)
{
	uint16_t depth = schema->fields.items[i].depth;

	do
		i++;
	while (i < schema->fields.count && schema->fields.items[i].depth > depth);
	return i;
}

static bool walk_fields(
	struct walk *walk, const struct schema *schema, uint32_t i, uint32_t end, struct cursor *c);

static bool walk_array(struct bytes *out, const struct field *field, struct cursor *c)
{
	uint32_t count = field->type == FIELD_ARRAY ? cursor_u16(c) : field->count;

	bytes_text(out, "[");
	for (uint32_t i = 0; i < count && !c->short_read; i++) {
		struct bytes rest = { 0 };
		if (i && i < ARRAY_MAX)
			bytes_text(out, ",");
		bool known = add_value(i < ARRAY_MAX ? out : &rest, field->element, c, false);
		bytes_done(&rest);
		if (!known)
			return false;
	}
	bytes_text(out, count > ARRAY_MAX ? ",\xe2\x80\xa6]" : "]");
	return true;
}

/* Fields [i, end) of one depth, with what is below them. False: what follows cannot be read. */
static bool walk_fields(
	struct walk *walk, const struct schema *schema, uint32_t i, uint32_t end, struct cursor *c)
{
	for (; i < end && cursor_left(c) && !c->short_read; i = behind(schema, i)) {
		const struct field *field = &schema->fields.items[i];
		char name[NAME_MAX_BYTES];
		struct bytes nowhere = { 0 };
		const char *text = trace_text(walk->trace, field->name);
		bool known;
		(void)text_make_safe(
			text, strlen(text), name, sizeof(name)); /* a cut end is fine */
		if (field->type == FIELD_OBJECT) {
			known = walk_fields(walk, schema, i + 1, behind(schema, i), c);
		} else {
			struct bytes *out = begin_field(walk, name, &nowhere);
			known = field->type == FIELD_ARRAY || field->type == FIELD_FIXED_ARRAY
					? walk_array(out, field, c)
					: add_value(out, field->type, c, walk->wanted != NULL);
		}
		bytes_done(&nowhere);
		if (!known)
			return false;
	}
	return true;
}

static unsigned type_of_letter(char letter)
{
	switch (letter) {
	case 'S':
		return FIELD_TEXT16;
	case '1':
		return FIELD_U8;
	case '2':
		return FIELD_U16;
	case '4':
		return FIELD_U32;
	case 'B':
		return FIELD_BOOL;
	case 'D':
		return FIELD_F64;
	case 'G':
		return FIELD_GUID;
	default:
		return FIELD_U64;
	}
}

/* "4 Count, S Name": a payload that ends early has the fields it has. */
static void walk_clr(struct walk *walk, const char *fields, struct cursor *c)
{
	for (const char *at = fields; *at && cursor_left(c) && !c->short_read;) {
		char name[NAME_MAX_BYTES];
		struct bytes nowhere = { 0 };
		size_t len = strcspn(at + 2, ",");
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, at + 2); /* fits */
		struct bytes *out = begin_field(walk, name, &nowhere);
		if (*at == 'X' || *at == 'P')
			bytes_printf(out, "0x%llx", (unsigned long long)cursor_u64(c));
		else
			(void)add_value(out, type_of_letter(*at), c,
				walk->wanted != NULL); /* all of these are known */
		bytes_done(&nowhere);
		at += 2 + len;
		at += strspn(at, ", ");
	}
}

static const struct schema *schema_of(const struct trace *trace, const struct event *event)
{
	return &trace->schemas.items[event->schema_index];
}

static void walk_event(struct walk *walk, const struct event *event)
{
	const struct schema *schema = schema_of(walk->trace, event);
	const struct clr_event *known = clr_event_find(schema->provider_kind, schema->event_id);
	struct cursor c = cursor_of(event->payload, event->payload_size);

	if (schema->fields.count) {
		if (!walk_fields(walk, schema, 0, schema->fields.count, &c) && !walk->wanted)
			bytes_text(walk->out, "?");
	} else if (known) {
		walk_clr(walk, known->fields, &c);
	}
}

void event_text_name(struct bytes *out, const struct trace *trace, const struct event *event)
{
	const struct schema *schema = schema_of(trace, event);
	const struct clr_event *known = clr_event_find(schema->provider_kind, schema->event_id);
	const char *name = trace_text(trace, schema->name);
	const char *provider = trace_text(trace, schema->provider);

	text_add_safe(out, provider, strlen(provider));
	bytes_text(out, "/");
	if (*name)
		text_add_safe(out, name, strlen(name));
	else if (known)
		bytes_text(out, known->name);
	else
		bytes_printf(out, "%u", schema->event_id);
}

void event_text_fields(struct bytes *out, const struct trace *trace, const struct event *event)
{
	struct walk walk = { .out = out, .trace = trace, .first = true };

	walk_event(&walk, event);
}

bool event_text_field(
	struct bytes *out, const struct trace *trace, const struct event *event, const char *name)
{
	struct walk walk = { .out = out, .trace = trace, .wanted = name };

	walk_event(&walk, event);
	return walk.found;
}
