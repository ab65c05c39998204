/* See text.h. */
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/cleanup.h"

size_t text_put_hex(char *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	return 2 * size;
}

bool text_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       c == 0x2028 || c == 0x2029 || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb);
}

/* One character as shown: at most 8 bytes. */
static size_t put_safe(char *out, uint32_t c)
{
	static const char hex[] = "0123456789abcdef";

	if (!text_is_control(c))
		return text_put_char(out, c);
	const char *letter = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : NULL;

	if (letter) {
		memcpy(out, letter, 2);
		return 2;
	}
	out[0] = '\\';
	if (c < 0x100) {
		out[1] = 'x';
		out[2] = hex[c >> 4];
		out[3] = hex[c & 15];
		return 4;
	}
	out[1] = 'u';
	for (unsigned i = 0; i < 4; i++)
		out[2 + i] = hex[c >> (12 - 4 * i) & 15];
	return 6;
}

size_t text_make_safe(const char *text, size_t len, char *out, size_t room)
{
	size_t at = 0;
	size_t used = 0;

	while (at < len && room) {
		char one[8];
		size_t size = put_safe(one, text_next_char(text, len, &at));
		if (used + size + 1 > room)
			break;
		memcpy(out + used, one, size);
		used += size;
	}
	if (room)
		out[used] = '\0';
	return used;
}

void text_add_safe(struct bytes *out, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		char one[8];
		bytes_add(out, one, put_safe(one, text_next_char(text, len, &at)));
	}
}

void text_add_escaped(struct bytes *out, const char *text, size_t len)
{
	for (size_t at = 0, end; at < len; at = end) {
		end = at;
		while (end < len && text[end] != '"' && text[end] != '\\')
			end++;
		text_add_safe(out, text + at, end - at);
		if (end < len) {
			bytes_u8(out, '\\');
			bytes_u8(out, (uint8_t)text[end++]);
		}
	}
}

void text_add_safe_z(struct bytes *out, const char *text)
{
	text_add_safe(out, text, strlen(text));
}

const char *text_program(void)
{
	return strchr(program_invocation_name, '/') ? program_invocation_name : "spoor";
}

void text_add_url(struct bytes *out, const char *url, size_t len)
{
	const char *at = memrchr(url, '@', len);
	size_t scheme = 0;

	while (scheme < len && url[scheme] >= 'a' && url[scheme] <= 'z')
		scheme++;
	if (at && len - scheme > 3 && memcmp(url + scheme, "://", 3) == 0)
		text_add_safe(out, url, scheme + 3);
	const char *rest = at ? at + 1 : url;
	text_add_safe(out, rest, len - (size_t)(rest - url));
}

void text_add_shell_word(struct bytes *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./+,:@%=";

	if (*word == '-')
		bytes_text(out, "./");
	if (*word && word[strspn(word, plain)] == '\0') {
		bytes_text(out, word);
		return;
	}
	bytes_text(out, "'");
	for (; *word; word++) {
		size_t len = strcspn(word, "'");
		text_add_safe(out, word, len);
		word += len;
		if (!*word)
			break;
		bytes_text(out, "'\\''");
	}
	bytes_text(out, "'");
}

void text_add_utf16(struct bytes *out, const uint8_t *units, size_t unit_count)
{
	for (size_t i = 0; i < unit_count; i++) {
		uint32_t c = (uint32_t)units[2 * i] | (uint32_t)units[2 * i + 1] << 8;
		char one[4];

		if (c < 0x80) {
			bytes_u8(out, (uint8_t)c);
			continue;
		}
		if (c >= 0xd800 && c <= 0xdfff) {
			uint32_t low = i + 1 < unit_count ? (uint32_t)units[2 * i + 2] |
								    (uint32_t)units[2 * i + 3] << 8
							  : 0;
			if (c <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i++;
			} else {
				c = 0xfffd;
			}
		}
		bytes_add(out, one, text_put_char(one, c));
	}
}

