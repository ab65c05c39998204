/* See nettrace_metadata.h. The layouts: docs/formats/nettrace.md. */
#include "nettrace/nettrace_metadata.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "nettrace/nettrace_tags.h"
#include "trace/clr_event.h"
#include "trace/trace.h"

#define METADATA_ID_MAX (1u << 20)
#define FIELDS_MAX      4096u /* of one event */
#define FIELD_DEPTH_MAX 8u

static uint32_t read_text16(struct nettrace_decoder *d, struct cursor *c)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	if (!text || !units)
		return 0;
	bytes_reset(&d->scratch);
	text_add_utf16(&d->scratch, text, units);
	return strtab_add(&d->trace->strings, (const char *)d->scratch.data, d->scratch.len);
}

/* Methods, modules, assemblies and the runtime. The rundown provider has the same ids for these. */
static bool is_of_code(uint32_t id)
{
	return (id >= CLR_ID_MethodLoad && id <= CLR_ID_MethodUnloadVerbose) ||
	       (id >= CLR_ID_DomainModuleLoad && id <= CLR_ID_AppDomainLoad) ||
	       id == CLR_ID_RuntimeInformationStart;
}

/* The kind that analyses select by: Universal.Events by name, Spoor's other events by id. */
static uint8_t kind_of(const struct trace *trace, const struct schema *schema)
{
	const char *name = trace_text(trace, schema->name);

	switch (schema->provider_kind) {
	case PROVIDER_UNIVERSAL_EVENTS:
		if (strcmp(name, "cpu") == 0)
			return EVENT_SAMPLE;
		if (strcmp(name, "cswitch") == 0)
			return EVENT_SWITCH;
		return strncmp(name, "syscall:", 8) == 0 ? EVENT_SYSCALL : EVENT_OTHER;
	case PROVIDER_CLR:
	case PROVIDER_CLR_RUNDOWN:
		return is_of_code(schema->event_id) ? EVENT_METHOD : EVENT_OTHER;
	case PROVIDER_OTHER:
	case PROVIDER_SAMPLE:
		return EVENT_OTHER;
	default:
		break;
	}
	for (size_t i = 1; i < KNOWN_EVENT_COUNT; i++)
		if (known_events[i].provider == schema->provider_kind &&
			known_events[i].event_id == schema->event_id)
			return known_events[i].kind;
	return EVENT_OTHER;
}

/* One that another stream (or an earlier record of this one) has brought; 0 none. */
static uint32_t find_same_schema(const struct trace *trace, const struct schema *schema)
{
	for (uint32_t i = trace->schemas.count - 1; i > 0; i--) {
		const struct schema *other = &trace->schemas.items[i];
		if (other->event_id == schema->event_id && other->provider == schema->provider &&
			schema_is_same(other, schema))
			return i;
	}
	return 0;
}

/*
 * Our writer describes events of the runtime for readers without the runtime's list. That
 * description has less than the list, so it is removed, as before the file was written.
 */
static void forget_known_layout(const struct trace *trace, struct schema *schema)
{
	enum provider_kind provider = (enum provider_kind)schema->provider_kind;
	struct clr_event event;

	if (!schema->name || !clr_event_provider(provider) ||
		!clr_event_find(provider, schema->event_id, schema->version, &event) ||
		strcmp(trace_text(trace, schema->name), event.symbol) != 0)
		return;
	schema->name = 0;
	vec_reset(&schema->fields);
}

/* Takes the schema over. */
static int add_schema(struct nettrace_decoder *d, uint32_t id, struct schema *schema)
{
	struct trace *trace = d->trace;

	schema->provider_kind = (uint8_t)provider_kind_of(trace_text(trace, schema->provider));
	/* The second layout of a Spoor event has id + 0x8000. */
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id >= 0x8000)
		schema->event_id -= 0x8000;
	if (d->head.version == 6)
		forget_known_layout(trace, schema);
	schema->kind = kind_of(trace, schema);
	if (!schema->has_guid && provider_guid(schema->provider_kind)) {
		schema->has_guid = true;
		memcpy(schema->guid, provider_guid(schema->provider_kind), sizeof(schema->guid));
	}
	while (d->schema_of.count <= id)
		if (!vec_push(&d->schema_of))
			goto failed;
	uint32_t same = d->placed ? find_same_schema(trace, schema) : 0;
	if (same) {
		d->schema_of.items[id] = same;
		schema_done(schema);
		return 0;
	}
	if (!vec_add(&trace->schemas, *schema))
		goto failed;
	d->schema_of.items[id] = trace->schemas.count - 1;
	return 0;
failed:
	schema_done(schema);
	return -ENOMEM;
}

static struct field *add_field(struct schema *schema, uint32_t name, uint8_t type, unsigned depth)
{
	struct field *field = schema->fields.count < FIELDS_MAX ? vec_push(&schema->fields) : NULL;

