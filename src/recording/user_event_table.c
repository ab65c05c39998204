/* See user_event_table.h. */
#include "recording/user_event_table.h"

#include <errno.h>
#include <string.h>

#include "formats/dotnet_user_event.h"
#include "nettrace/nettrace_metadata.h"
#include "trace/clr_event.h"
#include "trace/foreign_schema.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define RAW_ID_SIZE        2u
#define HEADER_FIELDS      6u
#define PROCESS_EVENTS_MAX (1u << 18)

void user_event_table_init(struct user_event_table *table, struct trace *trace)
{
	*table = (struct user_event_table){ .trace = trace };
}

/* ---- tracepoints ---- */

static bool is_header(const struct tracepoint_format *format)
{
	static const struct {
		const char *name;
		uint8_t size;
	} fields[HEADER_FIELDS] = { { "eventheader_flags", 1 }, { "version", 1 }, { "id", 2 },
		{ "tag", 2 }, { "opcode", 1 }, { "level", 1 } };
	uint32_t offset = format->count ? format->fields[0].offset : 0;

	for (uint32_t i = 0; i < HEADER_FIELDS; i++) {
		if (!tracepoint_format_has(format, i, fields[i].name) ||
			format->fields[i].size != fields[i].size ||
			format->fields[i].offset != offset)
			return false;
		offset += fields[i].size;
	}
	return true;
}

/* The type of a field's value or of its elements. */
static uint8_t number_type(const struct format_field *field)
{
	static const uint8_t types[4][2] = { { FIELD_U8, FIELD_I8 }, { FIELD_U16, FIELD_I16 },
		{ FIELD_U32, FIELD_I32 }, { FIELD_U64, FIELD_I64 } };
	uint32_t bytes = field->element_bytes ? field->element_bytes : field->size;

	if (field->is_bool)
		return FIELD_BOOL8;
	return types[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3][field->is_signed];
}

static int describe_plain(struct user_event_table *table, const char *name,
	const struct tracepoint_format *format, uint32_t *ret_schema)
{
	struct trace *trace = table->trace;
	struct schema schema = { .provider = trace_add_text(trace, "user_events"),
		.name = trace_add_text(trace, name),
		.level = 4 };

	for (uint32_t i = 0; i < format->count; i++) {
		const struct format_field *field = &format->fields[i];
		struct field made = { .name = strtab_add(&trace->strings, field->name,
					      field->name_len) };
		made.type = number_type(field);
		if (field->is_text) {
			made.type = FIELD_TEXT16;
		} else if (field->element_bytes) {
			made.element = made.type;
			made.type = FIELD_ARRAY;
		}
		if (!vec_add(&schema.fields, made)) {
			schema_done(&schema);
			return -ENOMEM;
		}
	}
	return foreign_schema_place(trace, &schema, false, ret_schema);
}

int user_event_table_add(struct user_event_table *table, const char *name, const char *provider,
	const struct tracepoint_format *format)
{
	struct user_event_tracepoint made = { .id = format->id,
		.name = trace_add_text(table->trace, name),
		.is_own = provider != NULL,
		.field_first = table->fields.count,
		.field_count = format->count };
	uint8_t level;
	size_t len = is_header(format) ? header_event_name(name, &level, &made.keywords) : 0;

	if (map_get(&table->by_id, format->id))
		return -EEXIST;
	if (table->tracepoints.count == USER_TRACEPOINTS_MAX)
		return -ENOSPC;
	if (len) {
		made.kind = USER_TRACEPOINT_HEADER;
		made.provider = trace_add_foreign_provider(table->trace, name, len);
	} else if (dotnet_user_event_is(format)) {
		made.kind = USER_TRACEPOINT_DOTNET;
		made.provider =
			provider ? trace_add_text(table->trace, provider)
				 : trace_add_foreign_provider(table->trace, name, strlen(name));
	} else {
		int result = describe_plain(table, name, format, &made.schema_index);
		if (result < 0)
			return result;
	}
	if (!vec_reserve(&table->fields, format->count) || !vec_add(&table->tracepoints, made))
		return -ENOMEM;
	for (uint32_t i = 0; i < format->count; i++) {
		struct format_field field = format->fields[i];
		field.name = NULL; /* the description is borrowed */
		table->fields.items[table->fields.count++] = field;
	}
	return map_put(&table->by_id, format->id, table->tracepoints.count) ? 0 : -ENOMEM;
}

