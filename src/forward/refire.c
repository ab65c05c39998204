/* See refire.h. */
#include "forward/refire.h"

#include <errno.h>
#include <spoor/spoor.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "render/event_text.h"
#include "render/event_value.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/payload_layout.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define TEXTS_MAX  1024u /* elements of an array of texts that are forwarded */
#define ORIGIN_MAX 5u    /* fields that are added */

SPOOR_PROVIDER(json_source, REFIRE_JSON_PROVIDER)
#define JSON_EVENT(name, id, level)                                                              \
	SPOOR_EVENT(json_source, name, id, level, 0, (text, EventSourceName), (text, EventName), \
		(u32, EventID), (text, Payload), (u32, origin_pid), (u64, origin_tid),           \
		(u64, origin_time_ns), (guid, origin_activity_id),                               \
		(guid, origin_related_activity_id))
JSON_EVENT(LogAlways, 1, SPOOR_ALWAYS)
JSON_EVENT(Critical, 2, SPOOR_CRITICAL)
JSON_EVENT(Error, 3, SPOOR_ERROR)
JSON_EVENT(Warning, 4, SPOOR_WARNING)
JSON_EVENT(Informational, 5, SPOOR_INFO)
JSON_EVENT(Verbose, 6, SPOOR_VERBOSE)

enum refired_kind {
	KIND_UNKNOWN,
	KIND_KNOWN,   /* after its first event */
	KIND_REFUSED, /* the tracer cannot have it */
};

struct refire_source {
	uint32_t provider; /* strtab of the stream */
	struct spoor_event_source *handle;
};

struct refire {
	VEC(struct refire_source) sources;
	VEC(uint8_t) kinds; /* by schema index: enum refired_kind */
	struct refire_counts counts;
	struct bytes name;
	struct bytes json;
	struct bytes text;
	/* the elements of an array of texts: offsets in `text`, then pointers */
	size_t offsets[TEXTS_MAX];
	const char *texts[TEXTS_MAX];
	VEC(uint16_t) units;
	bool is_json;
};

struct refire_origin {
	uint32_t pid;
	uint64_t thread_id;
	uint64_t time_ns;
	const uint8_t *activity; /* EVENT_ACTIVITY_SIZE bytes, or NULL */
};

struct refire *refire_new(bool json)
{
	struct refire *refire = calloc(1, sizeof(*refire));

	if (!refire)
		return NULL;
	refire->is_json = json;
	if (json && spoor_provider_register(&json_source) < 0) {
		free(refire);
		return NULL;
	}
	return refire;
}

void refire_free(struct refire *refire)
{
	if (!refire)
		return;
	if (refire->is_json)
		spoor_provider_unregister(&json_source);
	for (uint32_t i = 0; i < refire->sources.count; i++)
		spoor_source_free(refire->sources.items[i].handle);
	vec_done(&refire->sources);
	vec_done(&refire->kinds);
	vec_done(&refire->units);
	bytes_done(&refire->name);
	bytes_done(&refire->json);
	bytes_done(&refire->text);
	free(refire);
}

void refire_count(const struct refire *refire, struct refire_counts *ret_counts)
{
	*ret_counts = refire->counts;
}

/* Few providers: a search is as fast as a table. */
static struct spoor_event_source *source_of(struct refire *refire, const struct trace *trace,
	const struct schema *schema)
{
	for (uint32_t i = 0; i < refire->sources.count; i++)
		if (refire->sources.items[i].provider == schema->provider)
			return refire->sources.items[i].handle;
	struct refire_source source = {
		.provider = schema->provider,
		.handle = spoor_source_new(trace_text(trace, schema->provider)),
	};

	if (source.handle && !vec_add(&refire->sources, source)) {
		spoor_source_free(source.handle);
		return NULL;
	}
	return source.handle;
}

/* ---- values ---- */

static enum spoor_type type_of(unsigned field_type)
{
	switch (field_type) {
	case FIELD_I8:
		return SPOOR_TYPE_I8;
	case FIELD_U8:
	case FIELD_BOOL8:
	case FIELD_CHAR8:
		return SPOOR_TYPE_U8;
	case FIELD_CHAR16:
		return SPOOR_TYPE_CHAR16;
	case FIELD_I16:
		return SPOOR_TYPE_I16;
	case FIELD_U16:
		return SPOOR_TYPE_U16;
	case FIELD_I32:
		return SPOOR_TYPE_I32;
	case FIELD_BOOL:
		return SPOOR_TYPE_BOOLEAN;
	case FIELD_U32:
		return SPOOR_TYPE_U32;
	case FIELD_I64:
		return SPOOR_TYPE_I64;
	case FIELD_U64:
		return SPOOR_TYPE_U64;
	case FIELD_F32:
		return SPOOR_TYPE_F32;
	case FIELD_F64:
		return SPOOR_TYPE_F64;
	case FIELD_GUID:
		return SPOOR_TYPE_GUID;
	case FIELD_TIME:
		return SPOOR_TYPE_TIME;
	default:
		return 0;
	}
}

