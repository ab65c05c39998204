/*
 * See codemap.h.
 *
 * Events of two streams (live and rundown) arrive in any order relative to each other: from_ns and
 * until_ns say which body owned an address. `codes` only grows. The search order is updated, and
 * overlaps are resolved, at the next lookup, because additions come by the thousand.
 *
 * Invariants of `order`: sorted by (begin, code); reach[i] = the greatest end of items 0..i, so a
 * search walks back only while reach > address.
 */
#include "code/codemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/partition_point.h"

/* Events are stamped shortly after the code has begun to run, by the clock of another source. */
#define SLACK_NS UINT64_C(250000000)

/* How many bodies one search examines: a process may report 100,000 nested ranges. */
#define WALK_MAX 4096u

static uint64_t code_end_time(const struct code *code)
{
	return code->until_ns ? code->until_ns : UINT64_MAX;
}

static bool is_same_body(const struct code *a, const struct code *b)
{
	return a->end == b->end && a->method_id == b->method_id && a->name == b->name &&
	       a->name_space == b->name_space && a->signature == b->signature;
}

/* NULL if memory runs out. */
static const char *intern(struct codemap *map, const char *text)
{
	if (!text || !*text)
		return "";
	struct strtab *texts = map->shared ? map->shared : &map->texts;
	uint32_t index = strtab_add_z(texts, text);
	return index ? strtab_get(texts, index) : NULL;
}

/* False if memory runs out. */
static bool index_begins(struct codemap *map)
{
	for (; map->indexed < map->codes.count; map->indexed++)
		if (!map_put(&map->begin_index, map->codes.items[map->indexed].begin,
			    map->indexed + 1))
			return false;
	return true;
}

/* The body that another event about it refreshes, or NULL. */
static struct code *find_known(struct codemap *map, const struct code *code)
{
	unsigned walked = 0;

	for (uint32_t i = code->exact ? 0 : map_get(&map->begin_index, code->begin);
		i && walked < WALK_MAX; walked++) {
		struct code *known = &map->codes.items[i - 1];
		/*
		 * A rundown describes the code at the time of the rundown. The known end came from
		 * the live stream, which would also have reported a new begin.
		 */
		if (!known->exact && is_same_body(known, code) && known->from_ns < code->until_ns &&
			(known->until_ns == UINT64_MAX || !code->from_ns))
			return known;
		i = known->older;
	}
	return NULL;
}

static void end_bodies(struct codemap *map, uint64_t begin, uint64_t until_ns, bool exact_only)
{
	unsigned walked = 0;

	for (uint32_t i = map_get(&map->begin_index, begin); i && walked < WALK_MAX; walked++) {
		struct code *code = &map->codes.items[i - 1];
		/* the body still exists, or its end was derived from a later body */
		if (code->until_ns > until_ns && code->from_ns <= until_ns &&
			(code->exact || !exact_only)) {
			code->until_ns = until_ns;
			map->changes++;
		}
		i = code->older;
	}
}

int codemap_add(struct codemap *map, const struct code *code)
{
	if (code->begin >= code->end)
		return -EINVAL;
	if (map->max_size_bytes && codemap_size_bytes(map) >= map->max_size_bytes) {
		map->refused_count++;
		return -ENOSPC;
	}
	struct code added = *code;
	added.name_space = intern(map, code->name_space);
	added.name = intern(map, code->name);
	added.signature = intern(map, code->signature);
	added.until_ns = code_end_time(code);
	if (!added.name_space || !added.name || !added.signature || !index_begins(map))
		return -ENOMEM;

	struct code *known = find_known(map, &added);
	if (known) {
		if (added.from_ns) {
			known->from_ns = added.from_ns;
			known->stood_ns = 0;
		}
		if (added.until_ns < known->until_ns)
			known->until_ns = added.until_ns;
		known->module_id = added.module_id;
		known->token = added.token;
		known->version = added.version;
		known->kind = added.kind;
		known->tier = added.tier;
		map->changes++;
		return 0;
	}
	if (added.exact)
		end_bodies(map, added.begin, added.from_ns, true);
	/* precompiled code exists before its event */
	if (!added.from_ns && added.kind != CODE_READYTORUN)
		added.from_ns = map->since_ns;
	added.older = map_get(&map->begin_index, added.begin);
	if (!vec_add(&map->codes, added))
		return -ENOMEM;
	if (!index_begins(map)) {
		map->codes.count--;
		return -ENOMEM;
	}
	map->changes++;
	return 0;
}

void codemap_remove(struct codemap *map, uint64_t begin, uint64_t until_ns)
{
	if (index_begins(map))
		end_bodies(map, begin, until_ns, false);
	/* else the name remains valid until another body takes the address */
}

