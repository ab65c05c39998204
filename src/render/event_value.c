/* See event_value.h. */
#include "render/event_value.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/schema.h"

#define TEXT_MAX 200u

#define TICKS_PER_S   10000000u
#define TICKS_TO_1970 UINT64_C(116444736000000000) /* 100 ns since 1601 */
/* the year 10000, which ISO 8601 does not have */
#define TICKS_OF_DATES UINT64_C(2650467744000000000)

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

static struct event_value of_i64(int64_t i)
{
	return (struct event_value){ .kind = VALUE_I64, .i = i };
}

static struct event_value of_u64(uint64_t u)
{
	return (struct event_value){ .kind = VALUE_U64, .u = u };
}

static struct event_value of_bool(bool yes)
{
	return (struct event_value){ .kind = VALUE_BOOL, .u = yes };
}

static struct event_value of_f32(float f32)
{
	return (struct event_value){ .kind = VALUE_F32, .f32 = f32 };
}

static struct event_value of_f64(double f)
{
	return (struct event_value){ .kind = VALUE_F64, .f = f };
}

bool event_value_read(unsigned type, struct cursor *c, struct event_value *ret_value)
{
	struct event_value value = { 0 };

	switch (type) {
	case FIELD_BOOL:
		value = of_bool(cursor_u32(c));
		break;
	case FIELD_BOOL8:
		value = of_bool(cursor_u8(c));
		break;
	case FIELD_I8:
		value = of_i64((int8_t)cursor_u8(c));
		break;
	case FIELD_U8:
	case FIELD_CHAR8:
		value = of_u64(cursor_u8(c));
		break;
	case FIELD_I16:
		value = of_i64((int16_t)cursor_u16(c));
		break;
	case FIELD_U16:
		value = of_u64(cursor_u16(c));
		break;
	case FIELD_CHAR16:
		value.kind = VALUE_TEXT16;
		value.bytes = cursor_take(c, 2);
		value.count = 1;
		break;
	case FIELD_I32:
		value = of_i64((int32_t)cursor_u32(c));
		break;
	case FIELD_U32:
		value = of_u64(cursor_u32(c));
		break;
	case FIELD_I64:
		value = of_i64((int64_t)cursor_u64(c));
		break;
	case FIELD_U64:
		value = of_u64(cursor_u64(c));
		break;
	case FIELD_TIME:
		value = of_u64(cursor_u64(c));
		if (value.u < TICKS_OF_DATES)
			value.kind = VALUE_TIME;
		break;
	case FIELD_F32:
		value = of_f32(f32_of(cursor_u32(c)));
		break;
	case FIELD_F64:
		value = of_f64(f64_of(cursor_u64(c)));
		break;
	case FIELD_DECIMAL:
		cursor_skip(c, 16);
		break;
	case FIELD_GUID:
		value.kind = VALUE_GUID;
		value.bytes = cursor_take(c, 16);
		break;
	case FIELD_TEXT16:
		value.kind = VALUE_TEXT16;
		value.bytes = cursor_utf16z(c, &value.count);
		break;
	case FIELD_VARINT:
		value = of_i64(cursor_varint(c));
		break;
	case FIELD_VARUINT:
		value = of_u64(cursor_varuint(c));
		break;
	default:
		return false;
	}
	*ret_value = value;
	return true;
}

void event_value_guid(struct bytes *out, const uint8_t *guid)
{
	struct cursor c = cursor_of(guid, 16);
	uint32_t a = cursor_u32(&c);
	uint16_t b = cursor_u16(&c);
	uint16_t d = cursor_u16(&c);
	const uint8_t *rest = c.at;

	bytes_printf(out, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", a, b, d, rest[0],
		rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], rest[7]);
}

/* A text of a value as UTF-8, at most `most` units or bytes of it. */
static void add_utf8(struct bytes *out, const struct event_value *value, size_t most)
{
	size_t count = value->count < most ? value->count : most;

	if (value->kind == VALUE_TEXT16)
		text_add_utf16(out, value->bytes, count);
	else
		bytes_add(out, value->bytes, count);
}

