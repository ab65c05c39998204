/* UTF-16 to UTF-8. */
#ifndef SPOOR_LIB_LOGGER_UTF8_OF_UTF16_H
#define SPOOR_LIB_LOGGER_UTF8_OF_UTF16_H

#include <stddef.h>
#include <stdint.h>

/*
 * Converts `size` bytes of UTF-16LE (unaligned) to UTF-8 with a terminating zero byte. A surrogate
 * without its partner becomes U+FFFD. Stops when the next character would not fit `room`, which is
 * at least 1. Returns the bytes written with the zero. Safe in signal handlers.
 */
size_t utf8z_put(char *out, size_t room, const void *text, size_t size);

#endif