	if (!field)
		return NULL;
	field->name = name;
	field->type = type;
	field->depth = (uint16_t)depth;
	return field;
}

static bool read_fields_v6(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	unsigned depth);

/* A type, as a field of this name. The type of its elements follows in the same form. */
static bool read_type_v6(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	uint32_t name, unsigned depth)
{
	uint8_t type = cursor_u8(c);
	struct field *field =
		depth <= FIELD_DEPTH_MAX ? add_field(schema, name, type, depth) : NULL;
	uint32_t at = schema->fields.count - 1;
	uint8_t innermost = type;

	if (!field || !cursor_left(c))
		return field && !c->short_read && !field_type_has_element(type) &&
		       type != FIELD_OBJECT;
	if (field_type_has_element(type)) {
		innermost = field->element = *c->at;
		if (!field_type_has_element(innermost))
			cursor_skip(c, 1);
		else if (!read_type_v6(d, c, schema, 0, depth + 1))
			return false;
	}
	if (innermost == FIELD_OBJECT && !read_fields_v6(d, c, schema, depth + 1))
		return false;
	if (type == FIELD_FIXED_ARRAY)
		schema->fields.items[at].count = cursor_u16(c);
	return !c->short_read;
}

/* False: not understood; the event is kept without fields. */
static bool read_fields_v6(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	unsigned depth)
{
	uint16_t count = cursor_u16(c);

	if (depth > FIELD_DEPTH_MAX)
		return false;
	for (uint16_t i = 0; i < count; i++) {
		struct cursor sub = cursor_sub(c, cursor_u16(c));
		uint32_t name = span_text(d, read_string(&sub));
		if (!read_type_v6(d, &sub, schema, name, depth))
			return false;
	}
	return !c->short_read;
}

/* "0,3": the fields that are Booleans, or have them as elements, but are described as bytes. */
static void restore_bools(struct schema *schema, struct text_span list)
{
	for (size_t i = 0; i < list.len; i++) {
		uint32_t index = 0;
		for (; i < list.len && list.text[i] >= '0' && list.text[i] <= '9'; i++)
			index = index < FIELDS_MAX ? index * 10 + (uint32_t)(list.text[i] - '0')
						   : index;
		struct field *field =
			index < schema->fields.count ? &schema->fields.items[index] : NULL;
		if (field && field->type == FIELD_U8)
			field->type = FIELD_BOOL8;
		else if (field && field_type_has_element(field->type) && field->element == FIELD_U8)
			field->element = FIELD_BOOL8;
	}
}

/* A key and a value of the metadata: others than our own are not kept. */
static void read_key(struct cursor *c, struct schema *schema)
{
	struct text_span key = read_string(c);
	struct text_span value = read_string(c);

	if (span_is(key, METADATA_BYTE_BOOLS_KEY))
		restore_bools(schema, value);
}

static void read_optional(struct cursor c, struct schema *schema)
{
	while (cursor_left(&c) && !c.short_read) {
		const uint8_t *guid;
		switch (cursor_u8(&c)) {
		case METADATA_OPCODE:
			schema->opcode = cursor_u8(&c);
			break;
		case METADATA_KEYWORDS:
			schema->keywords = cursor_u64(&c);
			break;
		case METADATA_MESSAGE:
		case METADATA_DESCRIPTION:
			(void)read_string(&c); /* not kept */
			break;
		case METADATA_KEY_VALUE:
			read_key(&c, schema);
			break;
		case METADATA_GUID:
			guid = cursor_take(&c, sizeof(schema->guid));
			if (guid) {
				schema->has_guid = true;
				memcpy(schema->guid, guid, sizeof(schema->guid));
			}
			break;
		case METADATA_LEVEL:
			schema->level = cursor_u8(&c);
			break;
		case METADATA_VERSION:
			schema->version = cursor_u8(&c);
			break;
		default:
			return; /* of unknown length: what follows cannot be found */
		}
	}
}

int nettrace_read_metadata_v6(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	cursor_skip(&c, cursor_u16(&c));
	while (cursor_left(&c) && !c.short_read) {
		const uint8_t *at = c.at;
		struct cursor row = cursor_sub(&c, cursor_u16(&c));
		struct schema schema = { 0 };
		uint32_t id = cursor_varuint32(&row);
		schema.provider = span_text(d, read_string(&row));
		schema.event_id = cursor_varuint32(&row);
		schema.name = span_text(d, read_string(&row));
		if (row.short_read)
			return stream_broken(d, offset_of(d, at), diag,
				"a metadata row is too short");
		if (!id || id > METADATA_ID_MAX)
			return stream_broken(d, offset_of(d, at), diag, "metadata id %u", id);
		struct cursor fields = row;
		if (!read_fields_v6(d, &fields, &schema, 0))
			vec_reset(&schema.fields);
		else
			read_optional(cursor_sub(&fields, cursor_u16(&fields)), &schema);
		if (add_schema(d, id, &schema) < 0)
			return stream_no_memory(d, diag);
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, c.end), diag,
			"the metadata passes the end of its block");
	return 0;
}

