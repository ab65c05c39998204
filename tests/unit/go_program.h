/*
 * A small Go program without DWARF, in memory: main.outer at 0x401000 of 0x40 bytes, with main.middle inlined, and
 * main.inner inlined into that; main.plain after it.
 *
 *   code of outer   0x00  line 20                     0x10  main.inner at b.go:5, called at a.go:12, called at a.go:21
 *                   0x20  line 12 of main.middle, called at line 21                 0x30  line 22
 */
#ifndef SPOOR_TESTS_UNIT_GO_PROGRAM_H
#define SPOOR_TESTS_UNIT_GO_PROGRAM_H

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

#define GO_LOAD  0x400000u
#define GO_CODE  0x401000u
#define GO_TABLE 0x100u /* offset in the file */
#define GO_WORDS 42u

static inline void go_text(struct bytes *b, const char *text)
{
	bytes_add(b, text, strlen(text) + 1);
}

static inline void go_pad(struct bytes *b, size_t to)
{
	while (b->len < to)
		bytes_u8(b, 0);
}

/* Pairs of a value and the number of bytes for which it holds; ends with 0 bytes. Returns its offset. */
static inline uint32_t go_values(struct bytes *b, const int *pairs)
{
	uint32_t at = (uint32_t)b->len;
	int value = -1;

	for (; pairs[1]; pairs += 2) {
		int change = pairs[0] - value;
		bytes_u8(b, (uint8_t)(change < 0 ? -change * 2 - 1 : change * 2));
		bytes_u8(b, (uint8_t)pairs[1]);
		value = pairs[0];
	}
	bytes_u8(b, 0);
	return at;
}

static inline void go_record(struct bytes *b, bool newer, uint32_t begin, uint32_t name,
	uint32_t files, uint32_t lines, uint32_t inlined, uint32_t tree)
{
	bytes_u32(b, begin);
	bytes_u32(b, name);
	for (unsigned i = 0; i < 3; i++)
		bytes_u32(b, 0);
	bytes_u32(b, files);
	bytes_u32(b, lines);
	bytes_u32(b, inlined ? 3 : 0);
	bytes_u32(b, 0); /* unit */
	if (newer)
		bytes_u32(b, 20);
	bytes_u32(b, inlined ? 4u << 24 : 0);
	if (!inlined)
		return;
	bytes_u32(b, 0);
	bytes_u32(b, 0);
	bytes_u32(b, inlined);
	for (unsigned i = 0; i < 3; i++)
		bytes_u32(b, UINT32_MAX);
	bytes_u32(b, tree);
}

static inline void go_call(struct bytes *b, bool newer, uint32_t name, uint32_t place)
{
	bytes_u32(b, 0);
	if (!newer) {
		bytes_u32(b, 0);
		bytes_u32(b, 0);
	}
	bytes_u32(b, name);
	bytes_u32(b, place);
	if (newer)
		bytes_u32(b, 1);
}

static inline void go_section(struct bytes *b, uint32_t name, uint32_t type, uint64_t offset,
	uint64_t size)
{
	bytes_u32(b, name);
	bytes_u32(b, type);
	bytes_u64(b, 2);
	bytes_u64(b, GO_LOAD + offset);
	bytes_u64(b, offset);
	bytes_u64(b, size);
	bytes_u64(b, 0);
	bytes_u64(b, 8);
	bytes_u64(b, 0);
}

