/*
 * See event_text.h.
 *
 * A payload is read field by field; one that ends early simply has no more fields. What a schema
 * does not describe well enough (an unknown type, a layout that does not fit the bytes) ends the
 * line with a mark rather than with nonsense. One walk over the fields makes the line, a single
 * field, and JSON.
 */
#include "render/event_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/json.h"
#include "base/text.h"
#include "render/event_value.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/event_label.h"
#include "trace/gc_dynamic.h"
#include "trace/payload_layout.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define ARRAY_MAX      16u
#define NAME_MAX_BYTES 64u
#define BYTES_MAX      32u

/* How each field is printed: into a line, or into a JSON object. */
struct text_walk {
	struct bytes *out;
	struct json *json; /* NULL: a line */
	const struct trace *trace;
	const char *wanted; /* only this field; NULL all */
	bool found;
	bool first;
	unsigned depth;             /* objects and arrays that are open */
	unsigned inside;            /* arrays that are shown, with all that is in them */
	unsigned silent;            /* more than 0: values are read and not shown */
	size_t located;             /* bytes so far, against PAYLOAD_LOCATED_MAX */
	const uint8_t *located_end; /* end of the payload that was located last; NULL: none */
	struct payload_layout layout;
	struct cursor payload; /* all of it */
};

static void add_hex(struct bytes *out, const uint8_t *data, size_t size)
{
	uint8_t *room = bytes_reserve(out, 2 * size);

	if (room)
		out->len += text_put_hex((char *)room, data, size);
}

/* Whether this field is shown; if so, and in a line, its name is. */
static bool begin_field(struct text_walk *walk, const char *name)
{
	if (walk->silent)
		return false;
	if (walk->wanted && !walk->inside && (walk->found || strcmp(name, walk->wanted) != 0))
		return false;
	walk->found = true;
	if ((!walk->wanted || walk->inside) && !walk->json) {
		if (!walk->first)
			bytes_u8(walk->out, ' ');
		bytes_text(walk->out, name);
		bytes_u8(walk->out, '=');
	}
	walk->first = false;
	return true;
}

/* Without a name: an element. */
static void show_value(struct text_walk *walk, const char *name, const struct event_value *value)
{
	if (name ? !begin_field(walk, name) : walk->silent > 0)
		return;
	if (walk->json)
		event_value_json(walk->json, name, value);
	else
		event_value_add(walk->out, value, walk->wanted && !walk->inside);
}

static bool walk_fields(struct text_walk *walk, const struct schema *schema, uint32_t i,
	uint32_t end, struct cursor *c);
static bool walk_elements(struct text_walk *walk, const char *name, const struct schema *schema,
	uint32_t i, struct cursor *c);

/*
 * The fields that follow field i, one deeper: a nested object in JSON, and in braces among
 * elements. Elsewhere in a line they are fields like those around, and so are those of an object
 * whose name is empty: a self-describing event is one.
 */
static bool walk_object(struct text_walk *walk, const char *name, const struct schema *schema,
	uint32_t i, struct cursor *c)
{
	bool shown = !walk->silent;
	bool braces = shown && !walk->json && !name;
	bool object = shown && walk->json && !(name && !*name);

	if (walk->depth >= PAYLOAD_DEPTH_MAX)
		return false;
	if (object)
		json_object(walk->json, name);
	if (braces)
		bytes_text(walk->out, "{");
	walk->first |= braces;
	walk->depth++;
	bool whole = walk_fields(walk, schema, i + 1, schema_fields_end(schema, i), c);
	walk->depth--;
	walk->first &= !braces;
	if (object)
		json_end(walk->json);
	if (braces && whole)
		bytes_text(walk->out, "}");
	return whole;
}

/* One value of the type. Field i describes it where the type has fields or elements. */
static bool walk_value(struct text_walk *walk, const char *name, const struct schema *schema,
	uint32_t i, unsigned type, struct cursor *c)
{
	struct event_value value;

	if (type == FIELD_OBJECT)
		return walk_object(walk, name, schema, i, c);
	if (field_type_has_element((uint8_t)type))
		return walk_elements(walk, name, schema, i, c);
	if (type == FIELD_BOOL && walk->layout.byte_bools)
		type = FIELD_BOOL8;
	if (payload_is_wide(walk->layout, schema, i))
		type = type == FIELD_I8 || type == FIELD_I16 ? FIELD_I32 : FIELD_U32;
	if (!event_value_read(type, c, &value) || c->short_read)
		return false;
	show_value(walk, name, &value);
	return true;
}

