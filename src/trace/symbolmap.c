/*
 * See symbolmap.h. Mappings, symbols and code ranges are three tables of spans, each sorted by
 * (owner, begin) with the largest end so far: a binary search and a short walk back find the spans
 * of an address. The function of an address is kept, first in a small direct-mapped cache, then in
 * a map, because the same addresses are in thousands of stacks.
 */
#include "trace/symbolmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/partition_point.h"
#include "base/text.h"
#include "code/arch.h"
#include "code/codemap.h"
#include "code/function_bounds.h"
#include "code/mapping_kind.h"
#include "trace/trace.h"

/* One row of a span table. */
struct symbol_span {
	uint64_t owner; /* process or mapping id */
	uint64_t begin;
	uint64_t end;     /* exclusive */
	uint64_t max_end; /* of this and all earlier spans of the same owner */
	uint32_t index;   /* in the trace's table, in order of arrival */
};

struct spans {
	VEC(struct symbol_span) list;
};

/* The origin of a mapping's code, derived from its path. */
enum function_origin { ORIGIN_NONE, ORIGIN_KERNEL, ORIGIN_NATIVE, ORIGIN_JIT, ORIGIN_IMAGE };

#ifdef SPOOR_HOSTILE
#define FRONT_SLOTS 4u
#else
#define FRONT_SLOTS 8192u
#endif

struct function_found {
	uint64_t address;
	uint32_t process;
	uint32_t epoch;
	uint32_t function;
};

struct symbolmap_state {
	struct spans mappings; /* owner: process */
	struct spans symbols;  /* owner: mapping id */
	struct spans codes;    /* owner: process; index in process.codes */
	struct map memo;       /* (what << 32 | index) -> function */
	struct map found_index;
	VEC(struct function_found) found; /* item 0 unused */
	struct bytes scratch;
	uint64_t kernel_begin;
	uint32_t kernel_module;
	bool *has_code; /* by process */
	struct function_found front[FRONT_SLOTS];
};

/* What `memo` remembers: the upper half of its keys. */
enum memo_key { MEMO_SYMBOL = 1, MEMO_CODE, MEMO_KERNEL_SYMBOL };

