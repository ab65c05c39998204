/* See ctf_decode.h. */
#include "formats/ctf_decode.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/text.h"

#define TEXT_BYTES_MAX 4096u

static const struct ctf_type *type_at(const struct ctf_decoder *d, uint32_t type)
{
	return &d->metadata->types.items[type];
}

static void fail(struct ctf_decoder *d)
{
	d->short_read = true;
	d->at = d->end;
}

void ctf_align(struct ctf_decoder *d, uint32_t align)
{
	uint64_t at = (d->at + align - 1) & ~((uint64_t)align - 1);

	if (at > d->end)
		fail(d);
	else
		d->at = at;
}

static bool is_big(const struct ctf_decoder *d, const struct ctf_type *type)
{
	return type->byte_order ? type->byte_order == CTF_BIG : d->metadata->byte_order == CTF_BIG;
}

static uint64_t read_bytes(const uint8_t *data, uint32_t size_bytes, bool big)
{
	struct cursor c = cursor_of(data, size_bytes);
	uint64_t value = 0;

	/* the usual sizes, each one load */
	if (!big && size_bytes == 4)
		return cursor_u32(&c);
	if (!big && size_bytes == 8)
		return cursor_u64(&c);
	if (size_bytes == 1)
		return data[0];

	for (uint32_t i = 0; i < size_bytes; i++)
		value |= (uint64_t)data[i] << 8 * (big ? size_bytes - 1 - i : i);
	return value;
}

/* Little-endian packets have the first bits in the low bits of a byte; big-endian ones, the high. */
static uint64_t read_bits(const uint8_t *data, uint64_t at, uint32_t size, bool big)
{
	uint64_t value = 0;

	if (!big && at % 8 + size <= 64) {
		uint64_t whole =
			read_bytes(data + at / 8, (uint32_t)((at % 8 + size + 7) / 8), false);
		return whole >> at % 8 & (UINT64_MAX >> (64 - size));
	}
	for (uint32_t i = 0; i < size; i++) {
		unsigned in_byte = (unsigned)((at + i) % 8);
		uint64_t bit = data[(at + i) / 8] >> (big ? 7 - in_byte : in_byte) & 1;
		value = big ? value << 1 | bit : value | bit << i;
	}
	return value;
}

/* A shorter value is the low part of the clock, which has grown since the last one. */
static void set_clock(struct ctf_decoder *d, uint64_t value, uint32_t size)
{
	uint64_t low = size < 64 ? (UINT64_C(1) << size) - 1 : UINT64_MAX;
	uint64_t clock = (d->clock & ~low) | (value & low);

	if (size < 64 && clock < d->clock)
		clock += low + 1;
	d->clock = clock;
}

uint64_t ctf_read_number(struct ctf_decoder *d, const struct ctf_type *type)
{
	uint64_t value;

	ctf_align(d, type->align);
	if (d->short_read || d->end - d->at < type->size) {
		fail(d);
		return 0;
	}
	if (d->at % 8 == 0 && type->size % 8 == 0)
		value = read_bytes(d->data + d->at / 8, type->size / 8, is_big(d, type));
	else
		value = read_bits(d->data, d->at, type->size, is_big(d, type));
	d->at += type->size;
	if (type->is_clock)
		set_clock(d, value, type->size);
	if (type->is_signed && type->size < 64 && value >> (type->size - 1) & 1)
		value |= UINT64_MAX << type->size;
	return value;
}

const uint8_t *ctf_take_bytes(struct ctf_decoder *d, uint32_t size_bytes)
{
	if (!size_bytes)
		return NULL;
	ctf_align(d, 8);
	const uint8_t *bytes = d->data + d->at / 8;

	if (d->short_read || d->end - d->at < (uint64_t)size_bytes * 8) {
		fail(d);
		return NULL;
	}
	d->at += (uint64_t)size_bytes * 8;
	return bytes;
}

const char *ctf_read_string(struct ctf_decoder *d, size_t *ret_len)
{
	*ret_len = 0;
	ctf_align(d, 8);
	const char *text = (const char *)d->data + d->at / 8;
	size_t left = (size_t)((d->end - d->at) / 8);
	const char *nul = d->short_read || !left ? NULL : memchr(text, 0, left);

	if (!nul) {
		fail(d);
		return NULL;
	}
	*ret_len = (size_t)(nul - text);
	d->at += (*ret_len + 1) * 8;
	return text;
}

uint32_t ctf_element_count(struct ctf_decoder *d, const struct ctf_type *type)
{
	uint64_t count = type->kind == CTF_ARRAY ? type->size : d->slots[type->slot];

	ctf_align(d, type->align);
	/* Elements without a size, such as empty structs, are bounded as well. */
	if (count > d->end - d->at) {
		fail(d);
		return 0;
	}
	return d->short_read ? 0 : (uint32_t)count;
}

/* The label that an enumeration has for a value; 0: none. */
static uint32_t label_of(const struct ctf_metadata *metadata, const struct ctf_type *type,
	uint64_t value)
{
	for (uint32_t i = 0; i < type->count; i++) {
		const struct ctf_range *range = &metadata->ranges.items[type->first + i];
		bool is_in = type->is_signed ? (int64_t)value >= (int64_t)range->low &&
						       (int64_t)value <= (int64_t)range->high
					     : value >= range->low && value <= range->high;
		if (is_in)
			return range->label;
	}
	return 0;
}

const struct ctf_field *ctf_select(struct ctf_decoder *d, const struct ctf_type *variant)
{
	const struct ctf_metadata *metadata = d->metadata;
	uint32_t tag = d->tags[variant->slot];
	uint32_t label = tag ? label_of(metadata, type_at(d, tag), d->slots[variant->slot]) : 0;

	for (uint32_t i = 0; label && i < variant->count; i++) {
		const struct ctf_field *field = &metadata->fields.items[variant->first + i];
		if (field->name == label)
			return field;
	}
	return NULL;
}

