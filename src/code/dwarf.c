/* See dwarf.h. Section numbers are those of the DWARF 5 standard. */
#include "code/dwarf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum dwarf_form {
	FORM_ADDR = 0x01,
	FORM_BLOCK2 = 0x03,
	FORM_BLOCK4 = 0x04,
	FORM_DATA2 = 0x05,
	FORM_DATA4 = 0x06,
	FORM_DATA8 = 0x07,
	FORM_STRING = 0x08,
	FORM_BLOCK = 0x09,
	FORM_BLOCK1 = 0x0a,
	FORM_DATA1 = 0x0b,
	FORM_FLAG = 0x0c,
	FORM_SDATA = 0x0d,
	FORM_STRP = 0x0e,
	FORM_UDATA = DW_FORM_UDATA,
	FORM_REF_ADDR = 0x10,
	FORM_REF1 = 0x11,
	FORM_REF2 = 0x12,
	FORM_REF4 = DW_FORM_REF4,
	FORM_REF8 = 0x14,
	FORM_REF_UDATA = 0x15,
	FORM_INDIRECT = 0x16,
	FORM_SEC_OFFSET = 0x17,
	FORM_EXPRLOC = 0x18,
	FORM_FLAG_PRESENT = 0x19,
	FORM_STRX = 0x1a,
	FORM_ADDRX = 0x1b,
	FORM_REF_SUP4 = 0x1c,
	FORM_STRP_SUP = 0x1d,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP = DW_FORM_LINE_STRP,
	FORM_REF_SIG8 = 0x20,
	FORM_IMPLICIT_CONST = DW_FORM_IMPLICIT_CONST,
	FORM_LOCLISTX = 0x22,
	FORM_RNGLISTX = 0x23,
	FORM_REF_SUP8 = 0x24,
	FORM_STRX1 = 0x25,
	FORM_STRX2 = 0x26,
	FORM_STRX3 = 0x27,
	FORM_STRX4 = 0x28,
	FORM_ADDRX1 = 0x29,
	FORM_ADDRX2 = 0x2a,
	FORM_ADDRX3 = 0x2b,
	FORM_ADDRX4 = 0x2c,
	FORM_GNU_REF_ALT = 0x1f20,
	FORM_GNU_STRP_ALT = 0x1f21,
};

/* Range list entries (7.25). */
enum {
	RLE_END,
	RLE_BASEX,
	RLE_STARTX_ENDX,
	RLE_STARTX_LENGTH,
	RLE_OFFSET_PAIR,
	RLE_BASE,
	RLE_START_END,
	RLE_START_LENGTH
};

uint64_t dwarf_read_sized(struct cursor *c, unsigned size)
{
	switch (size) {
	case 1:
		return cursor_u8(c);
	case 2:
		return cursor_u16(c);
	case 4:
		return cursor_u32(c);
	case 8:
		return cursor_u64(c);
	default:
		c->short_read = true;
		return 0;
	}
}

static uint32_t read_u24(struct cursor *c)
{
	uint32_t low = cursor_u16(c);

	return low | (uint32_t)cursor_u8(c) << 16;
}

static const char *text_at(const struct dwarf *dwarf, enum dwarf_section section, uint64_t offset)
{
	const struct dwarf_bytes *bytes = &dwarf->sections[section];

	/* A NUL follows the section in memory. */
	return offset < bytes->size ? (const char *)bytes->data + offset : NULL;
}

struct cursor dwarf_section_at(const struct dwarf *dwarf, enum dwarf_section section,
	uint64_t offset)
{
	const struct dwarf_bytes *bytes = &dwarf->sections[section];
	struct cursor c = { 0 };

	if (offset <= bytes->size && bytes->size)
		c = cursor_of(bytes->data + offset, bytes->size - (size_t)offset);
	else
		c.short_read = true;
	return c;
}

struct cursor dwarf_entries(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	uint64_t offset)
{
	struct cursor c = { 0 };

	if (offset >= unit->dies && offset < unit->end)
		c = cursor_of(dwarf->sections[DWARF_INFO].data + offset,
			(size_t)(unit->end - offset));
	else
		c.short_read = true;
	return c;
}

/* ---- values ---- */

static struct dwarf_value number(uint64_t value)
{
	return (struct dwarf_value){ .class = DWARF_NUMBER, .number = value };
}

static struct dwarf_value indexed(enum dwarf_class class, uint64_t index)
{
	return (struct dwarf_value){ .class = class, .number = index };
}

static struct dwarf_value text_value(const char *text)
{
	return (struct dwarf_value){ .class = text ? DWARF_TEXT : DWARF_NONE, .text = text };
}