int codemap_add_module(struct codemap *map, uint64_t module_id, const char *path, uint64_t from_ns)
{
	const char *text = intern(map, path);
	uint32_t newest = map_get(&map->module_index, module_id);

	if (!text)
		return -ENOMEM;
	if (newest) {
		struct code_module *module = &map->modules.items[newest - 1];
		if (module->path == text)
			return 0;
		module->until_ns = from_ns;
	}
	struct code_module *module = vec_push(&map->modules);
	if (!module)
		return -ENOMEM;
	module->id = module_id;
	module->path = text;
	module->from_ns = from_ns;
	module->until_ns = UINT64_MAX;
	if (!map_put(&map->module_index, module_id, map->modules.count)) {
		map->modules.count--;
		return -ENOMEM;
	}
	map->changes++;
	return 0;
}

const struct code_module *codemap_module(const struct codemap *map, uint64_t module_id)
{
	uint32_t newest = map_get(&map->module_index, module_id);

	return newest ? &map->modules.items[newest - 1] : NULL;
}

void codemap_set_pdb(struct codemap *map, uint64_t module_id, const uint8_t pdb_id[16])
{
	uint32_t newest = map_get(&map->module_index, module_id);

	if (newest)
		memcpy(map->modules.items[newest - 1].pdb_id, pdb_id, 16);
}

/* ---- IL offsets ---- */

static uint64_t il_hash(uint64_t method_id, uint64_t version)
{
	return hash_u64(method_id ^ hash_u64(version));
}

static const struct il_map *find_il(const struct codemap *map, uint64_t method_id, uint64_t version)
{
	for (struct map_walk w = map_find(&map->il_index, il_hash(method_id, version)); w.value;
		map_next(&w)) {
		const struct il_map *il = &map->il_maps.items[w.value - 1];
		if (il->method_id == method_id && il->version == version)
			return il;
	}
	return NULL;
}

static int compare_il(const void *a, const void *b)
{
	const struct il_offset *x = a;
	const struct il_offset *y = b;

	if (x->native != y->native)
		return x->native < y->native ? -1 : 1;
	return x->il < y->il ? -1 : x->il > y->il;
}

