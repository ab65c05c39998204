/*
 * See go_functions.h. The layout is that of Go's src/internal/abi and src/debug/gosym, little-endian:
 *
 *   u32 magic, u16 0, u8 instruction size, u8 pointer size P, then words of P bytes:
 *   0xfffffffa (Go 1.16)         functions, files, offsets of names, units, files, pc data, functions
 *   0xfffffff0, f1 (1.18, 1.20)  functions, files, begin of the code, the same offsets
 *
 * At the last offset is, for each function and once for the end of the last, its address and the offset of
 * its record from there: words (1.16), or u32s and from the begin of the code. A record begins with the
 * address again, then i32: where its name begins, after the offset of names.
 */
#include "code/go_functions.h"

#include <errno.h>

#include "base/cursor.h"

#define MAGIC_16     0xfffffffau
#define MAGIC_18     0xfffffff0u
#define MAGIC_20     0xfffffff1u
#define HEADER_BYTES 8u

static struct cursor at(const struct go_table *table, uint64_t offset)
{
	struct cursor none = { .short_read = true };

	return offset < table->size ? cursor_of(table->data + offset, table->size - (size_t)offset)
				    : none;
}

static uint64_t word(struct cursor *c, unsigned size)
{
	return size == 8 ? cursor_u64(c) : cursor_u32(c);
}

int go_table_read(struct go_table *ret_table, const uint8_t *data, size_t size)
{
	struct go_table table = { .data = data, .size = size };
	struct cursor c = at(&table, 0);
	uint32_t magic = cursor_u32(&c);

	cursor_skip(&c, 2);
	table.code_unit = cursor_u8(&c);
	table.pointer_size = cursor_u8(&c);
	if (c.short_read || magic < MAGIC_18 ||
		(table.pointer_size != 4 && table.pointer_size != 8))
		return -EBADMSG;
	if (magic != MAGIC_16 && magic != MAGIC_18 && magic != MAGIC_20)
		return -ENOTSUP;
	table.relative = magic != MAGIC_16;
	table.has_start_lines = magic == MAGIC_20;
	table.count = word(&c, table.pointer_size);
	(void)word(&c, table.pointer_size); /* number of files */
	if (table.relative)
		table.code_begin = word(&c, table.pointer_size);
	table.names = word(&c, table.pointer_size);
	table.units = word(&c, table.pointer_size);
	table.files = word(&c, table.pointer_size);
	table.values = word(&c, table.pointer_size);
	table.functions = word(&c, table.pointer_size);
	if (c.short_read || table.count > GO_FUNCTIONS_MAX || table.names >= table.size ||
		table.functions >= table.size)
		return -EBADMSG;
	/* The loader writes it into a position-independent program; its file has 0. */
	if (table.relative && !table.code_begin)
		return -ENOTSUP;
	*ret_table = table;
	return 0;
}

int go_functions_read(const uint8_t *data, size_t size, uint64_t *ret_names, go_function *each,
	void *context)
{
	struct go_table table;
	int result = go_table_read(&table, data, size);

	if (result < 0)
		return result;
	*ret_names = table.names;
	unsigned width = table.relative ? 4 : table.pointer_size;
	struct cursor entries = at(&table, table.functions);
	uint64_t begin = word(&entries, width) + table.code_begin;

	for (uint64_t i = 0; i < table.count; i++) {
		uint64_t record_at = word(&entries, width);
		uint64_t end = word(&entries, width) + table.code_begin;
		struct cursor record = at(&table, table.functions + record_at);
		uint64_t again = word(&record, width) + table.code_begin;
		uint32_t name = cursor_u32(&record);
		if (entries.short_read || record.short_read || again != begin || end < begin ||
			table.names + (uint64_t)name >= size)
			return -EBADMSG;
		if (end > begin && !each(context, begin, end, name))
			return -ECANCELED;
		begin = end;
	}
	return 0;
}
