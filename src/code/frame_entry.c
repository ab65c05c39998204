/*
 * See frame_entry.h.
 *
 *   offset  size  field of a CIE
 *   0       4     size of the rest
 *   4       4     0 in .eh_frame, 0xffffffff in .debug_frame
 *   8       1     version: 1 or 3; in .debug_frame 4 as well
 *   9       ...   augmentation, text with NUL: "", or "z" and a letter for each item of its data
 *           2     version 4 only: size of an address, size of a segment selector
 *           ...   code alignment (ULEB128), data alignment (SLEB128)
 *           ...   return address register: one byte in version 1, else ULEB128
 *           ...   "z": size of the augmentation data (ULEB128), and these
 *           ...   instructions
 *
 *   offset  size  field of an FDE
 *   0       4     size of the rest
 *   4       4     .eh_frame: distance back from here to its CIE; .debug_frame: offset of its CIE
 *   8       ...   begin, length, in the encoding of the CIE
 *           ...   "z": size of the augmentation data (ULEB128), and these
 *           ...   instructions
 */
#include "code/frame_entry.h"

#define FUNCTION_SIZE_MAX (UINT64_C(256) << 20)
#define CIE_ID_DEBUG      UINT32_MAX
/* with its NUL; each FDE reads its CIE, which therefore must be short */
#define LETTERS_ROOM 16u

enum pointer_format {
	POINTER_ABSOLUTE = 0,
	POINTER_U16 = 2,
	POINTER_U32 = 3,
	POINTER_U64 = 4,
	POINTER_I16 = 0xa,
	POINTER_I32 = 0xb,
	POINTER_I64 = 0xc,
};

#define POINTER_FORMAT 0x0fu
#define POINTER_BASE   0x70u
#define POINTER_PCREL  0x10u

uint64_t frame_pointer_read(struct cursor *c, uint8_t encoding, bool is_64, bool *ok)
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
		*ok = false;
		return 0;
	}
}

uint64_t frame_pointer_read_at(struct cursor *c, uint8_t encoding, bool is_64, uint64_t vaddr,
	bool *ok)
{
	uint64_t value = frame_pointer_read(c, encoding, is_64, ok);

	if ((encoding & POINTER_BASE) == POINTER_PCREL)
		return value + vaddr;
	if (encoding & (POINTER_BASE | FRAME_POINTER_INDIRECT))
		*ok = false;
	return value;
}

/* The data of a "z" augmentation, whose letters these are. */
static bool read_augmentation(struct cursor data, const char *letters, bool is_64,
	struct frame_cie *cie)
{
	bool ok = true;

	for (const char *p = letters; *p; p++) {
		switch (*p) {
		case 'R':
			cie->encoding = cursor_u8(&data);
			break;
		case 'P': {
			uint8_t encoding = cursor_u8(&data);
			(void)frame_pointer_read(&data, encoding, is_64, &ok);
			break;
		}
		case 'L':
			(void)cursor_u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64: return addresses are signed with the second key */
			break;
		default:
			return false;
		}
	}
	return ok && !data.short_read;
}

bool frame_cie_read(struct cursor *c, bool is_64, struct frame_cie *ret_cie)
{
	struct frame_cie cie = { .encoding = POINTER_ABSOLUTE };
	size_t letter_count;
	uint8_t version = cursor_u8(c);
	size_t room = cursor_left(c) < LETTERS_ROOM ? cursor_left(c) : LETTERS_ROOM;
	struct cursor start = cursor_of(c->at, room);
	const char *letters = cursor_stringz(&start, &letter_count);

	cursor_skip(c, letter_count + 1);
	if (start.short_read || c->short_read || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (cursor_u8(c) != (is_64 ? 8 : 4) || cursor_u8(c)))
		return false;
	cie.code_align = cursor_varuint(c);
	cie.data_align = cursor_sleb(c);
	cie.return_register = version == 1 ? cursor_u8(c) : cursor_varuint32(c);
	if (*letters == 'z') {
		uint64_t size = cursor_varuint(c);
		cie.augmented = true;
		if (size > cursor_left(c) ||
			!read_augmentation(cursor_sub(c, (size_t)size), letters + 1, is_64, &cie))
			return false;
	} else if (*letters) {
		return false;
	}
	cie.code = *c;
	*ret_cie = cie;
	return !c->short_read;
}

bool frame_range_read(struct cursor *c, const struct frame_cie *cie, bool is_64, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end)
{
	bool ok = true;
	uint64_t begin = frame_pointer_read_at(c, cie->encoding, is_64, vaddr, &ok);
	/* The length has the format of the begin, without its base and sign. */
	uint64_t len = frame_pointer_read(c, cie->encoding & 0x07u, is_64, &ok);

	if (!ok || c->short_read || !len || len > FUNCTION_SIZE_MAX || begin + len < begin)
		return false;
	*ret_begin = begin;
	*ret_end = begin + len;
	return true;
}

/* The body of the entry at *at behind its id, and that id; *at moves to the next entry. */
static bool read_body(const struct frame_section *section, size_t *at, struct cursor *ret_body,
	uint32_t *ret_id)
{
	if (*at > section->size)
		return false;
	struct cursor c = cursor_of(section->data + *at, section->size - *at);
	uint64_t size = cursor_u32(&c);
	bool wide = size == UINT32_MAX;

	if (wide)
		size = cursor_u64(&c);
	if (c.short_read || !size || size > cursor_left(&c))
		return false;
	*ret_body = cursor_sub(&c, (size_t)size);
	*ret_id = wide ? 0 : cursor_u32(ret_body);
	/* An entry of 64-bit DWARF gets an empty body, which cannot be used. */
	if (wide)
		cursor_skip(ret_body, cursor_left(ret_body));
	*at = section->size - cursor_left(&c);
	return true;
}

enum frame_entry_kind frame_entry_read(const struct frame_section *section, size_t *at,
	struct frame_entry *ret_entry)
{
	struct frame_entry entry;
	struct cursor body;
	struct cursor shared;
	size_t id_at = *at + 4;
	uint32_t id;
	uint32_t shared_id;

	if (!read_body(section, at, &body, &id))
		return FRAME_ENTRY_END;
	if (id == (section->debug ? CIE_ID_DEBUG : 0))
		return FRAME_ENTRY_OTHER;
	if (!section->debug && id > id_at)
		return FRAME_ENTRY_OTHER;
	size_t shared_at = section->debug ? id : id_at - id;
	if (!read_body(section, &shared_at, &shared, &shared_id) ||
		shared_id != (section->debug ? CIE_ID_DEBUG : 0) ||
		!frame_cie_read(&shared, true, &entry.cie) ||
		!frame_range_read(&body, &entry.cie, true,
			section->vaddr + (size_t)(body.at - section->data), &entry.begin,
			&entry.end))
		return FRAME_ENTRY_OTHER;
	if (entry.cie.augmented)
		cursor_skip(&body, (size_t)cursor_varuint(&body));
	if (body.short_read)
		return FRAME_ENTRY_OTHER;
	entry.code = body;
	entry.code_vaddr = section->vaddr + (size_t)(body.at - section->data);
	*ret_entry = entry;
	return FRAME_ENTRY_FDE;
}
