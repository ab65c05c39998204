/* See ctf_event.h. */
#include "formats/ctf_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/event.h"
#include "trace/foreign_schema.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define GUID_SIZE        16u
#define FIELDS_MAX       4096u
#define STRUCT_DEPTH_MAX 8u /* deeper ones are described by a text */
#define TEXT_UNITS_MAX   (EVENT_PAYLOAD_MAX / 2)

static const struct {
	const char *name;
	enum provider_kind kind;
} clr_providers[] = {
	{ "DotNETRuntime", PROVIDER_CLR },
	{ "DotNETRuntimeRundown", PROVIDER_CLR_RUNDOWN },
	{ "DotNETRuntimeStress", PROVIDER_CLR_STRESS },
	{ "DotNETRuntimePrivate", PROVIDER_CLR_PRIVATE },
	{ "DotNETRuntimeMonoProfiler", PROVIDER_MONO_PROFILER },
};

/* ---- schemas ---- */

/* The level that an LTTng log level stands for; 5 for one that is not known. */
static uint8_t level_of(int32_t loglevel)
{
	static const uint8_t levels[] = { 0, 1, 1, 2, 3, 4, 4 };

	return loglevel >= 0 && loglevel < (int32_t)sizeof(levels) ? levels[loglevel] : 5;
}

static uint8_t number_type(const struct ctf_type *type)
{
	static const uint8_t types[4][2] = { { FIELD_U8, FIELD_I8 }, { FIELD_U16, FIELD_I16 },
		{ FIELD_U32, FIELD_I32 }, { FIELD_U64, FIELD_I64 } };

	if (type->kind == CTF_FLOAT)
		return type->size == 64 ? FIELD_F64 : FIELD_F32;
	unsigned size = type->size <= 8 ? 0 : type->size <= 16 ? 1 : type->size <= 32 ? 2 : 3;

	return types[size][type->is_signed];
}

static bool is_text_array(const struct ctf_type *type, const struct ctf_type *inner)
{
	return (type->kind == CTF_ARRAY || type->kind == CTF_SEQUENCE) &&
	       inner->kind == CTF_INTEGER && inner->is_text && inner->size == 8;
}

/* libspoor has no other arrays of this size. */
static bool is_guid(const struct ctf_layout *layout, const struct ctf_type *type,
	const struct ctf_type *inner)
{
	return layout->is_libspoor && type->kind == CTF_ARRAY && type->size == GUID_SIZE &&
	       inner->kind == CTF_INTEGER && inner->size == 8;
}

/* The type of a value in the payload; an array's has the type of its elements too. */
static uint8_t field_type(const struct ctf_layout *layout, const struct ctf_metadata *metadata,
	const struct ctf_type *type, unsigned depth, uint8_t *ret_element)
{
	const struct ctf_type *inner = &metadata->types.items[type->inner];

	*ret_element = 0;
	switch ((enum ctf_kind)type->kind) {
	case CTF_INTEGER:
	case CTF_FLOAT:
	case CTF_ENUM:
		return number_type(type);
	case CTF_STRUCT:
		return depth < STRUCT_DEPTH_MAX ? FIELD_OBJECT : FIELD_TEXT16;
	case CTF_ARRAY:
	case CTF_SEQUENCE:
		if (is_text_array(type, inner))
			return FIELD_TEXT16;
		if (is_guid(layout, type, inner))
			return FIELD_GUID;
		if (inner->kind > CTF_STRING)
			return FIELD_TEXT16; /* a text describes what nests deeper */
		*ret_element = inner->kind == CTF_STRING ? FIELD_TEXT16 : number_type(inner);
		return FIELD_ARRAY;
	case CTF_STRING:
	case CTF_VARIANT:
		return FIELD_TEXT16;
	}
	return FIELD_TEXT16;
}

static bool add_fields(const struct ctf_layout *layout, const struct ctf_metadata *metadata,
	const struct ctf_type *type, uint16_t depth, struct trace *trace, struct schema *schema)
{
	for (uint32_t i = 0; i < type->count; i++) {
		const struct ctf_field *field = &metadata->fields.items[type->first + i];
		const struct ctf_type *of = &metadata->types.items[field->type];
		const char *name = strtab_get(&metadata->strings, field->name);
		if (field->is_length)
			continue;
		struct field made = { .depth = depth };
		made.type = field_type(layout, metadata, of, depth, &made.element);
		made.name = trace_add_text(trace, name[0] == '_' ? name + 1 : name);
		if (schema->fields.count >= FIELDS_MAX || !vec_add(&schema->fields, made))
			return false;
		if (made.type == FIELD_OBJECT &&
			!add_fields(layout, metadata, of, (uint16_t)(depth + 1), trace, schema))
			return false;
	}
	return true;
}

