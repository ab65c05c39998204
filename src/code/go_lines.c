/*
 * See go_lines.h. The layout is that of Go's src/runtime/symtab.go and src/internal/abi; the header is in
 * go_functions.h.
 *
 * Record of a function: u32 begin of its code, i32 name, 2 x 4 bytes, u32 stack sizes, u32 files, u32 lines,
 * u32 number of more values, u32 unit, (1.20: i32 first line), u8 id, u8 flags, u8 0, u8 number of data; then a
 * u32 for each of these values and data. A table of values, at an offset from `values`, is a list of
 * pairs: by how much the value changes (zig-zag, from -1), for how many bytes of code it holds.
 *
 * Value 2 is the index of the innermost inlined call, -1: none. Data 3 is the tree of calls, from an address that
 * the runtime's module data has. A call: (1.18: i16 parent, u8 id, u8 0, i32 file, i32 line, i32 name, i32 place),
 * (1.20: 4 bytes, i32 name, i32 place, i32 line), the place being that of the call in the function's code.
 */
#include "code/go_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/partition_point.h"
#include "code/go_functions.h"
#include "image/elf.h"
#include "image/image_file.h"

#define TABLE_MAX       (UINT64_C(256) << 20)
#define MODULE_DATA_MAX (UINT64_C(64) << 20)
#define STEPS_MAX       (1u << 16) /* of one table of values */
#define WORK_MAX        (1u << 28) /* steps of all queries */
#define DEPTH_MAX       128u
#define VALUE_INLINED   2u
#define DATA_INLINED    3u
#define NO_OFFSET       UINT32_MAX

/* Words of the module data: after six slices, of 3 words, and the tables and sections of the program. */
#define MODULE_NAMES    1u
#define MODULE_CODE     22u
#define MODULE_TREES_18 38u
#define MODULE_TREES_20 40u
#define MODULE_WORDS    41u

struct go_lines {
	const struct image_file *file;
	const struct elf *elf;
	struct go_table table;
	uint8_t *bytes;
	uint64_t table_vaddr;
	uint64_t trees_vaddr; /* 0: unknown, so no inlined call is known */
	uint32_t work;
};

struct go_function {
	uint32_t begin; /* from code_begin */
	uint32_t files;
	uint32_t lines;
	uint32_t unit;
	uint32_t inlined; /* table of values; 0: none */
	uint32_t tree;    /* NO_OFFSET: none */
};

static struct cursor at(const struct go_table *table, uint64_t offset)
{
	struct cursor none = { .short_read = true };

	return offset < table->size ? cursor_of(table->data + offset, table->size - (size_t)offset)
				    : none;
}

/* The NUL-terminated text there; NULL: there is none. */
static const char *text_at(const struct go_table *table, uint64_t offset)
{
	struct cursor c = at(table, offset);
	size_t len;

	return cursor_left(&c) ? cursor_stringz(&c, &len) : NULL;
}

/* A name begins at the begin of the names or after a NUL. NULL: no name begins at this offset. */
static const char *name_at(const struct go_table *table, uint32_t offset)
{
	uint64_t place = table->names + offset;

	if (place >= table->size || (offset && table->data[place - 1]))
		return NULL;
	const char *name = text_at(table, place);
	return name && *name ? name : NULL;
}

static uint32_t entry_at(const struct go_table *table, uint64_t index, uint32_t *ret_record)
{
	struct cursor c = at(table, table->functions + index * 8);
	uint32_t begin = cursor_u32(&c);

	*ret_record = cursor_u32(&c);
	return c.short_read ? UINT32_MAX : begin;
}

/* The function that has this code. False: none, or its record is damaged. */
static bool find_function(const struct go_table *table, uint32_t code, struct go_function *function)
{
	uint32_t record;
	uint64_t low = partition_point(table->count, i, entry_at(table, i, &record) <= code);
	uint32_t unused;
	if (!low || (low == table->count && entry_at(table, low, &unused) <= code))
		return false;
	*function = (struct go_function){ .begin = entry_at(table, low - 1, &record),
		.tree = NO_OFFSET };
	struct cursor c = at(table, table->functions + record);
	bool same = cursor_u32(&c) == function->begin;
	cursor_skip(&c, 4 + 4 + 4 + 4); /* name, arguments, deferred return, stack sizes */
	function->files = cursor_u32(&c);
	function->lines = cursor_u32(&c);
	uint32_t value_count = cursor_u32(&c);
	function->unit = cursor_u32(&c);
	cursor_skip(&c, (table->has_start_lines ? 4u : 0u) + 3u);
	uint8_t data_count = cursor_u8(&c);
	struct cursor values = cursor_sub(&c, (size_t)value_count * 4);
	if (c.short_read)
		return false;
	if (value_count > VALUE_INLINED) {
		cursor_skip(&values, VALUE_INLINED * 4);
		function->inlined = cursor_u32(&values);
	}
	if (data_count > DATA_INLINED) {
		cursor_skip(&c, DATA_INLINED * 4);
		function->tree = cursor_u32(&c);
	}
	return same && !c.short_read;
}