static uint32_t find_tracepoint(const struct user_event_table *table, const uint8_t *raw,
	size_t size)
{
	if (size < RAW_ID_SIZE)
		return 0;
	return map_get(&table->by_id, (uint32_t)(raw[0] | raw[1] << 8));
}

bool user_event_table_has(const struct user_event_table *table, const uint8_t *raw, size_t size)
{
	return find_tracepoint(table, raw, size) != 0;
}

/* ---- EventHeader ---- */

/* All that tells the layout of an event from others. */
static void make_key(struct user_event_table *table, uint32_t tracepoint,
	const struct header_event *event)
{
	bytes_reset(&table->key);
	bytes_u32(&table->key, tracepoint);
	bytes_u8(&table->key, event->version);
	bytes_u16(&table->key, event->id);
	bytes_u8(&table->key, event->opcode);
	bytes_u8(&table->key, event->level);
	bytes_u8(&table->key, event->description != NULL);
	if (event->description)
		bytes_add(&table->key, event->description, event->description_size);
}

/* The layout of an event, made at the first event of its kind. NULL: counted. */
static const struct header_layout *find_layout(struct user_event_table *table, uint32_t tracepoint,
	const struct header_event *event)
{
	struct user_event_layout made = { .tracepoint = tracepoint,
		.key_first = (uint32_t)table->keys.len,
		.key_size = (uint32_t)table->key.len };
	uint64_t hash = hash_bytes(table->key.data, table->key.len);

	for (struct map_walk w = map_find(&table->by_layout, hash); w.value; map_next(&w)) {
		const struct user_event_layout *each = &table->layouts.items[w.value - 1];
		if (each->key_size == table->key.len &&
			memcmp(table->keys.data + each->key_first, table->key.data,
				each->key_size) == 0)
			return &each->layout;
	}
	if (table->layouts.count == USER_EVENT_LAYOUTS_MAX) {
		table->without_layout++;
		return NULL;
	}
	const struct user_event_tracepoint *of = &table->tracepoints.items[tracepoint];
	int result =
		header_layout_make(event, of->provider, of->keywords, table->trace, &made.layout);
	if (result == 0) {
		bytes_add(&table->keys, table->key.data, table->key.len);
		if (!table->keys.failed && vec_add(&table->layouts, made)) {
			/* without memory another one is made for the next event */
			(void)map_add(&table->by_layout, hash, table->layouts.count);
			return &vec_last(&table->layouts)->layout;
		}
		header_layout_done(&made.layout);
	}
	table->malformed++;
	return NULL;
}

static bool decode_header(struct user_event_table *table, uint32_t tracepoint, const uint8_t *raw,
	size_t size, struct user_event *ret_event)
{
	uint32_t offset =
		table->fields.items[table->tracepoints.items[tracepoint].field_first].offset;
	struct header_event event;

	if (size < offset || !header_event_read(raw + offset, size - offset, &event)) {
		table->malformed++;
		return false;
	}
	make_key(table, tracepoint, &event);
	const struct header_layout *layout = find_layout(table, tracepoint, &event);
	if (!layout)
		return false;
	if (!header_layout_payload(layout, &event, &table->payload)) {
		table->malformed++;
		return false;
	}
	ret_event->schema_index = layout->schema_index;
	ret_event->activity =
		header_event_activity(&event, table->activity) ? table->activity : NULL;
	return true;
}

/* ---- .NET ---- */

/* The schema of an event without metadata: those of the runtime are known, of its newest version. */
static uint32_t known_schema(struct user_event_table *table, uint32_t provider, uint16_t id)
{
	struct schema schema = { .provider = provider, .event_id = id };
	enum provider_kind kind = provider_kind_of(trace_text(table->trace, provider));
	struct clr_event event;
	struct clr_identity identity;
	uint32_t index;

	schema.provider_kind = (uint8_t)kind;
	if (clr_event_provider(kind) && clr_event_find(kind, id, UINT8_MAX, &event) &&
		clr_event_find_symbol(kind, event.symbol, &identity)) {
		schema.version = identity.version;
		schema.level = identity.level;
		schema.keywords = identity.keywords;
	}
	return foreign_schema_place(table->trace, &schema, true, &index) == 0 ? index : 0;
}

