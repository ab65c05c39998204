/* See header_event.h. */
#include "formats/header_event.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/utf8.h"
#include "trace/foreign_schema.h"
#include "trace/schema.h"
#include "trace/trace.h"

enum {
	FLAG_LITTLE_ENDIAN = 2,
	FLAG_EXTENSION = 4,
};

enum {
	EXTENSION_DESCRIPTION = 1,
	EXTENSION_ACTIVITY = 2,
	EXTENSION_KIND = 0x7fff,
	EXTENSION_MORE = 0x8000,
};

enum encoding {
	ENCODING_STRUCT = 1,
	ENCODING_VALUE8 = 2,
	ENCODING_VALUE16 = 3,
	ENCODING_VALUE32 = 4,
	ENCODING_VALUE64 = 5,
	ENCODING_VALUE128 = 6,
	ENCODING_ZERO_TEXT8 = 7,
	ENCODING_ZERO_TEXT16 = 8,
	ENCODING_ZERO_TEXT32 = 9,
	ENCODING_COUNTED8 = 10,
	ENCODING_COUNTED16 = 11,
	ENCODING_COUNTED32 = 12,
	ENCODING_BINARY = 13, /* as ENCODING_COUNTED8, for bytes */
	ENCODING_MASK = 0x1f,
	ENCODING_COUNT = 0x20, /* an array; the description has the count */
	ENCODING_ARRAY = 0x40, /* an array; the payload has the count */
	ENCODING_FORMAT = 0x80,
};

enum format {
	FORMAT_SIGNED = 2,
	FORMAT_ERRNO = 4,
	FORMAT_TIME = 6,
	FORMAT_BOOLEAN = 7,
	FORMAT_FLOAT = 8,
	FORMAT_BYTES = 9,
	FORMAT_TEXT8 = 10, /* ISO 8859-1 */
	FORMAT_TEXT = 11,
	FORMAT_UUID = 15,
	FORMAT_PORT = 16, /* network byte order */
	FORMAT_MASK = 0x7f,
	FORMAT_TAG = 0x80,
};

#define UUID_SIZE  16u
#define ALL_FIELDS UINT32_MAX

/* ---- the event ---- */

bool header_event_read(const uint8_t *data, size_t size, struct header_event *ret_event)
{
	struct cursor c = cursor_of(data, size);
	uint8_t flags = cursor_u8(&c);
	struct header_event event = { 0 };

	event.version = cursor_u8(&c);
	event.id = cursor_u16(&c);
	event.tag = cursor_u16(&c);
	event.opcode = cursor_u8(&c);
	event.level = cursor_u8(&c);
	if (c.short_read || !(flags & FLAG_LITTLE_ENDIAN))
		return false;
	for (bool more = flags & FLAG_EXTENSION; more;) {
		size_t length = cursor_u16(&c);
		unsigned kind = cursor_u16(&c);
		const uint8_t *at = cursor_take(&c, length);
		if (!at)
			return false;
		more = kind & EXTENSION_MORE;
		if ((kind & EXTENSION_KIND) == EXTENSION_DESCRIPTION && !event.description) {
			event.description = at;
			event.description_size = length;
		} else if ((kind & EXTENSION_KIND) == EXTENSION_ACTIVITY && length >= UUID_SIZE) {
			event.activity = at;
			event.activity_size = length < 2 * UUID_SIZE ? UUID_SIZE : 2 * UUID_SIZE;
		}
	}
	event.payload = c.at;
	event.payload_size = cursor_left(&c);
	*ret_event = event;
	return true;
}

/* The first three numbers of a guid are little-endian in a file. */
static void put_guid(uint8_t *out, const uint8_t *uuid)
{
	static const uint8_t order[UUID_SIZE] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14,
		15 };

	for (size_t i = 0; i < UUID_SIZE; i++)
		out[i] = uuid[order[i]];
}

bool header_event_activity(const struct header_event *event,
	uint8_t ret_activity[EVENT_ACTIVITY_SIZE])
{
	if (!event->activity)
		return false;
	memset(ret_activity, 0, EVENT_ACTIVITY_SIZE);
	for (size_t at = 0; at < event->activity_size; at += UUID_SIZE)
		put_guid(ret_activity + at, event->activity + at);
	return true;
}