/* The .gopclntab alone; `ret_names`: offset of the names. */
static inline void go_table_build(struct bytes *b, bool newer, uint32_t *ret_names)
{
	static const int files[] = { 0, 0x10, 1, 0x10, 0, 0x20, 0, 0 };
	static const int lines[] = { 20, 0x10, 5, 0x10, 12, 0x10, 22, 0x10, 0, 0 };
	static const int calls[] = { -1, 0x10, 1, 0x10, 0, 0x10, -1, 0x10, 0, 0 };
	static const int plain_files[] = { 0, 0x10, 0, 0 };
	static const int plain_lines[] = { 30, 0x10, 0, 0 };
	struct bytes values = { 0 };

	bytes_u8(&values, 0); /* offset 0: none */
	uint32_t file_at = go_values(&values, files);
	uint32_t line_at = go_values(&values, lines);
	uint32_t call_at = go_values(&values, calls);
	uint32_t plain_file_at = go_values(&values, plain_files);
	uint32_t plain_line_at = go_values(&values, plain_lines);
	uint32_t names = 72;
	uint32_t units = names + 48;
	uint32_t paths = units + 8;
	uint32_t values_at = paths + 24;
	uint32_t functions = (uint32_t)((values_at + values.len + 7) & ~(size_t)7);

	bytes_u32(b, newer ? 0xfffffff1 : 0xfffffff0);
	bytes_u16(b, 0);
	bytes_u8(b, 1);
	bytes_u8(b, 8);
	bytes_u64(b, 2);
	bytes_u64(b, 2);
	bytes_u64(b, GO_CODE);
	bytes_u64(b, names);
	bytes_u64(b, units);
	bytes_u64(b, paths);
	bytes_u64(b, values_at);
	bytes_u64(b, functions);
	go_text(b, "main.outer");  /* 72 */
	go_text(b, "main.middle"); /* + 11 */
	go_text(b, "main.inner");  /* + 23 */
	go_text(b, "main.plain");  /* + 34 */
	go_pad(b, units);
	bytes_u32(b, 0);
	bytes_u32(b, 10);
	go_text(b, "/src/a.go");
	go_text(b, "/src/b.go");
	go_pad(b, values_at);
	bytes_add(b, values.data, values.len);
	bytes_done(&values);
	go_pad(b, functions);
	uint32_t outer_size = (newer ? 44u : 40u) + 7 * 4;
	bytes_u32(b, 0);
	bytes_u32(b, 20);
	bytes_u32(b, 0x40);
	bytes_u32(b, 20 + outer_size);
	bytes_u32(b, 0x50);
	go_record(b, newer, 0, 0, file_at, line_at, call_at, 0);
	go_record(b, newer, 0x40, 34, plain_file_at, plain_line_at, 0, 0);
	*ret_names = names;
}

/* The whole file. */
static inline void go_program_build(struct bytes *b, bool newer)
{
	static const char section_names[] = "\0.gopclntab\0.noptrdata\0.shstrtab";
	struct bytes table = { 0 };
	uint32_t names;

	go_table_build(&table, newer, &names);
	size_t words_at = (GO_TABLE + table.len + 7) & ~(size_t)7;
	size_t trees_at = words_at + GO_WORDS * 8;
	size_t names_at = trees_at + 64;
	size_t sections_at = names_at + 64;
	size_t end = sections_at + 4 * 64;

	bytes_add(b,
		"\x7f"
		"ELF\2\1\1",
		7);
	go_pad(b, 16);
	bytes_u16(b, 2);
	bytes_u16(b, 62);
	bytes_u32(b, 1);
	bytes_u64(b, GO_CODE);
	bytes_u64(b, 64);
	bytes_u64(b, sections_at);
	bytes_u32(b, 0);
	bytes_u16(b, 64);
	bytes_u16(b, 56);
	bytes_u16(b, 1);
	bytes_u16(b, 64);
	bytes_u16(b, 4);
	bytes_u16(b, 3);
	bytes_u32(b, 1);
	bytes_u32(b, 5);
	bytes_u64(b, 0);
	bytes_u64(b, GO_LOAD);
	bytes_u64(b, GO_LOAD);
	bytes_u64(b, end);
	bytes_u64(b, 0x2000);
	bytes_u64(b, 4096);
	go_pad(b, GO_TABLE);
	bytes_add(b, table.data, table.len);
	go_pad(b, words_at);
	for (unsigned i = 0; i < GO_WORDS; i++)
		bytes_u64(b, i == 0                   ? GO_LOAD + GO_TABLE
			     : i == 1                 ? GO_LOAD + GO_TABLE + names
			     : i == 22                ? GO_CODE
			     : i == (newer ? 40 : 38) ? GO_LOAD + trees_at
						      : 0);
	go_call(b, newer, 11, 0x31); /* main.middle; line 22 has its call */
	go_call(b, newer, 23, 0x28); /* main.inner, called in main.middle */
	go_pad(b, names_at);
	bytes_add(b, section_names, sizeof(section_names));
	go_pad(b, sections_at);
	go_section(b, 0, 0, 0, 0);
	go_section(b, 1, 1, GO_TABLE, table.len);
	go_section(b, 12, 1, words_at, GO_WORDS * 8);
	go_section(b, 23, 3, names_at, sizeof(section_names));
	bytes_done(&table);
}

#endif
