/* The functions that were inlined at given addresses of one unit (DW_TAG_inlined_subroutine). */
#ifndef SPOOR_CODE_DWARF_INLINES_H
#define SPOOR_CODE_DWARF_INLINES_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "code/dwarf_abbrevs.h"
#include "code/dwarf_lines.h"

struct strtab;

/* One inlined call that covers the code of a query. */
struct dwarf_inline_call {
	uint32_t outer;    /* number of the call around it; 0: none */
	uint32_t depth;    /* 1: the outermost */
	uint32_t function; /* strtab, demangled */
	uint32_t line;     /* of the call, in its caller */
	uint64_t file;     /* number in the unit's line table */
};

struct dwarf_inlines {
	VEC(struct dwarf_inline_call) calls; /* numbered from 1 */
	struct map names;                    /* offset of an entry -> strtab, or NO_NAME */
	struct dwarf_abbrevs abbrevs;
	struct dwarf_abbrevs foreign;        /* of other units that entries refer to */
	VEC(struct dwarf_line_query) nested; /* queries of the second pass */
	struct bytes text;
};

/*
 * Finds the calls of all queries, which are sorted by address and have their lines. 0, -EBADMSG, or
 * -ENOMEM.
 */
int dwarf_inlines_find(struct dwarf_inlines *inlines, struct dwarf *dwarf,
	const struct dwarf_unit *unit, struct dwarf_line_query *queries, uint32_t count,
	struct strtab *strings);

/* The call with this number, of the last unit; NULL: 0. */
const struct dwarf_inline_call *dwarf_inlines_call(const struct dwarf_inlines *inlines,
	uint32_t number);

void dwarf_inlines_done(struct dwarf_inlines *inlines);

#endif
