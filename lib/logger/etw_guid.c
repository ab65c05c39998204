/*
 * See etw_guid.h. A UUID of version 5 (RFC 4122), with two peculiarities: the name is hashed as
 * UTF-16 in big-endian order and in upper case, and the hash's bytes are taken as the GUID's bytes
 * in memory.
 */
#include "lib/logger/etw_guid.h"

#include <stddef.h>
#include <string.h>

#define BLOCK 64u

struct sha1 {
	uint32_t state[5];
	uint64_t size; /* bytes so far */
	uint8_t block[BLOCK];
};

static uint32_t rotate(uint32_t value, unsigned bits)
{
	return value << bits | value >> (32 - bits);
}

static void block_add(struct sha1 *to)
{
	uint32_t words[80];
	uint32_t a = to->state[0], b = to->state[1], c = to->state[2], d = to->state[3],
		 e = to->state[4];

	for (unsigned i = 0; i < 16; i++)
		words[i] = (uint32_t)to->block[4 * i] << 24 | (uint32_t)to->block[4 * i + 1] << 16 |
			   (uint32_t)to->block[4 * i + 2] << 8 | to->block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		uint32_t mixed, constant;
		if (i < 20) {
			mixed = (b & c) | (~b & d);
			constant = 0x5a827999;
		} else if (i < 40) {
			mixed = b ^ c ^ d;
			constant = 0x6ed9eba1;
		} else if (i < 60) {
			mixed = (b & c) | (b & d) | (c & d);
			constant = 0x8f1bbcdc;
		} else {
			mixed = b ^ c ^ d;
			constant = 0xca62c1d6;
		}
		uint32_t next = rotate(a, 5) + mixed + e + constant + words[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	to->state[0] += a;
	to->state[1] += b;
	to->state[2] += c;
	to->state[3] += d;
	to->state[4] += e;
}

static void byte_add(struct sha1 *to, uint8_t byte)
{
	to->block[to->size++ % BLOCK] = byte;
	if (to->size % BLOCK == 0)
		block_add(to);
}

static void end_add(struct sha1 *to)
{
	const uint64_t bits = to->size * 8;

	byte_add(to, 0x80);
	while (to->size % BLOCK != BLOCK - 8)
		byte_add(to, 0);
	for (unsigned i = 0; i < 8; i++)
		byte_add(to, (uint8_t)(bits >> (56 - 8 * i)));
}

static void unit_add(struct sha1 *to, uint32_t unit)
{
	if (unit >= 'a' && unit <= 'z')
		unit -= 'a' - 'A';
	byte_add(to, (uint8_t)(unit >> 8));
	byte_add(to, (uint8_t)unit);
}

/* The character at *at, which is no zero; a byte that is no UTF-8 is U+FFFD. */
static uint32_t character_take(const uint8_t **at)
{
	const uint8_t *from = (*at)++;
	const unsigned more = *from < 0x80   ? 0
			      : *from < 0xc2 ? 4
			      : *from < 0xe0 ? 1
			      : *from < 0xf0 ? 2
			      : *from < 0xf5 ? 3
					     : 4;
	uint32_t value = more == 0 ? *from : more == 4 ? 0xfffd : *from & (0x3fu >> more);

	if (more == 4)
		return value;
	for (unsigned i = 1; i <= more; i++) {
		if ((from[i] & 0xc0) != 0x80)
			return 0xfffd;
		value = value << 6 | (from[i] & 0x3f);
	}
	*at += more;
	return value;
}

void etw_guid_of_name(const char *name, uint8_t ret_guid[16])
{
	static const uint8_t space[16] = { 0x48, 0x2c, 0x2d, 0xb2, 0xc3, 0x90, 0x47, 0xc8, 0x87,
		0xf8, 0x1a, 0x15, 0xbf, 0xc1, 0x30, 0xfb };
	struct sha1 hash = { .state = {
				     0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
	const uint8_t *at = (const uint8_t *)name;

	for (size_t i = 0; i < sizeof(space); i++)
		byte_add(&hash, space[i]);
	while (*at) {
		uint32_t character = character_take(&at);
		if (character > 0xffff) {
			unit_add(&hash, 0xd800 + ((character - 0x10000) >> 10));
			unit_add(&hash, 0xdc00 + ((character - 0x10000) & 0x3ff));
		} else {
			unit_add(&hash, character);
		}
	}
	end_add(&hash);
	for (unsigned i = 0; i < 16; i++)
		ret_guid[i] = (uint8_t)(hash.state[i / 4] >> (24 - 8 * (i % 4)));
	ret_guid[7] = (uint8_t)((ret_guid[7] & 0x0f) | 0x50);
}
