/*
 * See r2r_bounds.h. Numbers are in nibbles, low nibble of a byte first: three bits each, the most
 * significant first; bit 3 says that another follows.
 *
 *   head      bytes of the bounds, bytes of the variables; then, at the next byte, the bounds
 *   below 16  count, then each: native offset less the one before, IL offset, flags
 *   16, 17    count, bits of a native difference less one, bits of an IL offset less one; then, at the next byte, entries of bits, the
 *             lowest first: flags (2 bits; 3 from version 17 on), native difference, IL offset
 *
 * An IL offset is stored plus 3, so that the three special values (IL_EPILOG is the smallest) are small.
 */
#include "code/r2r_bounds.h"

#include <errno.h>
#include <stdbool.h>

#include "base/cursor.h"
#include "code/codemap.h"

#define MAJOR_PACKED   16u
#define MAJOR_ASYNC    17u /* flags of three bits */
#define MAJOR_LAST     17u
#define NIBBLES_MAX    11u /* of a number of 32 bits */
#define FIELD_BITS_MAX 32u

struct nibbles {
	struct cursor c;
	bool has_high; /* the high nibble of `byte` is next */
	uint8_t byte;
};

static uint32_t next_nibble(struct nibbles *n)
{
	n->has_high = !n->has_high;
	if (!n->has_high)
		return n->byte >> 4;
	n->byte = cursor_u8(&n->c);
	return n->byte & 15;
}

static uint32_t number(struct nibbles *n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < NIBBLES_MAX; i++) {
		uint32_t nibble = next_nibble(n);
		value = value << 3 | (nibble & 7);
		if (!(nibble & 8) && value <= UINT32_MAX)
			return (uint32_t)value;
	}
	n->c.short_read = true;
	return 0;
}

/* Adds an entry. False: the offsets do not ascend. */
static bool add(struct il_offset *offsets, uint32_t at, uint32_t *native, uint32_t difference,
	uint32_t il)
{
	if (*native + difference < *native)
		return false;
	*native += difference;
	offsets[at] = (struct il_offset){ .native = *native, .il = il + IL_EPILOG };
	return true;
}

static int read_plain(struct nibbles *n, uint32_t count, struct il_offset *offsets)
{
	uint32_t native = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t difference = number(n);
		uint32_t il = number(n);
		(void)number(n); /* flags */
		if (n->c.short_read || !add(offsets, i, &native, difference, il))
			return -EBADMSG;
	}
	return (int)count;
}

/* The lowest `bits` of what is collected; more bytes are taken as needed. */
static uint32_t take_bits(struct cursor *c, uint64_t *collected, unsigned *have, unsigned bits)
{
	while (*have < bits) {
		*collected |= (uint64_t)cursor_u8(c) << *have;
		*have += 8;
	}
	uint32_t value = (uint32_t)(*collected & ((UINT64_C(1) << bits) - 1));
	*collected >>= bits;
	*have -= bits;
	return value;
}

static int read_packed(struct nibbles *n, unsigned flag_bits, uint32_t count, uint32_t room,
	struct il_offset *offsets)
{
	uint64_t native_bits = (uint64_t)number(n) + 1;
	uint64_t il_bits = (uint64_t)number(n) + 1;
	uint64_t collected = 0;
	uint32_t native = 0;
	unsigned have = 0;

	if (n->c.short_read || native_bits > FIELD_BITS_MAX || il_bits > FIELD_BITS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < count && i < room; i++) {
		(void)take_bits(&n->c, &collected, &have, flag_bits);
		uint32_t difference = take_bits(&n->c, &collected, &have, (unsigned)native_bits);
		uint32_t il = take_bits(&n->c, &collected, &have, (unsigned)il_bits);
		if (n->c.short_read || !add(offsets, i, &native, difference, il))
			return -EBADMSG;
	}
	return (int)(count < room ? count : room);
}

int r2r_bounds_read(const uint8_t *data, size_t size, unsigned major, struct il_offset *ret_offsets,
	uint32_t room)
{
	struct nibbles n = { .c = cursor_of(data, size) };
	uint32_t bounds_size = number(&n);

	(void)number(&n); /* bytes of the variables, which follow the bounds */
	if (major > MAJOR_LAST)
		return -ENOTSUP;
	if (n.c.short_read || bounds_size > cursor_left(&n.c))
		return -EBADMSG;
	if (!bounds_size)
		return 0;
	n = (struct nibbles){ .c = cursor_of(n.c.at, bounds_size) };
	uint32_t count = number(&n);
	if (n.c.short_read || count > R2R_BOUNDS_MAX)
		return -EBADMSG;
	if (major >= MAJOR_PACKED)
		return read_packed(&n, major >= MAJOR_ASYNC ? 3 : 2, count, room, ret_offsets);
	return read_plain(&n, count < room ? count : room, ret_offsets);
}