/* Where the elements of field i are, and how many (at an offset: as the bytes allow). */
static bool find_elements(struct text_walk *walk, const struct field *field, struct cursor *c,
	struct cursor *ret_at, uint32_t *ret_count)
{
	if (field->type == FIELD_ARRAY || field->type == FIELD_FIXED_ARRAY) {
		bool wide = field->element == FIELD_U8 && walk->layout.counted_by_4;
		*ret_count = field->type == FIELD_FIXED_ARRAY ? field->count
			     : wide                           ? cursor_u32(c)
							      : cursor_u16(c);
		*ret_at = *c;
		return !c->short_read;
	}
	uint32_t place = cursor_u32(c);
	struct cursor from = field->type == FIELD_REL_LOC ? *c : walk->payload;
	size_t size = place >> 16;

	from.end = walk->payload.end;
	cursor_skip(&from, place & 0xffff);
	*ret_at = cursor_of(from.at, size);
	*ret_count = UINT32_MAX;
	walk->located += size;
	if (!walk->located_end || ret_at->end > walk->located_end)
		walk->located_end = ret_at->end;
	return !c->short_read && !from.short_read && cursor_left(&from) >= size &&
	       walk->located <= PAYLOAD_LOCATED_MAX;
}

/* Characters are a text. It may be filled up with zeros. */
static bool walk_characters(struct text_walk *walk, const char *name, const struct field *field,
	uint32_t count, struct cursor *at)
{
	size_t unit = field->element == FIELD_CHAR16 ? 2 : 1;
	struct event_value value = { .kind = unit == 2 ? VALUE_TEXT16 : VALUE_TEXT8 };

	value.count = count == UINT32_MAX ? cursor_left(at) / unit : count;
	value.bytes = cursor_take(at, value.count * unit);
	if (at->short_read)
		return false;
	while (value.count && !value.bytes[value.count * unit - 1] &&
		!value.bytes[(value.count - 1) * unit])
		value.count--;
	show_value(walk, name, &value);
	return true;
}

/* Separates element n from the last one in a line. ARRAY_MAX elements are shown. */
static void before_element(struct text_walk *walk, bool in_line, uint32_t n)
{
	if (in_line && n == ARRAY_MAX) {
		bytes_text(walk->out, ",\xe2\x80\xa6");
		walk->silent++;
	} else if (in_line && n && n < ARRAY_MAX) {
		bytes_text(walk->out, ",");
	}
}

/* An array that is being shown, or read only. */
struct elements {
	bool shown;
	bool in_line;
	unsigned silent; /* of the walk, before it */
};

/* Without a name: an array among elements. */
static struct elements begin_elements(struct text_walk *walk, const char *name)
{
	struct elements elements = { .silent = walk->silent };

	elements.shown = name ? begin_field(walk, name) : !walk->silent;
	if (elements.shown && walk->json)
		json_array(walk->json, name);
	else if (elements.shown)
		bytes_text(walk->out, "[");
	walk->silent += !elements.shown;
	walk->inside += elements.shown;
	elements.in_line = !walk->json && !walk->silent;
	return elements;
}

static void end_elements(struct text_walk *walk, const struct elements *elements, bool whole)
{
	walk->inside -= elements->shown;
	walk->silent = elements->silent;
	if (elements->shown && walk->json)
		json_end(walk->json);
	else if (elements->shown && whole)
		bytes_text(walk->out, "]");
}

static bool walk_elements_at(struct text_walk *walk, const struct elements *elements,
	const struct schema *schema, uint32_t i, uint32_t count, struct cursor *at)
{
	const struct field *field = &schema->fields.items[i];
	bool nested = field_type_has_element(field->element);
	bool whole = !nested || i + 1 < schema_fields_end(schema, i);

	for (uint32_t n = 0; whole && (count == UINT32_MAX ? cursor_left(at) > 0 : n < count);
		n++) {
		const uint8_t *before = at->at;
		before_element(walk, elements->in_line, n);
		whole = walk_value(walk, NULL, schema, nested ? i + 1 : i, field->element, at) &&
			!at->short_read;
		/* Elements without bytes could be any number. */
		whole &= at->at > before || count == 1;
	}
	return whole;
}

