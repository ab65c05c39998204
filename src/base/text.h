/*
 * Text from outside: UTF-8 that may be malformed, UTF-16, control characters, numbers in readable
 * form.
 */
#ifndef SPOOR_BASE_TEXT_H
#define SPOOR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/utf8.h"

struct bytes;

/*
 * Bytes as lower-case hexadecimal into `out` (room for 2 * size, no NUL is added); the number of
 * digits.
 */
size_t text_put_hex(char *out, const uint8_t *bytes, size_t size);

/*
 * Is it a character that a terminal executes instead of showing: C0, DEL, C1, line separators,
 * controls of the writing direction?
 */
bool text_is_control(uint32_t c);

/*
 * Copies text for a terminal or a line: valid UTF-8, with each text_is_control() character in the
 * form \n, \t, \x1b or \u202e. At most `room` - 1 bytes, cut between characters, NUL-terminated.
 * Returns the length.
 */
size_t text_make_safe(const char *text, size_t len, char *out, size_t room);

/* As text_make_safe(), appended to a buffer without a limit. */
void text_add_safe(struct bytes *out, const char *text, size_t len);
void text_add_safe_z(struct bytes *out, const char *text);

/*
 * As text_add_safe(), for text in double quotes: a quote and a backslash are preceded by a
 * backslash.
 */
void text_add_escaped(struct bytes *out, const char *text, size_t len);

/*
 * Appends a word that a shell reads as one argument, and spoor not as an option: quoted if
 * necessary.
 */
void text_add_shell_word(struct bytes *out, const char *word);

/* UTF-16LE (2 bytes a unit, any alignment) appended as UTF-8; lone surrogates become U+FFFD. */
void text_add_utf16(struct bytes *out, const uint8_t *units, size_t unit_count);

/*
 * Appends text escaped for XML and SVG: valid UTF-8, markup characters as entities, what XML
 * forbids as U+FFFD.
 */
void text_add_xml(struct bytes *out, const char *text, size_t len);

bool text_ends_with(const char *text, const char *suffix);

/* The number of columns on a terminal, one for each character. */
size_t text_columns(const char *text, size_t len);

/* "12.1 s", "1.09 ms", "2.35 MB", "18,402": three significant digits and a unit. */
void text_add_duration(struct bytes *out, double seconds);
void text_add_size(struct bytes *out, uint64_t size_bytes);
void text_add_count(struct bytes *out, uint64_t count);

/* "1 event", "1,204 events". */
void text_add_things(struct bytes *out, uint64_t count, const char *one, const char *many);

/*
 * The same for a format's %s, written into `out` (TEXT_THINGS_ROOM bytes; longer words are cut),
 * which it returns.
 */
#define TEXT_THINGS_ROOM 64u
const char *text_put_things(char *out, uint64_t count, const char *one, const char *many);

/*
 * The shortest decimal text that reads back as the same number; a whole number below 1e21 has all
 * its digits and no exponent. NaN, Infinity and -Infinity where it is not finite. Of a float, the
 * shortest text that reads back as that float: 0.1, not 0.10000000149011612.
 */
void text_add_f64(struct bytes *out, double value);
void text_add_f32(struct bytes *out, float value);

/*
 * "30s", "500ms", "5m", "2h", "00:01:30", "1:02:03:04" (days first), a bare number is seconds.
 * False when it is not a duration or does not fit.
 */
bool text_parse_duration(const char *text, uint64_t *ret_ns);

/*
 * "64M", "1.5 GB", "512KiB", a bare number is bytes: k, M, G and T are powers of 1000, followed by
 * an i powers of 1024. False: it is not a size, is below one byte, or does not fit.
 */
bool text_parse_size(const char *text, uint64_t *ret_bytes);

/* A whole unsigned decimal number without other characters. */
bool text_parse_u64(const char *text, uint64_t *ret_value);

/* The number of edits between two words: to suggest a verb or option. */
unsigned text_distance(const char *a, const char *b);

/* Shell-like pattern: * and ?, the whole text. */
bool text_glob(const char *pattern, const char *text);

#endif
