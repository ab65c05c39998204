/* The blocks of a nettrace file of version 6, and texts in them, as they are written. */
#ifndef SPOOR_NETTRACE_NETTRACE_BLOCK_H
#define SPOOR_NETTRACE_NETTRACE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "nettrace/nettrace_tags.h"

struct bytes;
struct trace;

/* Content of a block stays below this plus one event or stack; the format's limit is 16 MiB - 1. */
#define BLOCK_SIZE_AIM (1u << 20)

/* Returns the block's place in `out`, for block_end(), which returns its size. */
size_t block_begin(struct bytes *out);
size_t block_end(struct bytes *out, size_t at, enum block_kind kind);

/* A text: varuint length and bytes. */
void block_string(struct bytes *out, const char *text, size_t len);
void block_z(struct bytes *out, const char *text);
void block_text(struct bytes *out, const struct trace *trace, uint32_t text);

#endif
