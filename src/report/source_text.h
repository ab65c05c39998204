/* The text of a source file, by line, as far as it can be found. */
#ifndef SPOOR_REPORT_SOURCE_TEXT_H
#define SPOOR_REPORT_SOURCE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define SOURCE_SIZE_MAX (32u << 20)

struct source_text {
	uint8_t *data; /* NULL: the file was not found */
	size_t size;
	VEC(uint32_t) begins; /* of each line */
	uint64_t changed_ns;  /* UTC */
};

/*
 * Reads the file of debug information `path`, or in one of the folders: below a folder the whole
 * path is tried, then its last parts. -ENOENT: it is nowhere. -ENOMEM. source_text_done() in any
 * case.
 */
int source_text_read(struct source_text *text, const char *path, const char *const *folders,
	uint32_t folder_count);

/* Line number `line`, from 1, without its end; NULL: the file has fewer. */
const char *source_text_line(const struct source_text *text, uint32_t line, size_t *ret_len);

void source_text_done(struct source_text *text);

#endif
