/* UTF-8 to UTF-16. */
#ifndef SPOOR_LIB_EVENT_UTF16_H
#define SPOOR_LIB_EVENT_UTF16_H

#include <stddef.h>
#include <stdint.h>

/*
 * Converts `size` bytes of UTF-8 to UTF-16LE with a terminating zero unit. Stops at a NUL in the
 * text. Each byte that is not valid UTF-8 becomes U+FFFD. `out` must have room for 2 * size + 2
 * bytes. Returns the end of the output.
 */
uint8_t *utf16z_put(uint8_t *out, const uint8_t *text, size_t size);

#endif
