/* See dwarf_units.h. Section numbers are those of the DWARF 5 standard. */
#include "code/dwarf_units.h"

#include <errno.h>
#include <stdlib.h>

#include "base/partition_point.h"
#include "code/dwarf_abbrevs.h"
#include "image/elf.h"
#include "image/elf_section.h"
#include "image/image_file.h"

#define UNITS_MAX  (4u << 20)
#define RANGES_MAX (16u << 20)
#define LARGE_PAGE (UINT64_C(2) << 20)

enum unit_type {
	UNIT_COMPILE = 1,
	UNIT_TYPE = 2,
	UNIT_PARTIAL = 3,
	UNIT_SKELETON = 4,
	UNIT_SPLIT_COMPILE = 5,
	UNIT_SPLIT_TYPE = 6,
};

struct unit_ranges {
	struct dwarf *dwarf;
	uint32_t unit;
	bool no_memory;
};

static bool add_range(void *context, uint64_t begin, uint64_t end)
{
	struct unit_ranges *ranges = context;
	struct dwarf *dwarf = ranges->dwarf;

	if (dwarf->ranges.count >= RANGES_MAX)
		return false;
	ranges->no_memory = !vec_add(&dwarf->ranges,
		((struct dwarf_range){ .begin = begin, .end = end, .unit = ranges->unit }));
	return !ranges->no_memory;
}

/* The first entry: where the unit's lines and code are. 0, or -ENOMEM. */
static int read_first_entry(struct dwarf *dwarf, struct dwarf_abbrevs *abbrevs,
	struct dwarf_unit *unit, uint32_t index)
{
	struct cursor c = dwarf_entries(dwarf, unit, unit->dies);
	struct unit_ranges ranges = { .dwarf = dwarf, .unit = index };
	struct dwarf_code code = { 0 };
	struct dwarf_value folder = { 0 };
	uint64_t number_of = cursor_varuint(&c);

	const struct dwarf_abbrev *abbrev =
		number_of ? dwarf_abbrevs_first(abbrevs, dwarf, unit, number_of) : NULL;
	if (!abbrev)
		return 0;
	for (uint32_t i = 0; i < abbrev->spec_count; i++) {
		const struct dwarf_spec *spec = &abbrevs->specs.items[abbrev->spec_at + i];
		struct dwarf_value value;
		if (!dwarf_read(dwarf, unit, &c, spec, &value))
			return 0;
		switch (spec->name) {
		case DW_AT_STMT_LIST:
			unit->line_offset = value.number;
			unit->has_lines =
				value.class == DWARF_OFFSET || value.class == DWARF_NUMBER;
			break;
		case DW_AT_LOW_PC:
			code.low = value;
			break;
		case DW_AT_HIGH_PC:
			code.high = value;
			break;
		case DW_AT_RANGES:
			code.ranges = value;
			break;
		case DW_AT_COMP_DIR:
			folder = value;
			break;
		case DW_AT_STR_OFFSETS_BASE:
			unit->str_offsets_base = value.number;
			break;
		case DW_AT_ADDR_BASE:
			unit->addr_base = value.number;
			break;
		case DW_AT_RNGLISTS_BASE:
			unit->rnglists_base = value.number;
			break;
		default:
			break;
		}
	}
	/* The bases may follow what needs them. */
	unit->folder = dwarf_text(dwarf, unit, &folder);
	(void)dwarf_address(dwarf, unit, &code.low, &unit->low_pc); /* 0 without one */
	if (unit->has_lines)
		/* A list that ends early has its first ranges. */
		(void)dwarf_each_range(dwarf, unit, &code, add_range, &ranges);
	return ranges.no_memory ? -ENOMEM : 0;
}

/* True: *unit and where the next one begins; it may be of a type that has no code. */
static bool read_header(const struct dwarf *dwarf, uint64_t at, struct dwarf_unit *unit)
{
	struct cursor c = dwarf_section_at(dwarf, DWARF_INFO, at);
	size_t section_size = dwarf->sections[DWARF_INFO].size;
	uint64_t length = cursor_u32(&c);
	uint8_t type = UNIT_COMPILE;

	*unit = (struct dwarf_unit){ .begin = at, .offset_size = 4 };
	if (length == UINT32_MAX) {
		unit->offset_size = 8;
		length = cursor_u64(&c);
	}
	uint64_t from = section_size - cursor_left(&c);
	if (c.short_read || length > section_size - from)
		return false;
	unit->end = from + length;
	unit->version = cursor_u16(&c);
	if (unit->version >= 5) {
		type = cursor_u8(&c);
		unit->address_size = cursor_u8(&c);
		unit->abbrev_offset = dwarf_read_sized(&c, unit->offset_size);
	} else {
		unit->abbrev_offset = dwarf_read_sized(&c, unit->offset_size);
		unit->address_size = cursor_u8(&c);
	}
	if (type == UNIT_SKELETON || type == UNIT_SPLIT_COMPILE)
		cursor_skip(&c, 8);
	else if (type == UNIT_TYPE || type == UNIT_SPLIT_TYPE)
		cursor_skip(&c, 8u + unit->offset_size);
	unit->dies = section_size - cursor_left(&c);
	if (c.short_read || unit->dies > unit->end || unit->version < 2 || unit->version > 5 ||
		(unit->address_size != 4 && unit->address_size != 8))
		unit->dies = unit->end; /* no entry can be read */
	/* Bases of units that do not name theirs: after the header of the section. */
	unit->str_offsets_base = unit->offset_size == 8 ? 16 : 8;
	unit->addr_base = unit->offset_size == 8 ? 16 : 8;
	unit->rnglists_base = unit->offset_size == 8 ? 20 : 12;
	return unit->end > at;
}