bool dwarf_read_form(const struct dwarf *dwarf, uint8_t offset_size, uint8_t address_size,
	struct cursor *c, uint16_t form, struct dwarf_value *ret_value)
{
	struct dwarf_value value = { 0 };
	size_t len;

	switch (form) {
	case FORM_ADDR:
		value = indexed(DWARF_ADDRESS, dwarf_read_sized(c, address_size));
		break;
	case FORM_DATA1:
	case FORM_FLAG:
		value = number(cursor_u8(c));
		break;
	case FORM_DATA2:
		value = number(cursor_u16(c));
		break;
	case FORM_DATA4:
		value = number(cursor_u32(c));
		break;
	case FORM_DATA8:
		value = number(cursor_u64(c));
		break;
	case FORM_UDATA:
		value = number(cursor_varuint(c));
		break;
	case FORM_SDATA:
		value = number((uint64_t)cursor_sleb(c));
		break;
	case FORM_FLAG_PRESENT:
		value = number(1);
		break;
	case FORM_DATA16:
		cursor_skip(c, 16);
		break;
	case FORM_STRING:
		value = text_value(cursor_stringz(c, &len));
		break;
	case FORM_STRP:
		value = text_value(text_at(dwarf, DWARF_STR, dwarf_read_sized(c, offset_size)));
		break;
	case FORM_LINE_STRP:
		value = text_value(text_at(dwarf, DWARF_LINE_STR,
			dwarf_read_sized(c, offset_size)));
		break;
	case FORM_SEC_OFFSET:
		value = indexed(DWARF_OFFSET, dwarf_read_sized(c, offset_size));
		break;
	case FORM_BLOCK1:
		cursor_skip(c, cursor_u8(c));
		break;
	case FORM_BLOCK2:
		cursor_skip(c, cursor_u16(c));
		break;
	case FORM_BLOCK4:
		cursor_skip(c, cursor_u32(c));
		break;
	case FORM_BLOCK:
	case FORM_EXPRLOC: {
		uint64_t size = cursor_varuint(c);
		cursor_skip(c, size > SIZE_MAX ? SIZE_MAX : (size_t)size);
		break;
	}
	case FORM_STRX:
		value = indexed(DWARF_TEXT_INDEX, cursor_varuint(c));
		break;
	case FORM_STRX1:
		value = indexed(DWARF_TEXT_INDEX, cursor_u8(c));
		break;
	case FORM_STRX2:
		value = indexed(DWARF_TEXT_INDEX, cursor_u16(c));
		break;
	case FORM_STRX3:
		value = indexed(DWARF_TEXT_INDEX, read_u24(c));
		break;
	case FORM_STRX4:
		value = indexed(DWARF_TEXT_INDEX, cursor_u32(c));
		break;
	case FORM_ADDRX:
		value = indexed(DWARF_ADDRESS_INDEX, cursor_varuint(c));
		break;
	case FORM_ADDRX1:
		value = indexed(DWARF_ADDRESS_INDEX, cursor_u8(c));
		break;
	case FORM_ADDRX2:
		value = indexed(DWARF_ADDRESS_INDEX, cursor_u16(c));
		break;
	case FORM_ADDRX3:
		value = indexed(DWARF_ADDRESS_INDEX, read_u24(c));
		break;
	case FORM_ADDRX4:
		value = indexed(DWARF_ADDRESS_INDEX, cursor_u32(c));
		break;
	case FORM_RNGLISTX:
		value = indexed(DWARF_RANGE_INDEX, cursor_varuint(c));
		break;
	case FORM_LOCLISTX:
		(void)cursor_varuint(c); /* skipped; a failure stays in the cursor */
		break;
	case FORM_REF_SIG8:
	case FORM_REF_SUP8:
		cursor_skip(c, 8);
		break;
	case FORM_REF_SUP4:
		cursor_skip(c, 4);
		break;
	case FORM_STRP_SUP:
	case FORM_GNU_REF_ALT:
	case FORM_GNU_STRP_ALT:
		cursor_skip(c, offset_size); /* of another file, which is not read */
		break;
	default:
		return false;
	}
	*ret_value = value;
	return !c->short_read;
}

static bool read_reference(const struct dwarf_unit *unit, struct cursor *c, uint16_t form,
	struct dwarf_value *ret_value)
{
	uint64_t offset;

	switch (form) {
	case FORM_REF1:
		offset = unit->begin + cursor_u8(c);
		break;
	case FORM_REF2:
		offset = unit->begin + cursor_u16(c);
		break;
	case FORM_REF4:
		offset = unit->begin + cursor_u32(c);
		break;
	case FORM_REF8:
		offset = unit->begin + cursor_u64(c);
		break;
	case FORM_REF_UDATA:
		offset = unit->begin + cursor_varuint(c);
		break;
	case FORM_REF_ADDR:
		offset = dwarf_read_sized(c,
			unit->version < 3 ? unit->address_size : unit->offset_size);
		break;
	default:
		return false;
	}
	*ret_value = (struct dwarf_value){ .class = DWARF_REFERENCE, .number = offset };
	return !c->short_read;
}

