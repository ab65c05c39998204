/*
 * DWARF, versions 2 to 5, reduced to what source lines and inlined functions need: sections, units,
 * abbreviations, attributes and ranges. dwarf_units.h opens a file, source_lines.h answers the
 * questions.
 *
 * Everything here comes from a file that may be damaged or hostile. A reader of one item reports
 * failure, and its caller continues with the next unit: unreadable units have no lines. Work is
 * bounded by the size of the sections and DWARF_WORK_MAX, as every loop consumes bytes.
 */
#ifndef SPOOR_CODE_DWARF_H
#define SPOOR_CODE_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/vec.h"

/*
 * Abbreviations (in bytes) and ranges can be referred to any number of times, so a small file can
 * cause much work. Files of compilers stay far below this.
 */
#define DWARF_WORK_MAX (UINT64_C(1) << 31)

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ADDR,
	DWARF_STR_OFFSETS,
	DWARF_SECTION_COUNT,
};

enum dwarf_tag {
	DW_TAG_LEXICAL_BLOCK = 0x0b,
	DW_TAG_COMPILE_UNIT = 0x11,
	DW_TAG_INLINED_SUBROUTINE = 0x1d,
	DW_TAG_MODULE = 0x1e,
	DW_TAG_CATCH_BLOCK = 0x25,
	DW_TAG_SUBPROGRAM = 0x2e,
	DW_TAG_TRY_BLOCK = 0x32,
	DW_TAG_NAMESPACE = 0x39,
	DW_TAG_PARTIAL_UNIT = 0x3c,
};

#define DW_FORM_UDATA          0x0fu
#define DW_FORM_REF4           0x13u
#define DW_FORM_LINE_STRP      0x1fu
#define DW_FORM_IMPLICIT_CONST 0x21u

enum dwarf_attribute {
	DW_AT_SIBLING = 0x01,
	DW_AT_NAME = 0x03,
	DW_AT_STMT_LIST = 0x10,
	DW_AT_LOW_PC = 0x11,
	DW_AT_HIGH_PC = 0x12,
	DW_AT_COMP_DIR = 0x1b,
	DW_AT_ABSTRACT_ORIGIN = 0x31,
	DW_AT_SPECIFICATION = 0x47,
	DW_AT_RANGES = 0x55,
	DW_AT_CALL_FILE = 0x58,
	DW_AT_CALL_LINE = 0x59,
	DW_AT_LINKAGE_NAME = 0x6e,
	DW_AT_STR_OFFSETS_BASE = 0x72,
	DW_AT_ADDR_BASE = 0x73,
	DW_AT_RNGLISTS_BASE = 0x74,
	DW_AT_MIPS_LINKAGE_NAME = 0x2007,
};

struct dwarf_bytes {
	const uint8_t *data;
	size_t size;
};

/* One unit of .debug_info: its header and the attributes of its first entry. */
struct dwarf_unit {
	uint64_t begin; /* of the header, in .debug_info */
	uint64_t dies;  /* of the first entry */
	uint64_t end;   /* exclusive */
	uint64_t abbrev_offset;
	uint64_t low_pc; /* base of its ranges */
	uint64_t line_offset;
	uint64_t str_offsets_base;
	uint64_t addr_base;
	uint64_t rnglists_base;
	const char *folder; /* DW_AT_comp_dir, or NULL */
	uint16_t version;
	uint8_t address_size;
	uint8_t offset_size;
	bool has_lines;
};

/* Code of a unit. */
struct dwarf_range {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint32_t unit;
};

struct dwarf {
	struct dwarf_bytes sections[DWARF_SECTION_COUNT];
	uint8_t *block;                      /* of all sections that are not compressed */
	uint8_t *owned[DWARF_SECTION_COUNT]; /* of those that are */
	uint64_t text_begin; /* lower addresses belong to functions that the linker dropped */
	uint64_t work;       /* bytes and ranges read so far, up to DWARF_WORK_MAX */
	VEC(struct dwarf_unit) units;
	VEC(struct dwarf_range) ranges; /* by begin */
};

/* One attribute of an abbreviation. */
struct dwarf_spec {
	uint16_t name;
	uint16_t form;
	int64_t constant; /* of DW_FORM_implicit_const */
};

enum dwarf_class {
	DWARF_NONE,   /* skipped */
	DWARF_NUMBER, /* constant, flag */
	DWARF_ADDRESS,
	DWARF_ADDRESS_INDEX,
	DWARF_OFFSET, /* into a section that the attribute implies */
	DWARF_RANGE_INDEX,
	DWARF_REFERENCE, /* offset in .debug_info */
	DWARF_TEXT,
	DWARF_TEXT_INDEX,
};

struct dwarf_value {
	enum dwarf_class class;
	uint64_t number;
	const char *text;
};

#define DWARF_SIZE_VARIES UINT32_MAX

/* Bytes of a form that always has the same size; DWARF_SIZE_VARIES for all others. */
uint32_t dwarf_form_size(const struct dwarf_unit *unit, uint16_t form);

/*
 * The class of a form that is a number of 1, 2, 4 or 8 bytes, or a reference of that size from the unit's
 * begin. DWARF_NONE: any other form.
 */
enum dwarf_class dwarf_form_class(uint16_t form);

/* A length (LEB128), then that many bytes. */
bool dwarf_form_is_block(uint16_t form);

/* Reads one attribute's value. False: malformed, and nothing after it in the unit can be read. */
bool dwarf_read(const struct dwarf *dwarf, const struct dwarf_unit *unit, struct cursor *c,
	const struct dwarf_spec *spec, struct dwarf_value *ret_value);

/* A form outside of entries: those of line tables. */
bool dwarf_read_form(const struct dwarf *dwarf, uint8_t offset_size, uint8_t address_size,
	struct cursor *c, uint16_t form, struct dwarf_value *ret_value);

/* The text or address of a value, which may be an index into a table; NULL, false: none. */
const char *dwarf_text(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_value *value);
bool dwarf_address(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_value *value, uint64_t *ret_address);

/* The code of an entry. */
struct dwarf_code {
	struct dwarf_value low;
	struct dwarf_value high;
	struct dwarf_value ranges;
};

/* Calls `each` for every range of the entry, except for code that the linker dropped. */
bool dwarf_each_range(struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_code *code, bool (*each)(void *context, uint64_t begin, uint64_t end),
	void *context);

/* A cursor over a section from `offset` to its end; short_read: the offset is outside. */
struct cursor dwarf_section_at(const struct dwarf *dwarf, enum dwarf_section section,
	uint64_t offset);

/* A number of 1, 2, 4 or 8 bytes. */
uint64_t dwarf_read_sized(struct cursor *c, unsigned size);

/* A cursor over .debug_info from `offset` to the unit's end. */
struct cursor dwarf_entries(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	uint64_t offset);

#endif
