/* See payload_json.h. */
#include "lib/logger/payload_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/logger/utf8_of_utf16.h"

#define TEXT16_BYTES 1024u /* of a converted text; the rest is cut */

struct json_output {
	char *at;
	const char *end; /* the last byte is for the zero */
	int error;       /* sticky */
};

static void put(struct json_output *to, const char *text, size_t size)
{
	if (!to->error && (size_t)(to->end - to->at) <= size)
		to->error = -E2BIG;
	if (to->error)
		return;
	memcpy(to->at, text, size);
	to->at += size;
}

static void put_char(struct json_output *to, char c)
{
	put(to, &c, 1);
}

static void put_number(struct json_output *to, uint64_t number, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	put(to, digits + at, sizeof(digits) - at);
}

static void put_text(struct json_output *to, const char *text, size_t size)
{
	put_char(to, '"');
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			put_char(to, '\\');
		if (c >= 0x20) {
			put_char(to, text[i]);
			continue;
		}
		put(to, c < 0x10 ? "\\u000" : "\\u001", 5);
		put_number(to, c & 0xf, 16);
	}
	put_char(to, '"');
}

static void put_hex(struct json_output *to, const uint8_t *bytes, size_t size)
{
	put_char(to, '"');
	for (size_t i = 0; i < size; i++) {
		put_number(to, bytes[i] >> 4, 16);
		put_number(to, bytes[i] & 0xf, 16);
	}
	put_char(to, '"');
}

static void put_double(struct json_output *to, double value)
{
	char text[40];

	if (!isfinite(value)) {
		put(to, "null", 4);
		return;
	}
	int size = snprintf(text, sizeof(text), "%.17g", value);
	put(to, text, size > 0 && (size_t)size < sizeof(text) ? (size_t)size : 0);
}

static void put_value(struct json_output *to, const struct spoor_value *value);

/* Members with their names, or elements. */
static void put_parts(struct json_output *to, const struct spoor_value *value)
{
	struct spoor_value part;
	size_t position = 0, offset = 0;
	const bool named = !value->is_array;
	bool first = true;
	int r = 0;

	put_char(to, named ? '{' : '[');
	while (!to->error && (r = spoor_value_next(value, &position, &offset, &part)) == 1) {
		if (!first)
			put_char(to, ',');
		first = false;
		if (named) {
			put_text(to, part.field->name, strlen(part.field->name));
			put_char(to, ':');
		}
		put_value(to, &part);
	}
	put_char(to, named ? '}' : ']');
	if (r < 0 && !to->error)
		to->error = r;
}

static void put_value(struct json_output *to, const struct spoor_value *value)
{
	char text[TEXT16_BYTES];

	if (value->is_array && value->type == SPOOR_TYPE_U8) {
		put_hex(to, value->bytes, value->byte_count);
		return;
	}
	if (value->is_array || value->type == SPOOR_TYPE_STRUCT) {
		put_parts(to, value);
		return;
	}
	switch (value->type) {
	case SPOOR_TYPE_BOOLEAN:
		put(to, value->u64 ? "true" : "false", value->u64 ? 4 : 5);
		break;
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_I64:
		if (value->i64 < 0)
			put_char(to, '-');
		put_number(to, value->i64 < 0 ? -(uint64_t)value->i64 : (uint64_t)value->i64, 10);
		break;
	case SPOOR_TYPE_F32:
	case SPOOR_TYPE_F64:
		put_double(to, value->f64);
		break;
	case SPOOR_TYPE_GUID:
		put_hex(to, value->bytes, value->byte_count);
		break;
	case SPOOR_TYPE_TEXT:
		put_text(to, value->bytes, value->byte_count);
		break;
	case SPOOR_TYPE_TEXT16: {
		size_t size = utf8z_put(text, sizeof(text), value->bytes, value->byte_count);
		put_text(to, text, size - 1);
		break;
	}
	case SPOOR_TYPE_CHAR16: {
		const uint16_t unit = (uint16_t)value->u64;
		size_t size = utf8z_put(text, sizeof(text), &unit, sizeof(unit));
		put_text(to, text, size - 1);
		break;
	}
	case SPOOR_TYPE_POINTER:
		put(to, "\"0x", 3);
		put_number(to, value->u64, 16);
		put_char(to, '"');
		break;
	default:
		put_number(to, value->u64, 10);
		break;
	}
}

int payload_json_put(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	char *out, size_t room)
{
	struct spoor_event_view view = { .size = sizeof(view),
		.info = &entry->info,
		.payload = payload,
		.payload_size = payload_size };
	struct json_output to = { out, out + room, 0 };
	struct spoor_value value;
	size_t position = 0;
	bool first = true;
	int r = 0;

	put_char(&to, '{');
	while (!to.error && (r = spoor_event_next_field(&view, &position, &value)) == 1) {
		if (!first)
			put_char(&to, ',');
		first = false;
		put_text(&to, value.field->name, strlen(value.field->name));
		put_char(&to, ':');
		put_value(&to, &value);
	}
	put_char(&to, '}');
	if (to.error || r < 0)
		return to.error ? to.error : r;
	*to.at = '\0';
	return (int)(to.at - out);
}
