/*
 * See dwarf_inlines.h.
 *
 * The unit's entries are read once in order. The call of an outer function comes before the calls
 * inside it, so appending each call to the queries in its ranges keeps outer calls first, and no
 * tree is built. Functions without a query are skipped as a whole, and so are types.
 *
 * A function may be an entry inside another one that has none of its code: a lambda inside an inlined
 * function, a member function of a local class. So queries without a function are searched in a
 * second pass that skips nothing. Padding between functions has none either, but continues a line
 * that begins in the function before it.
 */
#include "code/dwarf_inlines.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cursor.h"
#include "base/partition_point.h"
#include "base/strtab.h"
#include "code/demangle.h"
#include "code/dwarf_units.h"

#define ORIGINS_MAX 8u
/* Calls around one address; deeper ones, which no compiler makes, are not listed. */
#define DEPTH_MAX 128u
/* What `names` remembers of an entry without a name. */
#define NO_NAME UINT32_MAX

struct inline_walk {
	struct dwarf_inlines *inlines;
	struct dwarf *dwarf;
	const struct dwarf_unit *unit;
	struct dwarf_line_query *queries;
	uint32_t count;
	struct strtab *strings;
	bool whole; /* no entry is skipped */
	/* The queries that entries inside the current function can have: all if it is inside another one. */
	uint32_t from;
	uint32_t to;             /* exclusive */
	uint32_t function_depth; /* of the current function; UINT32_MAX: none */
	uint32_t last;           /* what lower_bound() found last */
};

/* The attributes of one entry that the walk takes. */
struct inline_entry {
	uint16_t tag;
	union {
		struct dwarf_value values[DWARF_SLOTS]; /* by enum dwarf_slot */
		struct {
			struct dwarf_code code; /* low, high, ranges */
			struct dwarf_value origin;
			struct dwarf_value sibling;
			struct dwarf_value call_file;
			struct dwarf_value call_line;
		};
	};
};
static_assert(offsetof(struct inline_entry, code.ranges) - offsetof(struct inline_entry, values) ==
		      DWARF_SLOT_RANGES * sizeof(struct dwarf_value),
	"the slots of the code");
static_assert(offsetof(struct inline_entry, call_line) - offsetof(struct inline_entry, values) ==
		      DWARF_SLOT_CALL_LINE * sizeof(struct dwarf_value),
	"the last slot");

/* Where the value leads to in .debug_info; 0: to no entry. */
static uint64_t reference_of(const struct dwarf_value *value)
{
	return value->class == DWARF_REFERENCE ? value->number : 0;
}

/* A number of 1, 2, 4 or 8 bytes, little-endian. */
static inline uint64_t read_number(struct cursor *c, unsigned size)
{
	const uint8_t *bytes = cursor_take(c, size);
	uint64_t number = 0;

	for (unsigned i = size; bytes && i-- > 0;)
		number = number << 8 | bytes[i];
	return number;
}

static bool read_entry(const struct inline_walk *walk, const struct dwarf_abbrev *abbrev,
	struct cursor *c, struct inline_entry *entry)
{
	const struct dwarf_abbrevs *abbrevs = &walk->inlines->abbrevs;

	entry->tag = abbrev->tag;
	for (unsigned slot = 0; slot < DWARF_SLOTS; slot++) {
		entry->values[slot].class = DWARF_NONE;
		entry->values[slot].number = 0;
	}
	for (const struct dwarf_step *step = &abbrevs->steps.items[abbrev->step_at];; step++) {
		struct dwarf_value other;
		struct dwarf_value *value =
			step->slot < DWARF_SLOTS ? &entry->values[step->slot] : &other;
		cursor_skip(c, step->skip);
		switch ((enum dwarf_step_kind)step->kind) {
		case DWARF_STEP_END:
			return !c->short_read;
		case DWARF_STEP_FIXED:
			value->class = (enum dwarf_class)step->class;
			value->number = read_number(c, step->size);
			if (value->class == DWARF_REFERENCE)
				value->number += walk->unit->begin;
			break;
		case DWARF_STEP_BLOCK:
			cursor_skip(c, cursor_varuint(c));
			break;
		default:
			if (!dwarf_read(walk->dwarf, walk->unit, c,
				    &abbrevs->specs.items[step->spec], value))
				return false;
		}
	}
}

