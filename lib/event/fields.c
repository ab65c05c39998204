/*
 * Reads fields from payloads by the event's description. Every step checks the remaining size: the
 * program may have written the payload byte by byte (spoor_fire()).
 */
#include <errno.h>
#include <string.h>

#include <spoor/spoor.h>

#include "lib/event/field_size.h"

#define DEPTH_MAX 10u

struct bytes_left {
	const uint8_t *at;
	const uint8_t *end;
};

static size_t left(const struct bytes_left *b)
{
	return (size_t)(b->end - b->at);
}

static int take(const struct spoor_field *field, uint32_t type, struct bytes_left *b,
	struct spoor_value *ret_value, unsigned depth);

static int take_fields(const struct spoor_field *fields, uint32_t count, struct bytes_left *b,
	unsigned depth)
{
	struct spoor_value skipped;
	int r = 0;

	for (uint32_t i = 0; i < count && r == 0; i++)
		r = take(&fields[i], fields[i].type, b, &skipped, depth);
	return r;
}

static int take_array(const struct spoor_field *field, uint32_t element, struct bytes_left *b,
	struct spoor_value *ret_value, unsigned depth)
{
	struct spoor_value skipped;
	uint16_t count;

	if (left(b) < 2)
		return -EBADMSG;
	memcpy(&count, b->at, 2);
	b->at += 2;
	ret_value->is_array = true;
	ret_value->count = count;
	ret_value->bytes = b->at;
	size_t size = field_fixed_size(element);
	if (size) {
		if (left(b) < size * count)
			return -EBADMSG;
		b->at += size * count;
	} else {
		for (uint16_t i = 0; i < count; i++) {
			int r = take(field, element, b, &skipped, depth + 1);
			if (r)
				return r;
		}
	}
	ret_value->byte_count = (size_t)(b->at - (const uint8_t *)ret_value->bytes);
	return 0;
}

/* Reads the value of this type at b->at and advances b->at past it. */
static int take(const struct spoor_field *field, uint32_t type, struct bytes_left *b,
	struct spoor_value *ret_value, unsigned depth)
{
	uint16_t length;
	union {
		uint8_t bytes[16];
		int8_t i8;
		int16_t i16;
		uint16_t u16;
		int32_t i32;
		uint32_t u32;
		int64_t i64;
		uint64_t u64;
		float f32;
		double f64;
	} number;

	*ret_value = (struct spoor_value){
		.field = field, .type = type & ~(uint32_t)SPOOR_TYPE_ARRAY, .bytes = b->at
	};
	if (depth > DEPTH_MAX)
		return -EBADMSG;
	if (type & SPOOR_TYPE_ARRAY)
		return take_array(field, ret_value->type, b, ret_value, depth);
	if (type == SPOOR_TYPE_STRUCT) {
		int r = take_fields(field->fields, field->field_count, b, depth + 1);
		ret_value->byte_count = (size_t)(b->at - (const uint8_t *)ret_value->bytes);
		return r;
	}
	if (type == SPOOR_TYPE_TEXT) {
		if (left(b) < 3)
			return -EBADMSG;
		memcpy(&length, b->at, 2);
		if (left(b) < length + 3u || b->at[2 + length])
			return -EBADMSG;
		ret_value->bytes = b->at + 2;
		ret_value->byte_count = length;
		b->at += length + 3u;
		return 0;
	}
	if (type == SPOOR_TYPE_TEXT16) {
		for (;; b->at += 2) {
			if (left(b) < 2)
				return -EBADMSG;
			if (!b->at[0] && !b->at[1])
				break;
		}
		ret_value->byte_count = (size_t)(b->at - (const uint8_t *)ret_value->bytes);
		b->at += 2;
		return 0;
	}
	size_t size = field_fixed_size(type);
	if (!size || left(b) < size)
		return -EBADMSG;
	memcpy(number.bytes, b->at, size);
	b->at += size;
	ret_value->byte_count = size;
	switch (type) {
	case SPOOR_TYPE_I8:
		ret_value->i64 = number.i8;
		break;
	case SPOOR_TYPE_I16:
		ret_value->i64 = number.i16;
		break;
	case SPOOR_TYPE_I32:
		ret_value->i64 = number.i32;
		break;
	case SPOOR_TYPE_I64:
		ret_value->i64 = number.i64;
		break;
	case SPOOR_TYPE_U8:
		ret_value->u64 = number.bytes[0];
		break;
	case SPOOR_TYPE_U16:
	case SPOOR_TYPE_CHAR16:
		ret_value->u64 = number.u16;
		break;
	case SPOOR_TYPE_BOOLEAN:
	case SPOOR_TYPE_U32:
		ret_value->u64 = number.u32;
		break;
	case SPOOR_TYPE_F32:
		ret_value->f64 = (double)number.f32;
		break;
	case SPOOR_TYPE_F64:
		ret_value->f64 = number.f64;
		break;
	case SPOOR_TYPE_GUID:
		break;
	default:
		ret_value->u64 = number.u64;
		break;
	}
	return 0;
}