/* Bare: without quotes and whole, for the comparison with text from the command line. */
static void add_quoted(struct bytes *out, const struct event_value *value, bool bare)
{
	struct bytes utf8 = { 0 };

	add_utf8(&utf8, value, bare ? SIZE_MAX : TEXT_MAX);
	if (bare) {
		text_add_safe(out, bytes_z(&utf8), utf8.len);
	} else {
		bytes_text(out, "\"");
		text_add_escaped(out, bytes_z(&utf8), utf8.len);
	}
	if (!bare)
		bytes_text(out, value->count > TEXT_MAX ? "\xe2\x80\xa6\"" : "\"");
	out->failed |= utf8.failed;
	bytes_done(&utf8);
}

/* "2020-01-02T03:04:05.5Z" of 100 ns since 1601, below TICKS_OF_DATES. */
static void add_date(struct bytes *out, uint64_t ticks)
{
	int64_t since_1970 = (int64_t)(ticks - ticks % TICKS_PER_S) - (int64_t)TICKS_TO_1970;
	time_t seconds = (time_t)(since_1970 / TICKS_PER_S);
	uint64_t fraction = ticks % TICKS_PER_S;
	int digits = 7;
	struct tm utc = { 0 };

	(void)gmtime_r(&seconds, &utc); /* years of four digits */
	bytes_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d", utc.tm_year + 1900, utc.tm_mon + 1,
		utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
	for (; fraction && fraction % 10 == 0; digits--)
		fraction /= 10;
	if (fraction)
		bytes_printf(out, ".%0*" PRIu64, digits, fraction);
	bytes_u8(out, 'Z');
}

void event_value_add(struct bytes *out, const struct event_value *value, bool bare)
{
	switch (value->kind) {
	case VALUE_NONE:
		bytes_text(out, "?");
		break;
	case VALUE_BOOL:
		bytes_text(out, value->u ? "true" : "false");
		break;
	case VALUE_I64:
		if (value->i < 0)
			bytes_u8(out, '-');
		bytes_decimal(out, value->i < 0 ? -(uint64_t)value->i : (uint64_t)value->i, 1);
		break;
	case VALUE_U64:
		bytes_decimal(out, value->u, 1);
		break;
	case VALUE_HEX:
		bytes_printf(out, "0x%llx", (unsigned long long)value->u);
		break;
	case VALUE_F32:
		text_add_f32(out, value->f32);
		break;
	case VALUE_F64:
		text_add_f64(out, value->f);
		break;
	case VALUE_TIME:
		add_date(out, value->u);
		break;
	case VALUE_GUID:
		event_value_guid(out, value->bytes);
		break;
	case VALUE_TEXT16:
	case VALUE_TEXT8:
		add_quoted(out, value, bare);
		break;
	}
}

void event_value_json(struct json *j, const char *name, const struct event_value *value)
{
	struct bytes text = { 0 };

	switch (value->kind) {
	case VALUE_NONE:
		json_null(j, name);
		break;
	case VALUE_BOOL:
		json_bool(j, name, value->u);
		break;
	case VALUE_I64:
		json_i64(j, name, value->i);
		break;
	case VALUE_U64:
		json_u64(j, name, value->u);
		break;
	case VALUE_F32:
	case VALUE_F64:
		/* JSON has no number that is not finite: "NaN". */
		if (isfinite(value->kind == VALUE_F32 ? (double)value->f32 : value->f)) {
			if (value->kind == VALUE_F32)
				json_f32(j, name, value->f32);
			else
				json_f64(j, name, value->f);
			break;
		}
		/* fall through */
	case VALUE_HEX:
	case VALUE_TIME:
	case VALUE_GUID:
		event_value_add(&text, value, true);
		json_text(j, name, bytes_z(&text), text.len);
		break;
	case VALUE_TEXT16:
	case VALUE_TEXT8:
		add_utf8(&text, value, SIZE_MAX);
		json_text(j, name, bytes_z(&text), text.len);
		break;
	}
	j->out->failed |= text.failed;
	bytes_done(&text);
}