/* The value of field i, which has elements. */
static bool walk_elements(struct text_walk *walk, const char *name, const struct schema *schema,
	uint32_t i, struct cursor *c)
{
	const struct field *field = &schema->fields.items[i];
	bool apart = field->type == FIELD_REL_LOC || field->type == FIELD_DATA_LOC;
	struct cursor at;
	uint32_t count;

	if (walk->depth >= PAYLOAD_DEPTH_MAX || !find_elements(walk, field, c, &at, &count))
		return false;
	struct cursor *from = apart ? &at : c;

	if (field->element == FIELD_CHAR16 || field->element == FIELD_CHAR8)
		return walk_characters(walk, name, field, count, from);
	struct elements elements = begin_elements(walk, name);

	walk->depth++;
	bool whole = walk_elements_at(walk, &elements, schema, i, count, from);
	walk->depth--;
	end_elements(walk, &elements, whole);
	return whole;
}

/* Whether the value of field i can have no bytes. */
static bool can_be_empty(const struct schema *schema, uint32_t i)
{
	const struct field *field = &schema->fields.items[i];

	if (field->type == FIELD_FIXED_ARRAY)
		return !field->count;
	return field->type == FIELD_OBJECT &&
	       (i + 1 == schema_fields_end(schema, i) || can_be_empty(schema, i + 1));
}

/* Fields [i, end) of one depth and those below. False: one is unreadable, or the bytes end. */
static bool walk_fields(struct text_walk *walk, const struct schema *schema, uint32_t i,
	uint32_t end, struct cursor *c)
{
	for (; i < end; i = schema_fields_end(schema, i)) {
		const struct field *field = &schema->fields.items[i];
		if (!cursor_left(c) && !can_be_empty(schema, i))
			return false;
		char name[NAME_MAX_BYTES];
		const char *text = trace_text(walk->trace, field->name);
		(void)text_make_safe(text, strlen(text), name,
			sizeof(name)); /* a cut end is fine */
		if (!walk_value(walk, name, schema, i, field->type, c))
			return false;
	}
	return true;
}

/* Bytes that are not described further. */
static void show_bytes(struct text_walk *walk, const char *name, const uint8_t *data, size_t size)
{
	struct bytes hex = { 0 };

	if (!size || !begin_field(walk, name))
		return;
	bytes_text(&hex, "0x");
	add_hex(&hex, data, walk->json || size < BYTES_MAX ? size : BYTES_MAX);
	if (walk->json)
		json_text(walk->json, name, bytes_z(&hex), hex.len);
	else
		bytes_printf(walk->out, size > BYTES_MAX ? "%s\xe2\x80\xa6" : "%s", bytes_z(&hex));
	walk->out->failed |= hex.failed;
	bytes_done(&hex);
}

/* ---- events that travel without a description (trace/clr_event.h) ---- */

/* A list of fields, and the values of those that were read, for arrays that they count. */
struct clr_walk {
	const struct clr_field *fields;
	uint32_t values[CLR_COUNT_MASK + 1];
};

/* 0: a text, or another type that has no nettrace type. */
static unsigned type_of_letter(const struct clr_field *field)
{
	struct clr_field single = { .type = field->type };

	return field->type == 'V' || field->type == 'H' ? FIELD_VARUINT : clr_field_type(&single);
}

/* A payload that is too short shows in c->short_read. */
static struct event_value read_letter(const struct clr_field *field, struct cursor *c)
{
	struct event_value value = { .kind = VALUE_TEXT8 };
	unsigned type = type_of_letter(field);

	if (field->type == 'U') {
		value.count = cursor_u16(c);
		value.bytes = cursor_take(c, value.count);
	} else if (!type) { /* 'A' */
		const uint8_t *end = memchr(c->at, 0, cursor_left(c));
		value.count = end ? (size_t)(end - c->at) : 0;
		value.bytes = cursor_take(c, value.count);
		cursor_skip(c, 1); /* the NUL, or nothing */
	} else {
		(void)event_value_read(type, c, &value); /* all of these are known */
		if (field->type == 'X' || field->type == 'P' || field->type == 'H')
			value.kind = VALUE_HEX;
	}
	return value;
}

static bool walk_clr_field(struct text_walk *walk, struct clr_walk *clr, unsigned i,
	struct cursor *c);

/* The index after field i and its members. */
static unsigned clr_fields_end(const struct clr_field *fields, unsigned i)
{
	if (fields[i].type == '{')
		while (fields[i].type != '}')
			i++;
	return i + 1;
}

