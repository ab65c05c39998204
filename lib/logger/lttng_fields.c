/* See lttng_fields.h. */
#include "lib/logger/lttng_fields.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/field_size.h"
#include "lib/logger/utf8_of_utf16.h"

/* ---- Description ---- */

#define INTEGER(bits, with_sign, number_base)                                             \
	{                                                                                 \
		.parent = { LTTNG_INTEGER }, .struct_size = sizeof(struct lttng_integer), \
		.size_bits = (bits), .alignment_bits = 8, .is_signed = (with_sign),       \
		.base = (number_base)                                                     \
	}
#define FLOAT(exponent, mantissa)                                                             \
	{                                                                                     \
		.parent = { LTTNG_FLOAT }, .struct_size = sizeof(struct lttng_float),         \
		.exponent_bits = (exponent), .mantissa_bits = (mantissa), .alignment_bits = 8 \
	}

static const struct lttng_integer type_i8 = INTEGER(8, 1, 10);
static const struct lttng_integer type_i16 = INTEGER(16, 1, 10);
static const struct lttng_integer type_i32 = INTEGER(32, 1, 10);
static const struct lttng_integer type_i64 = INTEGER(64, 1, 10);
static const struct lttng_integer type_u8 = INTEGER(8, 0, 10);
static const struct lttng_integer type_u16 = INTEGER(16, 0, 10);
static const struct lttng_integer type_u32 = INTEGER(32, 0, 10);
static const struct lttng_integer type_u64 = INTEGER(64, 0, 10);
static const struct lttng_integer type_pointer = INTEGER(64, 0, 16);
static const struct lttng_integer type_bits32 = INTEGER(32, 0, 16);
static const struct lttng_float type_f32 = FLOAT(8, 24);
static const struct lttng_float type_f64 = FLOAT(11, 53);
static const struct lttng_string type_text = { .parent = { LTTNG_STRING },
	.struct_size = sizeof(type_text),
	.encoding = LTTNG_ENCODING_UTF8 };
static const struct lttng_array type_guid = { .parent = { LTTNG_ARRAY },
	.struct_size = sizeof(type_guid),
	.element = &type_u8.parent,
	.length = 16 };

static const struct lttng_type_common *type_of(uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_I8:
		return &type_i8.parent;
	case SPOOR_TYPE_I16:
		return &type_i16.parent;
	case SPOOR_TYPE_I32:
		return &type_i32.parent;
	case SPOOR_TYPE_I64:
		return &type_i64.parent;
	case SPOOR_TYPE_U8:
		return &type_u8.parent;
	case SPOOR_TYPE_U16:
	case SPOOR_TYPE_CHAR16:
		return &type_u16.parent;
	case SPOOR_TYPE_BOOLEAN:
	case SPOOR_TYPE_U32:
		return &type_u32.parent;
	case SPOOR_TYPE_F32:
		return &type_f32.parent;
	case SPOOR_TYPE_F64:
		return &type_f64.parent;
	case SPOOR_TYPE_GUID:
		return &type_guid.parent;
	case SPOOR_TYPE_TEXT:
	case SPOOR_TYPE_TEXT16:
		return &type_text.parent;
	case SPOOR_TYPE_POINTER:
		return &type_pointer.parent;
	default:
		return &type_u64.parent;
	}
}

struct lttng_description {
	struct lttng_field *fields[LTTNG_FIELDS_MAX];
	size_t count;
	int error;
};

static bool name_is_taken(const struct lttng_description *to, const char *name)
{
	for (size_t i = 0; i < to->count; i++)
		if (strcmp(to->fields[i]->name, name) == 0)
			return true;
	return false;
}

/* Letters, digits and '_': babeltrace reads no trace that has other names, nor equal ones. */
static void field_add(struct lttng_description *to, const char *prefix, const char *name,
	const char *suffix, const struct lttng_type_common *type, bool no_filter)
{
	struct lttng_field *field = calloc(1, sizeof(*field));
	size_t room = strlen(prefix) + strlen(name) + strlen(suffix) + 16;
	char *text = malloc(room);

	if (!field || !text || to->count == LTTNG_FIELDS_MAX) {
		to->error = to->error ? to->error : field && text ? -E2BIG : -ENOMEM;
		free(field);
		free(text);
		return;
	}
	(void)snprintf(text, room, "%s%s%s", prefix, name[0] ? name : "field", suffix);
	for (char *at = text; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
			    (*at >= '0' && *at <= '9' && at > text)))
			*at = '_';
	size_t length = strlen(text);
	for (unsigned n = 2; name_is_taken(to, text); n++)
		(void)snprintf(text + length, room - length, "_%u", n);
	*field = (struct lttng_field){
		.struct_size = sizeof(*field), .name = text, .type = type, .no_filter = no_filter
	};
	to->fields[to->count++] = field;
}

