/* See utf8_of_utf16.h. */
#include "lib/logger/utf8_of_utf16.h"

#include <string.h>

static uint32_t unit_at(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

size_t utf8z_put(char *out, size_t room, const void *text, size_t size)
{
	const uint8_t *at = text;
	const uint8_t *end = at + (size & ~(size_t)1);
	size_t n = 0;

	while (at < end) {
		uint32_t c = unit_at(at);
		at += 2;
		if (c >= 0xd800 && c < 0xdc00 && at < end && (unit_at(at) & 0xfc00) == 0xdc00) {
			c = 0x10000 + ((c & 0x3ff) << 10) + (unit_at(at) & 0x3ff);
			at += 2;
		} else if (c >= 0xd800 && c < 0xe000) {
			c = 0xfffd;
		}
		size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		if (room - n <= bytes)
			break;
		if (bytes == 1) {
			out[n++] = (char)c;
			continue;
		}
		static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
		for (size_t i = bytes - 1; i > 0; i--, c >>= 6)
			out[n + i] = (char)(0x80 | (c & 0x3f));
		out[n] = (char)(lead[bytes] | c);
		n += bytes;
	}
	out[n] = '\0';
	return n + 1;
}
