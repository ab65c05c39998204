/*
 * See dwarf_inlines.h.
 *
 * The unit's entries are read once in order. The call of an outer function comes before the calls
 * inside it, so appending each call to the queries in its ranges keeps outer calls first, and no
 * tree is built. Functions without a query are skipped as a whole.
 *
 * A function may be an entry inside another one that has none of its code: a lambda inside an inlined
 * function, a member function of a local class. So queries without a function are searched in a
 * second pass that skips nothing. Padding between functions has none either, but continues a line
 * that begins in the function before it.
 */
#include "code/dwarf_inlines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/strtab.h"
#include "code/demangle.h"
#include "code/dwarf_units.h"

#define ORIGINS_MAX 8u
/* Calls around one address; deeper ones, which no compiler makes, are not listed. */
#define DEPTH_MAX 128u
/* What `names` remembers of an entry without a name. */
#define NO_NAME UINT32_MAX

struct walk {
	struct dwarf_inlines *inlines;
	struct dwarf *dwarf;
	const struct dwarf_unit *unit;
	struct dwarf_line_query *queries;
	uint32_t count;
	struct strtab *strings;
	bool whole; /* no entry is skipped */
};

/* The attributes of one entry that are used here. */
struct entry {
	uint16_t tag;
	struct dwarf_code code;
	uint64_t origin;  /* 0: none */
	uint64_t sibling; /* 0: none */
	uint64_t call_file;
	uint64_t call_line;
	struct dwarf_value name;
	struct dwarf_value linkage_name;
};

static bool read_entry(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_abbrevs *abbrevs, const struct dwarf_abbrev *abbrev, struct cursor *c,
	struct entry *entry)
{
	*entry = (struct entry){ .tag = abbrev->tag };
	for (uint32_t i = 0; i < abbrev->spec_count; i++) {
		const struct dwarf_spec *spec = &abbrevs->specs.items[abbrev->spec_at + i];
		struct dwarf_value value;
		if (!dwarf_read(dwarf, unit, c, spec, &value))
			return false;
		switch (spec->name) {
		case DW_AT_SIBLING:
			entry->sibling = value.class == DWARF_REFERENCE ? value.number : 0;
			break;
		case DW_AT_LOW_PC:
			entry->code.low = value;
			break;
		case DW_AT_HIGH_PC:
			entry->code.high = value;
			break;
		case DW_AT_RANGES:
			entry->code.ranges = value;
			break;
		case DW_AT_ABSTRACT_ORIGIN:
		case DW_AT_SPECIFICATION:
			entry->origin = value.class == DWARF_REFERENCE ? value.number : 0;
			break;
		case DW_AT_CALL_FILE:
			entry->call_file = value.number;
			break;
		case DW_AT_CALL_LINE:
			entry->call_line = value.number;
			break;
		case DW_AT_NAME:
			entry->name = value;
			break;
		case DW_AT_LINKAGE_NAME:
		case DW_AT_MIPS_LINKAGE_NAME:
			entry->linkage_name = value;
			break;
		default:
			break;
		}
	}
	return true;
}

/* ---- names ---- */

static uint32_t add_name(struct walk *walk, const char *text)
{
	struct bytes *out = &walk->inlines->text;

	bytes_reset(out);
	if (!demangle(text, strlen(text), out))
		bytes_text(out, text);
	return out->failed ? 0 : strtab_add(walk->strings, (const char *)out->data, out->len);
}

/* Follows an entry's origins to a name: strtab; 0 if there is none. */
static uint32_t find_name(struct walk *walk, uint64_t offset)
{
	const char *plain = NULL;

	for (unsigned i = 0; i < ORIGINS_MAX && offset; i++) {
		const struct dwarf_unit *unit = dwarf_unit_at(walk->dwarf, offset);
		struct dwarf_abbrevs *abbrevs =
			unit == walk->unit ? &walk->inlines->abbrevs : &walk->inlines->foreign;
		struct entry entry;
		if (!unit || dwarf_abbrevs_load(abbrevs, walk->dwarf, unit) < 0)
			break;
		struct cursor c = dwarf_entries(walk->dwarf, unit, offset);
		const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(abbrevs, cursor_varuint(&c));
		if (!abbrev || !read_entry(walk->dwarf, unit, abbrevs, abbrev, &c, &entry))
			break;
		const char *linkage = dwarf_text(walk->dwarf, unit, &entry.linkage_name);
		if (linkage && *linkage)
			return add_name(walk, linkage);
		if (!plain)
			plain = dwarf_text(walk->dwarf, unit, &entry.name);
		offset = entry.origin;
	}
	return plain && *plain ? add_name(walk, plain) : 0;
}