bool dwarf_read(const struct dwarf *dwarf, const struct dwarf_unit *unit, struct cursor *c,
	const struct dwarf_spec *spec, struct dwarf_value *ret_value)
{
	uint16_t form = spec->form;

	if (form == FORM_INDIRECT) {
		uint64_t actual = cursor_varuint(c);
		if (actual > UINT16_MAX || actual == FORM_INDIRECT || actual == FORM_IMPLICIT_CONST)
			return false;
		form = (uint16_t)actual;
	}
	if (form == FORM_IMPLICIT_CONST) {
		*ret_value = number((uint64_t)spec->constant);
		return true;
	}
	if (form >= FORM_REF_ADDR && form <= FORM_REF_UDATA)
		return read_reference(unit, c, form, ret_value);
	return dwarf_read_form(dwarf, unit->offset_size, unit->address_size, c, form, ret_value);
}

const char *dwarf_text(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_value *value)
{
	if (value->class == DWARF_TEXT)
		return value->text;
	if (value->class != DWARF_TEXT_INDEX || value->number > UINT32_MAX)
		return NULL;
	struct cursor c = dwarf_section_at(dwarf, DWARF_STR_OFFSETS,
		unit->str_offsets_base + value->number * unit->offset_size);
	uint64_t offset = dwarf_read_sized(&c, unit->offset_size);
	return c.short_read ? NULL : text_at(dwarf, DWARF_STR, offset);
}

static bool indexed_address(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	uint64_t index, uint64_t *ret_address)
{
	if (index > UINT32_MAX)
		return false;
	struct cursor c =
		dwarf_section_at(dwarf, DWARF_ADDR, unit->addr_base + index * unit->address_size);
	*ret_address = dwarf_read_sized(&c, unit->address_size);
	return !c.short_read;
}

bool dwarf_address(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_value *value, uint64_t *ret_address)
{
	if (value->class == DWARF_ADDRESS_INDEX)
		return indexed_address(dwarf, unit, value->number, ret_address);
	*ret_address = value->number;
	return value->class == DWARF_ADDRESS;
}

/* ---- sizes ---- */

uint32_t dwarf_form_size(const struct dwarf_unit *unit, uint16_t form)
{
	switch (form) {
	case FORM_FLAG_PRESENT:
	case FORM_IMPLICIT_CONST:
		return 0;
	case FORM_DATA1:
	case FORM_FLAG:
	case FORM_REF1:
	case FORM_STRX1:
	case FORM_ADDRX1:
		return 1;
	case FORM_DATA2:
	case FORM_REF2:
	case FORM_STRX2:
	case FORM_ADDRX2:
		return 2;
	case FORM_STRX3:
	case FORM_ADDRX3:
		return 3;
	case FORM_DATA4:
	case FORM_REF4:
	case FORM_STRX4:
	case FORM_ADDRX4:
	case FORM_REF_SUP4:
		return 4;
	case FORM_DATA8:
	case FORM_REF8:
	case FORM_REF_SIG8:
	case FORM_REF_SUP8:
		return 8;
	case FORM_DATA16:
		return 16;
	case FORM_ADDR:
		return unit->address_size;
	case FORM_STRP:
	case FORM_LINE_STRP:
	case FORM_SEC_OFFSET:
	case FORM_STRP_SUP:
	case FORM_GNU_REF_ALT:
	case FORM_GNU_STRP_ALT:
		return unit->offset_size;
	case FORM_REF_ADDR:
		return unit->version < 3 ? unit->address_size : unit->offset_size;
	default:
		return DWARF_SIZE_VARIES;
	}
}

enum dwarf_class dwarf_form_class(uint16_t form)
{
	switch (form) {
	case FORM_ADDR:
		return DWARF_ADDRESS;
	case FORM_DATA1:
	case FORM_DATA2:
	case FORM_DATA4:
	case FORM_DATA8:
		return DWARF_NUMBER;
	case FORM_SEC_OFFSET:
		return DWARF_OFFSET;
	case FORM_REF1:
	case FORM_REF2:
	case FORM_REF4:
	case FORM_REF8:
		return DWARF_REFERENCE;
	default:
		return DWARF_NONE;
	}
}

bool dwarf_form_is_block(uint16_t form)
{
	return form == FORM_EXPRLOC || form == FORM_BLOCK;
}

/* ---- ranges ---- */

struct range_walk {
	struct dwarf *dwarf;
	bool (*each)(void *context, uint64_t begin, uint64_t end);
	void *context;
};

