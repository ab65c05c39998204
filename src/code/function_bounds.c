/* See function_bounds.h. */
#include "code/function_bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "code/frame_entry.h"
#include "code/frame_header.h"
#include "image/elf.h"
#include "image/image_file.h"

#define CHUNK_ENTRIES 64u
#define CIE_SIZE_MAX  256u /* of which the augmentation is read; real ones have 20 to 40 bytes */

/* Reads `size` bytes at an address; false unless the whole is in one segment of the file. */
static bool read_at(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	void *buffer, size_t size)
{
	uint64_t offset;

	return elf_offset_of_vaddr(elf, vaddr, &offset) &&
	       image_file_read(file, offset, buffer, size) == 0;
}

/* The CIE at `vaddr`, without its instructions; false if it cannot be read. */
static bool read_cie(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	struct frame_cie *ret_cie)
{
	uint8_t bytes[CIE_SIZE_MAX];
	size_t room = sizeof(bytes);

	/* A CIE at the very end of its segment has fewer bytes after it. */
	while (room >= 16 && !read_at(file, elf, vaddr, bytes, room))
		room /= 2;
	struct cursor c = cursor_of(bytes, room >= 16 ? room : 0);
	(void)cursor_u32(&c); /* size */
	if (cursor_u32(&c) != 0)
		return false; /* an FDE, or a CIE of 64-bit DWARF, which no linker writes here */
	bool read = frame_cie_read(&c, elf->is_64, ret_cie);
	ret_cie->code = (struct cursor){ 0 };
	return read;
}

/* The range of the FDE at `vaddr`. */
static bool read_fde(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end)
{
	uint8_t bytes[8 + 16] = { 0 };
	struct frame_cie cie;

	if (!read_at(file, elf, vaddr, bytes, sizeof(bytes)) &&
		!read_at(file, elf, vaddr, bytes, sizeof(bytes) - 8))
		return false;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	uint32_t size = cursor_u32(&c);
	uint32_t distance = cursor_u32(&c);
	return size && size != UINT32_MAX && distance && distance <= vaddr + 4 &&
	       read_cie(file, elf, vaddr + 4 - distance, &cie) &&
	       frame_range_read(&c, &cie, elf->is_64, vaddr + 8, ret_begin, ret_end);
}

/* The last entry that begins at or before `vaddr`: its begin and its FDE. */
static bool find_entry(const struct image_file *file, const struct frame_header *header,
	uint64_t vaddr, uint64_t *ret_begin, uint64_t *ret_fde)
{
	uint8_t bytes[CHUNK_ENTRIES * FRAME_HEADER_ENTRY_SIZE];
	uint32_t low = 0;
	uint32_t high = header->count;

	while (high - low > CHUNK_ENTRIES) {
		uint32_t middle = low + (high - low) / 2;
		if (image_file_read(file, header->at + (uint64_t)middle * FRAME_HEADER_ENTRY_SIZE,
			    bytes, FRAME_HEADER_ENTRY_SIZE) < 0)
			return false;
		frame_header_entry(header, bytes, ret_begin, ret_fde);
		if (*ret_begin <= vaddr)
			low = middle;
		else
			high = middle;
	}
	if (image_file_read(file, header->at + (uint64_t)low * FRAME_HEADER_ENTRY_SIZE, bytes,
		    (size_t)(high - low) * FRAME_HEADER_ENTRY_SIZE) < 0)
		return false;
	for (uint32_t i = high - low; i > 0; i--) {
		frame_header_entry(header, bytes + (size_t)(i - 1) * FRAME_HEADER_ENTRY_SIZE,
			ret_begin, ret_fde);
		if (*ret_begin <= vaddr)
			return true;
	}
	return false;
}

bool function_bounds_find(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end)
{
	struct frame_header header;
	uint64_t listed;
	uint64_t fde;
	uint64_t begin;
	uint64_t end;

	if (!frame_header_read(file, elf, &header) ||
		!find_entry(file, &header, vaddr, &listed, &fde) ||
		!read_fde(file, elf, fde, &begin, &end) || begin != listed || vaddr >= end)
		return false;
	*ret_begin = begin;
	*ret_end = end;
	return true;
}

#define NAME_PREFIX "sub_"
#define PAGE_MASK   UINT64_C(0xfff)

void function_bounds_name(uint64_t begin_vaddr, char *ret_name)
{
	(void)snprintf(ret_name, FUNCTION_BOUNDS_NAME_SIZE, NAME_PREFIX "%" PRIx64, begin_vaddr);
}

bool function_bounds_is_name(const char *name, size_t len, uint64_t begin)
{
	size_t prefix_len = strlen(NAME_PREFIX);
	uint64_t vaddr = 0;

	if (len <= prefix_len || len > prefix_len + 16 ||
		memcmp(name, NAME_PREFIX, prefix_len) != 0 || name[prefix_len] == '0')
		return false;
	for (size_t i = prefix_len; i < len; i++) {
		const char *digit = strchr("0123456789abcdef", name[i]);
		if (!digit || !*digit)
			return false;
		vaddr = vaddr << 4 | (uint64_t)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
	}
	return ((vaddr ^ begin) & PAGE_MASK) == 0;
}
