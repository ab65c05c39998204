/* See utf16.h. */
#include "lib/event/utf16.h"

#include <string.h>

typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef uint16_t units8 __attribute__((vector_size(16)));

/* Decodes one character that is not ASCII. Each byte that is not valid UTF-8 becomes U+FFFD. */
static const uint8_t *decode(const uint8_t *at, const uint8_t *end, uint32_t *ret_code)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 0;
	uint32_t code;

	*ret_code = 0xfffd;
	if (!length || *at >= 0xf8 || (size_t)(end - at) < length)
		return at + 1;
	code = *at & (0x7fu >> length);
	for (unsigned i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return at + 1;
		code = code << 6 | (at[i] & 0x3fu);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return at + 1;
	*ret_code = code;
	return at + length;
}

uint8_t *utf16z_put(uint8_t *out, const uint8_t *text, size_t size)
{
	const uint8_t *end = text + size;

	while (text < end) {
		uint64_t eight;
		if ((size_t)(end - text) >= 8 &&
			(memcpy(&eight, text, 8), !(eight & UINT64_C(0x8080808080808080)))) {
			bytes8 narrow;
			memcpy(&narrow, text, 8);
			units8 wide = __builtin_convertvector(narrow, units8);
			memcpy(out, &wide, 16);
			/* All eight characters are converted, unless one of them is zero. */
			if (!((eight - UINT64_C(0x0101010101010101)) & ~eight &
				    UINT64_C(0x8080808080808080))) {
				text += 8;
				out += 16;
				continue;
			}
		}
		uint32_t code = *text;
		if (!code)
			break;
		if (code < 0x80)
			text++;
		else
			text = decode(text, end, &code);
		if (code >= 0x10000) {
			uint16_t pair[2] = { (uint16_t)(0xd800 + ((code - 0x10000) >> 10)),
				(uint16_t)(0xdc00 + (code & 0x3ff)) };
			memcpy(out, pair, 4);
			out += 4;
		} else {
			uint16_t unit = (uint16_t)code;
			memcpy(out, &unit, 2);
			out += 2;
		}
	}
	out[0] = out[1] = 0;
	return out + 2;
}