/* "spoor:id=1,version=3,opcode=0,keywords=0x11" */
static bool read_uri(const char *uri, struct schema *schema)
{
	const char *id = strstr(uri, "id="), *version = strstr(uri, "version="),
		   *opcode = strstr(uri, "opcode="), *keywords = strstr(uri, "keywords=");

	if (strncmp(uri, "spoor:", 6) != 0 || !id || !version || !opcode || !keywords)
		return false;
	schema->event_id = (uint32_t)strtoul(id + 3, NULL, 0);
	schema->version = (uint8_t)strtoul(version + 8, NULL, 0);
	schema->opcode = (uint8_t)strtoul(opcode + 7, NULL, 0);
	schema->keywords = strtoull(keywords + 9, NULL, 0);
	return true;
}

static bool is_packed(const struct ctf_metadata *metadata, const struct ctf_type *fields)
{
	return fields->count == 3 && strcmp(strtab_get(&metadata->strings,
						    metadata->fields.items[fields->first + 2].name),
					     "___data__") == 0;
}

static bool find_clr(struct ctf_layout *layout, const struct ctf_metadata *metadata,
	const struct ctf_event_class *event, const char *provider, size_t len, const char *symbol,
	struct schema *schema)
{
	const struct ctf_type *fields = &metadata->types.items[event->fields];

	for (size_t i = 0; i < sizeof(clr_providers) / sizeof(clr_providers[0]); i++) {
		enum provider_kind kind = clr_providers[i].kind;
		if (strlen(clr_providers[i].name) != len ||
			memcmp(clr_providers[i].name, provider, len) != 0)
			continue;
		struct clr_identity identity;
		if (!clr_event_find_symbol(kind, symbol, &identity) ||
			!clr_event_find(kind, identity.id, identity.version, &layout->clr))
			return false;
		schema->event_id = identity.id;
		schema->version = identity.version;
		schema->level = identity.level; /* .NET's tracepoints all have the same log level */
		schema->keywords = identity.keywords;
		schema->provider_kind = (uint8_t)kind;
		layout->kind = is_packed(metadata, fields) ? CTF_LAYOUT_PACKED : CTF_LAYOUT_CLR;
		return true;
	}
	return false;
}

/* Whether the field's bytes in the packet, wherever it is, are those in the payload. */
static bool is_same_bytes(const struct ctf_metadata *metadata, const struct ctf_field *field)
{
	const struct ctf_type *type = &metadata->types.items[field->type];
	unsigned order = type->byte_order ? type->byte_order : metadata->byte_order;

	return type->kind <= CTF_ENUM && !type->is_clock && !field->slot && !field->is_length &&
	       type->align <= 8 && order != CTF_BIG &&
	       (type->size == 8 || type->size == 16 || type->size == 32 || type->size == 64);
}

static bool add_steps(struct ctf_layout *layout, const struct ctf_metadata *metadata,
	const struct ctf_type *fields)
{
	for (uint32_t i = fields->first; i < fields->first + fields->count; i++) {
		const struct ctf_field *field = &metadata->fields.items[i];
		const struct ctf_type *type = &metadata->types.items[field->type];
		struct ctf_step *last = layout->steps.count ? vec_last(&layout->steps) : NULL;
		struct ctf_step step = { .field = i };
		/* Only after a field that ends at a whole byte does one without an alignment begin there. */
		if (is_same_bytes(metadata, field) &&
			(type->align == 8 || (last && last->copy_bytes)))
			step.copy_bytes = type->size / 8;
		if (step.copy_bytes && last && last->copy_bytes)
			last->copy_bytes += step.copy_bytes;
		else if (!vec_add(&layout->steps, step))
			return false;
	}
	return true;
}

void ctf_layout_done(struct ctf_layout *layout)
{
	vec_done(&layout->steps);
}

