/*
 * .eh_frame_hdr of an ELF image: the list of its functions, sorted by address, with their FDEs.
 *
 * The bytes are untrusted. Linkers write the list in one encoding only, others are refused.
 */
#ifndef SPOOR_CODE_FRAME_HEADER_H
#define SPOOR_CODE_FRAME_HEADER_H

#include <stdbool.h>
#include <stdint.h>

struct elf;
struct image_file;

#define FRAME_HEADER_ENTRY_SIZE 8u

struct frame_header {
	uint64_t at;          /* file offset of the first entry */
	uint64_t base;        /* address to which the entries are relative */
	uint64_t frame_vaddr; /* of .eh_frame */
	uint32_t count;       /* of entries, FRAME_HEADER_ENTRY_SIZE bytes each */
};

/* False: the image has none, or one that cannot be searched. */
bool frame_header_read(const struct image_file *file, const struct elf *elf,
	struct frame_header *ret_header);

/* An entry as addresses: the begin of a function, and its FDE. */
void frame_header_entry(const struct frame_header *header, const uint8_t *bytes,
	uint64_t *ret_begin, uint64_t *ret_fde);

#endif
