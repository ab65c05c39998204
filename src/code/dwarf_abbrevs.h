/*
 * The abbreviations of a unit (.debug_abbrev): which attributes its entries have, and in which form.
 *
 * A walk over all entries of a unit takes nothing of most of them. For those whose size is known, that
 * is noted when the abbreviations are loaded (struct dwarf_quick). The others are decoded when they are
 * first found, into a flat list of steps: it stops at the attributes that the walk takes (code, calls,
 * siblings), and bytes of a known number are skipped together.
 */
#ifndef SPOOR_CODE_DWARF_ABBREVS_H
#define SPOOR_CODE_DWARF_ABBREVS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "code/dwarf.h"

#define DWARF_FORMS 0x2du
/* Codes from 1 on that `quick` has; larger ones are of two bytes too, and rare. */
#define DWARF_QUICK 512u
/* A size that varies, also in a sum; attributes have less. */
#define DWARF_SIZE_LARGE 0x8000u

enum dwarf_step_kind {
	DWARF_STEP_END,   /* the entry ends */
	DWARF_STEP_FIXED, /* taken, a number of `size` bytes */
	DWARF_STEP_TAKE,  /* taken, read by dwarf_read() */
	DWARF_STEP_BLOCK, /* not taken: a length (LEB128), then that many bytes */
	DWARF_STEP_OTHER, /* not taken, of another form without a fixed size */
};

/* The attributes that a walk takes, in the order of struct entry in dwarf_inlines.c. */
enum dwarf_slot {
	DWARF_SLOT_LOW,
	DWARF_SLOT_HIGH,
	DWARF_SLOT_RANGES,
	DWARF_SLOT_ORIGIN,
	DWARF_SLOT_SIBLING,
	DWARF_SLOT_CALL_FILE,
	DWARF_SLOT_CALL_LINE,
	DWARF_SLOTS,
};

/* After `skip` bytes the entry ends, or an attribute follows that is taken or whose size varies. */
struct dwarf_step {
	uint32_t skip;
	uint32_t spec; /* index in specs */
	uint8_t slot;  /* enum dwarf_slot */
	uint8_t kind;  /* enum dwarf_step_kind */
	uint8_t size;
	uint8_t class
		; /* enum dwarf_class, of DWARF_STEP_FIXED; DWARF_REFERENCE: from the unit's begin */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t place; /* of its tag, from the begin of the unit's abbreviations */
	uint32_t spec_at;
	uint32_t spec_count;
	uint32_t step_at; /* the last step of each is DWARF_STEP_END */
	uint16_t tag;
	bool decoded; /* its specs and steps are set */
	bool has_children;
	bool has_code; /* a function, a call or a block: its code tells whether its children matter */
	bool has_scope; /* its children may be functions, as those of a namespace */
};

/*
 * How a walk passes an entry that it takes nothing of, except for the place of its next sibling: all
 * bytes before that are of a known number.
 */
struct dwarf_quick {
	uint16_t bytes; /* of the entry, with its code; 0: its attributes must be read */
	uint16_t
		sibling; /* where a reference of 4 bytes to the sibling is; 0: it has no children */
};

/* The abbreviations of one unit, reusable for another. */
struct dwarf_abbrevs {
	uint64_t offset;
	uint8_t address_size;
	uint8_t offset_size;
	uint16_t version;
	bool loaded;
	struct dwarf_bytes bytes; /* from the unit's first abbreviation to the end of the section */
	uint32_t sizes[DWARF_FORMS];   /* of the standard's forms; DWARF_SIZE_LARGE: they vary */
	VEC(struct dwarf_abbrev) list; /* by code */
	VEC(struct dwarf_spec) specs;
	VEC(struct dwarf_step) steps;
	struct dwarf_quick quick[DWARF_QUICK]; /* by code */
};

/* Loads those of the unit, unless they are loaded. -EBADMSG or -ENOMEM. */
int dwarf_abbrevs_load(struct dwarf_abbrevs *abbrevs, struct dwarf *dwarf,
	const struct dwarf_unit *unit);

/* Searches the code, and decodes its abbreviation. NULL: there is none, it is damaged, or no memory. */
const struct dwarf_abbrev *dwarf_abbrevs_search(struct dwarf_abbrevs *abbrevs, uint64_t code);

/* The same. Compilers number them from 1, so the index is known. */
static inline const struct dwarf_abbrev *dwarf_abbrevs_find(struct dwarf_abbrevs *abbrevs,
	uint64_t code)
{
	if (code - 1 < abbrevs->list.count) {
		const struct dwarf_abbrev *abbrev = &abbrevs->list.items[code - 1];
		if (abbrev->code == code && abbrev->decoded)
			return abbrev;
	}
	return dwarf_abbrevs_search(abbrevs, code);
}

/*
 * Loads the abbreviation of this code alone, for the unit's first entry. NULL: there is none. The next
 * call makes it invalid.
 */
const struct dwarf_abbrev *dwarf_abbrevs_first(struct dwarf_abbrevs *abbrevs, struct dwarf *dwarf,
	const struct dwarf_unit *unit, uint64_t code);
void dwarf_abbrevs_done(struct dwarf_abbrevs *abbrevs);

#endif
