/*
 * See function_bounds.h.
 *
 * .eh_frame_hdr, little-endian:
 *
 *   offset  size  field
 *   0       1     version, 1
 *   1       1     encoding of the pointer to .eh_frame
 *   2       1     encoding of the number of entries
 *   3       1     encoding of the entries
 *   4       ...   pointer to .eh_frame, number of entries
 *   ...     8 n   entries: begin of a function, address of its FDE; i32 each, relative to offset 0
 *
 * An FDE in .eh_frame: u32 size, u32 distance back to its CIE, begin, length; the encoding of the
 * last two is in the CIE's augmentation. Linkers write the entries in this one encoding (0x3b) only.
 */
#include "code/function_bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "image/elf.h"
#include "image/image_file.h"

#define HEADER_VERSION    1u
#define ENTRY_ENCODING    0x3bu /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define ENTRY_SIZE        8u
#define ENTRIES_MAX       (16u << 20)
#define CHUNK_ENTRIES     64u
#define CIE_SIZE_MAX      256u /* of which the augmentation is read; real ones have 20 to 40 bytes */
#define FUNCTION_SIZE_MAX (UINT64_C(256) << 20)

enum pointer_format {
	POINTER_ABSOLUTE = 0,
	POINTER_U16 = 2,
	POINTER_U32 = 3,
	POINTER_U64 = 4,
	POINTER_I16 = 0xa,
	POINTER_I32 = 0xb,
	POINTER_I64 = 0xc,
};

#define POINTER_FORMAT   0x0fu
#define POINTER_BASE     0x70u
#define POINTER_PCREL    0x10u
#define POINTER_INDIRECT 0x80u
#define POINTER_OMIT     0xffu

/* Reads `size` bytes at an address; false unless the whole is in one segment of the file. */
static bool read_at(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	void *buffer, size_t size)
{
	uint64_t offset;

	return elf_offset_of_vaddr(elf, vaddr, &offset) &&
	       image_file_read(file, offset, buffer, size) == 0;
}

/* The number without its base; *ret_ok is false for a format that is none of the above. */
static uint64_t read_pointer(struct cursor *c, uint8_t encoding, bool is_64, bool *ret_ok)
{
	switch (encoding & POINTER_FORMAT) {
	case POINTER_ABSOLUTE:
		return is_64 ? cursor_u64(c) : cursor_u32(c);
	case POINTER_U16:
		return cursor_u16(c);
	case POINTER_U32:
		return cursor_u32(c);
	case POINTER_U64:
	case POINTER_I64:
		return cursor_u64(c);
	case POINTER_I16:
		return (uint64_t)(int64_t)(int16_t)cursor_u16(c);
	case POINTER_I32:
		return (uint64_t)(int64_t)(int32_t)cursor_u32(c);
	default:
		*ret_ok = false;
		return 0;
	}
}

/* The encoding of the addresses in the FDEs of the CIE at `vaddr`; false if it cannot be read. */
static bool read_cie(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	uint8_t *ret_encoding)
{
	uint8_t bytes[CIE_SIZE_MAX];
	size_t augmentation_len;
	size_t room = sizeof(bytes);
	bool ok = true;

	/* A CIE at the very end of its segment has fewer bytes after it. */
	while (room >= 16 && !read_at(file, elf, vaddr, bytes, room))
		room /= 2;
	struct cursor c = cursor_of(bytes, room >= 16 ? room : 0);
	(void)cursor_u32(&c); /* size */
	if (cursor_u32(&c) != 0)
		return false; /* an FDE, or a CIE of 64-bit DWARF, which no linker writes here */
	uint8_t version = cursor_u8(&c);
	const char *augmentation = cursor_stringz(&c, &augmentation_len);
	if (c.short_read || (version != 1 && version != 3))
		return false;
	*ret_encoding = POINTER_ABSOLUTE;
	if (*augmentation != 'z')
		return !*augmentation;
	(void)cursor_varuint(&c); /* code alignment */
	(void)cursor_varuint(&c); /* data alignment: signed, but of the same length */
	if (version == 1)
		(void)cursor_u8(&c);
	else
		(void)cursor_varuint(&c); /* return address register */
	(void)cursor_varuint(&c);         /* size of the augmentation */
	for (const char *p = augmentation + 1; *p && ok && !c.short_read; p++) {
		switch (*p) {
		case 'R':
			*ret_encoding = cursor_u8(&c);
			return !c.short_read;
		case 'P': {
			uint8_t encoding = cursor_u8(&c);
			(void)read_pointer(&c, encoding, elf->is_64, &ok);
			break;
		}
		case 'L':
			(void)cursor_u8(&c);
			break;
		case 'S': /* a signal frame */
		case 'B': /* AArch64: return addresses are signed */
			break;
		default:
			return false;
		}
	}
	return ok && !c.short_read;
}

