/*
 * Checks that a text is exactly one valid JSON value (RFC 8259). Strict, because our JSON contains
 * text from foreign files and processes.
 */
#ifndef SPOOR_TESTS_UNIT_JSON_CHECK_H
#define SPOOR_TESTS_UNIT_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

static inline bool json_check_string(const char **at, const char *end)
{
	if (*at == end || *(*at)++ != '"')
		return false;
	while (*at < end && **at != '"') {
		if ((unsigned char)**at < 0x20)
			return false;
		if (**at == '\\') {
			if (++*at == end || !strchr("\"\\/bfnrtu", **at))
				return false;
			for (int digits = **at == 'u' ? 4 : 0; digits; digits--)
				if (++*at == end || !strchr("0123456789abcdefABCDEF", **at))
					return false;
			++*at;
			continue;
		}
		size_t step = 0;
		uint32_t c = text_next_char(*at, (size_t)(end - *at), &step);
		if (c == 0xfffd && step == 1) /* a byte of invalid UTF-8 */
			return false;
		*at += step;
	}
	return *at < end && *(*at)++ == '"';
}

static inline bool json_check_digits(const char **at, const char *end)
{
	const char *begin = *at;

	while (*at < end && **at >= '0' && **at <= '9')
		++*at;
	return *at > begin;
}

static inline bool json_check_number(const char **at, const char *end)
{
	if (*at < end && **at == '-')
		++*at;
	const char *first = *at;
	if (!json_check_digits(at, end) || (*first == '0' && *at > first + 1))
		return false;
	if (*at < end && **at == '.') {
		++*at;
		if (!json_check_digits(at, end))
			return false;
	}
	if (*at < end && (**at == 'e' || **at == 'E')) {
		++*at;
		if (*at < end && (**at == '+' || **at == '-'))
			++*at;
		return json_check_digits(at, end);
	}
	return true;
}

static inline bool json_check_value(const char **at, const char *end, unsigned depth)
{
	static const char *const words[] = { "true", "false", "null" };

	if (*at == end || depth > 64)
		return false;
	if (**at == '"')
		return json_check_string(at, end);
	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(words[i]);
		if ((size_t)(end - *at) >= len && memcmp(*at, words[i], len) == 0) {
			*at += len;
			return true;
		}
	}
	if (**at != '{' && **at != '[')
		return json_check_number(at, end);
	char closer = **at == '{' ? '}' : ']';

	++*at;
	if (*at < end && **at == closer)
		return ++*at, true;
	for (;;) {
		if (closer == '}' && (!json_check_string(at, end) || *at == end || *(*at)++ != ':'))
			return false;
		if (!json_check_value(at, end, depth + 1) || *at == end)
			return false;
		if (**at == closer)
			return ++*at, true;
		if (*(*at)++ != ',')
			return false;
	}
}

static inline bool json_is_valid(const char *text, size_t len)
{
	const char *at = text;

	return json_check_value(&at, text + len, 0) && at == text + len;
}

#endif
