/* See utf8.h. */
#include "base/utf8.h"

uint32_t text_next_char(const char *text, size_t len, size_t *at)
{
	const unsigned char *p = (const unsigned char *)text + *at;
	size_t left = len - *at;
	unsigned c = p[0];
	unsigned extra = 0;
	uint32_t low = 0;

	(*at)++;
	if (c < 0x80)
		return c;
	if (c >= 0xc2 && c <= 0xdf) {
		extra = 1;
		low = 0x80;
		c &= 0x1f;
	} else if (c >= 0xe0 && c <= 0xef) {
		extra = 2;
		low = 0x800;
		c &= 0x0f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		extra = 3;
		low = 0x10000;
		c &= 0x07;
	} else {
		return 0xfffd;
	}
	if (left <= extra)
		return 0xfffd;
	uint32_t value = c;
	for (unsigned i = 1; i <= extra; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0xfffd;
		value = value << 6 | (p[i] & 0x3fu);
	}
	if (value < low || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0xfffd;
	*at += extra;
	return value;
}

size_t text_put_char(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}
