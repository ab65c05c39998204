/*
 * The tokens of CTF's metadata language (TSDL). Blanks and comments lie between them.
 */
#ifndef SPOOR_FORMATS_CTF_TOKEN_H
#define SPOOR_FORMATS_CTF_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN };

struct token {
	const char *at; /* of a text: after the quote */
	size_t len;
	uint64_t number; /* two's complement */
	uint8_t kind;    /* enum token_kind */
	char sign;       /* ':' with `is_define` is :=, '~' is ... */
	bool is_define;
};

/* The token at *at, which is moved behind it. The token borrows the text. */
struct token token_next(const char **at, const char *end);

#endif