static uint32_t find_dotnet_schema(struct user_event_table *table, uint32_t tracepoint,
	uint32_t pid, const struct dotnet_user_event *event)
{
	uint32_t provider = table->tracepoints.items[tracepoint].provider;
	uint64_t key = hash_u64((uint64_t)pid << 32 | (uint64_t)tracepoint << 16 | event->id);
	uint32_t schema_index = event->metadata ? 0 : map_get(&table->by_process, key);
	size_t size;
	const uint8_t *record = schema_index ? NULL : dotnet_user_event_record(event, &size);

	if (schema_index)
		return schema_index;
	if (record)
		(void)nettrace_schema_of_record(table->trace, provider, record, size,
			&schema_index);
	if (!schema_index) {
		schema_index = known_schema(table, provider, event->id);
		table->undescribed +=
			!clr_event_provider(provider_kind_of(trace_text(table->trace, provider)));
	}
	/* without memory, and beyond the limit, later events have no names */
	if (schema_index && table->by_process.count < PROCESS_EVENTS_MAX)
		(void)map_put(&table->by_process, key, schema_index);
	return schema_index;
}

static bool decode_dotnet(struct user_event_table *table, uint32_t tracepoint, uint32_t pid,
	const uint8_t *raw, size_t size, struct user_event *ret_event)
{
	struct dotnet_user_event event;

	if (!dotnet_user_event_read(
		    &table->fields.items[table->tracepoints.items[tracepoint].field_first], raw,
		    size, &event)) {
		table->malformed++;
		return false;
	}
	ret_event->schema_index = find_dotnet_schema(table, tracepoint, pid, &event);
	bytes_add(&table->payload, event.payload, event.payload_size);
	memcpy(table->activity, event.activity, sizeof(table->activity));
	ret_event->activity = event.has_activity ? table->activity : NULL;
	return ret_event->schema_index != 0;
}

/* ---- fields that the kernel describes ---- */

static bool put_field(const struct format_field *field, const uint8_t *raw, size_t size,
	struct bytes *payload)
{
	size_t length;
	const uint8_t *at = format_field_bytes(field, raw, size, &length);

	if (!at)
		return false;
	if (field->is_text) {
		bytes_utf16z(payload, (const char *)at, strnlen((const char *)at, length),
			EVENT_PAYLOAD_MAX / 2);
		return true;
	}
	if (field->element_bytes) {
		bytes_u16(payload, (uint16_t)(length / field->element_bytes));
		length -= length % field->element_bytes;
	}
	bytes_add(payload, at, length);
	return true;
}

static bool decode_plain(struct user_event_table *table,
	const struct user_event_tracepoint *tracepoint, const uint8_t *raw, size_t size,
	struct user_event *ret_event)
{
	for (uint32_t i = 0; i < tracepoint->field_count; i++)
		if (!put_field(&table->fields.items[tracepoint->field_first + i], raw, size,
			    &table->payload) ||
			table->payload.len > EVENT_PAYLOAD_MAX) {
			table->malformed++;
			return false;
		}
	ret_event->schema_index = tracepoint->schema_index;
	ret_event->activity = NULL;
	return true;
}

bool user_event_table_decode(struct user_event_table *table, uint32_t pid, const uint8_t *raw,
	size_t size, struct user_event *ret_event)
{
	uint32_t index = find_tracepoint(table, raw, size);
	bool decoded = false;

	if (!index--)
		return false;
	const struct user_event_tracepoint *tracepoint = &table->tracepoints.items[index];

	bytes_reset(&table->payload);
	switch ((enum user_tracepoint_kind)tracepoint->kind) {
	case USER_TRACEPOINT_HEADER:
		decoded = decode_header(table, index, raw, size, ret_event);
		break;
	case USER_TRACEPOINT_DOTNET:
		decoded = decode_dotnet(table, index, pid, raw, size, ret_event);
		break;
	case USER_TRACEPOINT_PLAIN:
		decoded = decode_plain(table, tracepoint, raw, size, ret_event);
		break;
	}
	if (decoded && table->payload.failed) {
		table->malformed++;
		decoded = false;
	}
	ret_event->tracepoint = tracepoint->name;
	ret_event->is_own = tracepoint->is_own;
	ret_event->payload = table->payload.data;
	ret_event->payload_size = (uint32_t)table->payload.len;
	return decoded;
}

void user_event_table_done(struct user_event_table *table)
{
	vec_each(each, &table->layouts)
		header_layout_done(&each->layout);
	vec_done(&table->layouts);
	vec_done(&table->tracepoints);
	vec_done(&table->fields);
	bytes_done(&table->keys);
	bytes_done(&table->key);
	bytes_done(&table->payload);
	map_done(&table->by_id);
	map_done(&table->by_layout);
	map_done(&table->by_process);
}
