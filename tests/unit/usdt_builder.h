/* A small ELF image in memory with USDT notes, for the tests of usdt_notes.c: one segment with code and data. */
#ifndef SPOOR_TESTS_UNIT_USDT_BUILDER_H
#define SPOOR_TESTS_UNIT_USDT_BUILDER_H

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

#define USDT_BUILD_SHIFT     0x1000u /* address minus offset */
#define USDT_BUILD_CODE      0x1200u
#define USDT_BUILD_SEMAPHORE 0x1310u
#define USDT_BUILD_BASE      0x1320u
#define USDT_BUILD_SEGMENT   0x400u

static inline void usdt_build_note(struct bytes *b, uint32_t type, uint64_t code, uint64_t base,
	uint64_t semaphore, const char *texts, size_t texts_size)
{
	bytes_u32(b, 8);
	bytes_u32(b, (uint32_t)(24 + texts_size));
	bytes_u32(b, type);
	bytes_add(b, "stapsdt", 8);
	bytes_u64(b, code);
	bytes_u64(b, base);
	bytes_u64(b, semaphore);
	bytes_add(b, texts, texts_size);
	while (b->len % 4)
		bytes_u8(b, 0);
}

#define USDT_NOTE(b, type, code, base, semaphore, texts) \
	usdt_build_note((b), (type), (code), (base), (semaphore), (texts), sizeof(texts))

/* Appends a file of 64 bits; without `notes` its section of notes is empty. */
static inline void usdt_build(struct bytes *b, bool notes)
{
	static const char names[] = "\0.note.stapsdt\0.stapsdt.base\0.symtab\0.strtab\0.shstrtab";
	static const char texts[] = "\0imported\0counter";
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
				      EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 6,
		.e_shstrndx = 5 };
	Elf64_Phdr segment = { .p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = USDT_BUILD_SHIFT,
		.p_filesz = USDT_BUILD_SEGMENT,
		.p_memsz = USDT_BUILD_SEGMENT };
	Elf64_Sym symbols[] = {
		{ 0 },
		{ .st_name = 1, .st_shndx = SHN_UNDEF, .st_value = 0x1234 },
		{ .st_name = 10, .st_shndx = 1, .st_value = 0x1300 },
	};
	struct bytes list = { 0 };

	if (notes) {
		USDT_NOTE(&list, 3, USDT_BUILD_CODE, USDT_BUILD_BASE, 0,
			"shop\0order\0-4@%edi 8@%rsi");
		USDT_NOTE(&list, 4, USDT_BUILD_CODE, USDT_BUILD_BASE, 0, "other\0type\0");
		USDT_NOTE(&list, 3, USDT_BUILD_CODE + 4, USDT_BUILD_BASE, USDT_BUILD_SEMAPHORE,
			"shop\0refund\0");
		USDT_NOTE(&list, 3, USDT_BUILD_CODE + 8 - 0x100, USDT_BUILD_BASE - 0x100, 0,
			"shop\0moved\0");
		USDT_NOTE(&list, 3, 0x999999, USDT_BUILD_BASE, 0, "shop\0outside\0");
		USDT_NOTE(&list, 3, USDT_BUILD_CODE, USDT_BUILD_BASE, 0, "shop");
	}
	uint64_t at = USDT_BUILD_SEGMENT;
	Elf64_Shdr sections[6] = {
		{ 0 },
		{ .sh_name = 1, .sh_type = SHT_NOTE, .sh_offset = at, .sh_size = list.len },
		{ .sh_name = 15,
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC,
			.sh_addr = USDT_BUILD_BASE,
			.sh_offset = 0x320,
			.sh_size = 1 },
		{ .sh_name = 29,
			.sh_type = SHT_SYMTAB,
			.sh_offset = at + list.len,
			.sh_size = sizeof(symbols),
			.sh_link = 4,
			.sh_entsize = sizeof(Elf64_Sym) },
		{ .sh_name = 37,
			.sh_type = SHT_STRTAB,
			.sh_offset = at + list.len + sizeof(symbols),
			.sh_size = sizeof(texts) },
		{ .sh_name = 45,
			.sh_type = SHT_STRTAB,
			.sh_offset = at + list.len + sizeof(symbols) + sizeof(texts),
			.sh_size = sizeof(names) },
	};
	header.e_shoff = sections[5].sh_offset + sizeof(names);
	bytes_add(b, &header, sizeof(header));
	bytes_add(b, &segment, sizeof(segment));
	while (b->len < USDT_BUILD_SEGMENT)
		bytes_u8(b, 0);
	if (list.len)
		bytes_add(b, list.data, list.len);
	bytes_add(b, symbols, sizeof(symbols));
	bytes_add(b, texts, sizeof(texts));
	bytes_add(b, names, sizeof(names));
	bytes_add(b, sections, sizeof(sections));
	bytes_done(&list);
}

#endif