static uint32_t name_of(struct walk *walk, uint64_t offset)
{
	struct map *names = &walk->inlines->names;
	uint32_t known = map_get(names, offset);

	if (!known) {
		known = find_name(walk, offset);
		(void)map_add(names, offset, known ? known : NO_NAME); /* only slower without */
	}
	return known == NO_NAME ? 0 : known;
}

/* ---- entries ---- */

struct covered {
	const struct walk *walk;
	const struct dwarf_inline_call *call; /* NULL: only whether a query is covered */
	bool function;                        /* marks the queries: they are of a function */
	bool any;
	bool no_memory;
};

static uint32_t lower_bound(const struct walk *walk, uint64_t address)
{
	uint32_t low = 0;
	uint32_t high = walk->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (walk->queries[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Marks the queries of a function's range, and those in the padding after it. */
static void mark_range(const struct walk *walk, uint32_t from, uint64_t begin, uint64_t end)
{
	for (uint32_t i = from; i < walk->count; i++) {
		struct dwarf_line_query *query = &walk->queries[i];
		bool padding = query->row >= begin && query->row < end;
		if (query->address >= end && !padding)
			break;
		query->has_function = true;
		walk->dwarf->work++;
	}
}

static bool on_range(void *context, uint64_t begin, uint64_t end)
{
	struct covered *covered = context;
	const struct walk *walk = covered->walk;
	uint32_t from = lower_bound(walk, begin);

	if (covered->function) {
		covered->any |= from < walk->count && walk->queries[from].address < end;
		mark_range(walk, from, begin, end);
		return walk->dwarf->work <= DWARF_WORK_MAX;
	}
	for (uint32_t i = from; i < walk->count && walk->queries[i].address < end; i++) {
		covered->any = true;
		if (!covered->call)
			return false; /* one is enough */
		struct dwarf_inline_call call = *covered->call;
		call.query = walk->queries[i].index;
		call.order = walk->inlines->calls.count;
		if (walk->dwarf->work++ > DWARF_WORK_MAX)
			return false;
		if (!vec_add(&walk->inlines->calls, call)) {
			covered->no_memory = true;
			return false;
		}
	}
	return true;
}

static bool has_code(const struct dwarf_code *code)
{
	return code->low.class != DWARF_NONE || code->ranges.class != DWARF_NONE;
}

/* 1: the entry's children matter; 0: they do not; or -ENOMEM. */
static int take_entry(struct walk *walk, const struct entry *entry)
{
	struct covered covered = { .walk = walk, .function = entry->tag == DW_TAG_SUBPROGRAM };
	struct dwarf_inline_call call;

	if (entry->tag != DW_TAG_SUBPROGRAM && entry->tag != DW_TAG_INLINED_SUBROUTINE &&
		entry->tag != DW_TAG_LEXICAL_BLOCK)
		return 1;
	if (!has_code(&entry->code))
		return entry->tag == DW_TAG_LEXICAL_BLOCK; /* the rest is abstract */
	/* A damaged list of ranges covers what could be read. */
	(void)dwarf_each_range(walk->dwarf, walk->unit, &entry->code, on_range, &covered);
	if (!covered.any || entry->tag != DW_TAG_INLINED_SUBROUTINE)
		return covered.any;
	call = (struct dwarf_inline_call){ .function = name_of(walk, entry->origin),
		.file = entry->call_file,
		.line = entry->call_line > INT32_MAX ? 0 : (uint32_t)entry->call_line };
	if (!call.function)
		call.function = strtab_add_z(walk->strings, "[inlined function]");
	covered.call = &call;
	(void)dwarf_each_range(walk->dwarf, walk->unit, &entry->code, on_range, &covered);
	return covered.no_memory ? -ENOMEM : 1;
}

static bool is_of_interest(const struct dwarf_abbrev *abbrev)
{
	return abbrev->tag == DW_TAG_SUBPROGRAM || abbrev->tag == DW_TAG_INLINED_SUBROUTINE ||
	       abbrev->tag == DW_TAG_LEXICAL_BLOCK;
}

/* Reads all entries of the unit. 0, -EBADMSG or -ENOMEM. */
static int walk_unit(struct walk *walk)
{
	const struct dwarf_abbrevs *abbrevs = &walk->inlines->abbrevs;
	struct cursor c = dwarf_entries(walk->dwarf, walk->unit, walk->unit->dies);
	const uint8_t *info = walk->dwarf->sections[DWARF_INFO].data;
	uint32_t depth = 0;
	uint32_t skipped_at = UINT32_MAX; /* the depth whose children do not matter */

	while (cursor_left(&c)) {
		uint64_t code = cursor_varuint(&c);
		struct entry entry;
		if (!code && !c.short_read) {
			if (depth <= 1)
				return 0;
			depth--;
			if (depth <= skipped_at)
				skipped_at = UINT32_MAX;
			continue;
		}
		const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(abbrevs, code);
		if (!abbrev)
			return -EBADMSG;
		bool skipped = skipped_at != UINT32_MAX;
		int wanted = 0;
		if ((skipped || !is_of_interest(abbrev)) &&
			abbrev->fixed_size != DWARF_SIZE_VARIES) {
			cursor_skip(&c, abbrev->fixed_size);
			entry.sibling = 0;
			wanted = !skipped;
		} else if (!read_entry(walk->dwarf, walk->unit, abbrevs, abbrev, &c, &entry)) {
			return -EBADMSG;
		} else if (!skipped) {
			wanted = take_entry(walk, &entry);
		}
		if (wanted < 0)
			return wanted;
		wanted |= walk->whole;
		if (!abbrev->has_children)
			continue;
		if (!wanted && entry.sibling > (uint64_t)(c.at - info) &&
			entry.sibling <= walk->unit->end) {
			c.at = info + entry.sibling;
			continue;
		}
		if (!wanted && !skipped)
			skipped_at = depth;
		depth++;
	}
	return c.short_read ? -EBADMSG : 0;
}

static int compare_calls(const void *left, const void *right)
{
	const struct dwarf_inline_call *a = left;
	const struct dwarf_inline_call *b = right;

	if (a->query != b->query)
		return a->query < b->query ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Searches the queries that no function was found for. */
static int walk_nested(struct walk *walk)
{
	struct dwarf_inlines *inlines = walk->inlines;
	struct walk nested = *walk;

	vec_reset(&inlines->nested);
	for (uint32_t i = 0; i < walk->count; i++)
		if (!walk->queries[i].has_function && walk->queries[i].file != UINT32_MAX &&
			!vec_add(&inlines->nested, walk->queries[i]))
			return -ENOMEM;
	if (!inlines->nested.count)
		return 0;
	nested.queries = inlines->nested.items;
	nested.count = inlines->nested.count;
	nested.whole = true;
	return walk_unit(&nested);
}

int dwarf_inlines_find(struct dwarf_inlines *inlines, struct dwarf *dwarf,
	const struct dwarf_unit *unit, struct dwarf_line_query *queries, uint32_t count,
	struct strtab *strings)
{
	struct walk walk = { .inlines = inlines,
		.dwarf = dwarf,
		.unit = unit,
		.queries = queries,
		.count = count,
		.strings = strings };

	vec_reset(&inlines->calls);
	int result = dwarf_abbrevs_load(&inlines->abbrevs, dwarf, unit);
	if (result == 0)
		result = walk_unit(&walk);
	if (result == 0)
		result = walk_nested(&walk);
	if (inlines->calls.count > 1)
		qsort(inlines->calls.items, inlines->calls.count, sizeof(*inlines->calls.items),
			compare_calls);
	return result;
}

uint32_t dwarf_inlines_calls(const struct dwarf_inlines *inlines, uint32_t query,
	const struct dwarf_inline_call **ret_calls)
{
	uint32_t low = 0;
	uint32_t high = inlines->calls.count;
	uint32_t count = 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (inlines->calls.items[middle].query < query)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + count < inlines->calls.count && count < DEPTH_MAX &&
		inlines->calls.items[low + count].query == query)
		count++;
	/* a hostile file may cause no call at all, and NULL has no elements to point to */
	*ret_calls = count ? &inlines->calls.items[low] : NULL;
	return count;
}

void dwarf_inlines_done(struct dwarf_inlines *inlines)
{
	vec_done(&inlines->calls);
	vec_done(&inlines->nested);
	map_done(&inlines->names);
	dwarf_abbrevs_done(&inlines->abbrevs);
	dwarf_abbrevs_done(&inlines->foreign);
	bytes_done(&inlines->text);
}