int ctf_layout_make(struct ctf_layout *layout, const struct ctf_metadata *metadata,
	const struct ctf_event_class *event, struct trace *trace)
{
	const char *name = strtab_get(&metadata->strings, event->name);
	const char *uri = strtab_get(&metadata->strings, event->uri);
	const char *colon = strchr(name, ':');
	const char *short_name = colon ? colon + 1 : name;
	size_t len = colon ? (size_t)(colon - name) : 0;
	struct schema schema = { .level = level_of(event->loglevel) };
	struct ctf_layout made = { .kind = CTF_LAYOUT_TYPED };

	if (find_clr(&made, metadata, event, name, len, short_name, &schema)) {
		schema.provider = trace_add_text(trace, provider_name(schema.provider_kind));
		int result = foreign_schema_place(trace, &schema, true, &made.schema_index);
		if (result == 0)
			*layout = made;
		return result;
	}
	bool has_id = made.is_libspoor = read_uri(uri, &schema);

	schema.provider = colon ? trace_add_foreign_provider(trace, name, len)
				: trace_add_text(trace, "lttng");
	schema.name = trace_add_text(trace, short_name);
	if (!add_fields(&made, metadata, &metadata->types.items[event->fields], 0, trace,
		    &schema)) {
		schema_done(&schema);
		return -ENOMEM;
	}
	int result = foreign_schema_place(trace, &schema, has_id, &made.schema_index);

	if (result == 0 && !add_steps(&made, metadata, &metadata->types.items[event->fields]))
		result = -ENOMEM;
	if (result == 0)
		*layout = made;
	else
		ctf_layout_done(&made);
	return result;
}

/* ---- payloads ---- */

static void put_number(struct bytes *out, uint8_t type, uint64_t value)
{
	switch (type) {
	case FIELD_U8:
	case FIELD_I8:
		bytes_u8(out, (uint8_t)value);
		break;
	case FIELD_U16:
	case FIELD_I16:
		bytes_u16(out, (uint16_t)value);
		break;
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_F32:
		bytes_u32(out, (uint32_t)value);
		break;
	default:
		bytes_u64(out, value);
	}
}

static void put_string(struct ctf_decoder *d, struct bytes *out)
{
	size_t len;
	const char *text = ctf_read_string(d, &len);

	bytes_utf16z(out, text ? text : "", len, TEXT_UNITS_MAX);
}

/* Characters up to the first NUL. */
static void put_text_array(struct ctf_decoder *d, const struct ctf_type *type, struct bytes *out)
{
	uint32_t count = ctf_element_count(d, type);
	size_t size = (size_t)count < (d->end - d->at) / 8 ? count : (size_t)(d->end - d->at) / 8;
	const char *text = (const char *)d->data + d->at / 8;

	d->short_read |= size < count;
	d->at += (uint64_t)size * 8;
	bytes_utf16z(out, text, strnlen(text, size), TEXT_UNITS_MAX);
}

static void put_array(struct ctf_decoder *d, const struct ctf_type *type, bool is_counted,
	struct bytes *out)
{
	const struct ctf_type *inner = &d->metadata->types.items[type->inner];
	uint32_t count = ctf_element_count(d, type);
	uint32_t kept = count < UINT16_MAX ? count : UINT16_MAX;

	if (is_counted)
		bytes_u16(out, (uint16_t)kept);
	for (uint32_t i = 0; i < count && !d->short_read; i++) {
		/* the rest is read only */
		if (out->len > EVENT_PAYLOAD_MAX || i >= kept)
			ctf_skip(d, type->inner);
		else if (inner->kind == CTF_STRING)
			put_string(d, out);
		else if (inner->kind <= CTF_ENUM)
			put_number(out, number_type(inner), ctf_read_number(d, inner));
		else
			ctf_skip(d, type->inner);
	}
}

static void put_as_text(struct ctf_decoder *d, uint32_t type, struct bytes *out)
{
	const struct ctf_type *of = &d->metadata->types.items[type];
	const struct ctf_field *selected = of->kind == CTF_VARIANT ? ctf_select(d, of) : NULL;
	struct bytes text = { 0 };

	if (selected && d->metadata->types.items[selected->type].kind == CTF_STRING) {
		put_string(d, out); /* without quotes */
		return;
	}
	ctf_add_text(d, type, &text);
	bytes_utf16z(out, bytes_z(&text), text.len, TEXT_UNITS_MAX);
	out->failed |= text.failed;
	bytes_done(&text);
}

static void put_fields(const struct ctf_layout *layout, struct ctf_decoder *d,
	const struct ctf_type *type, unsigned depth, struct bytes *out);

