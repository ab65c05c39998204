/*
 * The tokens of CTF's metadata language (TSDL). Blanks and comments lie between them.
 */
#ifndef SPOOR_FORMATS_CTF_TOKEN_H
#define SPOOR_FORMATS_CTF_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN };

struct token {
	const char *at; /* of a text: after the quote, with its escapes */
	size_t len;
	uint64_t number; /* two's complement */
	uint8_t kind;    /* enum token_kind */
	char sign;       /* ':' with `is_define` is :=, '~' is ... */
	bool is_define;
};

/* The token at *at, which is set to its end. The token borrows the text. */
struct token token_next(const char **at, const char *end);

/* Appends a text with the meaning of its escapes, those of C: \" \n \x1b \033. */
void token_add_text(const struct token *token, struct bytes *out);

#endif
