/* See ctf_token.h. */
#include "formats/ctf_token.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

struct text {
	const char *at;
	const char *end;
};

static void skip_blanks(struct text *p)
{
	while (p->at < p->end) {
		if (isspace((unsigned char)*p->at)) {
			p->at++;
		} else if (p->end - p->at >= 2 && p->at[0] == '/' && p->at[1] == '*') {
			p->at += 2;
			while (p->end - p->at >= 2 && (p->at[0] != '*' || p->at[1] != '/'))
				p->at++;
			p->at = p->end - p->at >= 2 ? p->at + 2 : p->end;
		} else if (p->end - p->at >= 2 && p->at[0] == '/' && p->at[1] == '/') {
			while (p->at < p->end && *p->at != '\n')
				p->at++;
		} else {
			break;
		}
	}
}

static bool is_word(char c, bool first)
{
	return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

static void lex_number(struct text *p, struct token *t)
{
	char digits[32];
	size_t len = 0;
	bool negative = *p->at == '-';

	p->at += negative;
	while (p->at < p->end && isalnum((unsigned char)*p->at) && len < sizeof(digits) - 1)
		digits[len++] = *p->at++;
	digits[len] = '\0';
	t->kind = TOKEN_NUMBER;
	t->number = strtoull(digits, NULL, 0);
	if (negative)
		t->number = 0 - t->number;
}

static struct token lex(struct text *p)
{
	struct token t = { 0 };

	skip_blanks(p);
	t.at = p->at;
	if (p->at >= p->end)
		return t;
	if (is_word(*p->at, true)) {
		while (p->at < p->end && is_word(*p->at, false))
			p->at++;
		t.kind = TOKEN_WORD;
	} else if (isdigit((unsigned char)*p->at) ||
		   (*p->at == '-' && p->end - p->at >= 2 && isdigit((unsigned char)p->at[1]))) {
		lex_number(p, &t);
	} else if (*p->at == '"') {
		t.at = ++p->at;
		while (p->at < p->end && *p->at != '"')
			p->at += *p->at == '\\' && p->end - p->at >= 2 ? 2 : 1;
		t.kind = TOKEN_TEXT;
		t.len = (size_t)(p->at - t.at);
		p->at += p->at < p->end;
		return t;
	} else {
		t.kind = TOKEN_SIGN;
		t.sign = *p->at++;
		t.is_define = t.sign == ':' && p->at < p->end && *p->at == '=';
		p->at += t.is_define;
		if (t.sign == '.' && p->end - p->at >= 2 && p->at[0] == '.' && p->at[1] == '.') {
			t.sign = '~'; /* ... */
			p->at += 2;
		}
	}
	t.len = (size_t)(p->at - t.at);
	return t;
}

struct token token_next(const char **at, const char *end)
{
	struct text text = { .at = *at, .end = end };
	struct token token = lex(&text);

	*at = text.at;
	return token;
}

/* The digits at `at`, at most `max` of them, as one byte, if there are any; returns how many. */
static size_t read_digits(const char *at, size_t left, size_t max, int base, uint8_t *ret_byte)
{
	char digits[4] = "";
	char *end = digits;

	for (size_t i = 0; i < max && i < left && isxdigit((unsigned char)at[i]); i++)
		digits[i] = at[i];
	if (digits[0])
		*ret_byte = (uint8_t)strtoul(digits, &end, base);
	return (size_t)(end - digits);
}

void token_add_text(const struct token *token, struct bytes *out)
{
	static const char letters[] = "abfnrtv", meanings[] = "\a\b\f\n\r\t\v";
	const char *at = token->at, *end = at + token->len;

	while (at < end) {
		if (*at != '\\' || end - at < 2) {
			bytes_u8(out, (uint8_t)*at++);
			continue;
		}
		const char c = at[1];
		const char *letter = memchr(letters, c, sizeof(letters) - 1);
		uint8_t byte = letter ? (uint8_t)meanings[letter - letters] : (uint8_t)c;
		at += 2;
		if (c == 'x')
			at += read_digits(at, (size_t)(end - at), 2, 16, &byte);
		else if (c >= '0' && c <= '7')
			at += read_digits(at - 1, (size_t)(end - at) + 1, 3, 8, &byte) - 1;
		bytes_u8(out, byte);
	}
}
