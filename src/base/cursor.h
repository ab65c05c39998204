/*
 * Reads untrusted bytes, little-endian, with a sticky failure. When the bytes run out (or a number
 * is malformed) `short_read` is set and every further read returns 0, so the caller reads a whole
 * header and checks once. Data is returned in place.
 */
#ifndef SPOOR_BASE_CURSOR_H
#define SPOOR_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool short_read;
};

static inline struct cursor cursor_of(const void *data, size_t size)
{
	const uint8_t *at = data;

	return (struct cursor){ .at = at, .end = size ? at + size : at };
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next `size` bytes in place; NULL and failure: fewer are left. */
static inline const uint8_t *cursor_take(struct cursor *c, size_t size)
{
	if (__builtin_expect(c->short_read || cursor_left(c) < size, 0)) {
		c->short_read = true;
		c->at = c->end;
		return NULL;
	}
	const uint8_t *piece = c->at;
	c->at += size;
	return piece;
}

static inline void cursor_skip(struct cursor *c, size_t size)
{
	(void)cursor_take(c, size); /* short_read keeps the failure */
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 1);

	return p ? p[0] : 0;
}

static inline uint16_t cursor_u16(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 2);

	if (!p)
		return 0;
	return (uint16_t)((unsigned)p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 4);

	return p ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			       (uint32_t)p[3] << 24
		 : 0;
}

static inline uint64_t cursor_u64(struct cursor *c)
{
	uint64_t low = cursor_u32(c);

	return low | (uint64_t)cursor_u32(c) << 32;
}

/* LEB128. More than 10 bytes, or bits beyond 64, is a failure. */
static inline uint64_t cursor_varuint(struct cursor *c)
{
	uint64_t value = 0;

	/* Most are of one byte. */
	if (__builtin_expect(!c->short_read && c->at < c->end && *c->at < 0x80, 1))
		return *c->at++;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->short_read = true;
	c->at = c->end;
	return 0;
}

/* As cursor_varuint(); beyond 32 bits is a failure. */
static inline uint32_t cursor_varuint32(struct cursor *c)
{
	uint64_t value = cursor_varuint(c);

	if (value > UINT32_MAX) {
		c->short_read = true;
		c->at = c->end;
		return 0;
	}
	return (uint32_t)value;
}

/* Signed LEB128, as DWARF has it. More than 10 bytes is a failure. */
static inline int64_t cursor_sleb(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_u8(c);
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			value |= UINT64_MAX << (shift + 7);
		return (int64_t)value;
	}
	c->short_read = true;
	c->at = c->end;
	return 0;
}

/* Zig-zag LEB128. */
static inline int64_t cursor_varint(struct cursor *c)
{
	uint64_t v = cursor_varuint(c);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A cursor over the next `size` bytes, which this one skips. Empty and failed if fewer are left. */
static inline struct cursor cursor_sub(struct cursor *c, size_t size)
{
	const uint8_t *p = cursor_take(c, size);
	struct cursor sub = cursor_of(p, p ? size : 0);

	sub.short_read = !p;
	return sub;
}

/* UTF-16LE text (unaligned) in place; `ret_units` excludes its NUL. NULL and failure: no NUL. */
static inline const uint8_t *cursor_utf16z(struct cursor *c, size_t *ret_units)
{
	size_t units = 0;

	*ret_units = 0;
	/* Four units at a time, as long as none of them is 0. */
	for (uint64_t four; cursor_left(c) >= (units + 4) * 2; units += 4) {
		memcpy(&four, c->at + units * 2, sizeof(four));
		if ((four - UINT64_C(0x0001000100010001)) & ~four & UINT64_C(0x8000800080008000))
			break;
	}
	while (cursor_left(c) >= (units + 1) * 2) {
		if (!c->at[units * 2] && !c->at[units * 2 + 1]) {
			const uint8_t *text = cursor_take(c, (units + 1) * 2);
			*ret_units = units;
			return text;
		}
		units++;
	}
	cursor_skip(c, SIZE_MAX);
	return NULL;
}

/* Text in place; `ret_len` excludes its NUL. NULL and failure: there is no NUL. */
static inline const char *cursor_stringz(struct cursor *c, size_t *ret_len)
{
	const uint8_t *nul = cursor_left(c) ? memchr(c->at, 0, cursor_left(c)) : NULL;

	*ret_len = 0;
	if (!nul) {
		cursor_skip(c, SIZE_MAX);
		return NULL;
	}
	*ret_len = (size_t)(nul - c->at);
	return (const char *)cursor_take(c, *ret_len + 1);
}

#endif