/* Version 4: the type precedes the name, and has 32 bits. */
static bool read_fields_v4(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	unsigned depth)
{
	uint32_t count = cursor_u32(c);

	if (depth > FIELD_DEPTH_MAX || count > FIELDS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = cursor_u32(c);
		if (!add_field(schema, 0, (uint8_t)type, depth) || type > FIELD_TEXT16 ||
			c->short_read)
			return false;
		uint32_t at = schema->fields.count - 1;
		if (type == FIELD_OBJECT && !read_fields_v4(d, c, schema, depth + 1))
			return false;
		schema->fields.items[at].name = read_text16(d, c);
	}
	return !c->short_read;
}

/* The second list, which has arrays: size, name and type of each field. */
static bool read_fields_v4_sized(struct nettrace_decoder *d, struct cursor *c,
	struct schema *schema, unsigned depth)
{
	uint32_t count = cursor_u32(c);

	if (depth > FIELD_DEPTH_MAX || count > FIELDS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = cursor_u32(c);
		if (size < 4)
			return false;
		struct cursor sub = cursor_sub(c, size - 4);
		uint32_t name = read_text16(d, &sub);
		uint32_t type = cursor_u32(&sub);
		unsigned at_depth = depth;
		struct field *field = add_field(schema, name, (uint8_t)type, at_depth);
		if (!field || type > FIELD_ARRAY || sub.short_read)
			return false;
		while (type == FIELD_ARRAY) {
			type = cursor_u32(&sub);
			field->element = (uint8_t)type;
			if (type == FIELD_ARRAY)
				field = at_depth < FIELD_DEPTH_MAX
						? add_field(schema, 0, (uint8_t)type, ++at_depth)
						: NULL;
			if (!field || type > FIELD_ARRAY)
				return false;
		}
		if (type == FIELD_OBJECT && !read_fields_v4_sized(d, &sub, schema, at_depth + 1))
			return false;
		if (sub.short_read)
			return false;
	}
	return !c->short_read;
}

static void read_tags_v4(struct nettrace_decoder *d, struct cursor *c, struct schema *schema)
{
	while (cursor_left(c) && !c->short_read) {
		uint32_t size = cursor_u32(c);
		uint8_t kind = cursor_u8(c);
		struct cursor tag = cursor_sub(c, size);
		if (kind == 1) {
			schema->opcode = cursor_u8(&tag);
		} else if (kind == 2 && !schema->fields.count) {
			if (!read_fields_v4_sized(d, &tag, schema, 0))
				vec_reset(&schema->fields);
		}
	}
}

/* From the event's id on. False: the record is too short. */
static bool read_record_v4(struct nettrace_decoder *d, struct cursor *c, struct schema *schema)
{
	schema->event_id = cursor_u32(c) & 0xffff;
	schema->name = read_text16(d, c);
	schema->keywords = cursor_u64(c);
	schema->version = (uint8_t)cursor_u32(c);
	schema->level = (uint8_t)cursor_u32(c);
	if (c->short_read)
		return false;
	if (!cursor_left(c))
		return true;
	if (!read_fields_v4(d, c, schema, 0))
		vec_reset(&schema->fields);
	else
		read_tags_v4(d, c, schema);
	return true;
}

/* The payload of a metadata event. */
int nettrace_read_metadata_v4(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	struct schema schema = { 0 };
	uint32_t id = cursor_u32(&c);

	schema.provider = read_text16(d, &c);
	bool complete = read_record_v4(d, &c, &schema);
	if (!complete || !id || id > METADATA_ID_MAX) {
		schema_done(&schema);
		return complete ? stream_broken(d, offset_of(d, at), diag, "metadata id %u", id)
				: stream_broken(d, offset_of(d, at), diag,
					  "a metadata record is too short");
	}
	if (add_schema(d, id, &schema) < 0)
		return stream_no_memory(d, diag);
	return 0;
}

int nettrace_schema_of_record(struct trace *trace, uint32_t provider, const uint8_t *record,
	size_t size, uint32_t *ret_index)
{
	struct nettrace_decoder d = { .trace = trace, .placed = true };
	struct cursor c = cursor_of(record, size);
	struct schema schema = { .provider = provider };
	int result = -EBADMSG;

	if (read_record_v4(&d, &c, &schema)) {
		result = add_schema(&d, 1, &schema);
		if (result == 0)
			*ret_index = d.schema_of.items[1];
	} else {
		schema_done(&schema);
	}
	vec_done(&d.schema_of);
	bytes_done(&d.scratch);
	return result;
}