static int compare_spans(const void *left, const void *right)
{
	const struct symbol_span *a = left;
	const struct symbol_span *b = right;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static bool spans_add(struct spans *spans, uint64_t owner, uint64_t begin, uint64_t end,
	uint32_t index)
{
	if (end <= begin)
		return true; /* an empty range covers nothing */
	return vec_add(&spans->list,
		((struct symbol_span){
			.owner = owner, .begin = begin, .end = end, .index = index }));
}

static void spans_sort(struct spans *spans)
{
	if (spans->list.count > 1)
		qsort(spans->list.items, spans->list.count, sizeof(spans->list.items[0]),
			compare_spans);
	for (uint32_t i = 0; i < spans->list.count; i++) {
		struct symbol_span *span = &spans->list.items[i];
		span->max_end = span->end;
		if (i && span[-1].owner == span->owner && span[-1].max_end > span->end)
			span->max_end = span[-1].max_end;
	}
}

/* One past the last span of `owner` that begins at or before `address`. */
static uint32_t spans_upper(const struct spans *spans, uint64_t owner, uint64_t address)
{
	const struct symbol_span *items = spans->list.items;

	return partition_point(spans->list.count, i,
		items[i].owner < owner || (items[i].owner == owner && items[i].begin <= address));
}

/* Walks back over the spans that cover the address: the next one before `*at`, or NULL. */
static const struct symbol_span *spans_cover(const struct spans *spans, uint64_t owner,
	uint64_t address, uint32_t *at)
{
	while (*at > 0) {
		const struct symbol_span *span = &spans->list.items[*at - 1];
		if (span->owner != owner || span->max_end <= address)
			return NULL;
		(*at)--;
		if (span->end > address)
			return span;
	}
	return NULL;
}

static const struct mapping *find_mapping(const struct symbolmap *map,
	const struct symbolmap_state *state, uint64_t process, uint64_t address)
{
	uint32_t at = spans_upper(&state->mappings, process, address);
	const struct symbol_span *newest = NULL;
	const struct symbol_span *span;

	while ((span = spans_cover(&state->mappings, process, address, &at)))
		if (!newest || span->index > newest->index)
			newest = span;
	return newest ? &map->trace->mappings.items[newest->index] : NULL;
}

/* The innermost symbol that covers the address; of equal ones the latest. 0 none. */
static uint32_t find_symbol(const struct symbolmap_state *state, uint64_t mapping_id,
	uint64_t address)
{
	uint32_t at = spans_upper(&state->symbols, mapping_id, address);
	const struct symbol_span *span = spans_cover(&state->symbols, mapping_id, address, &at);

	return span ? span->index + 1 : 0;
}

/* The symbol that begins exactly there. 0 none. */
static uint32_t symbol_at(const struct symbolmap_state *state, uint64_t mapping_id, uint64_t begin)
{
	uint32_t at = spans_upper(&state->symbols, mapping_id, begin);

	if (!at)
		return 0;
	const struct symbol_span *span = &state->symbols.list.items[at - 1];
	return span->owner == mapping_id && span->begin == begin ? span->index + 1 : 0;
}

/*
 * Of the ranges that cover the address, the one that is removed first after the sample. *ret_any:
 * any covers it; then a symbol there is one's of them, and must not name another's samples.
 */
static const struct code_range *find_code(const struct symbolmap *map,
	const struct symbolmap_state *state, uint32_t process, uint64_t address, uint32_t epoch,
	uint32_t *ret_index, bool *ret_any)
{
	const struct process *owner = &map->trace->processes.items[process];
	uint32_t at = spans_upper(&state->codes, process, address);
	const struct code_range *best = NULL;
	uint32_t best_index = 0;
	const struct symbol_span *span;

	*ret_any = false;
	while ((span = spans_cover(&state->codes, process, address, &at))) {
		const struct code_range *range = &owner->codes.items[span->index];
		*ret_any = true;
		if (range->removed_epoch <= epoch)
			continue;
		if (!best || range->removed_epoch < best->removed_epoch ||
			(range->removed_epoch == best->removed_epoch && span->index > best_index)) {
			best = range;
			best_index = span->index;
		}
	}
	*ret_index = best_index;
	return best;
}

/* The last part of a path, without what the kernel adds to it: "libc.so.6". */
static const char *base_name(const char *path, size_t *ret_len)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);

	if (text_ends_with_any_case(path, len, deleted))
		len -= sizeof(deleted) - 1;
	size_t at = len;
	while (at && path[at - 1] != '/' && path[at - 1] != '\\')
		at--;
	*ret_len = len - at;
	return path + at;
}

static enum function_origin mapping_origin(const struct symbolmap *map,
	const struct symbolmap_state *state, const struct mapping *mapping)
{
	if (mapping->process == 0 || mapping->begin >= state->kernel_begin)
		return ORIGIN_KERNEL;
	switch (mapping_kind_of(trace_text(map->trace, mapping->path))) {
	case MAPPING_KERNEL:
		return ORIGIN_KERNEL;
	case MAPPING_JIT:
	case MAPPING_STACK:
		return ORIGIN_JIT;
	case MAPPING_MANAGED_IMAGE:
		return ORIGIN_IMAGE;
	default:
		return ORIGIN_NATIVE;
	}
}

/* "kernel" for the kernel itself, "nf_tables" for a module of it, "libc.so.6". */
static uint32_t mapping_module(const struct symbolmap *map, const struct symbolmap_state *state,
	const struct mapping *mapping, enum function_origin origin)
{
	size_t len;
	const char *name = base_name(trace_text(map->trace, mapping->path), &len);

	if (origin == ORIGIN_JIT)
		return map->jit_module;
	if (origin != ORIGIN_KERNEL)
		return strtab_add(&map->trace->strings, name, len);
	if (!len || (len == 7 && memcmp(name, "vmlinux", 7) == 0) ||
		strncmp(name, "[kernel", 7) == 0 || strncmp(name, "kernel", 6) == 0)
		return state->kernel_module;
	const char *ko = memmem(name, len, ".ko", 3);
	if (ko && ko > name)
		len = (size_t)(ko - name);
	if (len > 2 && name[0] == '[' && name[len - 1] == ']') {
		name++;
		len -= 2;
	}
	return strtab_add(&map->trace->strings, name, len);
}