const struct dwarf_inline_call *dwarf_inlines_call(const struct dwarf_inlines *inlines,
	uint32_t number)
{
	return number ? &inlines->calls.items[number - 1] : NULL;
}

/* ---- names ---- */

static uint32_t add_name(struct inline_walk *walk, const char *text)
{
	struct bytes *out = &walk->inlines->text;

	bytes_reset(out);
	if (!demangle(text, strlen(text), out))
		bytes_text(out, text);
	return out->failed ? 0 : strtab_add(walk->strings, (const char *)out->data, out->len);
}

/* The attributes of one entry that have its name. */
struct naming {
	struct dwarf_value name;
	struct dwarf_value linkage_name;
	uint64_t origin; /* 0: none */
};

static bool is_naming(uint16_t attribute)
{
	return attribute == DW_AT_NAME || attribute == DW_AT_ABSTRACT_ORIGIN ||
	       attribute == DW_AT_SPECIFICATION || attribute == DW_AT_LINKAGE_NAME ||
	       attribute == DW_AT_MIPS_LINKAGE_NAME;
}

/* Ends with the last of these attributes, which most entries have among the first. */
static bool read_naming(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct dwarf_abbrevs *abbrevs, const struct dwarf_abbrev *abbrev, struct cursor *c,
	struct naming *naming)
{
	const struct dwarf_spec *specs = &abbrevs->specs.items[abbrev->spec_at];
	uint32_t count = abbrev->spec_count;

	*naming = (struct naming){ 0 };
	while (count && !is_naming(specs[count - 1].name))
		count--;
	for (uint32_t i = 0; i < count; i++) {
		const struct dwarf_spec *spec = &specs[i];
		struct dwarf_value value;
		if (!dwarf_read(dwarf, unit, c, spec, &value))
			return false;
		switch (spec->name) {
		case DW_AT_ABSTRACT_ORIGIN:
		case DW_AT_SPECIFICATION:
			naming->origin = value.class == DWARF_REFERENCE ? value.number : 0;
			break;
		case DW_AT_NAME:
			naming->name = value;
			break;
		case DW_AT_LINKAGE_NAME:
		case DW_AT_MIPS_LINKAGE_NAME:
			naming->linkage_name = value;
			break;
		default:
			break;
		}
	}
	return true;
}

/* Follows an entry's origins to a name: strtab; 0 if there is none. */
static uint32_t find_name(struct inline_walk *walk, uint64_t offset)
{
	const char *plain = NULL;

	for (unsigned i = 0; i < ORIGINS_MAX && offset; i++) {
		const struct dwarf_unit *unit = dwarf_unit_at(walk->dwarf, offset);
		struct dwarf_abbrevs *abbrevs =
			unit == walk->unit ? &walk->inlines->abbrevs : &walk->inlines->foreign;
		struct naming naming;
		if (!unit || dwarf_abbrevs_load(abbrevs, walk->dwarf, unit) < 0)
			break;
		struct cursor c = dwarf_entries(walk->dwarf, unit, offset);
		const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(abbrevs, cursor_varuint(&c));
		if (!abbrev || !read_naming(walk->dwarf, unit, abbrevs, abbrev, &c, &naming))
			break;
		const char *linkage = dwarf_text(walk->dwarf, unit, &naming.linkage_name);
		if (linkage && *linkage)
			return add_name(walk, linkage);
		if (!plain)
			plain = dwarf_text(walk->dwarf, unit, &naming.name);
		offset = naming.origin;
	}
	return plain && *plain ? add_name(walk, plain) : 0;
}

static uint32_t name_of(struct inline_walk *walk, uint64_t offset)
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
	struct inline_walk *walk;
	const struct inline_entry *entry;
	struct dwarf_inline_call call; /* of an inlined function, once a query is covered */
	uint32_t from;                 /* the marked queries are among these */
	uint32_t to;                   /* exclusive */
	bool any;
	bool no_memory;
};

/* The first query at or after the address; mostly that of the range before. */
static uint32_t lower_bound(struct inline_walk *walk, uint64_t address)
{
	const struct dwarf_line_query *queries = walk->queries;
	uint32_t at = walk->last;

	if (at < walk->from || at > walk->to ||
		(at > walk->from && queries[at - 1].address >= address) ||
		(at < walk->to && queries[at].address < address))
		at = partition_point_from(walk->from, walk->to, i, queries[i].address < address);
	walk->last = at;
	return at;
}