void text_add_xml(struct bytes *out, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		uint32_t c = text_next_char(text, len, &at);
		char one[4];

		if (c == '<')
			bytes_text(out, "&lt;");
		else if (c == '>')
			bytes_text(out, "&gt;");
		else if (c == '&')
			bytes_text(out, "&amp;");
		else if (c == '"')
			bytes_text(out, "&quot;");
		else if (c == '\'')
			bytes_text(out, "&#39;");
		else if (text_is_control(c) || c == 0xfffe || c == 0xffff)
			bytes_text(out, "\xef\xbf\xbd");
		else
			bytes_add(out, one, text_put_char(one, c));
	}
}

bool text_begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

bool text_ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text);
	size_t suffix_len = strlen(suffix);

	return len >= suffix_len && strcmp(text + len - suffix_len, suffix) == 0;
}

bool text_ends_with_any_case(const char *text, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);

	return len >= suffix_len && strncasecmp(text + len - suffix_len, suffix, suffix_len) == 0;
}

const char *text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

size_t text_columns(const char *text, size_t len)
{
	size_t at = 0;
	size_t columns = 0;

	while (at < len) {
		(void)text_next_char(text, len, &at); /* only its length counts */
		columns++;
	}
	return columns;
}

/* Three significant digits. */
static void add_scaled(struct bytes *out, double value, const char *unit)
{
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	bytes_printf(out, "%.*f %s", digits, value, unit);
}

void text_add_duration(struct bytes *out, double seconds)
{
	double size = fabs(seconds);

	if (seconds < 0)
		bytes_text(out, "-");
	if (size >= 7200)
		add_scaled(out, size / 3600, "h");
	else if (size >= 120)
		add_scaled(out, size / 60, "min");
	else if (size >= 0.9995 || size == 0)
		add_scaled(out, size, "s");
	else if (size >= 0.0009995)
		add_scaled(out, size * 1e3, "ms");
	else if (size >= 0.0000009995)
		add_scaled(out, size * 1e6, "us");
	else
		add_scaled(out, size * 1e9, "ns");
}

void text_add_size(struct bytes *out, uint64_t size_bytes)
{
	double size = (double)size_bytes;

	if (size_bytes < 1000)
		bytes_printf(out, "%llu B", (unsigned long long)size_bytes);
	else if (size < 999.5e3)
		add_scaled(out, size / 1e3, "kB");
	else if (size < 999.5e6)
		add_scaled(out, size / 1e6, "MB");
	else
		add_scaled(out, size / 1e9, "GB");
}

void text_add_count(struct bytes *out, uint64_t count)
{
	char digits[32];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			bytes_u8(out, ',');
		bytes_u8(out, (uint8_t)digits[i]);
	}
}

void text_add_things(struct bytes *out, uint64_t count, const char *one, const char *many)
{
	text_add_count(out, count);
	bytes_printf(out, " %s", count == 1 ? one : many);
}

/* Copies a text that was made for `out`, cut if it is longer, and frees it. */
static const char *put(char *out, struct bytes *text)
{
	(void)snprintf(out, TEXT_PUT_ROOM, "%s", bytes_z(text)); /* cut if it is longer */
	bytes_done(text);
	return out;
}

const char *text_put_things(char *out, uint64_t count, const char *one, const char *many)
{
	struct bytes text = { 0 };

	text_add_things(&text, count, one, many);
	return put(out, &text);
}

const char *text_put_duration(char *out, double seconds)
{
	struct bytes text = { 0 };

	text_add_duration(&text, seconds);
	return put(out, &text);
}

const char *text_put_size(char *out, uint64_t size_bytes)
{
	struct bytes text = { 0 };

	text_add_size(&text, size_bytes);
	return put(out, &text);
}

const char *text_put_count(char *out, uint64_t count)
{
	struct bytes text = { 0 };

	text_add_count(&text, count);
	return put(out, &text);
}

#define WHOLE_MAX 1e21 /* from here on with an exponent, as JavaScript has it */