/* The payload's text may be unaligned; libspoor reads units up to a zero. */
static bool write_text16(struct refire *refire, struct spoor_writer *w, const char *name,
	const struct event_value *value)
{
	size_t count = value->count > SPOOR_TEXT_MAX ? SPOOR_TEXT_MAX : value->count;

	vec_reset(&refire->units);
	if (!vec_reserve(&refire->units, count + 1))
		return false;
	if (count)
		memcpy(refire->units.items, value->bytes, 2 * count);
	refire->units.items[count] = 0;
	spoor_write_text16(w, name, refire->units.items);
	return true;
}

/* A text in UTF-8, with a zero, after those in refire->text. */
static bool add_text(struct refire *refire, const struct event_value *value)
{
	if (value->kind == VALUE_TEXT16)
		text_add_utf16(&refire->text, value->bytes, value->count);
	else
		text_add_safe(&refire->text, (const char *)value->bytes, value->count);
	bytes_u8(&refire->text, 0);
	return !refire->text.failed;
}

static bool write_value(struct refire *refire, struct spoor_writer *w, const char *name,
	unsigned type, const struct event_value *value)
{
	switch (value->kind) {
	case VALUE_BOOL:
		spoor_write_boolean(w, name, value->u != 0);
		return true;
	case VALUE_I64:
		if (type == FIELD_I8)
			spoor_write_i8(w, name, (int8_t)value->i);
		else if (type == FIELD_I16)
			spoor_write_i16(w, name, (int16_t)value->i);
		else if (type == FIELD_I32)
			spoor_write_i32(w, name, (int32_t)value->i);
		else
			spoor_write_i64(w, name, value->i);
		return true;
	case VALUE_U64:
	case VALUE_HEX:
		if (type == FIELD_U8)
			spoor_write_u8(w, name, (uint8_t)value->u);
		else if (type == FIELD_U16)
			spoor_write_u16(w, name, (uint16_t)value->u);
		else if (type == FIELD_U32)
			spoor_write_u32(w, name, (uint32_t)value->u);
		else
			spoor_write_u64(w, name, value->u);
		return true;
	case VALUE_F32:
		spoor_write_f32(w, name, value->f32);
		return true;
	case VALUE_F64:
		spoor_write_f64(w, name, value->f);
		return true;
	case VALUE_GUID: {
		struct spoor_guid guid;
		memcpy(guid.bytes, value->bytes, sizeof(guid.bytes));
		spoor_write_guid(w, name, &guid);
		return true;
	}
	case VALUE_TEXT16:
		return write_text16(refire, w, name, value);
	case VALUE_TEXT8:
		bytes_reset(&refire->text);
		if (!add_text(refire, value))
			return false;
		spoor_write_text(w, name, bytes_z(&refire->text));
		return true;
	case VALUE_TIME:
		spoor_write_time_steps(w, name, value->u);
		return true;
	case VALUE_NONE:
		break;
	}
	return false;
}

static bool write_texts(struct refire *refire, struct spoor_writer *w, const char *name,
	unsigned type, uint32_t count, struct cursor *c)
{
	uint32_t kept = count < TEXTS_MAX ? count : TEXTS_MAX;

	bytes_reset(&refire->text);
	for (uint32_t i = 0; i < count; i++) {
		struct event_value value;
		if (!event_value_read(type, c, &value) || c->short_read)
			return false;
		if (i < kept) {
			refire->offsets[i] = refire->text.len;
			if (!add_text(refire, &value))
				return false;
		}
	}
	for (uint32_t i = 0; i < kept; i++)
		refire->texts[i] = (const char *)refire->text.data + refire->offsets[i];
	spoor_write_text_array(w, name, refire->texts, kept);
	return true;
}

static bool write_array(struct refire *refire, struct spoor_writer *w, const char *name,
	const struct field *field, struct payload_layout layout, struct cursor *c)
{
	bool wide = field->element == FIELD_U8 && layout.counted_by_4;
	uint32_t count = field->type == FIELD_FIXED_ARRAY ? field->count
			 : wide                           ? cursor_u32(c)
							  : cursor_u16(c);
	enum spoor_type type = type_of(field->element);

	if (c->short_read || (field->type != FIELD_ARRAY && field->type != FIELD_FIXED_ARRAY))
		return false;
	if (field->element == FIELD_TEXT16)
		return write_texts(refire, w, name, field->element, count, c);
	if (field->element == FIELD_BOOL && layout.byte_bools)
		type = SPOOR_TYPE_U8;
	const uint8_t *bytes = cursor_take(c, count * payload_fixed_size(field->element, layout));
	if (!type || c->short_read)
		return false;
	if (type == SPOOR_TYPE_U8)
		spoor_write_blob(w, name, bytes, count);
	else
		spoor_write_array(w, name, type, bytes, count);
	return true;
}

