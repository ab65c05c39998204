/*
 * See etw_metadata.h.
 *
 *   u16 size, with these two bytes
 *   u8 0: no tags
 *   the event's name and a zero byte
 *   of each field: its name and a zero byte, u8 type with flags, with TYPE_FORMAT u8 format
 *
 * A struct's format is the number of its fields, which follow. With TYPE_ARRAY the payload has
 * u16 count in front of the elements.
 */
#include "lib/logger/etw_metadata.h"

#include <errno.h>
#include <string.h>

#include "lib/logger/counted_payload.h"

/* of a field's type: without the flag of an array */
#define ELEMENT (~(uint32_t)SPOOR_TYPE_ARRAY)

#define MEMBERS_MAX     127u
#define DESCRIPTION_MAX 65535u

enum etw_type {
	ETW_TEXT16 = 1, /* UTF-16 with a zero */
	ETW_I8 = 3,
	ETW_U8 = 4,
	ETW_I16 = 5,
	ETW_U16 = 6,
	ETW_I32 = 7,
	ETW_U32 = 8,
	ETW_I64 = 9,
	ETW_U64 = 10,
	ETW_F32 = 11,
	ETW_F64 = 12,
	ETW_BOOL32 = 13,
	ETW_BINARY = 14, /* u16 size, bytes */
	ETW_GUID = 15,
	ETW_FILETIME = 17,
	ETW_HEX64 = 21,
	ETW_COUNTED_TEXT = 23, /* u16 size, bytes */
	ETW_STRUCT = 24,
	/* flags */
	ETW_TYPE_ARRAY = 0x40,
	ETW_TYPE_FORMAT = 0x80,
};

enum etw_format {
	ETW_FORMAT_DEFAULT = 0,
	ETW_FORMAT_STRING = 2, /* of a u16: a UTF-16 unit */
	ETW_FORMAT_UTF8 = 35,
};

struct etw_description {
	uint8_t type;
	uint8_t format;
};

static struct etw_description description_of(uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_BOOLEAN:
		return (struct etw_description){ ETW_BOOL32, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_I8:
		return (struct etw_description){ ETW_I8, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_U8:
		return (struct etw_description){ ETW_U8, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_I16:
		return (struct etw_description){ ETW_I16, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_U16:
		return (struct etw_description){ ETW_U16, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_CHAR16:
		return (struct etw_description){ ETW_U16, ETW_FORMAT_STRING };
	case SPOOR_TYPE_I32:
		return (struct etw_description){ ETW_I32, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_U32:
		return (struct etw_description){ ETW_U32, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_I64:
		return (struct etw_description){ ETW_I64, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_F32:
		return (struct etw_description){ ETW_F32, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_F64:
		return (struct etw_description){ ETW_F64, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_TIME:
		return (struct etw_description){ ETW_FILETIME, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_POINTER:
		return (struct etw_description){ ETW_HEX64, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_GUID:
		return (struct etw_description){ ETW_GUID, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_TEXT:
		return (struct etw_description){ ETW_COUNTED_TEXT, ETW_FORMAT_UTF8 };
	case SPOOR_TYPE_TEXT16:
		return (struct etw_description){ ETW_TEXT16, ETW_FORMAT_DEFAULT };
	case SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY:
		return (struct etw_description){ ETW_BINARY, ETW_FORMAT_DEFAULT };
	default: /* SPOOR_TYPE_U64 */
		return (struct etw_description){ ETW_U64, ETW_FORMAT_DEFAULT };
	}
}

static void description_put(struct outbuf *out, unsigned type, unsigned format)
{
	const uint8_t bytes[] = { (uint8_t)(type | (format ? ETW_TYPE_FORMAT : 0u)),
		(uint8_t)format };

	outbuf_add(out, bytes, format ? 2 : 1);
}

static int fields_put(struct outbuf *out, const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t type = fields[i].type;
		const bool array = type & SPOOR_TYPE_ARRAY;
		outbuf_add(out, fields[i].name, strlen(fields[i].name) + 1);
		if ((type & ELEMENT) == SPOOR_TYPE_STRUCT) {
			if (!fields[i].field_count || fields[i].field_count > MEMBERS_MAX)
				return -E2BIG;
			description_put(out, ETW_STRUCT | (array ? ETW_TYPE_ARRAY : 0u),
				fields[i].field_count);
			int r = fields_put(out, fields[i].fields, fields[i].field_count);
			if (r)
				return r;
			continue;
		}
		struct etw_description made = description_of(type);
		if (array && type != (SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY)) {
			made = description_of(type & ELEMENT);
			made.type |= ETW_TYPE_ARRAY;
		}
		description_put(out, made.type, made.format);
	}
	return 0;
}

/* Writes the size into the first two bytes. */
static int end(struct outbuf *out, int r)
{
	if (out->failed)
		return -ENOMEM;
	if (r || out->size > DESCRIPTION_MAX)
		return -E2BIG;
	out->data[0] = (uint8_t)out->size;
	out->data[1] = (uint8_t)(out->size >> 8);
	return 0;
}

int etw_metadata_describe(const struct event_entry *entry, struct outbuf *out)
{
	static const struct spoor_field payload = { "Payload", SPOOR_TYPE_U8 | SPOOR_TYPE_ARRAY, 0,
		NULL };
	static const uint8_t start[3];
	const bool counted = counted_payload_of(entry, COUNTED_GUIDS_SAME) == COUNTED_PAYLOAD_BYTES;
	int r;

	outbuf_add(out, start, sizeof(start));
	outbuf_add(out, entry->info.name, strlen(entry->info.name) + 1);
	if (counted)
		r = fields_put(out, &payload, 1);
	else
		r = fields_put(out, entry->info.fields, entry->info.field_count);
	return end(out, r);
}

int etw_metadata_traits(const char *provider, struct outbuf *out)
{
	static const uint8_t start[2];

	outbuf_add(out, start, sizeof(start));
	outbuf_add(out, provider, strlen(provider) + 1);
	return end(out, 0);
}
