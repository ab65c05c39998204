/* See bytes.h. */
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

uint8_t *bytes_reserve(struct bytes *b, size_t size)
{
	if (b->failed)
		return NULL;
	if (b->capacity - b->len >= size && b->data)
		return b->data + b->len;
	size_t capacity = b->capacity ? b->capacity : 256;

	while (capacity - b->len < size) {
		if (capacity > SIZE_MAX / 2) {
			b->failed = true;
			return NULL;
		}
		capacity *= 2;
	}
	uint8_t *grown = realloc(b->data, capacity);
	if (!grown) {
		b->failed = true;
		return NULL;
	}
	b->data = grown;
	b->capacity = capacity;
	return b->data + b->len;
}

void bytes_add(struct bytes *b, const void *data, size_t size)
{
	uint8_t *out = size ? bytes_reserve(b, size) : NULL;

	if (out) {
		memcpy(out, data, size);
		b->len += size;
	}
}

void bytes_u8(struct bytes *b, uint8_t value)
{
	bytes_add(b, &value, 1);
}

void bytes_u16(struct bytes *b, uint16_t value)
{
	uint8_t out[2] = { (uint8_t)value, (uint8_t)(value >> 8) };

	bytes_add(b, out, sizeof(out));
}

void bytes_u32(struct bytes *b, uint32_t value)
{
	uint8_t out[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
		(uint8_t)(value >> 24) };

	bytes_add(b, out, sizeof(out));
}

void bytes_u64(struct bytes *b, uint64_t value)
{
	bytes_u32(b, (uint32_t)value);
	bytes_u32(b, (uint32_t)(value >> 32));
}

void bytes_f64(struct bytes *b, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bytes_u64(b, bits);
}

void bytes_varuint(struct bytes *b, uint64_t value)
{
	uint8_t out[10];

	bytes_add(b, out, varuint_put(out, value));
}

void bytes_varint(struct bytes *b, int64_t value)
{
	bytes_varuint(b, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

void bytes_utf16z(struct bytes *b, const char *text, size_t len, size_t units_max)
{
	size_t at = 0;
	size_t units = 0;
	size_t simple = len < units_max ? len : units_max;
	uint8_t *out = bytes_reserve(b, simple * 2);

	/* ASCII, as most texts are */
	for (; out && at < simple && (uint8_t)text[at] - 1u < 0x7fu; at++) {
		out[at * 2] = (uint8_t)text[at];
		out[at * 2 + 1] = 0;
	}
	b->len += at * 2;
	units = at;
	while (at < len) {
		uint32_t c = text_next_char(text, len, &at);
		unsigned need = c >= 0x10000 ? 2 : 1;
		if (units + need > units_max)
			break;
		units += need;
		if (need == 2) {
			bytes_u16(b, (uint16_t)(0xd800 + ((c - 0x10000) >> 10)));
			bytes_u16(b, (uint16_t)(0xdc00 + ((c - 0x10000) & 0x3ff)));
		} else {
			/* a NUL inside would end the text */
			bytes_u16(b, c ? (uint16_t)c : 0xfffd);
		}
	}
	bytes_u16(b, 0);
}

void bytes_set_u32(struct bytes *b, size_t at, uint32_t value)
{
	if (b->failed)
		return;
	for (unsigned i = 0; i < 4; i++)
		b->data[at + i] = (uint8_t)(value >> (8 * i));
}

void bytes_set_u16(struct bytes *b, size_t at, uint16_t value)
{
	if (b->failed)
		return;
	b->data[at] = (uint8_t)value;
	b->data[at + 1] = (uint8_t)(value >> 8);
}

void bytes_text(struct bytes *b, const char *text)
{
	bytes_add(b, text, strlen(text));
}

void bytes_vprintf(struct bytes *b, const char *format, va_list args)
{
	va_list again;

	va_copy(again, args);
	int need = vsnprintf(NULL, 0, format, args);
	uint8_t *out = need < 0 ? NULL : bytes_reserve(b, (size_t)need + 1);
	if (out) {
		/* as long as before */
		(void)vsnprintf((char *)out, (size_t)need + 1, format, again);
		b->len += (size_t)need;
	}
	va_end(again);
}

void bytes_decimal(struct bytes *b, uint64_t value, unsigned digits_least)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (sizeof(digits) - at < digits_least && at)
		digits[--at] = '0';
	bytes_add(b, digits + at, sizeof(digits) - at);
}

void bytes_printf(struct bytes *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bytes_vprintf(b, format, args);
	va_end(args);
}

const char *bytes_z(struct bytes *b)
{
	uint8_t *end = bytes_reserve(b, 1);

	if (!end)
		return "";
	*end = 0;
	return (const char *)b->data;
}

void bytes_reset(struct bytes *b)
{
	b->len = 0;
	b->failed = false;
}

void bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}
