/* See ctf_token.h. */
#include "formats/ctf_token.h"

#include <ctype.h>
#include <stdlib.h>

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