/* The fields from i up to `end`. False: they cannot be expressed, or do not fit the bytes. */
static bool write_fields(struct refire *refire, const struct trace *trace, struct spoor_writer *w,
	const struct schema *schema, uint32_t i, uint32_t end, struct payload_layout layout,
	struct cursor *c, unsigned depth)
{
	while (i < end) {
		const struct field *field = &schema->fields.items[i];
		const char *name = trace_text(trace, field->name);
		uint32_t next = schema_fields_end(schema, i);
		unsigned type = field->type;
		struct event_value value;

		if (w->field_count + ORIGIN_MAX >= SPOOR_WRITER_FIELDS)
			return false;
		if (type == FIELD_OBJECT) {
			/* A self-describing event is one object without a name. */
			bool is_named = *name != '\0';
			if (depth >= SPOOR_WRITER_DEPTH)
				return false;
			if (is_named)
				spoor_write_struct_begin(w, name);
			bool whole = write_fields(refire, trace, w, schema, i + 1, next, layout, c,
				depth + 1);
			if (is_named)
				spoor_write_struct_end(w);
			if (!whole)
				return false;
		} else if (field_type_has_element((uint8_t)type)) {
			if (!write_array(refire, w, name, field, layout, c))
				return false;
		} else {
			if (type == FIELD_BOOL && layout.byte_bools)
				type = FIELD_BOOL8;
			if (payload_is_wide(layout, schema, i))
				type = type == FIELD_I8 || type == FIELD_I16 ? FIELD_I32
									     : FIELD_U32;
			if (!event_value_read(type, c, &value) || c->short_read ||
				!write_value(refire, w, name, type, &value))
				return false;
		}
		i = next;
	}
	return true;
}

/* ---- events of the runtime ---- */

/* Events with arrays, and older ones with fewer fields than the description, are left to JSON. */
static bool write_clr_fields(struct refire *refire, struct spoor_writer *w,
	const struct clr_event *clr, struct cursor *c)
{
	for (uint32_t i = 0; i < clr->field_count; i++) {
		uint8_t type = clr_field_type(&clr->fields[i]);
		struct event_value value;
		if (!type || w->field_count + ORIGIN_MAX >= SPOOR_WRITER_FIELDS ||
			!event_value_read(type, c, &value) || c->short_read ||
			!write_value(refire, w, clr_field_name(&clr->fields[i]), type, &value))
			return false;
	}
	return true;
}

/* ---- one event ---- */

static void write_origin(struct spoor_writer *w, const struct refire_origin *origin)
{
	struct spoor_guid ids[2] = { 0 };

	spoor_write_u32(w, "origin_pid", origin->pid);
	spoor_write_u64(w, "origin_tid", origin->thread_id);
	spoor_write_u64(w, "origin_time_ns", origin->time_ns);
	/* All events have them, with zeros: an event that has them at times would be two kinds of event. */
	if (origin->activity)
		memcpy(ids, origin->activity, sizeof(ids));
	spoor_write_guid(w, "origin_activity_id", &ids[0]);
	spoor_write_guid(w, "origin_related_activity_id", &ids[1]);
}

/* The payload as JSON: {"fields":{...}}. False: no memory. */
static bool payload_to_json(struct refire *refire, const struct trace *trace,
	const struct event *event)
{
	struct json j = { .out = &refire->json };

	bytes_reset(&refire->json);
	json_object(&j, NULL);
	(void)event_text_json(&j, trace,
		event); /* a payload that does not fit has its first fields */
	json_end(&j);
	bytes_u8(&refire->json, 0);
	return !refire->json.failed;
}

static void count_kind(struct refire *refire, uint32_t schema_index)
{
	while (refire->kinds.count <= schema_index)
		if (!vec_add(&refire->kinds, 0))
			return;
	if (refire->kinds.items[schema_index] != KIND_UNKNOWN)
		return;
	refire->counts.kinds++;
	refire->kinds.items[schema_index] = KIND_KNOWN;
}

static bool is_refused(const struct refire *refire, uint32_t schema_index)
{
	return schema_index < refire->kinds.count &&
	       refire->kinds.items[schema_index] == KIND_REFUSED;
}

