/* See event_metadata.h. The layout is in docs/formats/nettrace.md. */
#include "lib/event/event_metadata.h"

#include <errno.h>
#include <string.h>

#include "lib/event/payload.h"
#include "lib/event/utf16.h"

static uint32_t type_code(uint32_t type)
{
	static const uint8_t codes[] = {
		[SPOOR_TYPE_BOOLEAN] = 3,
		[SPOOR_TYPE_CHAR16] = 4,
		[SPOOR_TYPE_I8] = 5,
		[SPOOR_TYPE_U8] = 6,
		[SPOOR_TYPE_I16] = 7,
		[SPOOR_TYPE_U16] = 8,
		[SPOOR_TYPE_I32] = 9,
		[SPOOR_TYPE_U32] = 10,
		[SPOOR_TYPE_I64] = 11,
		[SPOOR_TYPE_U64] = 12,
		[SPOOR_TYPE_F32] = 13,
		[SPOOR_TYPE_F64] = 14,
		[SPOOR_TYPE_TIME] = 16,
		[SPOOR_TYPE_GUID] = 17,
		[SPOOR_TYPE_TEXT] = 18,
		[SPOOR_TYPE_TEXT16] = 18,
		[SPOOR_TYPE_POINTER] = 12,
		[SPOOR_TYPE_STRUCT] = 1,
	};

	return codes[type & ~(uint32_t)SPOOR_TYPE_ARRAY];
}

static void add_text16(struct outbuf *out, const char *text)
{
	size_t size = strlen(text);
	uint8_t *at = outbuf_reserve(out, 2 * size + 2 + 16);

	if (at)
		out->size += (size_t)(utf16z_put(at, (const uint8_t *)text, size) - at);
}

static bool any_array(const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if ((fields[i].type & SPOOR_TYPE_ARRAY) ||
			any_array(fields[i].fields, fields[i].field_count))
			return true;
	return false;
}

static void add_fields_v1(struct outbuf *out, const struct spoor_field *fields, uint32_t count)
{
	payload_u32(out, count);
	for (uint32_t i = 0; i < count; i++) {
		payload_u32(out, type_code(fields[i].type));
		if (fields[i].type == SPOOR_TYPE_STRUCT)
			add_fields_v1(out, fields[i].fields, fields[i].field_count);
		add_text16(out, fields[i].name);
	}
}

static void add_fields_v2(struct outbuf *out, const struct spoor_field *fields, uint32_t count)
{
	payload_u32(out, count);
	for (uint32_t i = 0; i < count; i++) {
		size_t start = out->size;
		payload_u32(out, 0);
		add_text16(out, fields[i].name);
		if (fields[i].type & SPOOR_TYPE_ARRAY)
			payload_u32(out, 19);
		payload_u32(out, type_code(fields[i].type));
		if ((fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY) == SPOOR_TYPE_STRUCT)
			add_fields_v2(out, fields[i].fields, fields[i].field_count);
		if (!out->failed) {
			uint32_t size = (uint32_t)(out->size - start);
			memcpy(out->data + start, &size, sizeof(size));
		}
	}
}

int event_metadata_make(const struct spoor_event_info *info, uint8_t version, bool well_known,
	uint8_t **ret_record, uint32_t *ret_size)
{
	bool arrays = !well_known && any_array(info->fields, info->field_count);
	struct outbuf out = { 0 };

	add_text16(&out, info->provider);
	payload_u32(&out, info->id);
	add_text16(&out, well_known ? "" : info->name);
	payload_u64(&out, info->keywords);
	payload_u32(&out, version);
	payload_u32(&out, info->level);
	if (well_known || arrays)
		payload_u32(&out, 0);
	else
		add_fields_v1(&out, info->fields, info->field_count);
	if (info->opcode) {
		payload_u32(&out, 1);
		payload_u8(&out, 1);
		payload_u8(&out, info->opcode);
	}
	if (arrays) {
		size_t start = out.size;
		payload_u32(&out, 0);
		payload_u8(&out, 2);
		add_fields_v2(&out, info->fields, info->field_count);
		if (!out.failed) {
			uint32_t size = (uint32_t)(out.size - start - 5);
			memcpy(out.data + start, &size, sizeof(size));
		}
	}
	if (out.failed) {
		outbuf_done(&out);
		return -ENOMEM;
	}
	*ret_record = out.data;
	*ret_size = (uint32_t)out.size;
	return 0;
}