static int read_units(struct dwarf *dwarf)
{
	struct dwarf_abbrevs abbrevs = { 0 };
	struct dwarf_unit unit;
	int result = 0;

	for (uint64_t at = 0; at < dwarf->sections[DWARF_INFO].size && result == 0 &&
			      dwarf->units.count < UNITS_MAX && read_header(dwarf, at, &unit);
		at = unit.end) {
		result = unit.dies < unit.end
				 ? read_first_entry(dwarf, &abbrevs, &unit, dwarf->units.count)
				 : 0;
		if (result == 0 && !vec_add(&dwarf->units, unit))
			result = -ENOMEM;
	}
	dwarf_abbrevs_done(&abbrevs);
	return result;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct dwarf_range *a = left;
	const struct dwarf_range *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->unit < b->unit ? -1 : a->unit > b->unit;
}

const struct dwarf_unit *dwarf_unit_at(const struct dwarf *dwarf, uint64_t offset)
{
	uint32_t after =
		partition_point(dwarf->units.count, i, dwarf->units.items[i].begin <= offset);
	const struct dwarf_unit *unit = after ? &dwarf->units.items[after - 1] : NULL;

	return unit && offset >= unit->dies && offset < unit->end ? unit : NULL;
}

static bool is_packed(const struct elf_section *section)
{
	return section->flags & ELF_SECTION_COMPRESSED;
}

/*
 * Reads the sections that are not compressed into one block, as large pages have room for several. Behind
 * each is a NUL.
 */
static int read_plain(struct dwarf *dwarf, const struct image_file *file,
	const struct elf_section *const *sections)
{
	uint64_t size = 0;
	uint64_t at = 0;

	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++) {
		if (!sections[i] || is_packed(sections[i]))
			continue;
		if (sections[i]->size > DWARF_SECTION_MAX)
			return -EFBIG;
		/* Checked before memory is allocated: a header may claim any size. */
		if (sections[i]->offset > file->size_bytes ||
			sections[i]->size > file->size_bytes - sections[i]->offset)
			return -EBADMSG;
		size += sections[i]->size + 1;
	}
	if (size > LARGE_PAGE && size % LARGE_PAGE > LARGE_PAGE / 4)
		size += LARGE_PAGE - size % LARGE_PAGE;
	if (!size)
		return 0;
	dwarf->block = size > SIZE_MAX ? NULL : image_block_new((size_t)size);
	if (!dwarf->block)
		return -ENOMEM;
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++) {
		if (!sections[i] || is_packed(sections[i]))
			continue;
		int result = image_file_read(file, sections[i]->offset, dwarf->block + at,
			(size_t)sections[i]->size);
		if (result < 0)
			return result;
		dwarf->sections[i].data = dwarf->block + at;
		dwarf->sections[i].size = (size_t)sections[i]->size;
		at += sections[i]->size;
		dwarf->block[at++] = 0;
	}
	return 0;
}

static int read_packed(struct dwarf *dwarf, const struct image_file *file, const struct elf *elf,
	const struct elf_section *const *sections)
{
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++) {
		if (!sections[i] || !is_packed(sections[i]))
			continue;
		int result = elf_section_load(elf, file, sections[i], DWARF_SECTION_MAX,
			&dwarf->owned[i], &dwarf->sections[i].size);
		if (result < 0)
			return result;
		dwarf->sections[i].data = dwarf->owned[i];
	}
	return 0;
}

int dwarf_open(struct dwarf *dwarf, const struct image_file *file, const struct elf *elf)
{
	static const char *const names[DWARF_SECTION_COUNT] = {
		[DWARF_INFO] = ".debug_info",
		[DWARF_ABBREV] = ".debug_abbrev",
		[DWARF_LINE] = ".debug_line",
		[DWARF_STR] = ".debug_str",
		[DWARF_LINE_STR] = ".debug_line_str",
		[DWARF_RANGES] = ".debug_ranges",
		[DWARF_RNGLISTS] = ".debug_rnglists",
		[DWARF_ADDR] = ".debug_addr",
		[DWARF_STR_OFFSETS] = ".debug_str_offsets",
	};
	const struct elf_section *sections[DWARF_SECTION_COUNT];

	*dwarf = (struct dwarf){ .text_begin = UINT64_MAX };
	vec_each(segment, &elf->segments)
		if (segment->executable && segment->vaddr < dwarf->text_begin)
			dwarf->text_begin = segment->vaddr;
	if (!elf_find_section(elf, ".debug_line") || !elf_find_section(elf, ".debug_info"))
		return -ENODATA;
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++)
		sections[i] = elf_find_section(elf, names[i]);
	int result = read_plain(dwarf, file, sections);
	if (result == 0)
		result = read_packed(dwarf, file, elf, sections);
	if (result == 0)
		result = read_units(dwarf);
	if (result == 0 && dwarf->ranges.count > 1)
		qsort(dwarf->ranges.items, dwarf->ranges.count, sizeof(*dwarf->ranges.items),
			compare_ranges);
	return result;
}

void dwarf_done(struct dwarf *dwarf)
{
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++)
		free(dwarf->owned[i]);
	free(dwarf->block);
	vec_done(&dwarf->units);
	vec_done(&dwarf->ranges);
	*dwarf = (struct dwarf){ 0 };
}
