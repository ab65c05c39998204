/* See tracepoint_format.h. */
#include "formats/tracepoint_format.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/diag.h"

/* A piece of the text. */
struct piece {
	const char *at;
	const char *end;
};

static size_t piece_len(struct piece p)
{
	return (size_t)(p.end - p.at);
}

static bool starts_with(struct piece p, const char *text)
{
	return piece_len(p) >= strlen(text) && memcmp(p.at, text, strlen(text)) == 0;
}

static bool piece_is(struct piece p, const char *text)
{
	return piece_len(p) == strlen(text) && starts_with(p, text);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct piece trim(struct piece p)
{
	while (p.at < p.end && is_blank(*p.at))
		p.at++;
	while (p.at < p.end && is_blank(p.end[-1]))
		p.end--;
	return p;
}

/* The text up to `mark`, which `rest` then follows. False: there is no mark. */
static bool split(struct piece *rest, char mark, struct piece *ret_before)
{
	const char *found = piece_len(*rest) ? memchr(rest->at, mark, piece_len(*rest)) : NULL;

	if (!found)
		return false;
	*ret_before = (struct piece){ rest->at, found };
	rest->at = found + 1;
	return true;
}

static bool read_number(struct piece p, uint32_t limit, uint32_t *ret_number)
{
	uint32_t number = 0;

	p = trim(p);
	if (p.at == p.end)
		return false;
	for (; p.at < p.end; p.at++) {
		if (*p.at < '0' || *p.at > '9')
			return false;
		number = number * 10 + (uint32_t)(*p.at - '0');
		if (number > limit)
			return false;
	}
	*ret_number = number;
	return true;
}

/* The number in "key:number;" */
static bool read_property(struct piece *line, const char *key, uint32_t limit, uint32_t *ret_number)
{
	struct piece property;

	if (!split(line, ';', &property))
		return false;
	property = trim(property);
	if (!starts_with(property, key))
		return false;
	property.at += strlen(key);
	return read_number(property, limit, ret_number);
}

/* Removes "[...]" at the end. */
static bool cut_brackets(struct piece *p)
{
	if (p->at == p->end || p->end[-1] != ']')
		return false;
	for (const char *at = p->end - 1; at > p->at; at--)
		if (*at == '[') {
			p->end = at;
			*p = trim(*p);
			return true;
		}
	return false;
}

/* Bytes of the elements of this type; a type that is not known has bytes. */
static uint8_t type_bytes(struct piece type)
{
	static const struct {
		const char *name;
		uint8_t bytes;
	} types[] = {
		{ "s16", 2 },
		{ "u16", 2 },
		{ "short", 2 },
		{ "unsigned short", 2 },
		{ "s32", 4 },
		{ "u32", 4 },
		{ "int", 4 },
		{ "unsigned int", 4 },
		{ "s64", 8 },
		{ "u64", 8 },
		{ "long", 8 },
		{ "unsigned long", 8 },
		{ "long long", 8 },
		{ "unsigned long long", 8 },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (piece_is(type, types[i].name))
			return types[i].bytes;
	return 1;
}

static void set_place(struct piece *type, struct format_field *field)
{
	static const char *const names[] = {
		[TRACEPOINT_REL_LOC] = "__rel_loc ",
		[TRACEPOINT_DATA_LOC] = "__data_loc ",
	};

	for (unsigned i = TRACEPOINT_REL_LOC; i <= TRACEPOINT_DATA_LOC; i++)
		if (starts_with(*type, names[i])) {
			field->place = (uint8_t)i;
			type->at += strlen(names[i]);
			*type = trim(*type);
		}
}

/* "unsigned char name[16]", "__rel_loc u8[] name", "__rel_loc u8 name[]", "struct point name" */
static bool read_declaration(struct piece declaration, struct format_field *field)
{
	struct piece name, type = trim(declaration);

	bool is_array = cut_brackets(&type);
	name = type;
	while (name.at < type.end && type.end > type.at && !is_blank(type.end[-1]))
		type.end--;
	name.at = type.end;
	type = trim(type);
	if (!piece_len(name) || !piece_len(type))
		return false;
	set_place(&type, field);
	is_array |= cut_brackets(&type);
	if (!piece_len(type) || (field->place && field->size != 4))
		return false;
	uint8_t bytes = type_bytes(type);

	if (field->place)
		field->element_bytes = bytes;
	else if (is_array)
		field->element_bytes = field->size % bytes ? 1 : bytes;
	else if (field->size != 1 && field->size != 2 && field->size != 4 && field->size != 8)
		field->element_bytes = 1; /* a struct */
	field->is_text = field->element_bytes == 1 && (is_array || field->place) &&
			 (piece_is(type, "char") || piece_is(type, "const char"));
	field->is_bool = !field->element_bytes && field->size == 1 &&
			 (piece_is(type, "bool") || piece_is(type, "_Bool"));
	if (field->element_bytes)
		field->is_signed = *type.at == 's' && !starts_with(type, "struct ");
	field->name = name.at;
	field->name_len = (uint32_t)piece_len(name);
	return true;
}

/* After "field:". */
static bool read_field(struct piece line, struct format_field *ret_field)
{
	struct piece declaration;
	uint32_t is_signed = 0;

	*ret_field = (struct format_field){ 0 };
	if (!split(&line, ';', &declaration) ||
		!read_property(&line, "offset:", UINT16_MAX, &ret_field->offset) ||
		!read_property(&line, "size:", UINT16_MAX, &ret_field->size) ||
		!read_property(&line, "signed:", 1, &is_signed) || !ret_field->size ||
		ret_field->offset + ret_field->size > UINT16_MAX)
		return false;
	ret_field->is_signed = is_signed;
	return read_declaration(declaration, ret_field);
}

static int malformed(struct diag *diag, unsigned line)
{
	return diag_set(diag, -EBADMSG,
		"line %u of a tracepoint's description cannot be understood", line);
}

int tracepoint_format_parse(const char *text, size_t size, struct tracepoint_format *ret_format,
	struct diag *diag)
{
	struct piece rest = { text, text + size };
	struct piece line;
	uint32_t id = UINT32_MAX;

	if (size > TRACEPOINT_FORMAT_MAX)
		return diag_set(diag, -EFBIG,
			"the description of a tracepoint has %zu bytes: %u is the limit", size,
			TRACEPOINT_FORMAT_MAX);
	ret_format->count = 0;
	for (unsigned number = 1; rest.at < rest.end; number++) {
		struct format_field field;
		if (!split(&rest, '\n', &line)) {
			line = rest;
			rest.at = rest.end;
		}
		line = trim(line);
		if (starts_with(line, "print fmt:"))
			break; /* any text, of several lines */
		if (starts_with(line, "ID:")) {
			line.at += strlen("ID:");
			if (!read_number(line, UINT16_MAX, &id))
				return malformed(diag, number);
		}
		if (!starts_with(line, "field:"))
			continue;
		line.at += strlen("field:");
		if (!read_field(line, &field))
			return malformed(diag, number);
		if (field.name_len >= 7 && memcmp(field.name, "common_", 7) == 0)
			continue;
		if (ret_format->count == TRACEPOINT_FIELDS_MAX)
			return diag_set(diag, -E2BIG, "a tracepoint has more than %u fields",
				TRACEPOINT_FIELDS_MAX);
		ret_format->fields[ret_format->count++] = field;
	}
	if (id == UINT32_MAX)
		return diag_set(diag, -EBADMSG, "the description of a tracepoint has no ID");
	ret_format->id = (uint16_t)id;
	return 0;
}

bool tracepoint_format_has(const struct tracepoint_format *format, uint32_t index, const char *name)
{
	const struct format_field *field = &format->fields[index];

	return index < format->count && field->name_len == strlen(name) &&
	       memcmp(field->name, name, field->name_len) == 0;
}

const uint8_t *format_field_bytes(const struct format_field *field, const uint8_t *raw, size_t size,
	size_t *ret_size)
{
	struct cursor c = cursor_of(raw, size);

	cursor_skip(&c, field->offset);
	if (field->place == TRACEPOINT_INLINE) {
		*ret_size = field->size;
		return cursor_take(&c, field->size);
	}
	size_t offset = cursor_u16(&c);
	*ret_size = cursor_u16(&c);
	if (c.short_read)
		return NULL;
	if (field->place == TRACEPOINT_DATA_LOC)
		c = cursor_of(raw, size);
	cursor_skip(&c, offset);
	return cursor_take(&c, *ret_size);
}
