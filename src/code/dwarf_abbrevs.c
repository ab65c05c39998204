/* See dwarf_abbrevs.h. */
#include "code/dwarf_abbrevs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/partition_point.h"

static int compare_abbrevs(const void *left, const void *right)
{
	const struct dwarf_abbrev *a = left;
	const struct dwarf_abbrev *b = right;

	return a->code < b->code ? -1 : a->code > b->code;
}

/* ---- one abbreviation ---- */

#define BIT(tag) (UINT64_C(1) << (tag))
#define SCOPES                                                                         \
	(BIT(DW_TAG_COMPILE_UNIT) | BIT(DW_TAG_PARTIAL_UNIT) | BIT(DW_TAG_NAMESPACE) | \
		BIT(DW_TAG_MODULE) | BIT(DW_TAG_TRY_BLOCK) | BIT(DW_TAG_CATCH_BLOCK))
#define CODES (BIT(DW_TAG_SUBPROGRAM) | BIT(DW_TAG_INLINED_SUBROUTINE) | BIT(DW_TAG_LEXICAL_BLOCK))

static bool is_one_of(uint64_t tag, uint64_t tags)
{
	return tag < 64 && (tags >> tag & 1);
}

/* Where a walk puts the value of an attribute; DWARF_SLOTS: it does not take it. */
static enum dwarf_slot slot_of(const struct dwarf_abbrev *abbrev, uint64_t name)
{
	if (name == DW_AT_SIBLING)
		return abbrev->has_children ? DWARF_SLOT_SIBLING : DWARF_SLOTS;
	if (!abbrev->has_code)
		return DWARF_SLOTS;
	switch (name) {
	case DW_AT_LOW_PC:
		return DWARF_SLOT_LOW;
	case DW_AT_HIGH_PC:
		return DWARF_SLOT_HIGH;
	case DW_AT_RANGES:
		return DWARF_SLOT_RANGES;
	case DW_AT_ABSTRACT_ORIGIN:
		return DWARF_SLOT_ORIGIN;
	case DW_AT_CALL_FILE:
		return DWARF_SLOT_CALL_FILE;
	case DW_AT_CALL_LINE:
		return DWARF_SLOT_CALL_LINE;
	default:
		return DWARF_SLOTS;
	}
}

static void set_kind(struct dwarf_step *step, const struct dwarf_spec *spec, uint32_t size,
	enum dwarf_slot slot)
{
	bool taken = slot != DWARF_SLOTS;
	enum dwarf_class class = taken ? dwarf_form_class(spec->form) : DWARF_NONE;

	step->slot = (uint8_t)slot;
	step->size = size == DWARF_SIZE_LARGE ? 0 : (uint8_t)size;
	step->class = (uint8_t) class;
	if (taken)
		step->kind = class == DWARF_NONE ? DWARF_STEP_TAKE : DWARF_STEP_FIXED;
	else
		step->kind = dwarf_form_is_block(spec->form) ? DWARF_STEP_BLOCK : DWARF_STEP_OTHER;
}

/* The tag and whether there are children. */
static void read_head(struct dwarf_abbrev *abbrev, struct cursor *c)
{
	uint64_t tag = cursor_varuint(c);

	abbrev->tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
	abbrev->has_children = cursor_u8(c) != 0;
	abbrev->has_code = is_one_of(tag, CODES);
	abbrev->has_scope = is_one_of(tag, SCOPES);
}

/* The next attribute: name and form, which are of one byte each as a rule. False: they are damaged. */
static inline bool read_pair(struct cursor *c, uint64_t *ret_name, uint64_t *ret_form)
{
	if (cursor_left(c) >= 2 && c->at[0] < 0x80 && c->at[1] < 0x80) {
		*ret_name = c->at[0];
		*ret_form = c->at[1];
		c->at += 2;
		return true;
	}
	*ret_name = cursor_varuint(c);
	*ret_form = cursor_varuint(c);
	return !c->short_read && *ret_name <= UINT16_MAX && *ret_form <= UINT16_MAX;
}

/* The bytes of an abbreviation's entries before the next attribute, and where the reference to a sibling is. */
struct sizing {
	uint64_t bytes; /* DWARF_SIZE_LARGE or more: they vary, or are too many */
	uint64_t sibling;
};

/* Moves past attributes of one byte each for name and form, up to another one or the end (0, 0). */
static inline void scan_short(const struct dwarf_abbrevs *abbrevs, struct cursor *c,
	struct sizing *sizing)
{
	const uint8_t *at = c->at;
	const uint8_t *end = c->end;
	struct sizing now = *sizing;

