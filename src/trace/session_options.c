/* See session_options.h. */
#include "trace/session_options.h"

#include <stdbool.h>
#include <string.h>

struct option_token {
	const char *at;
	size_t len;
};

struct options_reader {
	const char *at;
	const char *end;
};

static void skip_blanks(struct options_reader *r)
{
	while (r->at < r->end && memchr(" \t\r\n", *r->at, 4))
		r->at++;
}

/* A string, without its quotes and with its escapes. */
static struct option_token read_string(struct options_reader *r)
{
	struct option_token token = { .at = ++r->at };

	while (r->at < r->end && *r->at != '"')
		r->at += *r->at == '\\' && r->end - r->at > 1 ? 2 : 1;
	token.len = (size_t)(r->at - token.at);
	r->at += r->at < r->end;
	return token;
}

/* A number, true, false or null: up to the next mark. */
static struct option_token read_bare(struct options_reader *r)
{
	struct option_token token = { .at = r->at };

	while (r->at < r->end && !memchr(",:{}[]\" \t\r\n", *r->at, 11))
		r->at++;
	token.len = (size_t)(r->at - token.at);
	return token;
}

static bool token_is(struct option_token token, const char *word)
{
	return token.len == strlen(word) && memcmp(token.at, word, token.len) == 0;
}

static enum session_flag flag_of(struct option_token value)
{
	return token_is(value, "true")    ? SESSION_YES
	       : token_is(value, "false") ? SESSION_NO
					  : SESSION_NOT_SAID;
}

static void take(struct option_token name, struct option_token value, bool quoted,
	struct session_options *options)
{
	if (!quoted) {
#define SESSION_FLAG(member, text)  \
	if (token_is(name, (text))) \
		options->member = flag_of(value);
#include "trace/session_options.def"
		return;
	}
#define SESSION_VALUE(member, enumerator, word)                       \
	if (token_is(name, member##_name) && token_is(value, (word))) \
		options->member = (enumerator);
#define SESSION_WORD(member, text) static const char member##_name[] = text;
#include "trace/session_options.def"
}

const char *session_value_word(enum session_value value)
{
	switch (value) {
	case SESSION_UNKNOWN:
		break;
#define SESSION_VALUE(member, enumerator, word) \
	case enumerator:                        \
		return (word);
#include "trace/session_options.def"
	}
	return NULL;
}

void session_options_read(const char *json, size_t len, struct session_options *ret_options)
{
	struct options_reader r = { .at = json, .end = json + len };
	struct option_token name = { 0 };
	bool named = false; /* the value of `name` follows */
	unsigned depth = 0;

	*ret_options = (struct session_options){ 0 };
	for (skip_blanks(&r); r.at < r.end; skip_blanks(&r)) {
		bool quoted = *r.at == '"';
		if (quoted || !memchr(",:{}[]", *r.at, 6)) {
			struct option_token token = quoted ? read_string(&r) : read_bare(&r);
			if (named && depth == 1)
				take(name, token, quoted, ret_options);
			name = quoted && !named ? token : (struct option_token){ .at = "" };
			named = false;
			continue;
		}
		depth += *r.at == '{' || *r.at == '[';
		if (*r.at == '}' || *r.at == ']')
			depth -= depth > 0;
		named = *r.at == ':';
		r.at++;
	}
}