int codemap_add_il(struct codemap *map, uint64_t method_id, uint64_t version,
	const struct il_offset *offsets, uint32_t count)
{
	const struct il_map il = { method_id, version, map->il_offsets.count, count };

	if (!count || find_il(map, method_id, version))
		return 0;
	if (map->max_size_bytes && codemap_size_bytes(map) >= map->max_size_bytes)
		return -ENOSPC;
	if (!vec_reserve(&map->il_offsets, count) || !vec_add(&map->il_maps, il) ||
		!map_add(&map->il_index, il_hash(method_id, version), map->il_maps.count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		(void)vec_add(&map->il_offsets, offsets[i]); /* reserved */
	qsort(map->il_offsets.items + il.at, count, sizeof(*offsets), compare_il);
	return 0;
}

const struct il_offset *codemap_find_il(const struct codemap *map, const struct code *code,
	uint32_t *ret_count)
{
	const struct il_map *il = find_il(map, code->method_id, code->version);

	*ret_count = il ? il->count : 0;
	return il ? map->il_offsets.items + il->at : NULL;
}

static int compare_order(const void *a, const void *b)
{
	const struct code_order *x = a;
	const struct code_order *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

/* Whether `a` seems to have come before `b`; `b` covers a part of it. */
static void end_at(struct code *a, struct code *b)
{
	if (a->until_ns <= b->from_ns)
		return;
	if (a->stood_ns <= b->from_ns) {
		a->until_ns = b->from_ns;
		return;
	}
	/* `a` existed after `b` had begun, and its begin is unknown: `b` came first. */
	if (b->until_ns > a->stood_ns)
		b->until_ns = a->stood_ns;
	a->from_ns = b->until_ns;
}

/* Of overlapping bodies, the earlier ends with the later's begin, unless both were there before. */
static void end_earlier(struct code *a, struct code *b)
{
	if (a->exact || b->exact)
		return;
	if (a->from_ns < b->from_ns)
		end_at(a, b);
	else if (b->from_ns < a->from_ns)
		end_at(b, a);
}

static void end_overlaps(struct codemap *map, uint32_t at)
{
	struct code *code = &map->codes.items[map->order.items[at].code];
	unsigned walked = 0;

	for (uint32_t i = at; i > 0 && walked < WALK_MAX; i--, walked++) {
		const struct code_order *before = &map->order.items[i - 1];
		if (before->reach <= code->begin)
			break;
		struct code *other = &map->codes.items[before->code];
		if (other->end > code->begin)
			end_earlier(code, other);
	}
	walked = 0;
	for (uint32_t i = at + 1; i < map->order.count && walked < WALK_MAX; i++, walked++) {
		if (map->order.items[i].begin >= code->end)
			break;
		end_earlier(code, &map->codes.items[map->order.items[i].code]);
	}
}

/* Bodies for which memory runs out are tried again at the next lookup. */
void codemap_settle(struct codemap *map)
{
	uint32_t old = map->order.count;
	uint32_t fresh = map->codes.count - old;

	if (!fresh || !vec_reserve(&map->order, fresh))
		return;
	struct code_order *tail = malloc(fresh * sizeof(*tail));
	if (!tail)
		return;
	for (uint32_t i = 0; i < fresh; i++)
		tail[i] = (struct code_order){ .begin = map->codes.items[old + i].begin,
			.code = old + i };
	qsort(tail, fresh, sizeof(*tail), compare_order);

	/* Merges from the back, so that only items after the first new one move. */
	struct code_order *order = map->order.items;
	uint32_t to = old + fresh;
	uint32_t from = old;
	for (uint32_t left = fresh; left;) {
		if (from && compare_order(&order[from - 1], &tail[left - 1]) > 0)
			order[--to] = order[--from];
		else
			order[--to] = tail[--left];
	}
	map->order.count = old + fresh;
	free(tail);

	uint64_t reach = to ? order[to - 1].reach : 0;
	for (uint32_t i = to; i < map->order.count; i++) {
		uint64_t end = map->codes.items[order[i].code].end;
		if (end > reach)
			reach = end;
		order[i].reach = reach;
	}
	for (uint32_t i = to; i < map->order.count; i++) {
		if (order[i].code >= old)
			end_overlaps(map, i);
	}
}

/* Of two bodies that covered an address at a time: the one with more exact times. */
static bool owns_rather(const struct code *code, const struct code *other)
{
	if (code->from_ns != other->from_ns)
		return code->from_ns > other->from_ns;
	return code->until_ns != other->until_ns ? code->until_ns < other->until_ns : code > other;
}

/* The owner of the address, and the first body that came there later; or NULL. */
static struct code *find_both(struct codemap *map, uint64_t address, uint64_t time_ns,
	struct code **ret_next)
{
	struct code *owner = NULL;
	struct code *next = NULL;
	unsigned walked = 0;

	codemap_settle(map);
	uint32_t low = partition_point(map->order.count, i, map->order.items[i].begin <= address);
	for (uint32_t i = low; i > 0 && walked < WALK_MAX; i--, walked++) {
		const struct code_order *before = &map->order.items[i - 1];
		if (before->reach <= address)
			break;
		struct code *code = &map->codes.items[before->code];
		if (address >= code->end)
			continue;
		if (code->from_ns > time_ns) {
			if (!code->exact && (!next || code->from_ns < next->from_ns))
				next = code;
		} else if (time_ns < code->until_ns && (!owner || owns_rather(code, owner))) {
			owner = code;
		}
	}
	*ret_next = next;
	return owner;
}

struct code *codemap_find(struct codemap *map, uint64_t address, uint64_t time_ns)
{
	struct code *next;
	struct code *owner = find_both(map, address, time_ns, &next);

	if (owner)
		return owner;
	return next && next->from_ns - time_ns <= SLACK_NS ? next : NULL;
}

struct code *codemap_find_next(struct codemap *map, uint64_t address, uint64_t time_ns)
{
	struct code *next;

	(void)find_both(map, address, time_ns, &next);
	return next;
}

bool codemap_has_module(const struct codemap *map, uint64_t module_id)
{
	return map_get(&map->module_index, module_id) != 0;
}

const char *codemap_assembly(const struct codemap *map, uint64_t module_id, size_t *ret_len)
{
	uint32_t newest = map_get(&map->module_index, module_id);
	const char *path = newest ? map->modules.items[newest - 1].path : "";
	const char *name = path;

	/* The path may be of another system, where the image's pdb was built. */
	for (const char *c = path; *c; c++) {
		if (*c == '/' || *c == '\\')
			name = c + 1;
	}
	size_t len = strlen(name);
	if (len > 4 && (!strcasecmp(name + len - 4, ".dll") || !strcasecmp(name + len - 4, ".exe")))
		len -= 4;
	*ret_len = len;
	return name;
}

/* As the runtime writes it: "instance void  (int32,class System.String)"; parts may be missing. */
struct signature {
	const char *return_type;
	size_t return_len;
	const char *arguments; /* without the parentheses */
	size_t arguments_len;
};

static struct signature take_apart(const char *text)
{
	static const char instance[] = "instance ";
	struct signature result = { .return_type = text };
	size_t len = strlen(text);
	size_t open = len;
	int depth = 0;

	/* The last balanced pair: types of function pointers have parentheses too. */
	if (len && text[len - 1] == ')') {
		for (size_t i = len; i-- > 0 && open == len;) {
			if (text[i] == ')')
				depth++;
			else if (text[i] == '(' && --depth == 0)
				open = i;
		}
	}
	if (open == len)
		return (struct signature){ .return_type = "", .arguments = "" };
	result.arguments = text + open + 1;
	result.arguments_len = len - open - 2;
	result.return_len = open;
	if (!strncmp(text, instance, sizeof(instance) - 1)) {
		result.return_type += sizeof(instance) - 1;
		result.return_len -= sizeof(instance) - 1;
	}
	while (result.return_len && result.return_type[result.return_len - 1] == ' ')
		result.return_len--;
	return result;
}

/*
 * PerfView splits the line "RETURN [Assembly] REST[Tier]" at the first bracketed word between
 * blanks. So RETURN must not contain one, and no part may contain a line break.
 */
static bool is_plain_return(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '[' && (i == 0 || text[i - 1] == ' '))
			return false;
	}
	return len > 0 && text[0] != ' ';
}

static void add_line(struct bytes *out, const char *text, size_t len, bool in_brackets)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];
		bool bad = c < 0x20 || c == 0x7f || (in_brackets && (c == '[' || c == ']'));
		bytes_u8(out, bad ? '?' : c);
	}
}

