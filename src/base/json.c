/* See json.h. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"

static void add_quoted(struct bytes *out, const char *text, size_t len)
{
	size_t at = 0;

	bytes_u8(out, '"');
	while (at < len) {
		size_t plain = at; /* characters that need no escape are copied in one piece */
		while (at < len && text[at] >= 0x20 && text[at] < 0x7f && text[at] != '"' &&
			text[at] != '\\')
			at++;
		bytes_add(out, text + plain, at - plain);
		if (at == len)
			break;
		uint32_t c = text_next_char(text, len, &at);
		char one[4];

		if (c == '"' || c == '\\')
			bytes_printf(out, "\\%c", (int)c);
		else if (c == '\n')
			bytes_text(out, "\\n");
		else if (c == '\t')
			bytes_text(out, "\\t");
		else if (text_is_control(c))
			bytes_printf(out, "\\u%04x", (unsigned)c);
		else
			bytes_add(out, one, text_put_char(one, c));
	}
	bytes_u8(out, '"');
}

static void begin_value(struct json *j, const char *name)
{
	if (j->depth) {
		if (j->not_first[j->depth - 1])
			bytes_u8(j->out, ',');
		j->not_first[j->depth - 1] = true;
	}
	if (name) {
		add_quoted(j->out, name, strlen(name));
		bytes_u8(j->out, ':');
	}
}

static void open_level(struct json *j, const char *name, char opener, char closer)
{
	begin_value(j, name);
	assert(j->depth < JSON_DEPTH_MAX);
	bytes_u8(j->out, (uint8_t)opener);
	j->closer[j->depth] = closer;
	j->not_first[j->depth] = false;
	j->depth++;
}

void json_object(struct json *j, const char *name)
{
	open_level(j, name, '{', '}');
}

void json_array(struct json *j, const char *name)
{
	open_level(j, name, '[', ']');
}

void json_end(struct json *j)
{
	assert(j->depth);
	bytes_u8(j->out, (uint8_t)j->closer[--j->depth]);
}

void json_text(struct json *j, const char *name, const char *text, size_t len)
{
	begin_value(j, name);
	add_quoted(j->out, text, len);
}

void json_z(struct json *j, const char *name, const char *text)
{
	json_text(j, name, text, strlen(text));
}

void json_u64(struct json *j, const char *name, uint64_t value)
{
	begin_value(j, name);
	bytes_decimal(j->out, value, 1);
}

void json_i64(struct json *j, const char *name, int64_t value)
{
	begin_value(j, name);
	if (value < 0)
		bytes_u8(j->out, '-');
	bytes_decimal(j->out, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void json_f64(struct json *j, const char *name, double value)
{
	if (!isfinite(value)) {
		json_null(j, name);
		return;
	}
	begin_value(j, name);
	text_add_f64(j->out, value);
}

void json_f32(struct json *j, const char *name, float value)
{
	if (!isfinite(value)) {
		json_null(j, name);
		return;
	}
	begin_value(j, name);
	text_add_f32(j->out, value);
}

void json_bool(struct json *j, const char *name, bool value)
{
	begin_value(j, name);
	bytes_text(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *name)
{
	begin_value(j, name);
	bytes_text(j->out, "null");
}