static void sequence_add(struct lttng_description *to, const char *prefix, const char *name,
	const struct lttng_type_common *element, const struct lttng_integer *length, bool no_filter)
{
	struct lttng_sequence *type = calloc(1, sizeof(*type));
	char around[512];

	if (!type) {
		to->error = -ENOMEM;
		return;
	}
	*type = (struct lttng_sequence){
		.parent = { LTTNG_SEQUENCE }, .struct_size = sizeof(*type), .element = element
	};
	(void)snprintf(around, sizeof(around), "_%s", prefix);
	field_add(to, around, name, "_length", &length->parent, true);
	field_add(to, prefix, name, "", &type->parent, no_filter);
}

static void array_add(struct lttng_description *to, const char *prefix, const char *name,
	uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_STRUCT:
	case SPOOR_TYPE_GUID:
		sequence_add(to, prefix, name, &type_u8.parent, &type_u32, true);
		break;
	case SPOOR_TYPE_TEXT:
	case SPOOR_TYPE_TEXT16:
		field_add(to, prefix, name, "_count", &type_u16.parent, true);
		field_add(to, prefix, name, "", &type_text.parent, true);
		break;
	/* LTTng has sequences of integers only. */
	case SPOOR_TYPE_F32:
		sequence_add(to, prefix, name, &type_bits32.parent, &type_u16, true);
		break;
	case SPOOR_TYPE_F64:
		sequence_add(to, prefix, name, &type_pointer.parent, &type_u16, true);
		break;
	default:
		sequence_add(to, prefix, name, type_of(type), &type_u16, false);
		break;
	}
}

static void fields_add(struct lttng_description *to, const char *prefix,
	const struct spoor_field *fields, uint32_t count)
{
	char inner[512];

	for (uint32_t i = 0; i < count && !to->error; i++) {
		const char *name = fields[i].name;
		uint32_t type = fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY;
		if (fields[i].type & SPOOR_TYPE_ARRAY) {
			array_add(to, prefix, name, type);
		} else if (type == SPOOR_TYPE_STRUCT) {
			(void)snprintf(inner, sizeof(inner), "%.200s%.200s_", prefix, name);
			fields_add(to, inner, fields[i].fields, fields[i].field_count);
		} else {
			field_add(to, prefix, name, "", type_of(type), type == SPOOR_TYPE_GUID);
		}
	}
}

int lttng_fields_make(const struct event_entry *entry, const struct lttng_field *const **ret_fields,
	size_t *ret_count)
{
	struct lttng_description to = { .count = 0 };

	fields_add(&to, "", entry->info.fields, entry->info.field_count);
	size_t size = sizeof(to.fields[0]) * (to.count + 1);
	struct lttng_field **fields = to.error ? NULL : malloc(size);
	if (!fields) {
		for (size_t i = 0; i < to.count; i++) {
			if (to.fields[i]->type->type == LTTNG_SEQUENCE)
				free((void *)(uintptr_t)to.fields[i]->type);
			free((void *)(uintptr_t)to.fields[i]->name);
			free(to.fields[i]);
		}
		return to.error ? to.error : -ENOMEM;
	}
	memcpy(fields, to.fields, sizeof(to.fields[0]) * to.count);
	*ret_fields = (const struct lttng_field *const *)fields;
	*ret_count = to.count;
	return 0;
}

/* ---- Records ---- */

/* Where a record goes: into a buffer while it has room, to LTTng, or only its size is counted. */
struct output {
	uint8_t *buffer; /* NULL: none, or the record does not fit */
	size_t room;
	struct lttng_buffer_context *context;
	const struct lttng_buffer_ops *ops;
	size_t size;
};

static inline __attribute__((always_inline)) void emit(struct output *to, const void *bytes,
	size_t size)
{
	if (to->buffer) {
		if (size <= to->room - to->size)
			memcpy(to->buffer + to->size, bytes, size);
		else
			to->buffer = NULL;
	} else if (to->ops) {
		to->ops->write(to->context, bytes, size, 1);
	}
	to->size += size;
}

struct lttng_input {
	const uint8_t *at;
	const uint8_t *end;
};

static inline size_t left(const struct lttng_input *in)
{
	return (size_t)(in->end - in->at);
}

