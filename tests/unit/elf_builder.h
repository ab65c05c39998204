/*
 * A small ELF file in memory, for the tests of elf.c and symbol_file.c: one executable segment, a
 * build id, a debug link, and a .symtab of the symbols that elf_symbols lists.
 */
#ifndef SPOOR_TESTS_UNIT_ELF_BUILDER_H
#define SPOOR_TESTS_UNIT_ELF_BUILDER_H

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

#define ELF_BUILD_VADDR     0x2000u
#define ELF_BUILD_OFFSET    0x400u
#define ELF_BUILD_TEXT_SIZE 0x800u

/* Section numbers. */
enum {
	BUILD_NULL,
	BUILD_TEXT,
	BUILD_DATA,
	BUILD_SYMTAB,
	BUILD_STRTAB,
	BUILD_NOTE,
	BUILD_LINK,
	BUILD_NAMES,
	BUILD_COUNT
};

struct build_symbol {
	const char *name;
	uint32_t value;
	uint32_t size;
	uint8_t info; /* bind << 4 | type */
	uint16_t section;
};

#define FUNC(bind)   (uint8_t)((bind) << 4 | 2)
#define NOTYPE(bind) (uint8_t)((bind) << 4)

static const struct build_symbol elf_symbols[] = {
	{ "local_alias", 0x2000, 0x40, FUNC(0), BUILD_TEXT },
	{ "__first", 0x2000, 0x40, FUNC(1), BUILD_TEXT },
	{ "first", 0x2000, 0x40, FUNC(2), BUILD_TEXT },
	{ "outer", 0x2100, 0x100, FUNC(1), BUILD_TEXT },
	{ "inner@@VERS_2", 0x2140, 0x20, FUNC(0), BUILD_TEXT },
	{ "assembly", 0x2300, 0, FUNC(1), BUILD_TEXT },
	{ "label", 0x2310, 0, NOTYPE(0), BUILD_TEXT },
	{ "after_assembly", 0x2340, 0x10, FUNC(1), BUILD_TEXT },
	{ "last_unsized", 0x2700, 0, FUNC(1), BUILD_TEXT },
	{ "in_data", 0x2400, 0x10, FUNC(1), BUILD_DATA },
	{ "object", 0x2500, 0x10, (uint8_t)(1 << 4 | 1), BUILD_TEXT },
	{ "imported", 0x2600, 0x10, FUNC(1), 0 },
	{ "far_away", 0x900000, 0x10, FUNC(1), BUILD_TEXT },
	{ "$s4shop4burnyyF", 0x2440, 0x10, FUNC(1), BUILD_TEXT },
	{ "$d.1", 0x2460, 0x10, FUNC(1), BUILD_TEXT },
	{ "_ZN3FooD2Ev", 0x2680, 0x10, FUNC(1), BUILD_TEXT },
};
#define ELF_SYMBOL_COUNT (sizeof(elf_symbols) / sizeof(elf_symbols[0]))

static inline void build_word(struct bytes *b, bool is_64, uint64_t value)
{
	if (is_64)
		bytes_u64(b, value);
	else
		bytes_u32(b, (uint32_t)value);
}

static inline void build_pad(struct bytes *b, size_t to)
{
	while (b->len < to)
		bytes_u8(b, 0);
}

struct build_section {
	const char *name;
	uint32_t type;
	uint32_t flags;
	uint64_t vaddr;
	uint64_t offset;
	uint64_t size;
	uint32_t link;
};

