/*
 * Filter arguments: pairs separated by semicolons. A key or value that contains a semicolon or an
 * equals sign is in quotation marks.
 */
#include "lib/counter/counter_arguments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One word: up to `stop` or a semicolon; in quotation marks up to the next one. Returns its end. */
static const char *argument_word(const char *at, char stop, const char **ret_begin,
	size_t *ret_length)
{
	if (*at == '"') {
		const char *end = strchr(at + 1, '"');
		*ret_begin = at + 1;
		*ret_length = end ? (size_t)(end - at - 1) : strlen(at + 1);
		at = end ? end + 1 : at + 1 + *ret_length;
		while (*at && *at != stop && *at != ';')
			at++;
		return at;
	}
	*ret_begin = at;
	while (*at && *at != stop && *at != ';')
		at++;
	*ret_length = (size_t)(at - *ret_begin);
	return at;
}

char *argument_find(const char *arguments, const char *key)
{
	const char *at = arguments ? arguments : "";

	while (*at) {
		const char *name, *value = "";
		size_t name_length, value_length = 0;
		at = argument_word(at, '=', &name, &name_length);
		if (*at == '=')
			at = argument_word(at + 1, ';', &value, &value_length);
		if (*at == ';')
			at++;
		if (name_length == strlen(key) && memcmp(name, key, name_length) == 0)
			return strndup(value, value_length);
	}
	return NULL;
}

bool argument_number(const char *text, double *ret_value)
{
	double value = 0, scale = 1;
	bool digits = false, point = false;

	if (*text == '+')
		text++;
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		digits = true;
		value = value * 10 + (*text - '0');
		if (point)
			scale *= 10;
	}
	if (!digits || *text || !isfinite(value) || !isfinite(scale))
		return false;
	*ret_value = value / scale;
	return true;
}

void argument_print(double value, char text[ARGUMENT_NUMBER_MAX])
{
	char *to = text;

	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, ARGUMENT_NUMBER_MAX, "%.*G", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	/* The decimal point depends on the locale. */
	for (const char *from = text; *from;) {
		if (strchr("0123456789+-EINFA", *from)) {
			*to++ = *from++;
			continue;
		}
		*to++ = '.';
		while (*from && !strchr("0123456789+-EINFA", *from))
			from++;
	}
	*to = '\0';
}