	while (end - at >= 3) {
		uint32_t name = at[0];
		uint32_t form = at[1];
		if (name >= 0x80 || form >= DWARF_FORMS || !(name | form))
			break;
		/* One byte, as a rule, follows this form; branches here would be hard to predict. */
		uint32_t constant = form == DW_FORM_IMPLICIT_CONST;
		if (constant & at[2] >> 7)
			break;
		at += 2 + constant;
		now.sibling =
			name == DW_AT_SIBLING && form == DW_FORM_REF4 ? now.bytes : now.sibling;
		now.bytes += abbrevs->sizes[form];
	}
	c->at = at;
	*sizing = now;
}

/*
 * Moves behind an abbreviation after its code, and notes how a walk passes its entries. False: it is
 * damaged.
 */
static bool scan(struct dwarf_abbrevs *abbrevs, struct dwarf_abbrev *abbrev, struct cursor *c)
{
	struct sizing sizing = { .bytes = abbrev->code < 0x80 ? 1 : 2 };
	uint64_t name;
	uint64_t form;

	read_head(abbrev, c);
	for (;;) {
		scan_short(abbrevs, c, &sizing);
		if (!read_pair(c, &name, &form))
			return false;
		if (!name && !form)
			break;
		if (form == DW_FORM_IMPLICIT_CONST)
			(void)cursor_sleb(c); /* a failure stays in the cursor */
		if (sizing.bytes < DWARF_SIZE_LARGE)
			sizing.bytes +=
				form < DWARF_FORMS ? abbrevs->sizes[form] : DWARF_SIZE_LARGE;
	}
	if (abbrev->code < DWARF_QUICK && !abbrev->has_code && !abbrev->has_scope &&
		sizing.bytes < DWARF_SIZE_LARGE && (!abbrev->has_children || sizing.sibling))
		abbrevs->quick[abbrev->code] = (struct dwarf_quick){ (uint16_t)sizing.bytes,
			abbrev->has_children ? (uint16_t)sizing.sibling : 0 };
	return true;
}

/* 0, -EBADMSG or -ENOMEM. */
static int decode(struct dwarf_abbrevs *abbrevs, struct dwarf_abbrev *abbrev)
{
	struct cursor c = cursor_of(abbrevs->bytes.data, abbrevs->bytes.size);
	struct dwarf_step step = { 0 };

	cursor_skip(&c, abbrev->place);
	(void)cursor_varuint(
		&c); /* the tag, and whether there are children: scan() has read them */
	(void)cursor_u8(&c);
	abbrev->spec_at = abbrevs->specs.count;
	abbrev->step_at = abbrevs->steps.count;
	for (;;) {
		uint64_t name;
		uint64_t form;
		if (!read_pair(&c, &name, &form))
			return -EBADMSG;
		struct dwarf_spec spec = { .name = (uint16_t)name, .form = (uint16_t)form };
		if (form == DW_FORM_IMPLICIT_CONST)
			spec.constant = cursor_sleb(&c);
		if (!name && !form)
			break;
		uint32_t size = form < DWARF_FORMS ? abbrevs->sizes[form] : DWARF_SIZE_LARGE;
		enum dwarf_slot slot = slot_of(abbrev, name);
		if (slot != DWARF_SLOTS || size == DWARF_SIZE_LARGE) {
			step.spec = abbrevs->specs.count;
			set_kind(&step, &spec, size, slot);
			if (!vec_add_quick(&abbrevs->steps, step))
				return -ENOMEM;
			step.skip = 0;
		} else if (step.skip < (1u << 24)) {
			step.skip += size;
		}
		if (!vec_add_quick(&abbrevs->specs, spec))
			return -ENOMEM;
	}
	step.kind = DWARF_STEP_END;
	if (!vec_add(&abbrevs->steps, step))
		return -ENOMEM;
	abbrev->spec_count = abbrevs->specs.count - abbrev->spec_at;
	abbrev->decoded = true;
	return 0;
}

/* ---- those of a unit ---- */