/* The value of a table for the code; -1: none. */
static int64_t value_at(struct go_lines *lines, const struct go_function *function, uint32_t values,
	uint32_t code)
{
	struct cursor c = at(&lines->table, lines->table.values + values);
	uint64_t end = function->begin;
	int64_t value = -1;

	if (!values)
		return -1;
	for (uint32_t i = 0; i < STEPS_MAX && lines->work < WORK_MAX; i++, lines->work++) {
		uint32_t change = cursor_varuint32(&c);
		uint32_t length = cursor_varuint32(&c);
		if (c.short_read || (!change && i))
			return -1;
		value += (int32_t)(change >> 1) ^ -(int32_t)(change & 1);
		end += (uint64_t)length * lines->table.code_unit;
		if (code < end)
			return value > INT32_MAX ? -1 : value;
	}
	return -1;
}

static const char *file_at(struct go_lines *lines, const struct go_function *function,
	uint32_t code)
{
	const struct go_table *table = &lines->table;
	int64_t number = value_at(lines, function, function->files, code);

	if (number < 0)
		return "";
	struct cursor c =
		at(table, table->units + ((uint64_t)function->unit + (uint64_t)number) * 4);
	uint32_t offset = cursor_u32(&c);
	const char *path =
		c.short_read || offset == NO_OFFSET ? NULL : text_at(table, table->files + offset);
	return path ? path : "";
}

/* The inlined call: its name, and the place of the call in the function around it. False: none. */
static bool read_call(const struct go_lines *lines, const struct go_function *function,
	int64_t index, const char **ret_name, uint32_t *ret_place)
{
	bool newer = lines->table.has_start_lines;
	size_t size = newer ? 16 : 20;
	uint8_t bytes[20];
	uint64_t offset;

	if (index < 0 || function->tree == NO_OFFSET || !lines->trees_vaddr ||
		!elf_offset_of_vaddr(lines->elf,
			lines->trees_vaddr + function->tree + (uint64_t)index * size, &offset) ||
		image_file_read(lines->file, offset, bytes, size) < 0)
		return false;
	struct cursor c = cursor_of(bytes, size);
	cursor_skip(&c, newer ? 4 : 12);
	*ret_name = name_at(&lines->table, cursor_u32(&c));
	*ret_place = cursor_u32(&c);
	return *ret_name != NULL;
}

bool go_lines_find(struct go_lines *lines, uint64_t vaddr, go_line *each, void *context)
{
	struct go_function function;
	uint64_t code = vaddr - lines->table.code_begin;
	const char *name;
	uint32_t place;

	if (vaddr < lines->table.code_begin || code >= UINT32_MAX ||
		!find_function(&lines->table, (uint32_t)code, &function))
		return false;
	for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
		int64_t line = value_at(lines, &function, function.lines, (uint32_t)code);
		const char *file = file_at(lines, &function, (uint32_t)code);
		int64_t call = value_at(lines, &function, function.inlined, (uint32_t)code);
		if (line <= 0 && !depth)
			return false;
		uint32_t number = line > 0 ? (uint32_t)line : 0;
		if (!read_call(lines, &function, call, &name, &place))
			return each(context, NULL, file, number);
		if (!each(context, name, file, number))
			return false;
		code = (uint64_t)function.begin + place;
		if (code >= UINT32_MAX)
			break;
	}
	/* Whatever is around so many calls. */
	return each(context, NULL, "", 0);
}

/* ---- opening ---- */

/* The runtime's module data begins with the addresses of the table and of its names. */
static bool take_module(struct go_lines *lines, const uint8_t *words)
{
	const struct go_table *table = &lines->table;
	struct cursor c = cursor_of(words, MODULE_WORDS * 8);
	uint64_t values[MODULE_WORDS];
	uint64_t offset;

	for (unsigned i = 0; i < MODULE_WORDS; i++)
		values[i] = cursor_u64(&c);
	uint64_t trees = values[table->has_start_lines ? MODULE_TREES_20 : MODULE_TREES_18];
	if (values[0] != lines->table_vaddr || values[MODULE_NAMES] != values[0] + table->names ||
		values[MODULE_CODE] != table->code_begin ||
		!elf_offset_of_vaddr(lines->elf, trees, &offset))
		return false;
	lines->trees_vaddr = trees;
	return true;
}

static void find_trees(struct go_lines *lines)
{
	static const char *const names[] = { ".go.module", ".noptrdata", ".data" };

	if (lines->table.pointer_size != 8)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !lines->trees_vaddr; i++) {
		const struct elf_section *section = elf_find_section(lines->elf, names[i]);
		uint8_t *data;
		if (!section || image_file_load(lines->file, section->offset, section->size,
					MODULE_DATA_MAX, &data) < 0)
			continue;
		for (uint64_t word = 0; word + MODULE_WORDS * 8 <= section->size; word += 8)
			if (take_module(lines, data + word))
				break;
		free(data);
	}
}

int go_lines_open(const struct image_file *file, const struct elf *elf, struct go_lines **ret_lines)
{
	const struct elf_section *section = elf_find_section(elf, ".gopclntab");
	struct go_lines *lines;

	if (!section)
		section = elf_find_section(elf, ".data.rel.ro.gopclntab");
	if (!section)
		return -ENODATA;
	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	*lines = (struct go_lines){ .file = file, .elf = elf, .table_vaddr = section->vaddr };
	if (image_file_load(file, section->offset, section->size, TABLE_MAX, &lines->bytes) < 0 ||
		go_table_read(&lines->table, lines->bytes, (size_t)section->size) < 0 ||
		!lines->table.relative) {
		go_lines_close(lines);
		return -ENODATA;
	}
	find_trees(lines);
	*ret_lines = lines;
	return 0;
}

void go_lines_close(struct go_lines *lines)
{
	if (!lines)
		return;
	free(lines->bytes);
	free(lines);
}