/* Marks the queries of a function's range, and those in the padding after it. */
static void mark_range(struct covered *covered, uint32_t from, uint64_t begin, uint64_t end)
{
	const struct inline_walk *walk = covered->walk;

	for (uint32_t i = from; i < walk->count; i++) {
		struct dwarf_line_query *query = &walk->queries[i];
		bool padding = query->row >= begin && query->row < end;
		if (query->address >= end && !padding)
			break;
		query->has_function = true;
		covered->from = i < covered->from ? i : covered->from;
		covered->to = i >= covered->to ? i + 1 : covered->to;
		walk->dwarf->work++;
	}
}

static bool add_call(const struct inline_walk *walk, const struct dwarf_inline_call *of,
	struct dwarf_line_query *query)
{
	struct dwarf_inlines *inlines = walk->inlines;
	struct dwarf_inline_call call = *of;
	const struct dwarf_inline_call *outer = dwarf_inlines_call(inlines, query->call);

	call.outer = query->call;
	call.depth = outer ? outer->depth + 1 : 1;
	if (call.depth > DEPTH_MAX)
		return true;
	if (!vec_add_quick(&inlines->calls, call))
		return false;
	query->call = inlines->calls.count;
	return true;
}

static struct dwarf_inline_call call_of(struct inline_walk *walk, const struct inline_entry *entry)
{
	struct dwarf_inline_call call = { .function = name_of(walk, reference_of(&entry->origin)),
		.file = entry->call_file.number,
		.line = entry->call_line.number > INT32_MAX ? 0
							    : (uint32_t)entry->call_line.number };

	if (!call.function)
		call.function = strtab_add_z(walk->strings, "[inlined function]");
	return call;
}

/*
 * Marks the queries of a function, adds a call to those of an inlined one, and of a block finds out
 * whether it has any.
 */
static bool on_range(void *context, uint64_t begin, uint64_t end)
{
	struct covered *covered = context;
	struct inline_walk *walk = covered->walk;
	uint32_t from = lower_bound(walk, begin);

	if (covered->entry->tag == DW_TAG_SUBPROGRAM) {
		covered->any |= from < walk->count && walk->queries[from].address < end;
		mark_range(covered, from, begin, end);
		return walk->dwarf->work <= DWARF_WORK_MAX;
	}
	for (uint32_t i = from; i < walk->to && walk->queries[i].address < end; i++) {
		if (covered->entry->tag == DW_TAG_INLINED_SUBROUTINE && !covered->any)
			covered->call = call_of(walk, covered->entry);
		covered->any = true;
		if (covered->entry->tag != DW_TAG_INLINED_SUBROUTINE)
			return false; /* one is enough */
		if (walk->dwarf->work++ > DWARF_WORK_MAX)
			return false;
		covered->no_memory = !add_call(walk, &covered->call, &walk->queries[i]);
		if (covered->no_memory)
			return false;
	}
	return true;
}

static bool has_code(const struct dwarf_code *code)
{
	return code->low.class != DWARF_NONE || code->ranges.class != DWARF_NONE;
}

/* 1: the entry's children matter; 0: they do not; or -ENOMEM. */
static int take_entry(struct inline_walk *walk, const struct inline_entry *entry, uint32_t depth)
{
	struct covered covered = { .walk = walk, .entry = entry, .from = UINT32_MAX };
	bool function = entry->tag == DW_TAG_SUBPROGRAM;
	bool nested = function && depth > walk->function_depth;

	if (function) {
		walk->from = 0;
		walk->to = walk->count;
	}
	if (!has_code(&entry->code))
		return entry->tag == DW_TAG_LEXICAL_BLOCK; /* the rest is abstract */
	/* A damaged list of ranges covers what could be read. */
	(void)dwarf_each_range(walk->dwarf, walk->unit, &entry->code, on_range, &covered);
	if (covered.any && function && !nested) {
		walk->from = covered.from;
		walk->to = covered.to;
		walk->function_depth = depth;
	}
	return covered.no_memory ? -ENOMEM : covered.any;
}