static void add_line_z(struct bytes *out, const char *text, const char *otherwise)
{
	if (!*text)
		text = otherwise;
	add_line(out, text, strlen(text), false);
}

void codemap_symbol_text(const struct codemap *map, const struct code *code, bool in_image,
	struct bytes *out)
{
	struct signature signature = take_apart(code->signature);

	if (!in_image) {
		size_t len;
		const char *assembly = codemap_assembly(map, code->module_id, &len);
		if (!len) {
			assembly = code->kind == CODE_DYNAMIC ? "dynamic" : "unknown";
			len = strlen(assembly);
		}
		if (is_plain_return(signature.return_type, signature.return_len))
			add_line(out, signature.return_type, signature.return_len, false);
		else
			bytes_text(out, "?");
		bytes_text(out, " [");
		add_line(out, assembly, len, true);
		bytes_text(out, "] ");
	}
	add_line_z(out, code->name_space, "<Module>");
	bytes_text(out, "::");
	add_line_z(out, code->name, "?");
	bytes_text(out, "(");
	add_line(out, signature.arguments, signature.arguments_len, false);
	bytes_text(out, ")");
	if (!in_image)
		bytes_printf(out, "[%s]", code_tier_tag((enum code_tier)code->tier));
}

/* Spelled as in TraceEvent's OptimizationTier. */
static const char *const tier_tags[] = {
	[TIER_UNKNOWN] = "Unknown",
	[TIER_MIN_OPT] = "MinOptJitted",
	[TIER_OPTIMIZED] = "Optimized",
	[TIER_0] = "QuickJitted",
	[TIER_1] = "OptimizedTier1",
	[TIER_1_OSR] = "OptimizedTier1OSR",
	[TIER_0_INSTRUMENTED] = "QuickJittedInstrumented",
	[TIER_1_INSTRUMENTED] = "OptimizedTier1Instrumented",
};

const char *code_tier_tag(enum code_tier tier)
{
	return tier_tags[(unsigned)tier < sizeof(tier_tags) / sizeof(*tier_tags) ? tier
										 : TIER_UNKNOWN];
}

void codemap_trim(struct codemap *map)
{
	uint32_t capacity = map->codes.count + map->codes.count / 8;
	struct code *items = NULL;

	map_done(&map->begin_index);
	map->begin_index = (struct map){ 0 };
	map->indexed = 0;
	if (map->codes.count && capacity < map->codes.capacity)
		items = realloc(map->codes.items, capacity * sizeof(*items));
	if (!items)
		return; /* without memory it keeps its size */
	map->codes.items = items;
	map->codes.capacity = capacity;
}

size_t codemap_size_bytes(const struct codemap *map)
{
	return strtab_size_bytes(&map->texts) + map->codes.capacity * sizeof(*map->codes.items) +
	       map->order.capacity * sizeof(*map->order.items) +
	       map->modules.capacity * sizeof(*map->modules.items) +
	       map->il_offsets.capacity * sizeof(*map->il_offsets.items) +
	       map->il_maps.capacity * sizeof(*map->il_maps.items) +
	       map_size_bytes(&map->begin_index) + map_size_bytes(&map->module_index) +
	       map_size_bytes(&map->il_index);
}

void codemap_done(struct codemap *map)
{
	strtab_done(&map->texts);
	vec_done(&map->codes);
	vec_done(&map->order);
	vec_done(&map->modules);
	map->indexed = 0;
	map_done(&map->begin_index);
	map_done(&map->module_index);
	vec_done(&map->il_maps);
	vec_done(&map->il_offsets);
	map_done(&map->il_index);
}
