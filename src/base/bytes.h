/*
 * The growable buffer for wire bytes and text; numbers are little-endian. All zero is empty.
 *
 * Out of memory is sticky: `failed` stays set and further writes have no effect, so the user checks
 * it once, at the end. A buffer belongs to one thread at a time.
 */
#ifndef SPOOR_BASE_BYTES_H
#define SPOOR_BASE_BYTES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *data;
	size_t len;
	size_t capacity;
	bool failed;
};

/* Room for `size` bytes, which the caller fills and adds to len; NULL: no memory. */
uint8_t *bytes_reserve(struct bytes *b, size_t size);

void bytes_add(struct bytes *b, const void *data, size_t size);
void bytes_u8(struct bytes *b, uint8_t value);
void bytes_u16(struct bytes *b, uint16_t value);
void bytes_u32(struct bytes *b, uint32_t value);
void bytes_u64(struct bytes *b, uint64_t value);
void bytes_f64(struct bytes *b, double value);
void bytes_varuint(struct bytes *b, uint64_t value);
void bytes_varint(struct bytes *b, int64_t value); /* zig-zag */

/* UTF-8 (made valid) as UTF-16LE with a 16-bit NUL; at most `units_max` units without the NUL. */
void bytes_utf16z(struct bytes *b, const char *text, size_t len, size_t units_max);

/* Overwrites four bytes at `at`, which exist. */
void bytes_set_u32(struct bytes *b, size_t at, uint32_t value);
void bytes_set_u16(struct bytes *b, size_t at, uint16_t value);

/* Text: no NUL is added. */
void bytes_text(struct bytes *b, const char *text);
/* Leading zeros up to `digits_least` (at most 20). Several times as fast as bytes_printf(). */
void bytes_decimal(struct bytes *b, uint64_t value, unsigned digits_least);
void bytes_printf(struct bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bytes_vprintf(struct bytes *b, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* The content as a NUL-terminated text (the NUL is not counted in len); "" if memory ran out. */
const char *bytes_z(struct bytes *b);

void bytes_reset(struct bytes *b);
void bytes_done(struct bytes *b);

/* LEB128 into `out` (room for 10); the number of bytes. */
static inline size_t varuint_put(uint8_t *out, uint64_t value)
{
	size_t len = 0;

	while (value >= 0x80) {
		out[len++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	out[len++] = (uint8_t)value;
	return len;
}

#endif