/*
 * The low 16 bits of *position are 1 + the index of the next field, the bits above them the offset
 * of its bytes; 0 before the first field. One number is all that a caller has to store.
 */
static int next_in(const struct spoor_field *fields, uint32_t count, const uint8_t *bytes,
	size_t size, size_t *index, size_t *offset, struct spoor_value *ret_value)
{
	struct bytes_left b = { bytes + *offset, bytes + size };

	if (*index >= count)
		return 0;
	if (*offset > size)
		return -EBADMSG;
	int r = take(&fields[*index], fields[*index].type, &b, ret_value, 0);
	if (r)
		return r;
	*index += 1;
	*offset = (size_t)(b.at - bytes);
	return 1;
}

int spoor_event_next_field(const struct spoor_event_view *event, size_t *position,
	struct spoor_value *ret_value)
{
	if (!event || !event->info || !position || !ret_value)
		return -EINVAL;
	size_t index = *position & 0xffff;
	size_t offset = *position >> 16;
	int r = next_in(event->info->fields, event->info->field_count, event->payload,
		event->payload_size, &index, &offset, ret_value);

	if (r == 1)
		*position = index | offset << 16;
	return r;
}

int spoor_value_next(const struct spoor_value *value, size_t *position, size_t *offset,
	struct spoor_value *ret_value)
{
	if (!value || !value->field || !position || !offset || !ret_value)
		return -EINVAL;
	const uint8_t *bytes = value->bytes;
	if (value->is_array) {
		struct bytes_left b = { bytes + *offset, bytes + value->byte_count };
		if (*position >= value->count)
			return 0;
		int r = take(value->field, value->type, &b, ret_value, 0);
		if (r)
			return r;
		*position += 1;
		*offset = (size_t)(b.at - bytes);
		return 1;
	}
	if (value->type != SPOOR_TYPE_STRUCT)
		return -EINVAL;
	return next_in(value->field->fields, value->field->field_count, bytes, value->byte_count,
		position, offset, ret_value);
}

int spoor_event_field(const struct spoor_event_view *event, const char *name,
	struct spoor_value *ret_value)
{
	struct spoor_value value;
	size_t position = 0;
	int r;

	if (!name || !ret_value)
		return -EINVAL;
	const char *dot = strchr(name, '.');
	size_t length = dot ? (size_t)(dot - name) : strlen(name);
	while ((r = spoor_event_next_field(event, &position, &value)) == 1)
		if (strncmp(value.field->name, name, length) == 0 && !value.field->name[length])
			break;
	while (r == 1 && dot) {
		size_t index = 0;
		size_t offset = 0;
		struct spoor_value outer = value;
		if (outer.is_array || outer.type != SPOOR_TYPE_STRUCT)
			return -ENOENT;
		name = dot + 1;
		dot = strchr(name, '.');
		length = dot ? (size_t)(dot - name) : strlen(name);
		while ((r = spoor_value_next(&outer, &index, &offset, &value)) == 1)
			if (strncmp(value.field->name, name, length) == 0 &&
				!value.field->name[length])
				break;
	}
	if (r != 1)
		return r ? r : -ENOENT;
	*ret_value = value;
	return 0;
}