/* False: the value needs digits of its type. */
static bool add_plain(struct bytes *out, double value)
{
	if (!isfinite(value))
		bytes_text(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
	else if (value == floor(value) && fabs(value) < WHOLE_MAX)
		bytes_printf(out, "%.0f", value);
	else
		return false;
	return true;
}

void text_add_f64(struct bytes *out, double value)
{
	char text[40];

	if (add_plain(out, value))
		return;
	/* 15 digits are always exact in a double; 17 always suffice. The locale is always "C". */
	for (int digits = 15; digits <= 17; digits++) {
		text_set(text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	bytes_text(out, text);
}

void text_add_f32(struct bytes *out, float value)
{
	char text[40];

	if (add_plain(out, (double)value))
		return;
	for (int digits = 6; digits <= 9; digits++) {
		text_set(text, "%.*g", digits, (double)value);
		if (strtof(text, NULL) == value)
			break;
	}
	bytes_text(out, text);
}

bool text_parse_u64(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	}
	*ret_value = value;
	return true;
}

/* hh:mm:ss or dd:hh:mm:ss, the seconds with a fraction if wanted. */
static bool parse_clock(const char *text, uint64_t *ret_ns)
{
	static const uint64_t unit_s[] = { 1, 60, 3600, 86400 };
	unsigned colons = 0;
	double seconds = 0;

	for (const char *p = text; *p; p++)
		colons += *p == ':';
	if (colons != 2 && colons != 3)
		return false;
	for (unsigned part = colons + 1; part-- > 0;) {
		char *end;
		if (*text < '0' || *text > '9')
			return false;
		double value = strtod(text, &end);
		if (part < 3 && part > 0 && value >= (part == 2 ? 24 : 60))
			return false;
		if ((part == 0 && value >= 60) || *end != (part ? ':' : '\0'))
			return false;
		seconds += value * (double)unit_s[part];
		text = end + 1;
	}
	if (seconds >= 1e9)
		return false;
	*ret_ns = (uint64_t)llround(seconds * 1e9);
	return true;
}

bool text_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double scale_ns;
	} units[] = { { "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "m", 60e9 },
		{ "min", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 } };

	if (strchr(text, ':'))
		return parse_clock(text, ret_ns);
	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false; /* strtod would take hexadecimal */
	char *end;
	double value = strtod(text, &end);

	if (end == text)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		double ns = value * units[i].scale_ns;
		if (!(ns >= 1 && ns < 1e18))
			return false;
		*ret_ns = (uint64_t)llround(ns);
		return true;
	}
	return false;
}

bool text_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char letters[] = "kMGT";
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false; /* strtod would take hexadecimal */
	double value = strtod(text, &end);

	end += strspn(end, " ");
	const char *letter = *end ? strchr(letters, *end == 'K'   ? 'k'
						    : *end == 'm' ? 'M'
						    : *end == 'g' ? 'G'
								  : *end)
				  : NULL;

	if (letter) {
		double unit = end[1] == 'i' ? 1024 : 1000;
		end += end[1] == 'i' ? 2 : 1;
		for (const char *p = letters; p <= letter; p++)
			value *= unit;
	}
	end += *end == 'B';
	if (*end || !(value >= 1 && value < 9e18))
		return false;
	*ret_bytes = (uint64_t)value;
	return true;
}

#define DISTANCE_LEN_MAX 63

unsigned text_distance(const char *a, const char *b)
{
	size_t a_len = strlen(a);
	size_t b_len = strlen(b);
	unsigned row[DISTANCE_LEN_MAX + 1];

	if (a_len > DISTANCE_LEN_MAX || b_len > DISTANCE_LEN_MAX)
		return DISTANCE_LEN_MAX;
	for (unsigned j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < change)
				change = row[j] + 1;
			if (row[j - 1] + 1 < change)
				change = row[j - 1] + 1;
			row[j] = change;
		}
	}
	return row[b_len];
}

bool text_glob(const char *pattern, const char *text)
{
	const char *star = NULL;
	const char *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