/* Functions with a name in one form only leave full_name at 0; it is set here. */
static uint32_t function_intern(struct symbolmap *map, struct function *function)
{
	if (!function->full_name)
		function->full_name = function->name;

	uint64_t hash =
		hash_u64((uint64_t)function->full_name << 32 | function->module) +
		((uint64_t)function->kind << 9 | (uint64_t)function->tier << 1 | function->named);

	for (struct map_walk w = map_find(&map->function_index, hash); w.value; map_next(&w)) {
		const struct function *known = &map->functions.items[w.value];
		if (known->full_name == function->full_name && known->module == function->module &&
			known->kind == function->kind && known->tier == function->tier &&
			known->named == function->named && known->plain == function->plain)
			return w.value;
	}
	uint32_t index = map->functions.count;
	function->method = index;
	if (!vec_add(&map->functions, *function))
		return 0;
	if (!map_add(&map->function_index, hash, index)) {
		map->functions.count--;
		return 0;
	}
	return index;
}

/* "Shop" and "/app/Shop.dll" are both "Shop.dll". */
static uint32_t assembly_module(struct symbolmap *map, struct symbolmap_state *state,
	const char *name, size_t len)
{
	if (!len)
		return 0;
	if (text_ends_with_any_case(name, len, ".dll") ||
		text_ends_with_any_case(name, len, ".exe"))
		return strtab_add(&map->trace->strings, name, len);
	bytes_reset(&state->scratch);
	bytes_add(&state->scratch, name, len);
	bytes_text(&state->scratch, ".dll");
	return strtab_add_z(&map->trace->strings, bytes_z(&state->scratch));
}

static uint8_t tier_of_tag(const struct method_name *name)
{
	for (unsigned tier = TIER_MIN_OPT; tier <= TIER_1_INSTRUMENTED; tier++) {
		const char *tag = code_tier_tag((enum code_tier)tier);
		if (strlen(tag) == name->tier_len && memcmp(tag, name->tier, name->tier_len) == 0)
			return (uint8_t)tier;
	}
	return TIER_UNKNOWN;
}

/* 0 when there is no memory. */
static uint32_t form_name(struct symbolmap *map, struct symbolmap_state *state,
	const struct method_name *name, enum method_name_form form)
{
	bytes_reset(&state->scratch);
	method_name_format(name, form, &state->scratch);
	return state->scratch.failed
		       ? 0
		       : strtab_add(&map->trace->strings, (const char *)state->scratch.data,
				 state->scratch.len);
}

