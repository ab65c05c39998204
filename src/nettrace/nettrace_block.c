/* See nettrace_block.h. */
#include "nettrace/nettrace_block.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "trace/trace.h"

size_t block_begin(struct bytes *out)
{
	size_t at = out->len;

	bytes_u32(out, 0);
	return at;
}

size_t block_end(struct bytes *out, size_t at, enum block_kind kind)
{
	size_t size = out->len - at - 4;

	assert(out->failed || size < 1u << BLOCK_SIZE_BITS);
	bytes_set_u32(out, at, (uint32_t)size | (uint32_t)kind << BLOCK_SIZE_BITS);
	return size + 4;
}

void block_string(struct bytes *out, const char *text, size_t len)
{
	bytes_varuint(out, len);
	bytes_add(out, text, len);
}

void block_z(struct bytes *out, const char *text)
{
	block_string(out, text, strlen(text));
}

void block_text(struct bytes *out, const struct trace *trace, uint32_t text)
{
	block_string(out, strtab_get(&trace->strings, text), strtab_len(&trace->strings, text));
}