void ctf_keep(struct ctf_decoder *d, const struct ctf_field *field, const struct ctf_type *type,
	uint64_t value)
{
	if (!field->slot)
		return;
	d->slots[field->slot] = value;
	if (type->kind == CTF_ENUM)
		d->tags[field->slot] = field->type;
}

void ctf_skip_field(struct ctf_decoder *d, const struct ctf_field *field)
{
	const struct ctf_type *type = type_at(d, field->type);

	if (type->kind <= CTF_ENUM) {
		uint64_t value = ctf_read_number(d, type);
		ctf_keep(d, field, type, value);
	} else {
		ctf_skip(d, field->type);
	}
}

static void skip_elements(struct ctf_decoder *d, const struct ctf_type *type)
{
	const struct ctf_type *inner = type_at(d, type->inner);
	uint32_t count = ctf_element_count(d, type);

	if (inner->kind <= CTF_ENUM && inner->size % inner->align == 0 && !inner->is_clock) {
		uint64_t bits = (uint64_t)count * inner->size;
		if (bits > d->end - d->at)
			fail(d);
		else
			d->at += bits;
		return;
	}
	for (uint32_t i = 0; i < count && !d->short_read; i++)
		ctf_skip(d, type->inner);
}

void ctf_skip(struct ctf_decoder *d, uint32_t index)
{
	const struct ctf_type *type = type_at(d, index);
	const struct ctf_field *selected;
	size_t len;

	if (d->depth > CTF_DEPTH_MAX || !d->steps_left) {
		fail(d);
		return;
	}
	d->steps_left--;
	d->depth++;
	switch ((enum ctf_kind)type->kind) {
	case CTF_INTEGER:
	case CTF_FLOAT:
	case CTF_ENUM:
		(void)ctf_read_number(d, type);
		break;
	case CTF_STRING:
		(void)ctf_read_string(d, &len);
		break;
	case CTF_STRUCT:
		ctf_align(d, type->align);
		for (uint32_t i = 0; i < type->count && !d->short_read; i++)
			ctf_skip_field(d, &d->metadata->fields.items[type->first + i]);
		break;
	case CTF_VARIANT:
		selected = ctf_select(d, type);
		if (selected)
			ctf_skip_field(d, selected);
		else
			fail(d);
		break;
	case CTF_ARRAY:
	case CTF_SEQUENCE:
		skip_elements(d, type);
		break;
	}
	d->depth--;
}

/* ---- text ---- */

static void add_number(const struct ctf_type *type, uint64_t value, struct bytes *out)
{
	uint32_t low = (uint32_t)value;
	double f64;
	float f32;

	if (type->kind == CTF_FLOAT && type->size == 64) {
		memcpy(&f64, &value, sizeof(f64));
		text_add_f64(out, f64);
	} else if (type->kind == CTF_FLOAT) {
		memcpy(&f32, &low, sizeof(f32));
		text_add_f32(out, f32);
	} else if (type->is_signed) {
		bytes_printf(out, "%" PRId64, (int64_t)value);
	} else {
		bytes_printf(out, "%" PRIu64, value);
	}
}

static void add_field(struct ctf_decoder *d, const struct ctf_field *field, struct bytes *out)
{
	const struct ctf_type *type = type_at(d, field->type);

	if (type->kind > CTF_ENUM) {
		ctf_add_text(d, field->type, out);
		return;
	}
	uint64_t value = ctf_read_number(d, type);

	ctf_keep(d, field, type, value);
	add_number(type, value, out);
}

void ctf_add_text(struct ctf_decoder *d, uint32_t index, struct bytes *out)
{
	const struct ctf_type *type = type_at(d, index);
	const struct ctf_field *selected;
	const char *text;
	uint32_t count;
	size_t len;

	/* A long value is cut, and read to its end. */
	if (out->len > TEXT_BYTES_MAX || d->depth > CTF_DEPTH_MAX || !d->steps_left) {
		ctf_skip(d, index);
		return;
	}
	d->steps_left -= d->steps_left > 0;
	d->depth++;
	switch ((enum ctf_kind)type->kind) {
	case CTF_INTEGER:
	case CTF_FLOAT:
	case CTF_ENUM:
		add_number(type, ctf_read_number(d, type), out);
		break;
	case CTF_STRING:
		text = ctf_read_string(d, &len);
		bytes_u8(out, '"');
		if (text)
			text_add_escaped(out, text, len);
		bytes_u8(out, '"');
		break;
	case CTF_STRUCT:
		ctf_align(d, type->align);
		bytes_u8(out, '{');
		for (uint32_t i = 0; i < type->count && !d->short_read; i++) {
			const struct ctf_field *field = &d->metadata->fields.items[type->first + i];
			const char *name = strtab_get(&d->metadata->strings, field->name);
			bytes_printf(out, "%s\"%s\": ", i ? ", " : "",
				name[0] == '_' ? name + 1 : name);
			add_field(d, field, out);
		}
		bytes_u8(out, '}');
		break;
	case CTF_VARIANT:
		selected = ctf_select(d, type);
		if (selected)
			add_field(d, selected, out);
		else
			fail(d);
		break;
	case CTF_ARRAY:
	case CTF_SEQUENCE:
		count = ctf_element_count(d, type);
		bytes_u8(out, '[');
		for (uint32_t i = 0; i < count && !d->short_read; i++) {
			bytes_text(out, i ? ", " : "");
			ctf_add_text(d, type->inner, out);
		}
		bytes_u8(out, ']');
		break;
	}
	d->depth--;
}
