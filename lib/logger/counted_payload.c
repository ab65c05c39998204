/* See counted_payload.h. */
#include "lib/logger/counted_payload.h"

#include <errno.h>
#include <string.h>

#include <spoor/generated.h>

#include "lib/event/field_size.h"

/* of a field's type: without the flag of an array */
#define ELEMENT (~(uint32_t)SPOOR_TYPE_ARRAY)

static bool any_converted(const struct spoor_field *fields, uint32_t count,
	enum counted_guids guids)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type & ELEMENT;
		if (type == SPOOR_TYPE_TEXT ||
			(type == SPOOR_TYPE_GUID && guids == COUNTED_GUIDS_SWAPPED) ||
			(type == SPOOR_TYPE_STRUCT &&
				any_converted(fields[i].fields, fields[i].field_count, guids)))
			return true;
	}
	return false;
}

enum counted_payload counted_payload_of(const struct event_entry *entry, enum counted_guids guids)
{
	if (!entry->info.field_count && (entry->flags & ENTRY_WELL_KNOWN))
		return COUNTED_PAYLOAD_BYTES;
	return any_converted(entry->info.fields, entry->info.field_count, guids)
		       ? COUNTED_PAYLOAD_CONVERTED
		       : COUNTED_PAYLOAD_SAME;
}

struct counted_conversion {
	const uint8_t *at;
	const uint8_t *end;
	uint8_t *out;
	uint8_t *out_end;
	enum counted_guids guids;
	int error; /* sticky */
};

static bool has(struct counted_conversion *c, size_t size)
{
	if (!c->error && (size_t)(c->end - c->at) < size)
		c->error = -EBADMSG;
	return !c->error;
}

static void copy(struct counted_conversion *c, size_t size)
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

static uint16_t copy_u16(struct counted_conversion *c)
{
	uint16_t value = 0;

	if (has(c, sizeof(value)))
		memcpy(&value, c->at, sizeof(value));
	copy(c, sizeof(value));
	return c->error ? 0 : value;
}

static void copy_text16(struct counted_conversion *c)
{
	size_t size = 0;

	do
		size += 2;
	while (has(c, size) && (c->at[size - 2] || c->at[size - 1]));
	copy(c, size);
}

static void convert_guid(struct counted_conversion *c)
{
	struct spoor_guid guid;

	if (!has(c, sizeof(guid)))
		return;
	if ((size_t)(c->out_end - c->out) < sizeof(guid)) {
		c->error = -E2BIG;
		return;
	}
	memcpy(&guid, c->at, sizeof(guid));
	if (c->guids == COUNTED_GUIDS_SAME)
		c->out = spoor_put_within(c->out, c->out_end, &guid, sizeof(guid));
	else
		c->out = spoor_generated_put_uuid(c->out, c->out_end, &guid);
	c->at += sizeof(guid);
}

static void convert_fields(struct counted_conversion *c, const struct spoor_field *fields,
	uint32_t count);

static void convert_one(struct counted_conversion *c, const struct spoor_field *field,
	uint32_t type)
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

static void convert_fields(struct counted_conversion *c, const struct spoor_field *fields,
	uint32_t count)
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

int counted_payload_convert(const struct event_entry *entry, enum counted_guids guids,
	const uint8_t *payload, size_t payload_size, uint8_t *out, size_t room)
{
	struct counted_conversion c = { payload, payload + payload_size, out, out + room, guids,
		0 };

	if (counted_payload_of(entry, guids) == COUNTED_PAYLOAD_BYTES) {
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
