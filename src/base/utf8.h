/* Code points to and from UTF-8. The input may be malformed. No state, no allocation. */
#ifndef SPOOR_BASE_UTF8_H
#define SPOOR_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The code point at text[*at], where *at < len; *at moves past it. Malformed UTF-8 (also overlong
 * forms, surrogates and truncated sequences) is U+FFFD of one byte.
 */
uint32_t text_next_char(const char *text, size_t len, size_t *at);

/* Writes one code point into `out`, room for 4 bytes. Returns the number of bytes. */
size_t text_put_char(char *out, uint32_t c);

#endif
