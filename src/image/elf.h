/*
 * The parts of an ELF file (little-endian, 32 or 64 bits) that symbolization needs. Its symbols are
 * read by code/symbol_file.h.
 *
 * A file without a valid section table still has its segments; without usable segments it is
 * refused.
 */
#ifndef SPOOR_IMAGE_ELF_H
#define SPOOR_IMAGE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct diag;
struct image_file;

#define ELF_BUILD_ID_MAX   64u
#define ELF_DEBUG_LINK_MAX 256u

enum elf_section_type {
	ELF_SECTION_NULL = 0,
	ELF_SECTION_SYMTAB = 2,
	ELF_SECTION_STRTAB = 3,
	ELF_SECTION_NOTE = 7,
	ELF_SECTION_NOBITS = 8,
	ELF_SECTION_DYNSYM = 11,
};

enum elf_section_flag {
	ELF_SECTION_ALLOC = 1 << 1,
	ELF_SECTION_EXECUTABLE = 1 << 2,
	ELF_SECTION_COMPRESSED = 1 << 11,
};

/* One PT_LOAD. */
struct elf_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t file_size;
	uint64_t memory_size;
	bool executable;
};

struct elf_section {
	const char *name; /* in memory of the struct elf; "" if it has no name */
	uint64_t flags;   /* enum elf_section_flag */
	uint64_t vaddr;
	uint64_t offset;
	uint64_t size;
	uint64_t entry_size;
	uint32_t type; /* enum elf_section_type */
	uint32_t link;
};

struct elf {
	bool is_64;
	uint16_t type; /* 2 executable, 3 shared object */
	uint16_t machine;
	VEC(struct elf_segment) segments;
	VEC(struct elf_section) sections;
	char *section_names;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint8_t build_id_len;                /* 0: none */
	char debug_link[ELF_DEBUG_LINK_MAX]; /* file name; "" if it has none */
	uint32_t debug_link_crc;
	uint64_t frame_header_vaddr; /* .eh_frame_hdr, sorted list of all functions; size 0: none */
	uint64_t frame_header_size;
	uint64_t text_vaddr; /* of the first executable segment, for the SymbolMetadata JSON */
	uint64_t text_offset;
};

/* On failure `elf` is empty. In both cases elf_done() frees it. */
int elf_read(struct elf *elf, const struct image_file *file, struct diag *diag);

/* Converts a file offset to a load address, and back. False if no segment holds it. */
bool elf_vaddr_of_offset(const struct elf *elf, uint64_t offset, uint64_t *ret_vaddr);
bool elf_offset_of_vaddr(const struct elf *elf, uint64_t vaddr, uint64_t *ret_offset);

/* The first section of that name that has bytes in the file, or NULL. */
const struct elf_section *elf_find_section(const struct elf *elf, const char *name);

/* The first NEEDED library whose name begins with `prefix` and fits into `room`. */
bool elf_find_needed(const struct elf *elf, const struct image_file *file, const char *prefix,
	char *ret_name, size_t room);

/* Lower-case hexadecimal, into room for 2 * ELF_BUILD_ID_MAX + 1; "" if there is no build id. */
void elf_build_id_text(const struct elf *elf, char *ret_text);

void elf_done(struct elf *elf);

#endif
