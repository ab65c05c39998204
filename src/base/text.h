/* Text from outside: malformed UTF-8, UTF-16, control characters, numbers in readable form. */
#ifndef SPOOR_BASE_TEXT_H
#define SPOOR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

struct bytes;

/* Lower-case hexadecimal into `out` (room for 2 * size, no NUL); the number of digits. */
size_t text_put_hex(char *out, const uint8_t *bytes, size_t size);

/* A terminal executes it: C0, DEL, C1, line separators, controls of the writing direction. */
bool text_is_control(uint32_t c);

/*
 * Copies text for a terminal: valid UTF-8, with each text_is_control() character as \n, \t, \x1b or
 * \u202e. Cut between characters to `room` - 1 bytes, NUL-terminated. Returns the length.
 */
size_t text_make_safe(const char *text, size_t len, char *out, size_t room);

/* As text_make_safe(), appended to a buffer without a limit. */
void text_add_safe(struct bytes *out, const char *text, size_t len);
void text_add_safe_z(struct bytes *out, const char *text);

/* "spoor", or the path by which it was started: the begin of commands that a user may paste. */
const char *text_program(void);

/* A URL made safe, without the user's name and password. */
void text_add_url(struct bytes *out, const char *url, size_t len);

/* As text_add_safe(), with a backslash before each quote and backslash. */
void text_add_escaped(struct bytes *out, const char *text, size_t len);

/* One argument of a shell, which spoor does not read as an option: quoted if necessary. */
void text_add_shell_word(struct bytes *out, const char *word);

/* UTF-16LE (2 bytes a unit, any alignment) appended as UTF-8; lone surrogates become U+FFFD. */
void text_add_utf16(struct bytes *out, const uint8_t *units, size_t unit_count);

/* For XML and SVG: valid UTF-8, markup as entities, what XML forbids as U+FFFD. */
void text_add_xml(struct bytes *out, const char *text, size_t len);

/* Formats into the array `out`. A text that does not fit is cut. */
#define text_set(out, ...) ((void)snprintf((out), sizeof(out) + text_array_(out), __VA_ARGS__))
/* 0; does not compile for a pointer. */
#define text_array_(out)                                                                   \
	(0 * sizeof(struct {                                                               \
		int is_pointer                                                             \
		    : __builtin_types_compatible_p(__typeof__(out), __typeof__(&(out)[0])) \
		      ? -1                                                                 \
		      : 1;                                                                 \
	}))

bool text_begins_with(const char *text, const char *start);
bool text_ends_with(const char *text, const char *suffix);

/* Of a text of `len` bytes; 'A' is 'a'. */
bool text_ends_with_any_case(const char *text, size_t len, const char *suffix);

/* The part after the last '/'. */
const char *text_base_name(const char *path);

/* The number of columns on a terminal, one for each character. */
size_t text_columns(const char *text, size_t len);

/* "12.1 s", "1.09 ms", "2.35 MB", "18,402": three significant digits and a unit. */
void text_add_duration(struct bytes *out, double seconds);
void text_add_size(struct bytes *out, uint64_t size_bytes);
void text_add_count(struct bytes *out, uint64_t count);

/* "1 event", "1,204 events". */
void text_add_things(struct bytes *out, uint64_t count, const char *one, const char *many);

/* The same as C strings in `out` (TEXT_PUT_ROOM bytes, cut if longer), which they return. */
#define TEXT_PUT_ROOM 64u
const char *text_put_things(char *out, uint64_t count, const char *one, const char *many);
const char *text_put_duration(char *out, double seconds);
const char *text_put_size(char *out, uint64_t size_bytes);
const char *text_put_count(char *out, uint64_t count);

/* The same in memory of the enclosing block: arguments of a format. */
#define TEXT_THINGS(count, one, many) text_put_things((char[TEXT_PUT_ROOM]){ 0 }, count, one, many)
#define TEXT_DURATION(seconds)        text_put_duration((char[TEXT_PUT_ROOM]){ 0 }, seconds)
#define TEXT_SIZE(size_bytes)         text_put_size((char[TEXT_PUT_ROOM]){ 0 }, size_bytes)
#define TEXT_COUNT(count)             text_put_count((char[TEXT_PUT_ROOM]){ 0 }, count)

/*
 * The shortest text that reads back as the same double or float: 0.1, not 0.10000000149011612. A
 * whole number below 1e21 has all its digits and no exponent. Also NaN, Infinity and -Infinity.
 */
void text_add_f64(struct bytes *out, double value);
void text_add_f32(struct bytes *out, float value);

/* "30s", "500ms", "5m", "2h", "00:01:30", "1:02:03:04" (days first); a bare number is seconds. */
bool text_parse_duration(const char *text, uint64_t *ret_ns);

/*
 * "64M" (powers of 1000), "1.5 GB", "512KiB" (powers of 1024); a bare number is bytes. At least 1.
 */
bool text_parse_size(const char *text, uint64_t *ret_bytes);

/* A whole unsigned decimal number without other characters. */
bool text_parse_u64(const char *text, uint64_t *ret_value);

/* The number of edits between two words: to suggest a verb or option. */
unsigned text_distance(const char *a, const char *b);

/* Shell-like pattern: * and ?, the whole text. */
bool text_glob(const char *pattern, const char *text);

#endif