static bool span_is_text(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* A function from the text of managed or generated code. `range`, `mapping` may be NULL. */
static uint32_t managed_function(struct symbolmap *map, struct symbolmap_state *state,
	uint32_t text, const struct code_range *range, const struct mapping *mapping,
	enum function_origin origin)
{
	const char *raw = trace_text(map->trace, text);
	size_t len = strtab_len(&map->trace->strings, text);
	struct function function = { .name = text, .kind = FUNCTION_JIT, .named = true };
	struct method_name name;

	if (range ? range->kind == CODE_READYTORUN : origin == ORIGIN_IMAGE)
		function.kind = FUNCTION_READYTORUN;
	if (range)
		function.tier = range->tier;
	if ((range && range->kind == CODE_STUB) || raw[0] == '(') {
		function.kind = FUNCTION_STUB;
		function.module = map->jit_module;
		return function_intern(map, &function);
	}
	if (range && range->module) {
		size_t module_len;
		const char *module = base_name(trace_text(map->trace, range->module), &module_len);
		function.module = assembly_module(map, state, module, module_len);
	}
	if (method_name_parse(raw, len, &name)) {
		/* A recorder wrote "unknown" where it did not have the module yet. */
		bool known = name.assembly_len &&
			     !span_is_text(name.assembly, name.assembly_len, "unknown");
		if (!function.module && known)
			function.module =
				assembly_module(map, state, name.assembly, name.assembly_len);
		if (!function.tier && name.tier_len)
			function.tier = tier_of_tag(&name);
		function.name = form_name(map, state, &name, map->form);
		function.full_name = map->form == METHOD_NAME_SHORT
					     ? form_name(map, state, &name, METHOD_NAME_LONG)
					     : function.name;
		if (!function.name || !function.full_name)
			return 0;
	}
	if (!function.module)
		function.module = mapping && origin != ORIGIN_NONE
					  ? mapping_module(map, state, mapping, origin)
					  : map->jit_module;
	return function_intern(map, &function);
}

static uint32_t unnamed_function(struct symbolmap *map, struct symbolmap_state *state,
	const struct mapping *mapping, enum function_origin origin, uint64_t address)
{
	struct function function = { 0 };

	bytes_reset(&state->scratch);
	if (origin == ORIGIN_JIT) {
		function.kind = FUNCTION_JIT;
		function.module = map->jit_module;
		bytes_text(&state->scratch, CODE_UNREAD_NAME);
	} else if (origin == ORIGIN_NONE) {
		bool kernel = address >= state->kernel_begin;
		function.kind = kernel ? FUNCTION_KERNEL : FUNCTION_UNKNOWN;
		function.module = kernel ? state->kernel_module : 0;
		/* Mostly from broken frame chains: one row for all of them, not thousands. */
		bytes_text(&state->scratch, "[unknown]");
		if (map->form == METHOD_NAME_RAW)
			bytes_printf(&state->scratch, " 0x%" PRIx64, address);
	} else {
		size_t len;
		const char *name = base_name(trace_text(map->trace, mapping->path), &len);
		function.kind = origin == ORIGIN_KERNEL  ? FUNCTION_KERNEL
				: origin == ORIGIN_IMAGE ? FUNCTION_READYTORUN
							 : FUNCTION_NATIVE;
		function.module = mapping_module(map, state, mapping, origin);
		bytes_add(&state->scratch, name, len);
		bytes_printf(&state->scratch, "+0x%" PRIx64,
			address - mapping->begin + mapping->file_offset);
	}
	if (state->scratch.failed)
		return 0;
	function.name = strtab_add(&map->trace->strings, (const char *)state->scratch.data,
		state->scratch.len);
	return function_intern(map, &function);
}

static uint32_t symbol_function(struct symbolmap *map, struct symbolmap_state *state,
	uint32_t symbol, const struct mapping *mapping, enum function_origin origin)
{
	uint64_t key = (uint64_t)(origin == ORIGIN_KERNEL ? MEMO_KERNEL_SYMBOL : MEMO_SYMBOL)
			       << 32 |
		       symbol;
	uint32_t known = map_get(&state->memo, key);

	if (known)
		return known;
	const struct symbol *found = &map->trace->symbols.items[symbol - 1];
	if (origin == ORIGIN_JIT || origin == ORIGIN_IMAGE) {
		known = managed_function(map, state, found->name, NULL, mapping, origin);
	} else {
		struct function function = {
			.name = found->name,
			.module = mapping_module(map, state, mapping, origin),
			.kind = origin == ORIGIN_KERNEL ? FUNCTION_KERNEL : FUNCTION_NATIVE,
		};
		const char *text = trace_text(map->trace, found->name);
		function.named = !function_bounds_is_name(text, strlen(text), found->begin);
		if (!function.named) {
			bytes_reset(&state->scratch);
			bytes_printf(&state->scratch, "%s!%s",
				trace_text(map->trace, function.module), text);
			function.name = trace_add_text(map->trace, bytes_z(&state->scratch));
		}
		known = function_intern(map, &function);
	}
	if (known)
		(void)map_add(&state->memo, key, known); /* only slower without */
	return known;
}

static uint32_t code_function(struct symbolmap *map, struct symbolmap_state *state,
	uint32_t process, const struct code_range *range, uint32_t index,
	const struct mapping *mapping, enum function_origin origin)
{
	/* Ranges are numbered per process: the memo's key is process and index. */
	uint64_t key = (uint64_t)MEMO_CODE << 60 | (uint64_t)process << 32 | index;
	uint32_t known = map_get(&state->memo, key);

	if (known)
		return known;
	uint32_t text = range->name;
	if (!text) {
		uint32_t symbol = symbol_at(state, range->mapping_id, range->begin);
		text = symbol ? map->trace->symbols.items[symbol - 1].name : 0;
	}
	if (!text || !strcmp(trace_text(map->trace, text), CODE_UNREAD_NAME))
		return 0;
	known = managed_function(map, state, text, range, mapping, origin);
	if (known)
		(void)map_add(&state->memo, key, known); /* only slower without */
	return known;
}

static uint32_t look_up(struct symbolmap *map, struct symbolmap_state *state, uint32_t process,
	uint64_t address, uint32_t epoch)
{
	if (address == STACK_LOST_CALLER)
		return symbolmap_label(map, STACK_LOST_CALLER_NAME, FUNCTION_UNKNOWN);
	const struct mapping *mapping = process ? find_mapping(map, state, process, address) : NULL;

	if (!mapping)
		mapping = find_mapping(map, state, 0, address);
	enum function_origin origin = mapping ? mapping_origin(map, state, mapping) : ORIGIN_NONE;

	if (process && origin != ORIGIN_KERNEL) {
		bool any;
		uint32_t index;
		const struct code_range *range =
			find_code(map, state, process, address, epoch, &index, &any);
		if (range) {
			uint32_t function =
				code_function(map, state, process, range, index, mapping, origin);
			if (function)
				return function;
		}
		if (any)
			return unnamed_function(map, state, mapping,
				origin == ORIGIN_NONE ? ORIGIN_JIT : origin, address);
	}
	if (mapping) {
		uint32_t symbol = find_symbol(state, mapping->id, address);
		if (symbol)
			return symbol_function(map, state, symbol, mapping, origin);
	}
	return unnamed_function(map, state, mapping, origin, address);
}

bool symbolmap_native(const struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t *ret_mapping, uint32_t *ret_symbol)
{
	const struct symbolmap_state *state = map->state;
	const struct mapping *mapping = process ? find_mapping(map, state, process, address) : NULL;
	uint32_t index;
	bool any;

	if (!mapping || mapping_origin(map, state, mapping) != ORIGIN_NATIVE)
		return false;
	if (find_code(map, state, process, address, 0, &index, &any) || any)
		return false;
	*ret_mapping = (uint32_t)(mapping - map->trace->mappings.items);
	*ret_symbol = find_symbol(state, mapping->id, address);
	return true;
}

bool symbolmap_place(const struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t code_epoch, bool caller, struct line_place *ret_place, uint32_t *ret_mapping,
	uint32_t *ret_code)
{
	const struct symbolmap_state *state = map->state;
	const struct mapping *mapping = process ? find_mapping(map, state, process, address) : NULL;
	uint64_t back = caller ? 1 : 0;
	uint32_t index;
	bool any;

	if (!mapping || process >= map->trace->processes.count)
		return false;
	enum function_origin origin = mapping_origin(map, state, mapping);
	const struct code_range *code =
		find_code(map, state, process, address, code_epoch, &index, &any);

	*ret_mapping = (uint32_t)(mapping - map->trace->mappings.items);
	*ret_code = code ? index + 1 : 0;
	if (code && address - back >= code->begin) {
		*ret_place = (struct line_place){ .mapping_id = code->mapping_id,
			.begin = code->begin,
			.method_id = code->method_id,
			.offset = address - back - code->begin };
		return true;
	}
	if (any || origin != ORIGIN_NATIVE)
		return false;
	uint32_t symbol = find_symbol(state, mapping->id, address);
	uint64_t begin = symbol ? map->trace->symbols.items[symbol - 1].begin : mapping->begin;
	*ret_place = (struct line_place){ .mapping_id = mapping->id,
		.offset = address - back - mapping->begin };
	return address - back >= begin;
}

/* "NAME  FILE:LINE"; 0 without memory. */
static uint32_t line_name(struct symbolmap *map, uint32_t name, const char *file, uint32_t line,
	bool inlined)
{
	struct symbolmap_state *state = map->state;

	bytes_reset(&state->scratch);
	bytes_printf(&state->scratch, "%s%s  %s:%u", trace_text(map->trace, name),
		inlined ? " (inlined)" : "", file, line);
	return state->scratch.failed
		       ? 0
		       : strtab_add(&map->trace->strings, (const char *)state->scratch.data,
				 state->scratch.len);
}

uint32_t symbolmap_line(struct symbolmap *map, uint32_t index, const struct line_frame *frame)
{
	struct function function = map->functions.items[index];
	const char *path = trace_text(map->trace, frame->file);
	const char *slash = strrchr(path, '/');
	bool inlined = frame->function != 0;
	uint32_t long_name = inlined ? frame->function : function.full_name;

	if (inlined) {
		function.name = frame->function;
		function.named = true;
	}
	function.plain = function.name;
	function.file = frame->file;
	function.line = frame->line;
	function.inlined = inlined;
	if (frame->file && frame->line) {
		function.name = line_name(map, function.plain, slash ? slash + 1 : path,
			frame->line, inlined);
		function.full_name = line_name(map, long_name, path, frame->line, inlined);
	} else if (inlined) {
		function.full_name = function.name =
			line_name(map, function.plain, "?", 0, inlined);
	} else {
		return index;
	}
	return function.name && function.full_name ? function_intern(map, &function) : 0;
}

int symbolmap_init(struct symbolmap *map, struct trace *trace, enum method_name_form form)
{
	struct symbolmap_state *state = calloc(1, sizeof(*state));

	*map = (struct symbolmap){ .trace = trace, .form = form, .state = state };
	if (!state || !vec_push(&map->functions) || !vec_push(&state->found))
		return -ENOMEM;
	state->has_code = calloc((size_t)trace->processes.count + 1, sizeof(*state->has_code));
	if (!state->has_code)
		return -ENOMEM;
	state->kernel_begin =
		arch_by_name(trace_text(trace, trace->recording.architecture))->kernel_begin;
	map->jit_module = trace_add_text(trace, "JIT");
	state->kernel_module = trace_add_text(trace, "kernel");

	for (uint32_t i = 1; i < trace->mappings.count; i++) {
		const struct mapping *mapping = &trace->mappings.items[i];
		if (!spans_add(&state->mappings, mapping->process, mapping->begin, mapping->end, i))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < trace->symbols.count; i++) {
		const struct symbol *symbol = &trace->symbols.items[i];
		if (symbol->name && !spans_add(&state->symbols, symbol->mapping_id, symbol->begin,
					    symbol->end, i))
			return -ENOMEM;
	}
	for (uint32_t p = 1; p < trace->processes.count; p++) {
		const struct process *process = &trace->processes.items[p];
		for (uint32_t i = 0; i < process->codes.count; i++) {
			const struct code_range *range = &process->codes.items[i];
			if (!spans_add(&state->codes, p, range->begin, range->end, i))
				return -ENOMEM;
			state->has_code[p] = true;
		}
	}
	spans_sort(&state->mappings);
	spans_sort(&state->symbols);
	spans_sort(&state->codes);
	return 0;
}

uint32_t symbolmap_find(struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t code_epoch)
{
	struct symbolmap_state *state = map->state;

	if (process >= map->trace->processes.count)
		process = 0;
	/* Only where code moves does it matter when the sample was taken. */
	if (!state->has_code[process])
		code_epoch = 0;
	uint64_t hash =
		hash_u64(address + ((uint64_t)process << 48) + ((uint64_t)code_epoch << 20));
	struct function_found *front = &state->front[hash % FRONT_SLOTS];

	if (front->function && front->address == address && front->process == process &&
		front->epoch == code_epoch)
		return front->function;
	for (struct map_walk w = map_find(&state->found_index, hash); w.value; map_next(&w)) {
		const struct function_found *known = &state->found.items[w.value];
		if (known->address == address && known->process == process &&
			known->epoch == code_epoch) {
			*front = *known;
			return known->function;
		}
	}
	uint32_t function = look_up(map, state, process, address, code_epoch);
	if (!function)
		return 0;
	*front = (struct function_found){
		.address = address, .process = process, .epoch = code_epoch, .function = function
	};
	if (vec_add(&state->found, *front))
		/* only slower without */
		(void)map_add(&state->found_index, hash, state->found.count - 1);
	return function;
}

uint32_t symbolmap_unnamed(struct symbolmap *map, uint32_t module, enum function_kind kind)
{
	struct symbolmap_state *state = map->state;
	struct function function = { .module = module, .kind = (uint8_t)kind };

	bytes_reset(&state->scratch);
	bytes_printf(&state->scratch, "%s (no symbols)", trace_text(map->trace, module));
	if (state->scratch.failed)
		return 0;
	function.name = strtab_add(&map->trace->strings, (const char *)state->scratch.data,
		state->scratch.len);
	return function.name ? function_intern(map, &function) : 0;
}

bool symbolmap_is_replaced(const struct symbolmap *map, uint32_t upper, uint32_t lower)
{
	const struct function *above = &map->functions.items[upper];
	const struct function *below = &map->functions.items[lower];

	return above->full_name == below->full_name &&
	       function_tier(above) == FUNCTION_TIER_1_OSR &&
	       function_tier(below) != FUNCTION_TIER_1_OSR &&
	       function_tier(below) != FUNCTION_TIER_COUNT;
}

uint32_t symbolmap_label(struct symbolmap *map, const char *text, enum function_kind kind)
{
	struct function function = { .kind = (uint8_t)kind, .named = true };

	function.name = function.full_name = strtab_add_z(&map->trace->strings, text);
	return function.name ? function_intern(map, &function) : 0;
}

uint32_t symbolmap_lost_caller(struct symbolmap *map)
{
	return symbolmap_label(map, "[caller unknown: on-stack replacement]", FUNCTION_UNKNOWN);
}

enum function_tier function_tier(const struct function *function)
{
	static const enum function_tier tiers[] = {
		[TIER_UNKNOWN] = FUNCTION_TIER_COUNT,
		[TIER_MIN_OPT] = FUNCTION_TIER_MIN_OPT,
		[TIER_OPTIMIZED] = FUNCTION_TIER_OPTIMIZED,
		[TIER_0] = FUNCTION_TIER_0,
		[TIER_1] = FUNCTION_TIER_1,
		[TIER_1_OSR] = FUNCTION_TIER_1_OSR,
		[TIER_0_INSTRUMENTED] = FUNCTION_TIER_0_INSTRUMENTED,
		[TIER_1_INSTRUMENTED] = FUNCTION_TIER_1_INSTRUMENTED,
	};

	if (function->kind == FUNCTION_READYTORUN && function->named)
		return FUNCTION_TIER_R2R;
	if (function->kind != FUNCTION_JIT || function->tier >= sizeof(tiers) / sizeof(tiers[0]))
		return FUNCTION_TIER_COUNT;
	return tiers[function->tier];
}

const char *function_tier_words(enum function_tier tier)
{
	static const char *const words[] = {
		[FUNCTION_TIER_R2R] = "R2R",
		[FUNCTION_TIER_MIN_OPT] = "not optimized",
		[FUNCTION_TIER_0] = "tier 0",
		[FUNCTION_TIER_0_INSTRUMENTED] = "tier 0 instrumented",
		[FUNCTION_TIER_1_INSTRUMENTED] = "tier 1 instrumented",
		[FUNCTION_TIER_1_OSR] = "tier 1 OSR",
		[FUNCTION_TIER_1] = "tier 1",
		[FUNCTION_TIER_OPTIMIZED] = "optimized",
		[FUNCTION_TIER_COUNT] = "",
	};

	return words[tier <= FUNCTION_TIER_COUNT ? tier : FUNCTION_TIER_COUNT];
}

void symbolmap_done(struct symbolmap *map)
{
	struct symbolmap_state *state = map->state;

	if (state) {
		vec_done(&state->mappings.list);
		vec_done(&state->symbols.list);
		vec_done(&state->codes.list);
		map_done(&state->memo);
		map_done(&state->found_index);
		vec_done(&state->found);
		bytes_done(&state->scratch);
		free(state->has_code);
		free(state);
	}
	vec_done(&map->functions);
	map_done(&map->function_index);
	*map = (struct symbolmap){ 0 };
}