/* Begins a list for the unit. */
static struct cursor begin(struct dwarf_abbrevs *abbrevs, const struct dwarf *dwarf,
	const struct dwarf_unit *unit)
{
	struct cursor c = dwarf_section_at(dwarf, DWARF_ABBREV, unit->abbrev_offset);

	vec_reset(&abbrevs->list);
	vec_reset(&abbrevs->specs);
	vec_reset(&abbrevs->steps);
	memset(abbrevs->quick, 0, sizeof(abbrevs->quick));
	abbrevs->bytes = (struct dwarf_bytes){ .data = c.at, .size = cursor_left(&c) };
	abbrevs->loaded = false;
	if (abbrevs->address_size != unit->address_size ||
		abbrevs->offset_size != unit->offset_size || abbrevs->version != unit->version)
		for (uint16_t form = 0; form < DWARF_FORMS; form++) {
			uint32_t size = dwarf_form_size(unit, form);
			abbrevs->sizes[form] = size == DWARF_SIZE_VARIES ? DWARF_SIZE_LARGE : size;
		}
	abbrevs->offset = unit->abbrev_offset;
	abbrevs->address_size = unit->address_size;
	abbrevs->offset_size = unit->offset_size;
	abbrevs->version = unit->version;
	return c;
}

/*
 * Reads the next code and moves behind its abbreviation. 1: *abbrev has its code and place; 0: the end;
 * -EBADMSG.
 */
static int next_abbrev(struct dwarf_abbrevs *abbrevs, struct cursor *c, struct dwarf_abbrev *abbrev)
{
	*abbrev = (struct dwarf_abbrev){ .code = cursor_varuint(c) };
	if (!abbrev->code || c->short_read)
		return c->short_read ? -EBADMSG : 0;
	size_t place = abbrevs->bytes.size - cursor_left(c);
	abbrev->place = (uint32_t)place;
	return place <= UINT32_MAX && scan(abbrevs, abbrev, c) ? 1 : -EBADMSG;
}

int dwarf_abbrevs_load(struct dwarf_abbrevs *abbrevs, struct dwarf *dwarf,
	const struct dwarf_unit *unit)
{
	struct dwarf_abbrev abbrev;
	uint64_t last = 0;
	bool sorted = true;
	int result;

	if (abbrevs->loaded && abbrevs->offset == unit->abbrev_offset &&
		abbrevs->address_size == unit->address_size &&
		abbrevs->offset_size == unit->offset_size && abbrevs->version == unit->version)
		return 0;
	struct cursor c = begin(abbrevs, dwarf, unit);
	while ((result = next_abbrev(abbrevs, &c, &abbrev)) > 0) {
		if (!vec_add_quick(&abbrevs->list, abbrev))
			return -ENOMEM;
		sorted &= last < abbrev.code;
		last = abbrev.code;
	}
	dwarf->work += abbrevs->bytes.size - cursor_left(&c);
	if (result < 0 || dwarf->work > DWARF_WORK_MAX)
		return -EBADMSG;
	if (!sorted)
		qsort(abbrevs->list.items, abbrevs->list.count, sizeof(*abbrevs->list.items),
			compare_abbrevs);
	abbrevs->loaded = true;
	return 0;
}

const struct dwarf_abbrev *dwarf_abbrevs_search(struct dwarf_abbrevs *abbrevs, uint64_t code)
{
	uint32_t low = code - 1 < abbrevs->list.count ? (uint32_t)code - 1 : 0;

	if (!abbrevs->list.count || abbrevs->list.items[low].code != code)
		low = partition_point(abbrevs->list.count, i, abbrevs->list.items[i].code < code);
	if (low == abbrevs->list.count || abbrevs->list.items[low].code != code)
		return NULL;
	struct dwarf_abbrev *abbrev = &abbrevs->list.items[low];
	return abbrev->decoded || decode(abbrevs, abbrev) == 0 ? abbrev : NULL;
}

const struct dwarf_abbrev *dwarf_abbrevs_first(struct dwarf_abbrevs *abbrevs, struct dwarf *dwarf,
	const struct dwarf_unit *unit, uint64_t code)
{
	struct cursor c = begin(abbrevs, dwarf, unit);
	struct dwarf_abbrev abbrev;

	while (dwarf->work < DWARF_WORK_MAX) {
		size_t left = cursor_left(&c);
		if (next_abbrev(abbrevs, &c, &abbrev) <= 0)
			return NULL;
		dwarf->work += left - cursor_left(&c);
		if (abbrev.code == code)
			return vec_add(&abbrevs->list, abbrev) &&
					       decode(abbrevs, &abbrevs->list.items[0]) == 0
				       ? &abbrevs->list.items[0]
				       : NULL;
	}
	return NULL;
}

void dwarf_abbrevs_done(struct dwarf_abbrevs *abbrevs)
{
	vec_done(&abbrevs->list);
	vec_done(&abbrevs->specs);
	vec_done(&abbrevs->steps);
	abbrevs->loaded = false;
}