static bool report_range(const struct range_walk *walk, uint64_t begin, uint64_t end)
{
	return begin >= end || begin < walk->dwarf->text_begin ||
	       walk->each(walk->context, begin, end);
}

/* .debug_ranges: pairs of addresses, relative to a base; the largest address sets the base. */
static bool walk_ranges(const struct range_walk *walk, const struct dwarf_unit *unit,
	uint64_t offset)
{
	struct cursor c = dwarf_section_at(walk->dwarf, DWARF_RANGES, offset);
	uint64_t base = unit->low_pc;
	uint64_t largest = unit->address_size == 8 ? UINT64_MAX : UINT32_MAX;

	while (walk->dwarf->work++ < DWARF_WORK_MAX) {
		uint64_t begin = dwarf_read_sized(&c, unit->address_size);
		uint64_t end = dwarf_read_sized(&c, unit->address_size);
		if (c.short_read)
			return false;
		if (!begin && !end)
			return true;
		if (begin == largest)
			base = end;
		else if (!report_range(walk, base + begin, base + end))
			return false;
	}
	return false;
}

/* As cursor_varuint(), quicker for numbers of two and three bytes, as offsets in a unit are. */
static inline uint64_t read_offset(struct cursor *c)
{
	const uint8_t *at = c->at;

	if (c->end - at < 3 || at[0] < 0x80)
		return cursor_varuint(c);
	if (at[1] < 0x80) {
		c->at += 2;
		return (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
	}
	if (at[2] >= 0x80)
		return cursor_varuint(c);
	c->at += 3;
	return (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7 | (uint64_t)at[2] << 14;
}

static bool walk_rnglist(const struct range_walk *walk, const struct dwarf_unit *unit,
	uint64_t offset)
{
	const struct dwarf *dwarf = walk->dwarf;
	struct cursor c = dwarf_section_at(dwarf, DWARF_RNGLISTS, offset);
	uint64_t base = unit->low_pc;

	while (walk->dwarf->work++ < DWARF_WORK_MAX) {
		uint64_t begin = 0;
		uint64_t end = 0;
		bool valid = true;
		switch (cursor_u8(&c)) {
		case RLE_END:
			return !c.short_read;
		case RLE_BASEX:
			valid = indexed_address(dwarf, unit, cursor_varuint(&c), &base);
			break;
		case RLE_STARTX_ENDX:
			valid = indexed_address(dwarf, unit, cursor_varuint(&c), &begin) &&
				indexed_address(dwarf, unit, cursor_varuint(&c), &end);
			break;
		case RLE_STARTX_LENGTH:
			valid = indexed_address(dwarf, unit, cursor_varuint(&c), &begin);
			end = begin + cursor_varuint(&c);
			break;
		case RLE_OFFSET_PAIR:
			begin = base + read_offset(&c);
			end = base + read_offset(&c);
			break;
		case RLE_BASE:
			base = dwarf_read_sized(&c, unit->address_size);
			break;
		case RLE_START_END:
			begin = dwarf_read_sized(&c, unit->address_size);
			end = dwarf_read_sized(&c, unit->address_size);
			break;
		case RLE_START_LENGTH:
			begin = dwarf_read_sized(&c, unit->address_size);
			end = begin + cursor_varuint(&c);
			break;
		default:
			return false;
		}
		if (c.short_read || !valid || !report_range(walk, begin, end))
			return false;
	}
	return false;
}

bool dwarf_each_range(struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_code *code, bool (*each)(void *context, uint64_t begin, uint64_t end),
	void *context)
{
	const struct range_walk walk = { .dwarf = dwarf, .each = each, .context = context };
	uint64_t begin;
	uint64_t end;

	if (code->ranges.class == DWARF_RANGE_INDEX && code->ranges.number <= UINT32_MAX) {
		struct cursor c = dwarf_section_at(dwarf, DWARF_RNGLISTS,
			unit->rnglists_base + code->ranges.number * unit->offset_size);
		uint64_t offset = dwarf_read_sized(&c, unit->offset_size);
		return !c.short_read && walk_rnglist(&walk, unit, unit->rnglists_base + offset);
	}
	/* Before version 4 the form of an offset is that of a number. */
	if (code->ranges.class == DWARF_OFFSET || code->ranges.class == DWARF_NUMBER)
		return unit->version >= 5 ? walk_rnglist(&walk, unit, code->ranges.number)
					  : walk_ranges(&walk, unit, code->ranges.number);
	if (!dwarf_address(dwarf, unit, &code->low, &begin))
		return true;
	if (code->high.class == DWARF_NUMBER)
		end = begin + code->high.number;
	else if (!dwarf_address(dwarf, unit, &code->high, &end))
		return true;
	return report_range(&walk, begin, end);
}