/* One struct of the array of structs at field i. */
static bool walk_clr_struct(struct text_walk *walk, struct clr_walk *clr, unsigned i,
	struct cursor *c)
{
	bool shown = !walk->silent;
	bool whole = true;

	if (shown && walk->json)
		json_object(walk->json, NULL);
	else if (shown)
		bytes_text(walk->out, "{");
	walk->first = true;
	for (i++; whole && clr->fields[i].type != '}'; i++)
		whole = walk_clr_field(walk, clr, i, c);
	walk->first = false;
	if (shown && walk->json)
		json_end(walk->json);
	else if (shown && whole)
		bytes_text(walk->out, "}");
	return whole;
}

static uint32_t clr_count(const struct clr_walk *clr, unsigned i)
{
	uint8_t count = clr->fields[i].count;

	return count & CLR_COUNT_FIXED ? count & CLR_COUNT_MASK
				       : clr->values[count & CLR_COUNT_MASK];
}

/* Each element has at least one byte, so a count that is too large ends with the bytes. */
static bool walk_clr_array(struct text_walk *walk, struct clr_walk *clr, unsigned i,
	struct cursor *c)
{
	const struct clr_field *field = &clr->fields[i];
	const char *name = clr_field_name(field);
	uint32_t count = clr_count(clr, i);
	bool whole = true;

	if (field->type == 'Y') {
		const uint8_t *data = cursor_take(c, count);
		if (data)
			show_bytes(walk, name, data, count);
		return data;
	}
	struct elements elements = begin_elements(walk, name);

	for (uint32_t n = 0; whole && n < count; n++) {
		before_element(walk, elements.in_line, n);
		if (field->type == '{') {
			whole = walk_clr_struct(walk, clr, i, c);
			continue;
		}
		struct event_value value = read_letter(field, c);
		whole = !c->short_read;
		if (whole)
			show_value(walk, NULL, &value);
	}
	end_elements(walk, &elements, whole);
	return whole;
}

static bool walk_clr_field(struct text_walk *walk, struct clr_walk *clr, unsigned i,
	struct cursor *c)
{
	const struct clr_field *field = &clr->fields[i];

	if (field->count)
		return walk_clr_array(walk, clr, i, c);
	struct event_value value = read_letter(field, c);

	if (c->short_read)
		return false;
	if (i <= CLR_COUNT_MASK && value.kind == VALUE_U64)
		clr->values[i] = value.u < UINT32_MAX ? (uint32_t)value.u : UINT32_MAX;
	show_value(walk, clr_field_name(field), &value);
	return true;
}

/* A payload that ends before a field has those before it: a version between two of the list. */
static bool walk_clr(struct text_walk *walk, const struct clr_event *event, struct cursor *c)
{
	struct clr_walk clr = { .fields = event->fields };

	for (unsigned i = 0; i < event->field_count; i = clr_fields_end(event->fields, i)) {
		if (!cursor_left(c) && (!event->fields[i].count || clr_count(&clr, i)))
			return true;
		if (!walk_clr_field(walk, &clr, i, c))
			return false;
	}
	return true;
}

/* ---- the collectors' dynamic events ---- */

/* A name of our own lists, which all fit. */
static void name_of(char name[NAME_MAX_BYTES], const char *text, size_t len)
{
	len = len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES - 1;
	memcpy(name, text, len);
	name[len] = '\0';
}

static void show_gc_field(struct text_walk *walk, const char *name,
	const struct gc_dynamic_field *field)
{
	struct cursor c = cursor_of(field->values, field->count * field->value_size);
	struct event_value value = {
		.kind = VALUE_TEXT16, .bytes = field->values, .count = field->count
	};
	bool text = field->type == FIELD_TEXT16;

	if (!begin_field(walk, name))
		return;
	if (walk->json && (text || !field->is_array)) {
		if (!text)
			(void)event_value_read(field->type, &c,
				&value); /* all of these are known */
		event_value_json(walk->json, name, &value);
	} else if (walk->json) {
		json_array(walk->json, name);
		for (size_t i = 0; i < field->count; i++) {
			(void)event_value_read(field->type, &c, &value); /* as above */
			event_value_json(walk->json, NULL, &value);
		}
		json_end(walk->json);
	} else if (text && walk->wanted) {
		event_value_add(walk->out, &value, true);
	} else {
		gc_dynamic_value(field, walk->out);
	}
}