/* Reads a 16-bit number; false: the payload ends. */
static inline bool take_u16(struct lttng_input *in, uint16_t *ret_value)
{
	if (left(in) < 2)
		return false;
	memcpy(ret_value, in->at, 2);
	in->at += 2;
	return true;
}

/* Without its final zero. */
static inline __attribute__((always_inline)) bool text_put(struct lttng_input *in,
	struct output *to)
{
	uint16_t length;

	if (!take_u16(in, &length) || left(in) <= length || in->at[length])
		return false;
	/* A zero inside would end the string early for its readers. */
	emit(to, in->at, strlen((const char *)in->at));
	in->at += length + 1u;
	return true;
}

/* Does the input begin with a text whose first zero byte is its last one? */
static inline bool text_is_whole(const struct lttng_input *in)
{
	uint16_t length;

	if (left(in) < 3)
		return false;
	memcpy(&length, in->at, 2);
	return left(in) >= length + 3u && memchr(in->at + 2, 0, length + 1u) == in->at + 2 + length;
}

static bool text16_put(struct lttng_input *in, struct output *to)
{
	char utf8[512];
	const uint8_t *start = in->at;

	for (;; in->at += 2) {
		if (left(in) < 2)
			return false;
		if (!in->at[0] && !in->at[1])
			break;
	}
	/* In pieces of 150 units; a pair of surrogates is not divided. */
	while (start < in->at) {
		size_t size = (size_t)(in->at - start) < 300 ? (size_t)(in->at - start) : 300;
		if (size == 300 && (start[size - 1] & 0xfc) == 0xd8)
			size -= 2;
		emit(to, utf8, utf8z_put(utf8, sizeof(utf8), start, size) - 1);
		start += size;
	}
	in->at += 2;
	return true;
}

static bool step_skip(const struct plan_step *step, struct lttng_input *in);

/* Walks over the elements of an array of structs. */
static bool structs_skip(const struct plan_step *step, uint16_t count, struct lttng_input *in)
{
	for (uint16_t i = 0; i < count; i++)
		for (uint32_t k = 1; k <= step->size; k++) {
			if (!step_skip(&step[k], in))
				return false;
			if (step[k].op == PLAN_STRUCTS)
				k += step[k].size;
		}
	return true;
}

static bool step_put(const struct plan_step *step, struct lttng_input *in, struct output *to)
{
	uint16_t count;

	switch (step->op) {
	case PLAN_FIXED:
		if (left(in) < step->size)
			return false;
		emit(to, in->at, step->size);
		in->at += step->size;
		return true;
	case PLAN_TEXT:
		/* With the zero: the usual text has none inside. */
		if (!text_is_whole(in)) {
			if (!text_put(in, to))
				return false;
			emit(to, "", 1);
			return true;
		}
		memcpy(&count, in->at, 2);
		emit(to, in->at + 2, count + 1u);
		in->at += count + 3u;
		return true;
	case PLAN_TEXT16:
		if (!text16_put(in, to))
			return false;
		emit(to, "", 1);
		return true;
	case PLAN_ARRAY:
		if (!take_u16(in, &count) || left(in) < (size_t)count * step->size)
			return false;
		if (step->size == 16) {
			/* GUIDs: an array of bytes */
			uint32_t size = count * 16u;
			emit(to, &size, sizeof(size));
			emit(to, in->at, size);
		} else {
			emit(to, in->at - 2, 2 + (size_t)count * step->size);
		}
		in->at += (size_t)count * step->size;
		return true;
	case PLAN_TEXTS:
	case PLAN_TEXT16S:
		if (!take_u16(in, &count))
			return false;
		emit(to, in->at - 2, 2);
		for (uint16_t i = 0; i < count; i++) {
			if (i)
				emit(to, "\n", 1);
			if (!(step->op == PLAN_TEXTS ? text_put(in, to) : text16_put(in, to)))
				return false;
		}
		emit(to, "", 1);
		return true;
	default: {
		if (!take_u16(in, &count))
			return false;
		const uint8_t *start = in->at;
		if (!structs_skip(step, count, in))
			return false;
		uint32_t size = (uint32_t)(in->at - start);
		emit(to, &size, sizeof(size));
		emit(to, start, size);
		return true;
	}
	}
}

static bool step_skip(const struct plan_step *step, struct lttng_input *in)
{
	struct output nowhere = { .size = 0 };

	return step_put(step, in, &nowhere);
}