/* Hexadecimal digits as the kernel's names have them: lower-case, without a prefix. */
static size_t read_hex(const char *text, unsigned digits_max, uint64_t *ret_value)
{
	size_t len = strspn(text, "0123456789abcdef");
	uint64_t value = 0;

	if (len > digits_max)
		return 0;
	for (size_t i = 0; i < len; i++)
		value = value << 4 |
			(uint64_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
	*ret_value = value;
	return len;
}

size_t header_event_name(const char *tracepoint, uint8_t *ret_level, uint64_t *ret_keywords)
{
	size_t len = strlen(tracepoint);

	/* The last "_L": the provider may have one too. */
	while (len-- > 1) {
		const char *at = tracepoint + len;
		uint64_t level, keywords;
		if (at[0] != '_' || at[1] != 'L')
			continue;
		size_t digits = read_hex(at + 2, 2, &level);
		if (!digits || at[2 + digits] != 'K')
			continue;
		at += 3 + digits;
		digits = read_hex(at, 16, &keywords);
		/* Options follow: a capital letter each. */
		if (!digits || (at[digits] && (at[digits] < 'A' || at[digits] > 'Z')))
			continue;
		*ret_level = (uint8_t)level;
		*ret_keywords = keywords;
		return len;
	}
	return 0;
}

/* ---- the description ---- */

static uint8_t value_type(unsigned encoding, unsigned format)
{
	bool is_signed = format == FORMAT_SIGNED || format == FORMAT_ERRNO || format == FORMAT_TIME;

	switch (encoding) {
	case ENCODING_STRUCT:
		return FIELD_OBJECT;
	case ENCODING_VALUE8:
		return format == FORMAT_BOOLEAN ? FIELD_BOOL8
		       : format == FORMAT_TEXT8 ? FIELD_CHAR16
		       : is_signed              ? FIELD_I8
						: FIELD_U8;
	case ENCODING_VALUE16:
		return format == FORMAT_TEXT ? FIELD_CHAR16 : is_signed ? FIELD_I16 : FIELD_U16;
	case ENCODING_VALUE32:
		return format == FORMAT_BOOLEAN ? FIELD_BOOL
		       : format == FORMAT_FLOAT ? FIELD_F32
		       : is_signed              ? FIELD_I32
						: FIELD_U32;
	case ENCODING_VALUE64:
		return format == FORMAT_FLOAT ? FIELD_F64 : is_signed ? FIELD_I64 : FIELD_U64;
	case ENCODING_VALUE128:
		return format == FORMAT_UUID ? FIELD_GUID : FIELD_ARRAY;
	case ENCODING_ZERO_TEXT8:
	case ENCODING_COUNTED8:
		return format == FORMAT_BYTES ? FIELD_ARRAY : FIELD_TEXT16;
	case ENCODING_ZERO_TEXT16:
	case ENCODING_ZERO_TEXT32:
	case ENCODING_COUNTED16:
	case ENCODING_COUNTED32:
		return FIELD_TEXT16;
	case ENCODING_BINARY:
		return FIELD_ARRAY;
	default:
		return 0;
	}
}

static uint32_t text_until(struct trace *trace, const char *text, size_t len, char end)
{
	const char *found = len ? memchr(text, end, len) : NULL;

	return strtab_add(&trace->strings, text, found ? (size_t)(found - text) : len);
}

static bool add_field(struct schema *schema, uint32_t name, const struct header_step *step,
	uint16_t depth)
{
	struct field field = { .name = name, .type = step->type, .depth = depth };
	struct field inner = { .type = step->type, .depth = (uint16_t)(depth + 1) };
	bool is_nested = step->is_array && step->type == FIELD_ARRAY;

	if (step->is_array) {
		field.type = FIELD_ARRAY;
		field.element = step->type;
		inner.element = FIELD_U8;
	} else if (step->type == FIELD_ARRAY) {
		field.element = FIELD_U8;
	}
	return vec_add(&schema->fields, field) && (!is_nested || vec_add(&schema->fields, inner));
}

/* Reads `count` fields; 0 or a negative errno. */
static int read_fields(struct cursor *c, uint32_t count, uint16_t depth, struct trace *trace,
	struct schema *schema, struct header_layout *layout)
{
	for (uint32_t i = 0; i < count; i++) {
		size_t name_len;
		if (!cursor_left(c))
			return count == ALL_FIELDS ? 0 : -EBADMSG;
		const char *name = cursor_stringz(c, &name_len);
		uint8_t encoding = cursor_u8(c);
		uint8_t format = encoding & ENCODING_FORMAT ? cursor_u8(c) : 0;
		if (format & FORMAT_TAG)
			cursor_skip(c, sizeof(uint16_t));
		struct header_step step = { .encoding = encoding & ENCODING_MASK,
			.format = format & FORMAT_MASK,
			.is_array = encoding & (ENCODING_COUNT | ENCODING_ARRAY) };
		if (encoding & ENCODING_COUNT)
			step.count = cursor_u16(c);
		step.type = value_type(step.encoding, step.format);
		if (c->short_read || !step.type || layout->steps.count == HEADER_EVENT_FIELDS_MAX ||
			(encoding & ENCODING_COUNT && (!step.count || encoding & ENCODING_ARRAY)))
			return -EBADMSG;
		if (!add_field(schema, text_until(trace, name, name_len, ';'), &step, depth) ||
			!vec_add(&layout->steps, step))
			return -ENOMEM;
		uint32_t at = layout->steps.count - 1;
		if (step.encoding == ENCODING_STRUCT) {
			if (!step.format || depth == HEADER_EVENT_DEPTH_MAX)
				return -EBADMSG;
			int result = read_fields(c, step.format, (uint16_t)(depth + 1), trace,
				schema, layout);
			if (result < 0)
				return result;
		}
		layout->steps.items[at].end = (uint16_t)layout->steps.count;
	}
	return 0;
}

static int describe(const struct header_event *event, struct trace *trace, struct schema *schema,
	struct header_layout *layout)
{
	struct cursor c = cursor_of(event->description, event->description_size);
	struct header_step bytes = { .type = FIELD_ARRAY };
	size_t name_len;

	layout->has_description = event->description != NULL;
	if (!layout->has_description) {
		schema->name = trace_add_text(trace, "Undescribed");
		return add_field(schema, trace_add_text(trace, "Payload"), &bytes, 0) ? 0 : -ENOMEM;
	}
	const char *name = cursor_stringz(&c, &name_len);
	if (!name)
		return -EBADMSG;
	schema->name = text_until(trace, name, name_len, ';');
	if (!schema->name)
		schema->name = trace_add_text(trace, "Unnamed");
	return read_fields(&c, ALL_FIELDS, 0, trace, schema, layout);
}

int header_layout_make(const struct header_event *event, uint32_t provider, uint64_t keywords,
	struct trace *trace, struct header_layout *ret_layout)
{
	struct schema schema = { .provider = provider,
		.event_id = event->id,
		.version = event->version,
		.opcode = event->opcode,
		.level = event->level,
		.keywords = keywords };
	struct header_layout layout = { 0 };
	int result = describe(event, trace, &schema, &layout);

	if (result < 0)
		schema_done(&schema);
	else
		result = foreign_schema_place(trace, &schema, event->id != 0, &layout.schema_index);
	if (result < 0)
		header_layout_done(&layout);
	else
		*ret_layout = layout;
	return result;
}

void header_layout_done(struct header_layout *layout)
{
	vec_done(&layout->steps);
}

/* ---- the payload ---- */

static void put_char(struct bytes *out, uint32_t c)
{
	if (c >= 0x10000 && c < 0x110000) {
		bytes_u16(out, (uint16_t)(0xd800 + ((c - 0x10000) >> 10)));
		bytes_u16(out, (uint16_t)(0xdc00 + ((c - 0x10000) & 0x3ff)));
	} else {
		/* a NUL inside would end the text */
		bytes_u16(out, c && c < 0x10000 ? (uint16_t)c : 0xfffd);
	}
}

static uint32_t read_unit(struct cursor *c, unsigned size)
{
	return size == 1 ? cursor_u8(c) : size == 2 ? cursor_u16(c) : cursor_u32(c);
}

static void put_text8(struct bytes *out, const uint8_t *text, size_t len, unsigned format)
{
	if (format != FORMAT_TEXT8) {
		bytes_utf16z(out, (const char *)text, len, EVENT_PAYLOAD_MAX / 2);
		return;
	}
	for (size_t i = 0; i < len; i++)
		put_char(out, text[i]);
	bytes_u16(out, 0);
}

/* Text with a zero at its end, or with a count before it; units of 1, 2 or 4 bytes. */
static void put_text(struct cursor *c, const struct header_step *step, unsigned size,
	bool is_counted, struct bytes *out)
{
	size_t count = is_counted ? cursor_u16(c) : 0;

	if (size == 1) {
		const char *text = is_counted ? (const char *)cursor_take(c, count)
					      : cursor_stringz(c, &count);
		if (text && step->type == FIELD_ARRAY) {
			bytes_u16(out, (uint16_t)count);
			bytes_add(out, text, count);
		} else if (text) {
			put_text8(out, (const uint8_t *)text, count, step->format);
		}
		return;
	}
	for (size_t i = 0; (!is_counted || i < count) && !c->short_read; i++) {
		uint32_t unit = read_unit(c, size);
		if (!unit && !is_counted)
			break;
		if (!c->short_read && size == 2)
			bytes_u16(out, unit ? (uint16_t)unit : 0xfffd);
		else if (!c->short_read)
			put_char(out, unit);
	}
	bytes_u16(out, 0);
}

static void put_value(struct cursor *c, const struct header_step *step, struct bytes *out)
{
	static const uint8_t sizes[] = {
		[ENCODING_VALUE8] = 1,
		[ENCODING_VALUE16] = 2,
		[ENCODING_VALUE32] = 4,
		[ENCODING_VALUE64] = 8,
		[ENCODING_VALUE128] = 16,
	};
	size_t size = sizes[step->encoding];
	const uint8_t *value = cursor_take(c, size);

	if (!value)
		return;
	if (step->type == FIELD_GUID) {
		uint8_t guid[UUID_SIZE];
		put_guid(guid, value);
		bytes_add(out, guid, sizeof(guid));
		return;
	}
	if (step->type == FIELD_ARRAY)
		bytes_u16(out, (uint16_t)size);
	if (step->encoding == ENCODING_VALUE16 && step->format == FORMAT_PORT) {
		bytes_u8(out, value[1]);
		bytes_u8(out, value[0]);
		return;
	}
	bytes_add(out, value, size);
	if (step->encoding == ENCODING_VALUE8 && step->type == FIELD_CHAR16)
		bytes_u8(out, 0);
}

static void put_steps(const struct header_layout *layout, uint32_t first, uint32_t end,
	struct cursor *c, struct bytes *out);

static void put_one(const struct header_layout *layout, uint32_t at, struct cursor *c,
	struct bytes *out)
{
	const struct header_step *step = &layout->steps.items[at];

	switch (step->encoding) {
	case ENCODING_STRUCT:
		put_steps(layout, at + 1, step->end, c, out);
		break;
	case ENCODING_ZERO_TEXT8:
	case ENCODING_COUNTED8:
	case ENCODING_BINARY:
		put_text(c, step, 1, step->encoding != ENCODING_ZERO_TEXT8, out);
		break;
	case ENCODING_ZERO_TEXT16:
	case ENCODING_COUNTED16:
		put_text(c, step, 2, step->encoding == ENCODING_COUNTED16, out);
		break;
	case ENCODING_ZERO_TEXT32:
	case ENCODING_COUNTED32:
		put_text(c, step, 4, step->encoding == ENCODING_COUNTED32, out);
		break;
	default:
		put_value(c, step, out);
		break;
	}
}

/* Each element has a byte at least, so the loops end with the payload. */
static void put_steps(const struct header_layout *layout, uint32_t first, uint32_t end,
	struct cursor *c, struct bytes *out)
{
	for (uint32_t at = first; at < end && !c->short_read; at = layout->steps.items[at].end) {
		const struct header_step *step = &layout->steps.items[at];
		unsigned count = 1;
		if (step->is_array) {
			count = step->count ? step->count : cursor_u16(c);
			bytes_u16(out, (uint16_t)count);
		}
		for (unsigned i = 0; i < count && !c->short_read; i++)
			put_one(layout, at, c, out);
	}
}

bool header_layout_payload(const struct header_layout *layout, const struct header_event *event,
	struct bytes *payload)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);
	size_t before = payload->len;

	if (layout->has_description) {
		put_steps(layout, 0, layout->steps.count, &c, payload);
	} else if (event->payload_size <= UINT16_MAX) {
		bytes_u16(payload, (uint16_t)event->payload_size);
		bytes_add(payload, event->payload, event->payload_size);
	}
	return !c.short_read && !payload->failed && payload->len - before <= EVENT_PAYLOAD_MAX;
}