static void put_field(const struct ctf_layout *layout, struct ctf_decoder *d,
	const struct ctf_field *field, unsigned depth, struct bytes *out)
{
	const struct ctf_type *of = &d->metadata->types.items[field->type];
	const struct ctf_type *inner = &d->metadata->types.items[of->inner];
	uint8_t element;
	uint8_t made = field_type(layout, d->metadata, of, depth, &element);

	if (of->kind <= CTF_ENUM) {
		uint64_t value = ctf_read_number(d, of);
		ctf_keep(d, field, of, value);
		if (!field->is_length)
			put_number(out, made, value);
	} else if (of->kind == CTF_STRING) {
		put_string(d, out);
	} else if (made == FIELD_OBJECT) {
		put_fields(layout, d, of, depth + 1, out);
	} else if (is_text_array(of, inner)) {
		put_text_array(d, of, out);
	} else if (made == FIELD_GUID || made == FIELD_ARRAY) {
		put_array(d, of, made == FIELD_ARRAY, out);
	} else {
		put_as_text(d, field->type, out);
	}
}

static void put_fields(const struct ctf_layout *layout, struct ctf_decoder *d,
	const struct ctf_type *type, unsigned depth, struct bytes *out)
{
	ctf_align(d, type->align);
	for (uint32_t i = 0; i < type->count && !d->short_read; i++)
		put_field(layout, d, &d->metadata->fields.items[type->first + i], depth, out);
}

/* The fields of the event itself: most of them are copied, several at a time. */
static void put_steps(const struct ctf_layout *layout, struct ctf_decoder *d,
	const struct ctf_type *type, struct bytes *out)
{
	ctf_align(d, type->align);
	for (uint32_t i = 0; i < layout->steps.count && !d->short_read; i++) {
		const struct ctf_step *step = &layout->steps.items[i];
		const uint8_t *bytes = ctf_take_bytes(d, step->copy_bytes);
		if (!step->copy_bytes)
			put_field(layout, d, &d->metadata->fields.items[step->field], 0, out);
		else if (bytes)
			bytes_add(out, bytes, step->copy_bytes);
	}
}

static void put_clr_string(struct ctf_decoder *d, char letter, struct bytes *out)
{
	size_t len;
	const char *text = ctf_read_string(d, &len);

	if (!text)
		return;
	if (letter == 'A')
		bytes_add(out, text, len + 1);
	else
		bytes_utf16z(out, text, len, TEXT_UNITS_MAX);
}

static void put_clr(const struct ctf_layout *layout, struct ctf_decoder *d,
	const struct ctf_type *type, struct bytes *out)
{
	uint32_t known = 0;

	ctf_align(d, type->align);
	for (uint32_t i = 0; i < type->count && !d->short_read; i++) {
		const struct ctf_field *field = &d->metadata->fields.items[type->first + i];
		const struct ctf_type *of = &d->metadata->types.items[field->type];
		char letter = known < layout->clr.field_count ? layout->clr.fields[known].type : 0;
		if (field->is_length) {
			ctf_skip_field(d, field);
			continue;
		}
		known++;
		if (of->kind <= CTF_ENUM)
			put_number(out, number_type(of), ctf_read_number(d, of));
		else if (of->kind == CTF_STRING)
			put_clr_string(d, letter, out);
		else if (of->kind == CTF_ARRAY || of->kind == CTF_SEQUENCE)
			put_array(d, of, false, out);
		else
			ctf_skip(d, field->type);
	}
}

void ctf_layout_payload(const struct ctf_layout *layout, const struct ctf_event_class *event,
	struct ctf_decoder *d, struct bytes *payload)
{
	const struct ctf_type *type = &d->metadata->types.items[event->fields];

	if (type->kind != CTF_STRUCT)
		return;
	if (layout->kind == CTF_LAYOUT_TYPED) {
		put_steps(layout, d, type, payload);
	} else if (layout->kind == CTF_LAYOUT_CLR) {
		put_clr(layout, d, type, payload);
	} else {
		const struct ctf_field *fields = &d->metadata->fields.items[type->first];
		ctf_align(d, type->align);
		ctf_skip_field(d, &fields[0]);
		ctf_skip_field(d, &fields[1]);
		const struct ctf_type *data = &d->metadata->types.items[fields[2].type];
		if (data->kind == CTF_SEQUENCE)
			put_array(d, data, false, payload);
		else
			ctf_skip(d, fields[2].type);
	}
}
