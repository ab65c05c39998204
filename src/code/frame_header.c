/*
 * See frame_header.h. Little-endian:
 *
 *   offset  size  field
 *   0       1     version, 1
 *   1       1     encoding of the pointer to .eh_frame
 *   2       1     encoding of the number of entries
 *   3       1     encoding of the entries, 0x3b
 *   4       ...   pointer to .eh_frame, number of entries
 *   ...     8 n   entries: begin of a function, address of its FDE; i32 each, relative to offset 0
 */
#include "code/frame_header.h"

#include "base/cursor.h"
#include "code/frame_entry.h"
#include "image/elf.h"
#include "image/image_file.h"

#define HEADER_VERSION 1u
#define ENTRY_ENCODING 0x3bu /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define ENTRIES_MAX    (16u << 20)

bool frame_header_read(const struct image_file *file, const struct elf *elf,
	struct frame_header *ret_header)
{
	uint8_t bytes[4 + 8 + 8];
	bool ok = true;
	uint64_t at;

	if (elf->frame_header_size < 4 + FRAME_HEADER_ENTRY_SIZE)
		return false;
	size_t room = elf->frame_header_size < sizeof(bytes) ? (size_t)elf->frame_header_size
							     : sizeof(bytes);
	if (!elf_offset_of_vaddr(elf, elf->frame_header_vaddr, &at) ||
		image_file_read(file, at, bytes, room) < 0)
		return false;
	struct cursor c = cursor_of(bytes, room);
	uint8_t version = cursor_u8(&c);
	uint8_t frame_encoding = cursor_u8(&c);
	uint8_t count_encoding = cursor_u8(&c);
	uint8_t entry_encoding = cursor_u8(&c);
	if (version != HEADER_VERSION || frame_encoding == FRAME_POINTER_OMIT ||
		count_encoding == FRAME_POINTER_OMIT || entry_encoding != ENTRY_ENCODING)
		return false;
	uint64_t frame_vaddr = frame_pointer_read_at(&c, frame_encoding, elf->is_64,
		elf->frame_header_vaddr + 4, &ok);
	uint64_t count = frame_pointer_read(&c, count_encoding, elf->is_64, &ok);
	uint64_t used = room - cursor_left(&c);
	if (!ok || c.short_read || !count || count > ENTRIES_MAX ||
		count * FRAME_HEADER_ENTRY_SIZE > elf->frame_header_size - used)
		return false;
	*ret_header = (struct frame_header){
		.at = at + used,
		.base = elf->frame_header_vaddr,
		.frame_vaddr = frame_vaddr,
		.count = (uint32_t)count,
	};
	return true;
}

void frame_header_entry(const struct frame_header *header, const uint8_t *bytes,
	uint64_t *ret_begin, uint64_t *ret_fde)
{
	struct cursor c = cursor_of(bytes, FRAME_HEADER_ENTRY_SIZE);

	*ret_begin = header->base + (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
	*ret_fde = header->base + (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
}
