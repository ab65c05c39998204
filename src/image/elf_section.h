/* The content of a section of an ELF file, which may be compressed (SHF_COMPRESSED). */
#ifndef SPOOR_IMAGE_ELF_SECTION_H
#define SPOOR_IMAGE_ELF_SECTION_H

#include <stddef.h>
#include <stdint.h>

struct elf;
struct elf_section;
struct image_file;

/*
 * Reads the content into memory that the caller frees. -EFBIG: above `limit`. -ENOTSUP: compressed
 * in a way that is not known here. -EBADMSG: damaged.
 */
int elf_section_load(const struct elf *elf, const struct image_file *file,
	const struct elf_section *section, uint64_t limit, uint8_t **ret_data, size_t *ret_size);

#endif