static bool walk_gc_dynamic(struct text_walk *walk, struct gc_dynamic *dynamic)
{
	struct gc_dynamic_field field;
	int r;

	if (!dynamic->event) {
		show_bytes(walk, "Data", dynamic->data, dynamic->size);
		return true;
	}
	while ((r = gc_dynamic_next(dynamic, &field)) > 0) {
		char name[NAME_MAX_BYTES];
		name_of(name, field.name, field.name_len);
		show_gc_field(walk, name, &field);
	}
	if (r == 0 && dynamic->rest && walk->json)
		json_u64(walk->json, "more_bytes", dynamic->rest);
	else if (r == 0 && dynamic->rest && !walk->wanted)
		bytes_printf(walk->out, " (%zu more byte%s)", dynamic->rest,
			dynamic->rest == 1 ? "" : "s");
	return r == 0;
}

static const struct schema *schema_of(const struct trace *trace, const struct event *event)
{
	return &trace->schemas.items[event->schema_index];
}

bool event_text_is_dynamic(const struct trace *trace, const struct event *event)
{
	const struct schema *schema = schema_of(trace, event);

	return schema->provider_kind == PROVIDER_CLR && schema->event_id == CLR_ID_GCDynamicEvent;
}

static bool open_dynamic(const struct trace *trace, const struct event *event,
	struct gc_dynamic *ret_dynamic)
{
	return event_text_is_dynamic(trace, event) &&
	       gc_dynamic_open(event->payload, event->payload_size, ret_dynamic) == 0;
}

/* Events without a description. Those of Universal.Events go by name, whatever their number. */
static bool find_known(const struct trace *trace, const struct event *event,
	struct clr_event *ret_known)
{
	const struct schema *schema = schema_of(trace, event);
	uint32_t id = schema->event_id;
	uint32_t version = schema->version;

	if (event->labels && event->labels->which & EVENT_LABEL_VERSION)
		version = event->labels->version;
	if (schema->provider_kind == PROVIDER_UNIVERSAL_EVENTS)
		id = strcmp(trace_text(trace, schema->name), known_events[EVENTS_CSWITCH].name) == 0
			     ? known_events[EVENTS_CSWITCH].event_id
			     : known_events[EVENTS_CPU].event_id;
	return clr_event_find((enum provider_kind)schema->provider_kind, id, version, ret_known);
}

/* False: the payload does not fit its description. */
static bool walk_event(struct text_walk *walk, const struct event *event)
{
	const struct schema *schema = schema_of(walk->trace, event);
	struct cursor c = cursor_of(event->payload, event->payload_size);
	struct gc_dynamic dynamic;

	if (open_dynamic(walk->trace, event, &dynamic))
		return walk_gc_dynamic(walk, &dynamic);
	if (schema->fields.count) {
		walk->payload = c;
		walk->layout = payload_layout_of(schema, event->payload, event->payload_size);
		return walk_fields(walk, schema, 0, schema->fields.count, &c) &&
		       payload_is_used_up(c.at, walk->located_end, c.end);
	}
	struct clr_event known;

	if (find_known(walk->trace, event, &known) && known.field_count)
		return walk_clr(walk, &known, &c);
	if (walk->json)
		show_bytes(walk, "payload", event->payload, event->payload_size);
	else if (event->payload_size && !walk->wanted)
		bytes_printf(walk->out, "(%u byte%s)", event->payload_size,
			event->payload_size == 1 ? "" : "s");
	return true;
}

void event_text_bare_name(struct bytes *out, const struct trace *trace, const struct event *event)
{
	const struct schema *schema = schema_of(trace, event);
	const char *name = trace_text(trace, schema->name);
	struct gc_dynamic dynamic;
	struct clr_event known;

	if (open_dynamic(trace, event, &dynamic) && *dynamic.name)
		text_add_safe_z(out, dynamic.name);
	else if (*name)
		text_add_safe_z(out, name);
	else if (find_known(trace, event, &known))
		bytes_text(out, known.name);
	else
		bytes_printf(out, "%u", schema->event_id);
}

void event_text_name(struct bytes *out, const struct trace *trace, const struct event *event)
{
	const char *provider = trace_text(trace, schema_of(trace, event)->provider);

	text_add_safe_z(out, provider);
	bytes_text(out, "/");
	event_text_bare_name(out, trace, event);
}