static int record_put(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	struct output *to)
{
	struct lttng_input in = { payload, payload + payload_size };

	for (uint32_t i = 0; i < entry->plan_count; i++) {
		const struct plan_step *step = &entry->plan[i];
		if (!step_put(step, &in, to))
			return -EBADMSG;
		if (step->op == PLAN_STRUCTS)
			i += step->size;
	}
	return 0;
}

int lttng_record_make(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	struct lttng_record *ret_record)
{
	struct output to = { .buffer = ret_record->buffer, .room = sizeof(ret_record->buffer) };

	ret_record->bytes = payload;
	ret_record->size = payload_size;
	if (entry->fixed_size && entry->fixed_size == payload_size)
		return 0;
	int r = record_put(entry, payload, payload_size, &to);
	ret_record->bytes = to.buffer;
	ret_record->size = to.size;
	return r;
}

void lttng_record_write(const struct lttng_record *record, const struct event_entry *entry,
	const uint8_t *payload, size_t payload_size, struct lttng_buffer_context *context,
	const struct lttng_buffer_ops *ops)
{
	struct output to = { .context = context, .ops = ops };

	if (record->bytes)
		ops->write(context, record->bytes, record->size, 1);
	else
		(void)record_put(entry, payload, payload_size, &to);
}

/* ---- Filters ---- */

static void stack_add(struct lttng_stack *to, uint64_t value)
{
	if (to->count < sizeof(to->values) / sizeof(to->values[0]))
		to->values[to->count++] = value;
}

/* A field that filters do not compare; LTTng-UST 2.12 has a place for it. */
static void stack_add_unfiltered(struct lttng_stack *to, const struct spoor_value *value)
{
	const bool texts = value->is_array &&
			   (value->type == SPOOR_TYPE_TEXT || value->type == SPOOR_TYPE_TEXT16);
	const bool bytes = value->type == SPOOR_TYPE_STRUCT || value->type == SPOOR_TYPE_GUID;

	if (!to->whole)
		return;
	stack_add(to, bytes ? value->byte_count : value->count);
	stack_add(to, texts ? (uintptr_t) "" : (uintptr_t)value->bytes);
}

static void stack_add_value(struct lttng_stack *to, const struct spoor_value *value)
{
	struct spoor_value member;
	size_t position = 0;
	size_t offset = 0;

	if (value->is_array) {
		/* As array_add() describes them. */
		if (value->type == SPOOR_TYPE_STRUCT || value->type == SPOOR_TYPE_TEXT ||
			value->type == SPOOR_TYPE_TEXT16 || value->type == SPOOR_TYPE_GUID ||
			value->type == SPOOR_TYPE_F32 || value->type == SPOOR_TYPE_F64) {
			stack_add_unfiltered(to, value);
			return;
		}
		stack_add(to, value->count);
		stack_add(to, (uintptr_t)value->bytes);
		return;
	}
	switch (value->type) {
	case SPOOR_TYPE_STRUCT:
		while (spoor_value_next(value, &position, &offset, &member) == 1)
			stack_add_value(to, &member);
		break;
	case SPOOR_TYPE_GUID:
		stack_add_unfiltered(to, value);
		break;
	case SPOOR_TYPE_TEXT:
		stack_add(to, (uintptr_t)value->bytes);
		break;
	case SPOOR_TYPE_TEXT16: {
		char *at = to->texts + to->text_size;
		size_t room = sizeof(to->texts) - to->text_size;
		if (room < 2) {
			stack_add(to, (uintptr_t) "");
			break;
		}
		to->text_size += utf8z_put(at, room, value->bytes, value->byte_count);
		stack_add(to, (uintptr_t)at);
		break;
	}
	case SPOOR_TYPE_F32:
	case SPOOR_TYPE_F64: {
		uint64_t bits;
		memcpy(&bits, &value->f64, sizeof(bits));
		stack_add(to, bits);
		break;
	}
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_I64:
		stack_add(to, (uint64_t)value->i64);
		break;
	default:
		stack_add(to, value->u64);
		break;
	}
}

void lttng_stack_make(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	bool whole, struct lttng_stack *ret_stack)
{
	struct spoor_event_view event = { .size = sizeof(event),
		.info = &entry->info,
		.payload = payload,
		.payload_size = payload_size };
	struct spoor_value value;
	size_t position = 0;

	ret_stack->whole = whole;
	ret_stack->count = 0;
	ret_stack->text_size = 0;
	while (spoor_event_next_field(&event, &position, &value) == 1)
		stack_add_value(ret_stack, &value);
}
