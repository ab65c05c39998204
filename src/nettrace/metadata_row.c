/* See metadata_row.h. */
#include "nettrace/metadata_row.h"

#include <stdio.h>

#include "base/bytes.h"
#include "nettrace/nettrace_block.h"
#include "trace/clr_event.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define BYTE_BOOLS_MAX 400u /* bytes of the value of METADATA_BYTE_BOOLS_KEY */

/* A row with a longer list of fields is written without it: its size has 16 bits. */
#define METADATA_ROW_MAX 65000u

/* A description, and how it is written. */
struct row_description {
	const struct trace *trace;
	const struct schema *schema;
	bool byte_bools;
};

static uint8_t type_in_file(const struct row_description *d, uint8_t type)
{
	return type == FIELD_BOOL && d->byte_bools ? FIELD_U8 : type;
}

static uint32_t put_fields(struct bytes *out, const struct row_description *d, uint32_t i,
	uint16_t depth);

/* The type of field i. Returns the index after the fields that describe it. */
static uint32_t put_type(struct bytes *out, const struct row_description *d, uint32_t i,
	uint16_t depth)
{
	const struct schema *schema = d->schema;
	const struct field *field = &schema->fields.items[i++];
	uint8_t innermost = field->type;

	bytes_u8(out, type_in_file(d, field->type));
	if (field_type_has_element(field->type)) {
		innermost = field->element;
		if (!field_type_has_element(innermost))
			bytes_u8(out, type_in_file(d, innermost));
		else if (i < schema->fields.count && schema->fields.items[i].depth == depth + 1)
			i = put_type(out, d, i, (uint16_t)(depth + 1));
	}
	if (innermost == FIELD_OBJECT)
		i = put_fields(out, d, i, (uint16_t)(depth + 1));
	if (field->type == FIELD_FIXED_ARRAY)
		bytes_u16(out, field->count);
	return i;
}

/* The fields of an object follow it, one level deeper. Returns the index after the last of them. */
static uint32_t put_fields(struct bytes *out, const struct row_description *d, uint32_t i,
	uint16_t depth)
{
	const struct schema *schema = d->schema;
	size_t count_at = out->len;
	uint16_t count = 0;

	bytes_u16(out, 0);
	while (i < schema->fields.count && schema->fields.items[i].depth == depth) {
		size_t size_at = out->len;
		bytes_u16(out, 0);
		block_text(out, d->trace, schema->fields.items[i].name);
		i = put_type(out, d, i, depth);
		bytes_set_u16(out, size_at, (uint16_t)(out->len - size_at - 2));
		count++;
	}
	bytes_set_u16(out, count_at, count);
	return i;
}

/*
 * The runtime's own events travel without a description; for readers without the list their rows
 * get one, up to the first field that the format cannot describe: an array whose count is another
 * field, or a text of 8-bit characters.
 */
static bool put_known_event(struct bytes *out, const struct schema *schema)
{
	enum provider_kind provider = (enum provider_kind)schema->provider_kind;
	struct clr_event event;
	uint16_t count = 0;

	if (schema->name || schema->fields.count || !clr_event_provider(provider) ||
		!clr_event_find(provider, schema->event_id, schema->version, &event))
		return false;
	block_z(out, event.symbol);
	size_t count_at = out->len;
	bytes_u16(out, 0);
	while (count < event.field_count && clr_field_type(&event.fields[count])) {
		size_t size_at = out->len;
		bytes_u16(out, 0);
		block_z(out, clr_field_name(&event.fields[count]));
		bytes_u8(out, clr_field_type(&event.fields[count]));
		bytes_set_u16(out, size_at, (uint16_t)(out->len - size_at - 2));
		count++;
	}
	bytes_set_u16(out, count_at, count);
	return true;
}

/* The name and the fields of an event. */
static void put_event_layout(struct bytes *out, const struct row_description *d, size_t row_at)
{
	if (put_known_event(out, d->schema))
		return;
	block_text(out, d->trace, d->schema->name);
	size_t fields_at = out->len;

	(void)put_fields(out, d, 0, 0);
	if (out->len - row_at > METADATA_ROW_MAX) { /* the event stays, without its fields */
		out->len = fields_at;
		bytes_u16(out, 0);
	}
}

/* "0,3": the fields with Booleans, as values or elements. False: none, or too many for `list`. */
static bool list_bools(const struct schema *schema, char list[BYTE_BOOLS_MAX])
{
	size_t len = 0;

	for (uint32_t i = 0; i < schema->fields.count; i++) {
		const struct field *field = &schema->fields.items[i];
		if (field->type != FIELD_BOOL &&
			(!field_type_has_element(field->type) || field->element != FIELD_BOOL))
			continue;
		len += (size_t)snprintf(list + len, BYTE_BOOLS_MAX - len, len ? ",%u" : "%u", i);
		if (len >= BYTE_BOOLS_MAX)
			return false;
	}
	return len > 0;
}

bool metadata_row_can_have_byte_bools(const struct schema *schema)
{
	char list[BYTE_BOOLS_MAX];

	return list_bools(schema, list);
}

void metadata_row_put(struct bytes *out, const struct trace *trace, const struct metadata_row *row)
{
	const struct schema *schema = row->schema;
	const struct row_description description = { trace, schema, row->byte_bools };
	char bools[BYTE_BOOLS_MAX];
	size_t row_at = out->len;

	bytes_u16(out, 0);
	bytes_varuint(out, row->id);
	block_text(out, trace, schema->provider);
	bytes_varuint(out, schema_has_same_fields(schema, row->first)
				   ? schema->event_id
				   : (schema->event_id + 0x8000) & 0xffff);
	put_event_layout(out, &description, row_at);
	size_t optional_at = out->len;
	bytes_u16(out, 0);
	if (schema->opcode) {
		bytes_u8(out, METADATA_OPCODE);
		bytes_u8(out, schema->opcode);
	}
	if (schema->keywords) {
		bytes_u8(out, METADATA_KEYWORDS);
		bytes_u64(out, schema->keywords);
	}
	if (schema->has_guid) {
		bytes_u8(out, METADATA_GUID);
		bytes_add(out, schema->guid, sizeof(schema->guid));
	}
	if (schema->level) {
		bytes_u8(out, METADATA_LEVEL);
		bytes_u8(out, schema->level);
	}
	if (schema->version) {
		bytes_u8(out, METADATA_VERSION);
		bytes_u8(out, schema->version);
	}
	if (description.byte_bools && list_bools(schema, bools)) {
		bytes_u8(out, METADATA_KEY_VALUE);
		block_z(out, METADATA_BYTE_BOOLS_KEY);
		block_z(out, bools);
	}
	bytes_set_u16(out, optional_at, (uint16_t)(out->len - optional_at - 2));
	bytes_set_u16(out, row_at, (uint16_t)(out->len - row_at - 2));
}