static inline void elf_build(struct bytes *b, bool is_64)
{
	struct build_section sections[BUILD_COUNT] = {
		[BUILD_NULL] = { .name = "" },
		[BUILD_TEXT] = { ".text", 1, 6, ELF_BUILD_VADDR, ELF_BUILD_OFFSET,
			ELF_BUILD_TEXT_SIZE, 0 },
		[BUILD_DATA] = { ".data", 1, 3, 0x2400, ELF_BUILD_OFFSET, 0x100, 0 },
		[BUILD_SYMTAB] = { ".symtab", 2, 0, 0, 0, 0, BUILD_STRTAB },
		[BUILD_STRTAB] = { ".strtab", 3, 0, 0, 0, 0, 0 },
		[BUILD_NOTE] = { ".note.gnu.build-id", 7, 2, 0, 0, 0, 0 },
		[BUILD_LINK] = { ".gnu_debuglink", 1, 0, 0, 0, 0, 0 },
		[BUILD_NAMES] = { ".shstrtab", 3, 0, 0, 0, 0, 0 },
	};
	static const uint8_t id[20] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
		0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x01, 0x23, 0x45, 0x67 };
	uint32_t names[BUILD_COUNT];
	uint32_t texts[ELF_SYMBOL_COUNT];

	/* The header. The offset of the section table is patched in at the end. */
	bytes_add(b,
		"\x7f"
		"ELF",
		4);
	bytes_u8(b, is_64 ? 2 : 1);
	bytes_u8(b, 1);
	bytes_u8(b, 1);
	build_pad(b, 16);
	bytes_u16(b, 3);
	bytes_u16(b, is_64 ? 62 : 3);
	bytes_u32(b, 1);
	build_word(b, is_64, 0);
	build_word(b, is_64, is_64 ? 64 : 52);
	size_t sections_at = b->len;
	build_word(b, is_64, 0);
	bytes_u32(b, 0);
	bytes_u16(b, is_64 ? 64 : 52);
	bytes_u16(b, is_64 ? 56 : 32);
	bytes_u16(b, 1);
	bytes_u16(b, is_64 ? 64 : 40);
	bytes_u16(b, BUILD_COUNT);
	bytes_u16(b, BUILD_NAMES);
	/* One PT_LOAD, readable and executable. */
	bytes_u32(b, 1);
	if (is_64)
		bytes_u32(b, 5);
	build_word(b, is_64, ELF_BUILD_OFFSET);
	build_word(b, is_64, ELF_BUILD_VADDR);
	build_word(b, is_64, ELF_BUILD_VADDR);
	build_word(b, is_64, ELF_BUILD_TEXT_SIZE);
	build_word(b, is_64, ELF_BUILD_TEXT_SIZE);
	if (!is_64)
		bytes_u32(b, 5);
	build_word(b, is_64, 4096);
	build_pad(b, ELF_BUILD_OFFSET + ELF_BUILD_TEXT_SIZE);

	sections[BUILD_STRTAB].offset = b->len;
	bytes_u8(b, 0);
	for (size_t i = 0; i < ELF_SYMBOL_COUNT; i++) {
		texts[i] = (uint32_t)(b->len - sections[BUILD_STRTAB].offset);
		bytes_add(b, elf_symbols[i].name, strlen(elf_symbols[i].name) + 1);
	}
	sections[BUILD_STRTAB].size = b->len - sections[BUILD_STRTAB].offset;

	sections[BUILD_SYMTAB].offset = b->len;
	build_pad(b, b->len + (is_64 ? 24 : 16));
	for (size_t i = 0; i < ELF_SYMBOL_COUNT; i++) {
		bytes_u32(b, texts[i]);
		if (!is_64) {
			bytes_u32(b, elf_symbols[i].value);
			bytes_u32(b, elf_symbols[i].size);
		}
		bytes_u8(b, elf_symbols[i].info);
		bytes_u8(b, 0);
		bytes_u16(b, elf_symbols[i].section);
		if (is_64) {
			bytes_u64(b, elf_symbols[i].value);
			bytes_u64(b, elf_symbols[i].size);
		}
	}
	sections[BUILD_SYMTAB].size = b->len - sections[BUILD_SYMTAB].offset;

	sections[BUILD_NOTE].offset = b->len;
	bytes_u32(b, 4);
	bytes_u32(b, sizeof(id));
	bytes_u32(b, 3);
	bytes_add(b, "GNU", 4);
	bytes_add(b, id, sizeof(id));
	sections[BUILD_NOTE].size = b->len - sections[BUILD_NOTE].offset;

	sections[BUILD_LINK].offset = b->len;
	bytes_add(b, "x.debug", 8);
	bytes_u32(b, 0x12345678);
	sections[BUILD_LINK].size = b->len - sections[BUILD_LINK].offset;

	sections[BUILD_NAMES].offset = b->len;
	for (unsigned i = 0; i < BUILD_COUNT; i++) {
		names[i] = (uint32_t)(b->len - sections[BUILD_NAMES].offset);
		bytes_add(b, sections[i].name, strlen(sections[i].name) + 1);
	}
	sections[BUILD_NAMES].size = b->len - sections[BUILD_NAMES].offset;

	bytes_set_u32(b, sections_at, (uint32_t)b->len);
	for (unsigned i = 0; i < BUILD_COUNT; i++) {
		bytes_u32(b, names[i]);
		bytes_u32(b, sections[i].type);
		build_word(b, is_64, sections[i].flags);
		build_word(b, is_64, sections[i].vaddr);
		build_word(b, is_64, sections[i].offset);
		build_word(b, is_64, sections[i].size);
		bytes_u32(b, sections[i].link);
		bytes_u32(b, 0);
		build_word(b, is_64, 1);
		build_word(b, is_64, 0);
	}
}

#endif
