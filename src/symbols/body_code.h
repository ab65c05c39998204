/*
 * The machine code and the source lines of bodies that were sampled (analysis/instructions.h): native
 * code from the image at its path, if it has the recorded build id; managed code as it was recorded.
 */
#ifndef SPOOR_SYMBOLS_BODY_CODE_H
#define SPOOR_SYMBOLS_BODY_CODE_H

#include <stdint.h>

struct bytes;
struct instruction_body;
struct line_names;
struct trace;

enum body_code_answer {
	BODY_CODE_FOUND,
	BODY_CODE_NOT_RECORDED, /* managed code, without record --code */
	BODY_CODE_NO_IMAGE,     /* the file is not here */
	BODY_CODE_OTHER_IMAGE,  /* the file here has another build id, or the recording has none */
	BODY_CODE_TOO_LARGE,
};

/* Appends the code to `out`. A negative errno: no memory. */
int body_code_load(const struct trace *trace, const struct instruction_body *body,
	struct bytes *out);

/* Wants the lines of this offset: line_names_find() and managed_lines_find() then look them up. 0 or -ENOMEM. */
int body_code_want(struct line_names *lines, const struct instruction_body *body, uint32_t offset);

#endif
