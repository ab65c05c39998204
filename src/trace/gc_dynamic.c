/*
 * The table is the collectors' own list; an event's fields are one text, parsed as they are read.
 */
#include "trace/gc_dynamic.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/text.h"

const struct gc_dynamic_event gc_dynamic_events[] = {
#define GC_DYNAMIC(symbol, version_, level, keyword, what_, ...) \
	{ .name = #symbol, .version = (version_), .what = (what_), .fields = "" #__VA_ARGS__ },
#include "gc/gc_events.def"
};
const size_t gc_dynamic_event_count = sizeof(gc_dynamic_events) / sizeof(*gc_dynamic_events);

static const struct {
	const char *word;
	enum field_type type;
	uint8_t size;
} types[] = {
	{ "u8", FIELD_U8, 1 },
	{ "u16", FIELD_U16, 2 },
	{ "u32", FIELD_U32, 4 },
	{ "u64", FIELD_U64, 8 },
	{ "i8", FIELD_I8, 1 },
	{ "i16", FIELD_I16, 2 },
	{ "i32", FIELD_I32, 4 },
	{ "i64", FIELD_I64, 8 },
	{ "f32", FIELD_F32, 4 },
	{ "f64", FIELD_F64, 8 },
	{ "ptr", FIELD_U64, 8 },
	{ "size", FIELD_U64, 8 },
	{ "text16", FIELD_TEXT16, 2 },
};

/* "SpoorGCPause" and, from version 2 on, "SpoorGCPause_V2". */
static bool is_name_of(const char *name, const char *symbol)
{
	size_t len = strlen(symbol);

	if (strncmp(name, symbol, len) != 0)
		return false;
	if (!name[len])
		return true;
	if (strncmp(name + len, "_V", 2) != 0 || !name[len + 2])
		return false;
	return name[len + 2 + strspn(name + len + 2, "0123456789")] == '\0';
}

static void open_data(const uint8_t *data, size_t size, struct gc_dynamic *event)
{
	event->data = data;
	event->size = size;
	event->at = cursor_of(data, size);
	event->next_field = "";
	event->version = size >= 2 ? cursor_u16(&event->at) : 0;
	for (size_t i = 0; i < gc_dynamic_event_count; i++) {
		if (is_name_of(event->name, gc_dynamic_events[i].name)) {
			event->event = &gc_dynamic_events[i];
			event->next_field = event->event->fields;
			break;
		}
	}
}

void gc_dynamic_open_named(const char *name, size_t name_len, const uint8_t *data, size_t size,
	struct gc_dynamic *ret_event)
{
	size_t len = name_len < GC_DYNAMIC_NAME_MAX - 1 ? name_len : GC_DYNAMIC_NAME_MAX - 1;

	memset(ret_event, 0, sizeof(*ret_event));
	if (len)
		memcpy(ret_event->name, name, len);
	open_data(data, size, ret_event);
}

/*
 * GCDynamicEvent, little-endian.
 *
 *   size      field
 *   2(n + 1)  Name           UTF-16 with a NUL
 *   4         DataSize
 *   DataSize  Data           by custom u16 version, then packed fields
 *   2         ClrInstanceID  not read: some writers leave it out
 */
int gc_dynamic_open(const uint8_t *payload, size_t size, struct gc_dynamic *ret_event)
{
	struct cursor c = cursor_of(payload, size);
	cleanup(bytes_done) struct bytes name = { 0 };
	size_t units;

	const uint8_t *text = cursor_utf16z(&c, &units);
	uint32_t data_size = cursor_u32(&c);
	const uint8_t *data = cursor_take(&c, data_size);
	if (c.short_read)
		return -EBADMSG;
	text_add_utf16(&name, text, units);
	if (name.failed)
		return -ENOMEM;
	gc_dynamic_open_named((const char *)name.data, name.len, data, data_size, ret_event);
	return 0;
}

/* Removes "(type, Name)" and the comma after it from the list; false at its end. */
static bool next_entry(const char **list, struct gc_dynamic_field *field)
{
	const char *type = *list + strspn(*list, " ,(");
	size_t type_len = strcspn(type, ",");

	if (!*type)
		return false;
	field->is_array = type_len > 1 && type[type_len - 1] == 's';
	size_t word_len = type_len - field->is_array;
	field->name = type + type_len + strspn(type + type_len, ", ");
	field->name_len = strcspn(field->name, ")");
	*list = field->name + field->name_len + (field->name[field->name_len] == ')');
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strlen(types[i].word) == word_len &&
			strncmp(types[i].word, type, word_len) == 0) {
			field->type = types[i].type;
			field->value_size = types[i].size;
			return true;
		}
	}
	return false;
}

int gc_dynamic_next(struct gc_dynamic *event, struct gc_dynamic_field *ret_field)
{
	struct gc_dynamic_field field = { 0 };

	event->rest = cursor_left(&event->at);
	/* Nothing left: an older version, which had fewer fields. */
	if (!event->rest || !next_entry(&event->next_field, &field))
		return 0;
	if (field.type == FIELD_TEXT16) {
		field.values = cursor_utf16z(&event->at, &field.count);
	} else {
		field.count = field.is_array ? cursor_u16(&event->at) : 1;
		field.values = cursor_take(&event->at, field.count * field.value_size);
	}
	if (event->at.short_read) {
		event->next_field = "";
		event->rest = 0;
		return -EBADMSG;
	}
	*ret_field = field;
	return 1;
}

static void add_value(struct cursor *c, enum field_type type, struct bytes *out)
{
	union {
		uint32_t u;
		float f;
	} single;
	union {
		uint64_t u;
		double f;
	} whole;

	switch (type) {
	case FIELD_U8:
		bytes_printf(out, "%u", cursor_u8(c));
		break;
	case FIELD_U16:
		bytes_printf(out, "%u", cursor_u16(c));
		break;
	case FIELD_U32:
		bytes_printf(out, "%" PRIu32, cursor_u32(c));
		break;
	case FIELD_U64:
		bytes_printf(out, "%" PRIu64, cursor_u64(c));
		break;
	case FIELD_I8:
		bytes_printf(out, "%d", (int8_t)cursor_u8(c));
		break;
	case FIELD_I16:
		bytes_printf(out, "%d", (int16_t)cursor_u16(c));
		break;
	case FIELD_I32:
		bytes_printf(out, "%" PRId32, (int32_t)cursor_u32(c));
		break;
	case FIELD_I64:
		bytes_printf(out, "%" PRId64, (int64_t)cursor_u64(c));
		break;
	case FIELD_F32:
		single.u = cursor_u32(c);
		text_add_f32(out, single.f);
		break;
	case FIELD_F64:
		whole.u = cursor_u64(c);
		text_add_f64(out, whole.f);
		break;
	default:
		break;
	}
}

void gc_dynamic_value(const struct gc_dynamic_field *field, struct bytes *out)
{
	struct cursor c = cursor_of(field->values, field->count * field->value_size);
	struct bytes text = { 0 };

	if (field->type == FIELD_TEXT16) {
		text_add_utf16(&text, field->values, field->count);
		bytes_text(out, "\"");
		text_add_escaped(out, (const char *)text.data, text.len);
		bytes_text(out, "\"");
		out->failed |= text.failed;
		bytes_done(&text);
		return;
	}
	if (field->is_array)
		bytes_text(out, "[");
	for (size_t i = 0; i < field->count; i++) {
		if (i)
			bytes_text(out, ",");
		add_value(&c, field->type, out);
	}
	if (field->is_array)
		bytes_text(out, "]");
}