/* Moves past entries that the walk takes nothing of, with their children unless the walk is of all. */
static void pass_quick(const struct inline_walk *walk, struct cursor *c)
{
	const struct dwarf_quick *all = walk->inlines->abbrevs.quick;
	const uint8_t *unit = walk->dwarf->sections[DWARF_INFO].data + walk->unit->begin;
	const uint8_t *at = c->at;
	const uint8_t *end = c->end;

	while (end - at >= 2) {
		uint32_t code = at[0];
		if (code >= 0x80)
			code = (code & 0x7f) | (uint32_t)at[1] << 7;
		if (code >= DWARF_QUICK || (code < 0x80 && code != at[0]))
			break; /* rare, or written in more bytes than it needs */
		const struct dwarf_quick *quick = &all[code];
		if (!quick->bytes || end - at < quick->bytes)
			break;
		if (!quick->sibling) {
			at += quick->bytes;
			continue;
		}
		struct cursor reference = cursor_of(at + quick->sibling, 4);
		uint32_t offset = cursor_u32(&reference);
		if (walk->whole || offset > (size_t)(end - unit) ||
			unit + offset <= at + quick->bytes)
			break;
		at = unit + offset;
	}
	c->at = at;
}

/* Reads all entries of the unit. 0, -EBADMSG or -ENOMEM. */
static int walk_unit(struct inline_walk *walk)
{
	struct dwarf_abbrevs *abbrevs = &walk->inlines->abbrevs;
	struct cursor c = dwarf_entries(walk->dwarf, walk->unit, walk->unit->dies);
	const uint8_t *info = walk->dwarf->sections[DWARF_INFO].data;
	uint32_t depth = 0;
	uint32_t skipped_at = UINT32_MAX; /* the depth whose children do not matter */

	for (;;) {
		pass_quick(walk, &c);
		if (!cursor_left(&c))
			break;
		uint64_t code = cursor_varuint(&c);
		struct inline_entry entry;
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
		if (depth <= walk->function_depth)
			walk->function_depth = UINT32_MAX; /* it has ended */
		bool skipped = skipped_at != UINT32_MAX;
		int wanted = !skipped && (abbrev->has_scope || walk->whole);
		if (!read_entry(walk, abbrev, &c, &entry))
			return -EBADMSG;
		if (!skipped && abbrev->has_code) {
			int taken = take_entry(walk, &entry, depth);
			if (taken < 0)
				return taken;
			wanted |= taken;
		}
		if (!abbrev->has_children)
			continue;
		uint64_t sibling = reference_of(&entry.sibling);
		if (!wanted && sibling > (uint64_t)(c.at - info) && sibling <= walk->unit->end) {
			c.at = info + sibling;
			continue;
		}
		if (!wanted && !skipped)
			skipped_at = depth;
		depth++;
	}
	return c.short_read ? -EBADMSG : 0;
}

/* Searches the queries that no function was found for. */
static int walk_nested(struct inline_walk *walk)
{
	struct dwarf_inlines *inlines = walk->inlines;
	struct inline_walk nested = *walk;

	vec_reset(&inlines->nested);
	for (uint32_t i = 0; i < walk->count; i++) {
		struct dwarf_line_query query = walk->queries[i];
		if (query.has_function || query.file == UINT32_MAX)
			continue;
		query.index = i;
		if (!vec_add(&inlines->nested, query))
			return -ENOMEM;
	}
	if (!inlines->nested.count)
		return 0;
	nested.queries = inlines->nested.items;
	nested.count = nested.to = inlines->nested.count;
	nested.from = 0;
	nested.function_depth = UINT32_MAX;
	nested.whole = true;
	int result = walk_unit(&nested);
	vec_each(query, &inlines->nested)
		walk->queries[query->index].call = query->call;
	return result;
}

int dwarf_inlines_find(struct dwarf_inlines *inlines, struct dwarf *dwarf,
	const struct dwarf_unit *unit, struct dwarf_line_query *queries, uint32_t count,
	struct strtab *strings)
{
	struct inline_walk walk = { .inlines = inlines,
		.dwarf = dwarf,
		.unit = unit,
		.queries = queries,
		.count = count,
		.strings = strings };

	walk.to = count;
	walk.function_depth = UINT32_MAX;
	vec_reset(&inlines->calls);
	int result = dwarf_abbrevs_load(&inlines->abbrevs, dwarf, unit);
	if (result == 0)
		result = walk_unit(&walk);
	if (result == 0)
		result = walk_nested(&walk);
	return result;
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
