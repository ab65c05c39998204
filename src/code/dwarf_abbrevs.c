/* See dwarf_abbrevs.h. */
#include "code/dwarf_abbrevs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/partition_point.h"

static int compare_abbrevs(const void *left, const void *right)
{
	const struct dwarf_abbrev *a = left;
	const struct dwarf_abbrev *b = right;

	return a->code < b->code ? -1 : a->code > b->code;
}

/* ---- one abbreviation ---- */

static bool is_scope(uint64_t tag)
{
	return tag == DW_TAG_COMPILE_UNIT || tag == DW_TAG_PARTIAL_UNIT ||
	       tag == DW_TAG_NAMESPACE || tag == DW_TAG_MODULE || tag == DW_TAG_TRY_BLOCK ||
	       tag == DW_TAG_CATCH_BLOCK;
}

static bool is_taken(const struct dwarf_abbrev *abbrev, uint64_t name)
{
	switch (name) {
	case DW_AT_SIBLING:
		return abbrev->has_children;
	case DW_AT_LOW_PC:
	case DW_AT_HIGH_PC:
	case DW_AT_RANGES:
	case DW_AT_ABSTRACT_ORIGIN:
	case DW_AT_CALL_FILE:
	case DW_AT_CALL_LINE:
		return abbrev->has_code;
	default:
		return false;
	}
}

static void set_kind(struct dwarf_step *step, const struct dwarf_spec *spec, uint32_t size,
	bool taken)
{
	enum dwarf_class class = taken ? dwarf_form_class(spec->form) : DWARF_NONE;

	step->name = spec->name;
	step->size = size == DWARF_SIZE_VARIES ? 0 : (uint8_t)size;
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
	abbrev->has_code = tag == DW_TAG_SUBPROGRAM || tag == DW_TAG_INLINED_SUBROUTINE ||
			   tag == DW_TAG_LEXICAL_BLOCK;
	abbrev->has_scope = is_scope(tag);
}

/* Moves behind an abbreviation after its code. False: it is damaged. */
static bool skip_abbrev(struct cursor *c)
{
	(void)cursor_varuint(c); /* tag: a failure stays in the cursor */
	(void)cursor_u8(c);      /* whether there are children, likewise */
	for (;;) {
		uint64_t name = cursor_varuint(c);
		uint64_t form = cursor_varuint(c);
		if (c->short_read || name > UINT16_MAX || form > UINT16_MAX)
			return false;
		if (form == DW_FORM_IMPLICIT_CONST)
			(void)cursor_sleb(c); /* likewise */
		else if (!name && !form)
			return true;
	}
}

/* 0, -EBADMSG or -ENOMEM. */
static int decode(struct dwarf_abbrevs *abbrevs, struct dwarf_abbrev *abbrev)
{
	struct cursor c = cursor_of(abbrevs->bytes.data, abbrevs->bytes.size);
	struct dwarf_step step = { 0 };

	cursor_skip(&c, abbrev->place);
	read_head(abbrev, &c);
	abbrev->spec_at = abbrevs->specs.count;
	abbrev->step_at = abbrevs->steps.count;
	for (;;) {
		uint64_t name = cursor_varuint(&c);
		uint64_t form = cursor_varuint(&c);
		struct dwarf_spec spec = { .name = (uint16_t)name, .form = (uint16_t)form };
		if (c.short_read || name > UINT16_MAX || form > UINT16_MAX)
			return -EBADMSG;
		if (form == DW_FORM_IMPLICIT_CONST)
			spec.constant = cursor_sleb(&c);
		if (!name && !form)
			break;
		uint32_t size = form < DWARF_FORMS ? abbrevs->sizes[form] : DWARF_SIZE_VARIES;
		bool taken = is_taken(abbrev, name);
		if (taken || size == DWARF_SIZE_VARIES) {
			step.spec = abbrevs->specs.count;
			set_kind(&step, &spec, size, taken);
			if (!vec_add(&abbrevs->steps, step))
				return -ENOMEM;
			step.skip = 0;
		} else if (step.skip < (1u << 24)) {
			step.skip += size;
		}
		if (!vec_add(&abbrevs->specs, spec))
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
	abbrevs->bytes = (struct dwarf_bytes){ .data = c.at, .size = cursor_left(&c) };
	abbrevs->loaded = false;
	if (abbrevs->address_size != unit->address_size ||
		abbrevs->offset_size != unit->offset_size || abbrevs->version != unit->version)
		for (uint16_t form = 0; form < DWARF_FORMS; form++)
			abbrevs->sizes[form] = dwarf_form_size(unit, form);
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
static int next_abbrev(const struct dwarf_abbrevs *abbrevs, struct cursor *c,
	struct dwarf_abbrev *abbrev)
{
	*abbrev = (struct dwarf_abbrev){ .code = cursor_varuint(c) };
	if (!abbrev->code || c->short_read)
		return c->short_read ? -EBADMSG : 0;
	size_t place = abbrevs->bytes.size - cursor_left(c);
	abbrev->place = (uint32_t)place;
	return place <= UINT32_MAX && skip_abbrev(c) ? 1 : -EBADMSG;
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
		if (!vec_add(&abbrevs->list, abbrev))
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
	uint32_t low = partition_point(abbrevs->list.count, i, abbrevs->list.items[i].code < code);

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