static void fire_json(struct refire *refire, const struct trace *trace, const struct schema *schema,
	const struct event *event, const struct refire_origin *origin, uint8_t level)
{
	static const struct spoor_guid none;
	struct spoor_guid ids[2] = { none, none };
	const char *source = trace_text(trace, schema->provider);
	bool (*const enabled[])(void) = { json_source_LogAlways_enabled,
		json_source_Critical_enabled, json_source_Error_enabled,
		json_source_Warning_enabled, json_source_Informational_enabled,
		json_source_Verbose_enabled };
	void (*const fire[])(const char *, const char *, uint32_t, const char *, uint32_t, uint64_t,
		uint64_t, const struct spoor_guid *,
		const struct spoor_guid *) = { json_source_LogAlways, json_source_Critical,
		json_source_Error, json_source_Warning, json_source_Informational,
		json_source_Verbose };

	if (level > SPOOR_VERBOSE)
		level = SPOOR_VERBOSE;
	if (!enabled[level]()) {
		refire->counts.unheard++;
		return;
	}
	if (!payload_to_json(refire, trace, event)) {
		refire->counts.failed++;
		return;
	}
	if (origin->activity)
		memcpy(ids, origin->activity, sizeof(ids));
	fire[level](source, bytes_z(&refire->name), schema->event_id,
		(const char *)refire->json.data, origin->pid, origin->thread_id, origin->time_ns,
		&ids[0], &ids[1]);
	refire->counts.fired++;
}

/*
 * Fields that turn out not to be expressible are found while they are written, so such an event
 * is written again, into another writer, with its payload as JSON.
 */
static void fire_typed(struct refire *refire, const struct trace *trace,
	const struct schema *schema, const struct event *event, const struct refire_origin *origin,
	uint8_t level)
{
	struct spoor_event_source *source = source_of(refire, trace, schema);
	uint64_t keywords = event->labels && (event->labels->which & EVENT_LABEL_KEYWORDS)
				    ? event->labels->keywords
				    : schema->keywords;
	struct cursor c = cursor_of(event->payload, event->payload_size);
	const char *name = bytes_z(&refire->name);
	struct clr_event clr;
	struct spoor_writer w;
	bool whole = false;

	if (!source || is_refused(refire, event->schema_index)) {
		refire->counts.failed++;
		return;
	}
	if (!spoor_source_begin(source, name, level, keywords, &w)) {
		refire->counts.unheard++;
		return;
	}
	if (schema->fields.count)
		whole = write_fields(refire, trace, &w, schema, 0, schema->fields.count,
			payload_layout_of(schema, event->payload, event->payload_size), &c, 0);
	else if (clr_event_find(schema->provider_kind, schema->event_id, schema->version, &clr))
		whole = write_clr_fields(refire, &w, &clr, &c);
	else
		whole = !event->payload_size;
	if (!whole) {
		spoor_source_cancel(&w);
		if (!payload_to_json(refire, trace, event) ||
			!spoor_source_begin(source, name, level, keywords, &w)) {
			refire->counts.failed++;
			return;
		}
		spoor_write_text(&w, "Payload", (const char *)refire->json.data);
		refire->counts.as_json++;
	}
	write_origin(&w, origin);
	int result = spoor_source_end(&w);
	if (result == -ENOTSUP && event->schema_index < refire->kinds.count)
		refire->kinds.items[event->schema_index] = KIND_REFUSED;
	if (result < 0)
		refire->counts.failed++;
	else if (result == SPOOR_NOT_ENABLED)
		refire->counts.unheard++;
	else
		refire->counts.fired++;
}

void refire_event(struct refire *refire, const struct trace *trace, const struct schema *schema,
	const struct event *event, uint32_t pid)
{
	const struct thread *thread = &trace->threads.items[event->thread_index];
	const struct refire_origin origin = {
		.pid = pid,
		.thread_id = event->thread_index ? thread->tid : 0,
		.time_ns = event->time_ns,
		.activity = event->activity,
	};
	uint8_t level = event->labels && (event->labels->which & EVENT_LABEL_LEVEL)
				? event->labels->level
				: schema->level;
	struct clr_event clr;

	count_kind(refire, event->schema_index);
	bytes_reset(&refire->name);
	/* "GCStart_V2", as LTTng's tracepoints of the runtime are called. */
	if (!schema->name &&
		clr_event_find(schema->provider_kind, schema->event_id, schema->version, &clr))
		bytes_text(&refire->name, clr.symbol);
	else
		event_text_bare_name(&refire->name, trace, event);
	if (refire->name.failed)
		refire->counts.failed++;
	else if (refire->is_json)
		fire_json(refire, trace, schema, event, &origin, level);
	else
		fire_typed(refire, trace, schema, event, &origin, level);
}