/* The range of the FDE at `vaddr`. */
static bool read_fde(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end)
{
	uint8_t bytes[8 + 16] = { 0 };
	uint8_t encoding;
	bool ok = true;

	if (!read_at(file, elf, vaddr, bytes, sizeof(bytes)) &&
		!read_at(file, elf, vaddr, bytes, sizeof(bytes) - 8))
		return false;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	uint32_t size = cursor_u32(&c);
	uint32_t distance = cursor_u32(&c);
	if (!size || size == UINT32_MAX || !distance || distance > vaddr + 4 ||
		!read_cie(file, elf, vaddr + 4 - distance, &encoding) ||
		encoding & POINTER_INDIRECT)
		return false;
	uint64_t begin = read_pointer(&c, encoding, elf->is_64, &ok);
	if ((encoding & POINTER_BASE) == POINTER_PCREL)
		begin += vaddr + 8;
	else if (encoding & POINTER_BASE)
		return false;
	/* The length has the format of the begin, without its base and sign. */
	uint64_t len = read_pointer(&c, encoding & 0x07u, elf->is_64, &ok);
	if (!ok || c.short_read || !len || len > FUNCTION_SIZE_MAX || begin + len < begin)
		return false;
	*ret_begin = begin;
	*ret_end = begin + len;
	return true;
}

/* The sorted entries of .eh_frame_hdr. */
struct entries {
	const struct image_file *file;
	uint64_t at; /* file offset of the first one */
	uint64_t base;
	uint32_t count;
};

static bool read_header(const struct image_file *file, const struct elf *elf, struct entries *ret)
{
	uint8_t bytes[4 + 8 + 8];
	bool ok = true;

	if (elf->frame_header_size < 4 + ENTRY_SIZE)
		return false;
	size_t room = elf->frame_header_size < sizeof(bytes) ? (size_t)elf->frame_header_size
							     : sizeof(bytes);
	if (!elf_offset_of_vaddr(elf, elf->frame_header_vaddr, &ret->at) ||
		image_file_read(file, ret->at, bytes, room) < 0)
		return false;
	struct cursor c = cursor_of(bytes, room);
	uint8_t version = cursor_u8(&c);
	uint8_t frame_encoding = cursor_u8(&c);
	uint8_t count_encoding = cursor_u8(&c);
	uint8_t entry_encoding = cursor_u8(&c);
	if (version != HEADER_VERSION || frame_encoding == POINTER_OMIT ||
		count_encoding == POINTER_OMIT || entry_encoding != ENTRY_ENCODING)
		return false;
	(void)read_pointer(&c, frame_encoding, elf->is_64, &ok);
	uint64_t count = read_pointer(&c, count_encoding, elf->is_64, &ok);
	uint64_t used = room - cursor_left(&c);
	if (!ok || c.short_read || !count || count > ENTRIES_MAX ||
		count * ENTRY_SIZE > elf->frame_header_size - used)
		return false;
	ret->file = file;
	ret->at += used;
	ret->base = elf->frame_header_vaddr;
	ret->count = (uint32_t)count;
	return true;
}

/* Entry `index` as addresses, from its eight bytes. */
static void entry_of(const struct entries *entries, const uint8_t *bytes, uint64_t *ret_begin,
	uint64_t *ret_fde)
{
	struct cursor c = cursor_of(bytes, ENTRY_SIZE);

	*ret_begin = entries->base + (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
	*ret_fde = entries->base + (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
}

/* The last entry that begins at or before `vaddr`: its begin and its FDE. */
static bool find_entry(const struct entries *entries, uint64_t vaddr, uint64_t *ret_begin,
	uint64_t *ret_fde)
{
	uint8_t bytes[CHUNK_ENTRIES * ENTRY_SIZE];
	uint32_t low = 0;
	uint32_t high = entries->count;

	while (high - low > CHUNK_ENTRIES) {
		uint32_t middle = low + (high - low) / 2;
		if (image_file_read(entries->file, entries->at + (uint64_t)middle * ENTRY_SIZE,
			    bytes, ENTRY_SIZE) < 0)
			return false;
		entry_of(entries, bytes, ret_begin, ret_fde);
		if (*ret_begin <= vaddr)
			low = middle;
		else
			high = middle;
	}
	if (image_file_read(entries->file, entries->at + (uint64_t)low * ENTRY_SIZE, bytes,
		    (size_t)(high - low) * ENTRY_SIZE) < 0)
		return false;
	for (uint32_t i = high - low; i > 0; i--) {
		entry_of(entries, bytes + (size_t)(i - 1) * ENTRY_SIZE, ret_begin, ret_fde);
		if (*ret_begin <= vaddr)
			return true;
	}
	return false;
}

bool function_bounds_find(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end)
{
	struct entries entries;
	uint64_t listed;
	uint64_t fde;
	uint64_t begin;
	uint64_t end;

	if (!read_header(file, elf, &entries) || !find_entry(&entries, vaddr, &listed, &fde) ||
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