void event_text_fields(struct bytes *out, const struct trace *trace, const struct event *event)
{
	struct text_walk walk = { .out = out, .trace = trace, .first = true };

	if (!walk_event(&walk, event))
		bytes_text(out, "?");
}

bool event_text_json(struct json *j, const struct trace *trace, const struct event *event)
{
	struct text_walk walk = { .out = j->out, .json = j, .trace = trace, .first = true };

	json_object(j, "fields");
	bool whole = walk_event(&walk, event);
	json_end(j);
	return whole;
}

bool event_text_field(struct bytes *out, const struct trace *trace, const struct event *event,
	const char *name)
{
	struct text_walk walk = { .out = out, .trace = trace, .wanted = name };

	(void)walk_event(&walk, event); /* a failure at a later field does not matter */
	return walk.found;
}

/* ---- labels ---- */

static struct cursor labels_of(const struct event *event)
{
	const struct event_labels *labels = event->labels;

	return labels && labels->list_size ? cursor_of(labels->list, labels->list_size)
					   : cursor_of("", 0);
}

static struct event_value value_of_label(const struct event_label *label)
{
	if (label->kind == LABEL_NUMBER)
		return (struct event_value){ .kind = VALUE_I64, .i = label->number };
	return (struct event_value){
		.kind = VALUE_TEXT8, .bytes = (const uint8_t *)label->text, .count = label->text_len
	};
}

/* An id in W3C's form; false: it is all zero, which means none. */
static bool id_of_label(const struct event_label *label, char text[2 * LABEL_TRACE_ID_SIZE + 1])
{
	static const uint8_t none[LABEL_TRACE_ID_SIZE];

	if (label->kind == LABEL_SPAN_ID) {
		(void)snprintf(text, 17, "%016" PRIx64, label->span_id); /* fits */
		return label->span_id;
	}
	text[text_put_hex(text, label->trace_id, LABEL_TRACE_ID_SIZE)] = '\0';
	return memcmp(label->trace_id, none, sizeof(none)) != 0;
}

static bool label_has_key(const struct event_label *label)
{
	return label->kind == LABEL_TEXT || label->kind == LABEL_NUMBER;
}

void event_text_labels(struct bytes *out, const struct event *event)
{
	struct cursor c = labels_of(event);
	struct event_label label;
	const char *before = " {";

	while (event_label_next(&c, &label)) {
		char text[2 * LABEL_TRACE_ID_SIZE + 1];
		char key[NAME_MAX_BYTES];
		if (label_has_key(&label)) {
			struct event_value value = value_of_label(&label);
			/* a cut end is fine */
			(void)text_make_safe(label.key, label.key_len, key, sizeof(key));
			bytes_printf(out, "%s%s=", before, key);
			event_value_add(out, &value, false);
		} else if (id_of_label(&label, text)) {
			bytes_printf(out, "%s%s=%s", before,
				label.kind == LABEL_SPAN_ID ? "span_id" : "trace_id", text);
		} else {
			continue;
		}
		before = " ";
	}
	if (before[1] == '\0')
		bytes_text(out, "}");
}

/* The first one of the kind. */
static void json_label_id(struct json *j, const char *name, enum event_label_kind kind,
	const struct event *event)
{
	struct cursor c = labels_of(event);
	struct event_label label;
	char text[2 * LABEL_TRACE_ID_SIZE + 1];

	while (event_label_next(&c, &label)) {
		if (label.kind != kind || !id_of_label(&label, text))
			continue;
		json_z(j, name, text);
		return;
	}
}

void event_text_labels_json(struct json *j, const struct event *event)
{
	struct cursor c = labels_of(event);
	struct event_label label;
	struct bytes key = { 0 };
	bool open = false;

	json_label_id(j, "trace_id", LABEL_TRACE_ID, event);
	json_label_id(j, "span_id", LABEL_SPAN_ID, event);
	while (event_label_next(&c, &label)) {
		if (!label_has_key(&label))
			continue;
		if (!open)
			json_object(j, "labels");
		open = true;
		struct event_value value = value_of_label(&label);
		bytes_reset(&key);
		text_add_safe(&key, label.key, label.key_len);
		event_value_json(j, bytes_z(&key), &value);
	}
	if (open)
		json_end(j);
	j->out->failed |= key.failed;
	bytes_done(&key);
}
