/* See event_header.h. */
#include "lib/logger/event_header.h"

#include <errno.h>
#include <string.h>

#include <spoor/user_events.h>

#include "lib/event/field_size.h"

/* of a field's type: without the flag of an array */
#define ELEMENT (~(uint32_t)SPOOR_TYPE_ARRAY)

#define MEMBERS_MAX     127u
#define DESCRIPTION_MAX 65535u

/* ---- Description ---- */

struct kind {
	uint8_t encoding;
	uint8_t format;
};

static struct kind kind_of(uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_BOOLEAN:
		return (struct kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_BOOLEAN };
	case SPOOR_TYPE_I8:
		return (struct kind){ SPOOR_ENCODING_VALUE8, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_U8:
		return (struct kind){ SPOOR_ENCODING_VALUE8, SPOOR_FORMAT_DEFAULT };
	case SPOOR_TYPE_I16:
		return (struct kind){ SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_U16:
		return (struct kind){ SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_DEFAULT };
	case SPOOR_TYPE_CHAR16:
		return (struct kind){ SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_TEXT };
	case SPOOR_TYPE_I32:
		return (struct kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_U32:
		return (struct kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_DEFAULT };
	case SPOOR_TYPE_F32:
		return (struct kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_FLOAT };
	case SPOOR_TYPE_I64:
		return (struct kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_F64:
		return (struct kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_FLOAT };
	case SPOOR_TYPE_POINTER:
		return (struct kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_HEX };
	case SPOOR_TYPE_GUID:
		return (struct kind){ SPOOR_ENCODING_VALUE128, SPOOR_FORMAT_UUID };
	case SPOOR_TYPE_TEXT:
		return (struct kind){ SPOOR_ENCODING_COUNTED_BYTES, SPOOR_FORMAT_TEXT };
	case SPOOR_TYPE_TEXT16:
		return (struct kind){ SPOOR_ENCODING_ZERO_TEXT16, SPOOR_FORMAT_TEXT };
	case SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY:
		/* also a blob: the same bytes as an array */
		return (struct kind){ SPOOR_ENCODING_COUNTED_BYTES, SPOOR_FORMAT_BYTES };
	default: /* SPOOR_TYPE_U64, SPOOR_TYPE_TIME */
		return (struct kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_DEFAULT };
	}
}

/* A ';' in a name would begin an attribute. */
static void name_put(struct outbuf *out, const char *name)
{
	size_t size = strlen(name) + 1;
	uint8_t *at = outbuf_reserve(out, size);

	if (!at)
		return;
	for (size_t i = 0; i < size; i++)
		at[i] = name[i] == ';' ? '_' : (uint8_t)name[i];
	out->size += size;
}

static void kind_put(struct outbuf *out, unsigned encoding, unsigned format)
{
	const uint8_t bytes[] = { (uint8_t)(encoding | (format ? SPOOR_ENCODING_FORMAT : 0u)),
		(uint8_t)format };

	outbuf_add(out, bytes, format ? 2 : 1);
}

static int fields_put(struct outbuf *out, const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type;
		bool array = type & SPOOR_TYPE_ARRAY;
		name_put(out, fields[i].name);
		if ((type & ELEMENT) == SPOOR_TYPE_STRUCT) {
			if (!fields[i].field_count || fields[i].field_count > MEMBERS_MAX)
				return -E2BIG;
			kind_put(out, SPOOR_ENCODING_STRUCT | (array ? SPOOR_ENCODING_ARRAY : 0u),
				fields[i].field_count);
			int r = fields_put(out, fields[i].fields, fields[i].field_count);
			if (r)
				return r;
			continue;
		}
		struct kind kind = kind_of(type);
		if (array && type != (SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY)) {
			kind = kind_of(type & ELEMENT);
			kind.encoding |= SPOOR_ENCODING_ARRAY;
		}
		kind_put(out, kind.encoding, kind.format);
	}
	return 0;
}

int event_header_describe(const struct event_entry *entry, struct outbuf *out)
{
	static const struct spoor_field payload = { "Payload", SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY, 0,
		NULL };
	int r;

	name_put(out, entry->info.name);
	if (event_header_payload_of(entry) == EVENT_HEADER_COUNTED)
		r = fields_put(out, &payload, 1);
	else
		r = fields_put(out, entry->info.fields, entry->info.field_count);
	if (out->failed)
		return -ENOMEM;
	return r || out->size > DESCRIPTION_MAX ? -E2BIG : 0;
}

/* ---- Payload ---- */

static bool any_converted(const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type & ELEMENT;
		if (type == SPOOR_TYPE_TEXT || type == SPOOR_TYPE_GUID ||
			(type == SPOOR_TYPE_STRUCT &&
				any_converted(fields[i].fields, fields[i].field_count)))
			return true;
	}
	return false;
}

enum event_header_payload event_header_payload_of(const struct event_entry *entry)
{
	if (!entry->info.field_count && (entry->flags & ENTRY_WELL_KNOWN))
		return EVENT_HEADER_COUNTED;
	return any_converted(entry->info.fields, entry->info.field_count) ? EVENT_HEADER_CONVERTED
									  : EVENT_HEADER_SAME;
}

struct conversion {
	const uint8_t *at;
	const uint8_t *end;
	uint8_t *out;
	uint8_t *out_end;
	int error; /* sticky */
};

static bool has(struct conversion *c, size_t size)
{
	if (!c->error && (size_t)(c->end - c->at) < size)
		c->error = -EBADMSG;
	return !c->error;
}

static void copy(struct conversion *c, size_t size)
{
	if (!has(c, size))
		return;
	if ((size_t)(c->out_end - c->out) < size) {
		c->error = -E2BIG;
		return;
	}
	memcpy(c->out, c->at, size);
	c->out += size;
	c->at += size;
}

static uint16_t copy_u16(struct conversion *c)
{
	uint16_t value = 0;

	if (has(c, sizeof(value)))
		memcpy(&value, c->at, sizeof(value));
	copy(c, sizeof(value));
	return c->error ? 0 : value;
}

static void copy_text16(struct conversion *c)
{
	size_t size = 0;

	do
		size += 2;
	while (has(c, size) && (c->at[size - 2] || c->at[size - 1]));
	copy(c, size);
}

static void convert_guid(struct conversion *c)
{
	struct spoor_guid guid;

	if (!has(c, sizeof(guid)))
		return;
	if ((size_t)(c->out_end - c->out) < sizeof(guid)) {
		c->error = -E2BIG;
		return;
	}
	memcpy(&guid, c->at, sizeof(guid));
	c->out = spoor_generated_put_uuid(c->out, c->out_end, &guid);
	c->at += sizeof(guid);
}

static void convert_fields(struct conversion *c, const struct spoor_field *fields, uint32_t count);

static void convert_one(struct conversion *c, const struct spoor_field *field, uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_STRUCT:
		convert_fields(c, field->fields, field->field_count);
		break;
	case SPOOR_TYPE_TEXT:
		copy(c, copy_u16(c));
		if (has(c, 1))
			c->at++;
		break;
	case SPOOR_TYPE_TEXT16:
		copy_text16(c);
		break;
	case SPOOR_TYPE_GUID:
		convert_guid(c);
		break;
	default:
		copy(c, field_fixed_size(type));
		break;
	}
}

static void convert_fields(struct conversion *c, const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count && !c->error; i++) {
		uint32_t type = fields[i].type & ELEMENT;
		if (!(fields[i].type & SPOOR_TYPE_ARRAY)) {
			convert_one(c, &fields[i], type);
			continue;
		}
		uint16_t elements = copy_u16(c);
		size_t size = field_fixed_size(type);
		if (size && type != SPOOR_TYPE_GUID) {
			copy(c, elements * size);
			continue;
		}
		for (uint16_t k = 0; k < elements && !c->error; k++)
			convert_one(c, &fields[i], type);
	}
}

int event_header_convert(const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size, uint8_t *out, size_t room)
{
	struct conversion c = { payload, payload + payload_size, out, out + room, 0 };

	if (event_header_payload_of(entry) == EVENT_HEADER_COUNTED) {
		uint16_t size = (uint16_t)payload_size;
		if (payload_size > UINT16_MAX || room < sizeof(size))
			return -E2BIG;
		memcpy(out, &size, sizeof(size));
		c.out += sizeof(size);
		copy(&c, payload_size);
	} else {
		convert_fields(&c, entry->info.fields, entry->info.field_count);
	}
	return c.error ? c.error : (int)(c.out - out);
}
