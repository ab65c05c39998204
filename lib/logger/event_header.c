/* See event_header.h. */
#include "lib/logger/event_header.h"

#include <errno.h>
#include <string.h>

#include <spoor/user_events.h>

#include "lib/logger/counted_payload.h"

/* of a field's type: without the flag of an array */
#define ELEMENT (~(uint32_t)SPOOR_TYPE_ARRAY)

#define MEMBERS_MAX     127u
#define DESCRIPTION_MAX 65535u

/* ---- Description ---- */

struct header_kind {
	uint8_t encoding;
	uint8_t format;
};

static struct header_kind kind_of(uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_BOOLEAN:
		return (struct header_kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_BOOLEAN };
	case SPOOR_TYPE_I8:
		return (struct header_kind){ SPOOR_ENCODING_VALUE8, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_U8:
		return (struct header_kind){ SPOOR_ENCODING_VALUE8, SPOOR_FORMAT_DEFAULT };
	case SPOOR_TYPE_I16:
		return (struct header_kind){ SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_U16:
		return (struct header_kind){ SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_DEFAULT };
	case SPOOR_TYPE_CHAR16:
		return (struct header_kind){ SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_TEXT };
	case SPOOR_TYPE_I32:
		return (struct header_kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_U32:
		return (struct header_kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_DEFAULT };
	case SPOOR_TYPE_F32:
		return (struct header_kind){ SPOOR_ENCODING_VALUE32, SPOOR_FORMAT_FLOAT };
	case SPOOR_TYPE_I64:
		return (struct header_kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_SIGNED };
	case SPOOR_TYPE_F64:
		return (struct header_kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_FLOAT };
	case SPOOR_TYPE_POINTER:
		return (struct header_kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_HEX };
	case SPOOR_TYPE_GUID:
		return (struct header_kind){ SPOOR_ENCODING_VALUE128, SPOOR_FORMAT_UUID };
	case SPOOR_TYPE_TEXT:
		return (struct header_kind){ SPOOR_ENCODING_COUNTED_BYTES, SPOOR_FORMAT_TEXT };
	case SPOOR_TYPE_TEXT16:
		return (struct header_kind){ SPOOR_ENCODING_ZERO_TEXT16, SPOOR_FORMAT_TEXT };
	case SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY:
		/* also a blob: the same bytes as an array */
		return (struct header_kind){ SPOOR_ENCODING_COUNTED_BYTES, SPOOR_FORMAT_BYTES };
	default: /* SPOOR_TYPE_U64, SPOOR_TYPE_TIME */
		return (struct header_kind){ SPOOR_ENCODING_VALUE64, SPOOR_FORMAT_DEFAULT };
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
		struct header_kind kind = kind_of(type);
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
	if (counted_payload_of(entry, COUNTED_GUIDS_SWAPPED) == COUNTED_PAYLOAD_BYTES)
		r = fields_put(out, &payload, 1);
	else
		r = fields_put(out, entry->info.fields, entry->info.field_count);
	if (out->failed)
		return -ENOMEM;
	return r || out->size > DESCRIPTION_MAX ? -E2BIG : 0;
}
