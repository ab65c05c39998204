/*
 * Resolves the names in a manifest, and refuses what does not fit together. See manifest.h.
 *
 * Each rule has its own sentence, with the line of the element that breaks it.
 */
#include "gen/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/map.h"
#include "gen/c_words.h"
#include "gen/stack_walks.h"

/* LTTng's limit on "provider:event". */
#define TRACEPOINT_NAME_MAX 255u

struct resolving {
	struct manifest *manifest;
	const char *name;
	struct diag *diag;
	int error;
	struct map strings;
	struct map symbols; /* of all providers */
};

/* The names of one provider; values are index + 1. */
struct manifest_names {
	struct map keywords;
	struct map levels;
	struct map tasks;
	struct map opcodes;
	struct map maps;
	struct map templates;
};

__attribute__((format(printf, 3, 4))) static void fail(struct resolving *r, uint32_t line,
	const char *format, ...)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	va_list args;

	if (r->error)
		return;
	va_start(args, format);
	bytes_vprintf(&text, format, args);
	va_end(args);
	r->error = diag_set(r->diag, -EBADMSG, "'%s' line %u: %s", r->name, line, bytes_z(&text));
}

static void no_memory(struct resolving *r)
{
	if (!r->error)
		r->error = diag_set(r->diag, -ENOMEM, "cannot read '%s': %m", r->name);
}

static uint64_t name_key(const char *name, uint32_t scope)
{
	return hash_bytes(name, strlen(name)) ^ hash_u64(scope);
}

/* Puts the names of a list into a table; a name that occurs twice is an error. */
#define INDEX_NAMES(r, table, list, member, what)                                                 \
	for (uint32_t i_ = 0; i_ < (list)->count && !(r)->error; i_++) {                          \
		const char *name_ = (list)->items[i_].member;                                     \
		for (struct map_walk w_ = map_find(table, name_key(name_, 0)); w_.value;          \
			map_next(&w_))                                                            \
			if (strcmp((list)->items[w_.value - 1].member, name_) == 0)               \
				fail(r, (list)->items[i_].line, "%s %s is there twice (line %u)", \
					what, name_, (list)->items[w_.value - 1].line);           \
		if (!map_add(table, name_key(name_, 0), i_ + 1))                                  \
			no_memory(r);                                                             \
	}

/* The index of the item with this name, or MANIFEST_NONE. */
#define FIND_NAME(table, list, member, wanted)                                            \
	({                                                                                \
		uint32_t found_ = MANIFEST_NONE;                                          \
		for (struct map_walk w_ = map_find(table, name_key(wanted, 0)); w_.value; \
			map_next(&w_))                                                    \
			if (strcmp((list)->items[w_.value - 1].member, wanted) == 0)      \
				found_ = w_.value - 1;                                    \
		found_;                                                                   \
	})

/* ---- Names ---- */

static bool is_identifier(const char *text)
{
	if (!isalpha((unsigned char)text[0]) && text[0] != '_')
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

const char *manifest_identifier(struct arena *arena, const char *text)
{
	size_t len = strlen(text);
	char *name = arena_alloc(arena, len + 2);
	char *at = name;

	if (!name)
		return NULL;
	if (!len || isdigit((unsigned char)text[0]))
		*at++ = '_';
	for (size_t i = 0; i < len; i++)
		*at++ = (char)(isalnum((unsigned char)text[i]) ? text[i] : '_');
	*at = '\0';
	return name;
}

static const char *after_prefix(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : text;
}

static const char *with_ending(struct resolving *r, const char *text, const char *ending)
{
	size_t room = strlen(text) + strlen(ending) + 1;
	char *made = arena_alloc(&r->manifest->arena, room);

	if (made)
		snprintf(made, room, "%s%s", text, ending);
	else
		no_memory(r);
	return made;
}

/*
 * "Microsoft-Windows-DotNETRuntime" becomes DotNETRuntime, and dotnetruntime. Files and an object have
 * the latter name: "Class" becomes classevents, and "stdio" stdioevents, beside <stdio.h>.
 */
static void name_provider(struct resolving *r, struct man_provider *p)
{
	static const char *const known[] = { "Microsoft-Windows-DotNETRuntime",
		"Microsoft-Windows-DotNETRuntimeRundown", "Microsoft-Windows-DotNETRuntimeStress",
		"Microsoft-Windows-DotNETRuntimePrivate", "Microsoft-DotNETRuntimeMonoProfiler" };
	const char *rest = after_prefix(after_prefix(p->name, "Microsoft-"), "Windows-");

	p->short_name = manifest_identifier(&r->manifest->arena, rest[0] ? rest : p->name);
	char *prefix = p->short_name ? arena_copy(&r->manifest->arena, p->short_name,
					       strlen(p->short_name) + 1)
				     : NULL;
	if (!prefix) {
		no_memory(r);
		return;
	}
	char *to = prefix;
	for (const char *at = prefix; *at; at++)
		if (*at != '_')
			*to++ = (char)tolower((unsigned char)*at);
	*to = '\0';
	p->prefix = c_word_is_system(prefix) ? with_ending(r, prefix, "events") : prefix;
	if (c_word_is_reserved(p->short_name))
		p->short_name = with_ending(r, p->short_name, "_events");
	if (r->error)
		return;
	if (!prefix[0] || isdigit((unsigned char)prefix[0]))
		fail(r, p->line, "provider name %s does not begin with a letter", p->name);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		p->well_known |= strcmp(p->name, known[i]) == 0;
}

/* "$(string.ID)" becomes the text; other messages stay. */
static const char *message_text(struct resolving *r, const char *message, uint32_t line)
{
	static const char head[] = "$(string.";
	size_t len = message ? strlen(message) : 0;
	char id[MANIFEST_NAME_MAX + 1];

	if (len < sizeof(head) || strncmp(message, head, sizeof(head) - 1) != 0 ||
		message[len - 1] != ')')
		return message;
	len -= sizeof(head);
	if (len > MANIFEST_NAME_MAX) {
		fail(r, line, "the name of a string has %zu characters", len);
		return message;
	}
	memcpy(id, message + sizeof(head) - 1, len);
	id[len] = '\0';
	uint32_t found = FIND_NAME(&r->strings, &r->manifest->strings, id, id);
	if (found == MANIFEST_NONE) {
		fail(r, line, "there is no string %s", id);
		return message;
	}
	return r->manifest->strings.items[found].value;
}

/* ---- Parts of a provider ---- */

static void resolve_keywords(struct resolving *r, struct man_provider *p,
	struct manifest_names *names)
{
	uint64_t all = 0;

	INDEX_NAMES(r, &names->keywords, &p->keywords, name, "keyword");
	vec_each(keyword, &p->keywords) {
		keyword->message = message_text(r, keyword->message, keyword->line);
		if (keyword->mask & all)
			fail(r, keyword->line,
				"keyword %s has a bit of another keyword (mask 0x%llx)",
				keyword->name, (unsigned long long)keyword->mask);
		all |= keyword->mask;
	}
}

/*
 * EventSource writes two tasks of one name where two versions of an event differ: the first one is the
 * task of that name.
 */
static void resolve_tasks(struct resolving *r, struct man_provider *p, struct manifest_names *names)
{
	for (uint32_t i = 0; i < p->tasks.count; i++) {
		struct man_task *task = &p->tasks.items[i];
		task->message = message_text(r, task->message, task->line);
		if (FIND_NAME(&names->tasks, &p->tasks, name, task->name) == MANIFEST_NONE &&
			!map_add(&names->tasks, name_key(task->name, 0), i + 1))
			no_memory(r);
	}
}

static void resolve_opcodes(struct resolving *r, struct man_provider *p,
	struct manifest_names *names)
{
	for (uint32_t i = 0; i < p->opcodes.count && !r->error; i++) {
		struct man_opcode *opcode = &p->opcodes.items[i];
		uint64_t key = name_key(opcode->name, opcode->task);
		opcode->message = message_text(r, opcode->message, opcode->line);
		for (struct map_walk w = map_find(&names->opcodes, key); w.value; map_next(&w)) {
			const struct man_opcode *other = &p->opcodes.items[w.value - 1];
			if (other->task == opcode->task && strcmp(other->name, opcode->name) == 0)
				fail(r, opcode->line, "opcode %s is there twice (line %u)",
					opcode->name, other->line);
		}
		if (!map_add(&names->opcodes, key, i + 1))
			no_memory(r);
	}
}

static void resolve_maps(struct resolving *r, struct man_provider *p, struct manifest_names *names)
{
	struct map identifiers = { 0 };

	INDEX_NAMES(r, &names->maps, &p->maps, name, "map");
	vec_each(map, &p->maps) {
		map->c_name = manifest_identifier(&r->manifest->arena, map->name);
		if (!map->c_name) {
			no_memory(r);
			return;
		}
	}
	INDEX_NAMES(r, &identifiers, &p->maps, c_name, "in C, a map");
	map_done(&identifiers);
	vec_each(map, &p->maps) {
		vec_each(entry, &map->entries)
			entry->message = message_text(r, entry->message, entry->line);
	}
}

/* ---- Templates ---- */

/* What the generated code calls its own variables and functions, and what C keeps for itself. */
static bool is_generated_name(const char *name, size_t len)
{
	return (name[0] == '_' && (name[1] == '_' || isupper((unsigned char)name[1]))) ||
	       strncmp(name, "spoor_", 6) == 0 || strncmp(name, "SPOOR_", 6) == 0 ||
	       strncmp(name, "lttng_ust_", 10) == 0 || (len && name[len - 1] == '_');
}

static const char *c_name_of(struct resolving *r, const struct man_provider *p, const char *name)
{
	const char *made = manifest_identifier(&r->manifest->arena, name);
	size_t len = made ? strlen(made) : 0;
	bool front = made && is_generated_name(made, len);

	if (made && len && (front || c_word_is_reserved(made) || strcmp(made, p->prefix) == 0)) {
		/* In front where a '_' at the end is no difference. */
		char *longer = arena_alloc(&r->manifest->arena, len + 3);
		if (longer)
			snprintf(longer, len + 3, front ? "f_%s" : "%s_", made);
		made = longer;
	}
	if (!made)
		no_memory(r);
	return made;
}

/* A field that says how many of another there are: an integer before it, in the same struct. */
static void resolve_amount(struct resolving *r, const struct man_template *tmpl, uint32_t index,
	struct amount *amount, const char *what)
{
	const struct man_field *field = &tmpl->fields.items[index];
	const struct man_field *source = NULL;
	bool later = false;
	bool outside = false;

	if (amount->kind != AMOUNT_FIELD)
		return;
	for (uint32_t i = 0; i < tmpl->fields.count; i++) {
		const struct man_field *other = &tmpl->fields.items[i];
		if (strcmp(other->name, amount->name) != 0 || i == index)
			continue;
		if (other->parent != field->parent) {
			outside |= other->parent == MANIFEST_NONE;
		} else if (i > index) {
			later = true;
		} else {
			source = other;
			amount->value = i;
		}
	}
	if (strcmp(amount->name, field->name) == 0 && !source)
		fail(r, field->line, "the %s of %s is the field itself", what, field->name);
	else if (!source && later)
		fail(r, field->line, "the %s of %s, field %s, comes after it", what, field->name,
			amount->name);
	else if (!source && outside)
		fail(r, field->line, "the %s of %s, field %s, is outside its struct", what,
			field->name, amount->name);
	else if (!source)
		fail(r, field->line, "the %s of %s is a field %s, which does not exist", what,
			field->name, amount->name);
	else if (in_types[source->type].kind != KIND_INTEGER || source->count.kind)
		fail(r, field->line, "the %s of %s, field %s, is not an integer", what, field->name,
			amount->name);
}

static void resolve_field(struct resolving *r, const struct man_provider *p,
	const struct manifest_names *names, struct man_template *tmpl, uint32_t index)
{
	struct man_field *field = &tmpl->fields.items[index];
	enum in_kind kind = in_types[field->type].kind;

	field->c_name = c_name_of(r, p, field->name);
	if (r->error)
		return;
	for (uint32_t i = 0; i < index && !r->error; i++)
		if (tmpl->fields.items[i].parent == field->parent &&
			strcmp(tmpl->fields.items[i].c_name, field->c_name) == 0)
			fail(r, field->line, "%stemplate %s has two fields %s",
				strcmp(tmpl->fields.items[i].name, field->name) == 0 ? ""
										     : "in C, ",
				tmpl->tid, field->c_name);
	resolve_amount(r, tmpl, index, &field->count, "count");
	resolve_amount(r, tmpl, index, &field->length, "length");
	if (field->length.kind && kind != KIND_TEXT16 && kind != KIND_TEXT8 &&
		kind != KIND_BINARY) {
		/* The runtime's scripts take one for the other. */
		if (field->count.kind)
			fail(r, field->line, "%s has a length, which its type does not take",
				field->name);
		field->count = field->length;
		field->length = (struct amount){ 0 };
		if (field->count.kind == AMOUNT_FIXED && field->count.value == 1)
			field->count = (struct amount){ 0 };
	}
	if (kind == KIND_BINARY && !field->length.kind) {
		/* An IPv6 address has 16 bytes. */
		if (field->out_type && strcmp(field->out_type, "win:IPv6") == 0)
			field->length =
				(struct amount){ .kind = AMOUNT_FIXED, .value = 16, .name = "16" };
		else if (field->count.kind)
			field->length =
				(struct amount){ .kind = AMOUNT_FIXED, .value = 1, .name = "1" };
		else
			fail(r, field->line, "%s is win:Binary without a length", field->name);
	}
	if (kind == KIND_STRUCT && !field->member_count)
		fail(r, field->line, "struct %s has no field", field->name);
	if (kind == KIND_SID && field->count.kind)
		fail(r, field->line, "%s is an array of win:SID, which has no element size",
			field->name);
	if (field->map_name) {
		field->map = FIND_NAME(&names->maps, &p->maps, name, field->map_name);
		if (field->map == MANIFEST_NONE)
			fail(r, field->line, "there is no map %s", field->map_name);
		else if (kind != KIND_INTEGER)
			fail(r, field->line, "%s has a map, but is not an integer", field->name);
	}
}

static void resolve_templates(struct resolving *r, struct man_provider *p,
	struct manifest_names *names)
{
	struct map identifiers = { 0 };

	INDEX_NAMES(r, &names->templates, &p->templates, tid, "template");
	vec_each(tmpl, &p->templates) {
		tmpl->c_name = manifest_identifier(&r->manifest->arena, tmpl->tid);
		if (!tmpl->c_name) {
			no_memory(r);
			return;
		}
	}
	INDEX_NAMES(r, &identifiers, &p->templates, c_name, "in C, a template");
	map_done(&identifiers);
	vec_each(tmpl, &p->templates)
		for (uint32_t i = 0; i < tmpl->fields.count && !r->error; i++)
			resolve_field(r, p, names, tmpl, i);
}

/* ---- Events ---- */

struct fixed_name {
	const char *name;
	uint64_t value;
};

static const struct fixed_name fixed_levels[] = { { "win:LogAlways", 0 }, { "win:Critical", 1 },
	{ "win:Error", 2 }, { "win:Warning", 3 }, { "win:Informational", 4 }, { "win:Verbose", 5 },
	{ NULL, 0 } };
static const struct fixed_name fixed_opcodes[] = { { "win:Info", 0 }, { "win:Start", 1 },
	{ "win:Stop", 2 }, { "win:DC_Start", 3 }, { "win:DC_Stop", 4 }, { "win:Extension", 5 },
	{ "win:Reply", 6 }, { "win:Resume", 7 }, { "win:Suspend", 8 }, { "win:Send", 9 },
	{ "win:Receive", 240 }, { NULL, 0 } };
static const struct fixed_name fixed_keywords[] = { { "win:AnyKeyword", 0 },
	{ "win:ResponseTime", 1ull << 48 }, { "win:WDIContext", 1ull << 49 },
	{ "win:WDIDiag", 1ull << 50 }, { "win:SQM", 1ull << 51 },
	{ "win:AuditFailure", 1ull << 52 }, { "win:AuditSuccess", 1ull << 53 },
	{ "win:CorrelationHint", 1ull << 54 }, { "win:EventlogClassic", 1ull << 55 }, { NULL, 0 } };

static bool fixed_find(const struct fixed_name *list, const char *name, uint64_t *ret_value)
{
	for (; list->name; list++) {
		if (strcmp(list->name, name) == 0) {
			*ret_value = list->value;
			return true;
		}
	}
	return false;
}

static void resolve_event_keywords(struct resolving *r, const struct man_provider *p,
	const struct manifest_names *names, struct man_event *event)
{
	static const char blanks[] = " \t\r\n";
	const char *at = event->keyword_names ? event->keyword_names : "";

	while (*(at += strspn(at, blanks)) && !r->error) {
		size_t len = strcspn(at, blanks);
		char name[MANIFEST_NAME_MAX + 1];
		uint64_t mask = 0;
		if (len > MANIFEST_NAME_MAX)
			len = MANIFEST_NAME_MAX;
		memcpy(name, at, len);
		name[len] = '\0';
		at += len;
		uint32_t found = FIND_NAME(&names->keywords, &p->keywords, name, name);
		if (found != MANIFEST_NONE)
			mask = p->keywords.items[found].mask;
		else if (!fixed_find(fixed_keywords, name, &mask))
			fail(r, event->line, "there is no keyword %s", name);
		event->keywords |= mask;
	}
}

static uint32_t find_opcode(const struct man_provider *p, const struct manifest_names *names,
	const char *name, uint32_t task)
{
	for (struct map_walk w = map_find(&names->opcodes, name_key(name, task)); w.value;
		map_next(&w)) {
		const struct man_opcode *opcode = &p->opcodes.items[w.value - 1];
		if (opcode->task == task && strcmp(opcode->name, name) == 0)
			return w.value - 1;
	}
	return MANIFEST_NONE;
}

static void resolve_event_opcode(struct resolving *r, const struct man_provider *p,
	const struct manifest_names *names, struct man_event *event)
{
	uint64_t value = 0;

	if (!event->opcode_name)
		return;
	uint32_t found = event->task != MANIFEST_NONE
				 ? find_opcode(p, names, event->opcode_name, event->task)
				 : MANIFEST_NONE;
	if (found == MANIFEST_NONE)
		found = find_opcode(p, names, event->opcode_name, MANIFEST_NONE);
	if (found != MANIFEST_NONE)
		value = p->opcodes.items[found].value;
	else if (!fixed_find(fixed_opcodes, event->opcode_name, &value))
		fail(r, event->line, "there is no opcode %s", event->opcode_name);
	event->opcode = (uint8_t)value;
}

static void resolve_event_level(struct resolving *r, const struct man_provider *p,
	const struct manifest_names *names, struct man_event *event)
{
	uint64_t value = 0;

	if (!event->level_name)
		return;
	uint32_t found = FIND_NAME(&names->levels, &p->levels, name, event->level_name);
	if (found != MANIFEST_NONE)
		value = p->levels.items[found].value;
	else if (!fixed_find(fixed_levels, event->level_name, &value))
		fail(r, event->line, "there is no level %s", event->level_name);
	event->level = (uint8_t)value;
}

/* The name in C, unique in the file. An event without a symbol gets one of its id. */
static void resolve_event_symbol(struct resolving *r, const struct man_provider *p,
	struct man_event *event)
{
	char made[64];

	if (!event->symbol) {
		snprintf(made, sizeof(made), event->version ? "Event%u_V%u" : "Event%u", event->id,
			event->version);
		event->symbol = arena_copy(&r->manifest->arena, made, strlen(made) + 1);
		if (!event->symbol) {
			no_memory(r);
			return;
		}
	}
	if (!is_identifier(event->symbol))
		fail(r, event->line, "the symbol '%s' of an event is not a name in C",
			event->symbol);
	if (strlen(p->short_name) + 1 + strlen(event->symbol) > TRACEPOINT_NAME_MAX)
		fail(r, event->line,
			"event %s has a name of more than %u characters with its provider",
			event->symbol, TRACEPOINT_NAME_MAX);
}

static int compare_events(const void *a, const void *b)
{
	const struct man_event *x = a;
	const struct man_event *y = b;
	int by_id = (x->id > y->id) - (x->id < y->id);

	return by_id ? by_id : (x->version > y->version) - (x->version < y->version);
}

static void resolve_events(struct resolving *r, struct man_provider *p,
	const struct manifest_names *names)
{
	vec_each(event, &p->events) {
		if (event->template_name) {
			event->tmpl = FIND_NAME(&names->templates, &p->templates, tid,
				event->template_name);
			if (event->tmpl == MANIFEST_NONE)
				fail(r, event->line, "there is no template %s",
					event->template_name);
			else if (!p->templates.items[event->tmpl].fields.count)
				event->tmpl = MANIFEST_NONE;
		}
		if (event->task_name) {
			event->task = FIND_NAME(&names->tasks, &p->tasks, name, event->task_name);
			if (event->task == MANIFEST_NONE)
				fail(r, event->line, "there is no task %s", event->task_name);
		}
		event->message = message_text(r, event->message, event->line);
		resolve_event_keywords(r, p, names, event);
		resolve_event_level(r, p, names, event);
		resolve_event_opcode(r, p, names, event);
		resolve_event_symbol(r, p, event);
		if (r->error)
			return;
	}
	if (p->events.count)
		qsort(p->events.items, p->events.count, sizeof(*p->events.items), compare_events);
	vec_each(event, &p->events) {
		if (event->tmpl == MANIFEST_NONE)
			p->has_bare_events = true;
		else
			p->templates.items[event->tmpl].is_used = true;
	}
	stack_walk_find(p);
	for (uint32_t i = 1; i < p->events.count && !r->error; i++) {
		const struct man_event *before = &p->events.items[i - 1];
		const struct man_event *event = &p->events.items[i];
		if (compare_events(before, event) == 0)
			fail(r, before->line > event->line ? before->line : event->line,
				"two events have id %u and version %u: %s and %s", event->id,
				event->version, before->symbol, event->symbol);
	}
}

/* Generated names are made of symbols: no event may be called as a function of another one. */
static void check_made_names(struct resolving *r, const struct man_event *event,
	const struct man_event *const *events)
{
	static const char *const endings[] = { "_enabled", "_event" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		char name[MANIFEST_NAME_MAX + 16];
		snprintf(name, sizeof(name), "%s%s", event->symbol, endings[i]);
		for (struct map_walk w = map_find(&r->symbols, name_key(name, 0)); w.value;
			map_next(&w))
			if (strcmp(events[w.value - 1]->symbol, name) == 0)
				fail(r, events[w.value - 1]->line,
					"the symbol %s is a name that event %s needs in C", name,
					event->symbol);
	}
}

/* Over all providers, as they are names in one program. */
static void check_symbols(struct resolving *r)
{
	uint32_t number = 0;
	VEC(const struct man_event *) events = { 0 };

	vec_each(p, &r->manifest->providers) {
		vec_each(event, &p->events) {
			uint64_t key = name_key(event->symbol, 0);
			for (struct map_walk w = map_find(&r->symbols, key); w.value; map_next(&w))
				if (strcmp(events.items[w.value - 1]->symbol, event->symbol) == 0)
					fail(r, event->line,
						"two events have the symbol %s (line %u)",
						event->symbol, events.items[w.value - 1]->line);
			if (!vec_add(&events, event) || !map_add(&r->symbols, key, ++number))
				no_memory(r);
			if (r->error)
				goto out;
		}
	}
	vec_each(each, &events)
		check_made_names(r, *each, events.items);
out:
	vec_done(&events);
}

static void resolve_provider(struct resolving *r, struct man_provider *p)
{
	struct manifest_names names = { 0 };

	name_provider(r, p);
	vec_each(other, &r->manifest->providers)
		if (!r->error && other < p && strcmp(other->prefix, p->prefix) == 0)
			fail(r, p->line, "providers %s and %s have the same name in C: %s",
				other->name, p->name, p->prefix);
	vec_each(other, &r->manifest->providers)
		if (!r->error && other < p && memcmp(other->guid, p->guid, sizeof(p->guid)) == 0)
			fail(r, p->line, "providers %s and %s have the same guid", other->name,
				p->name);
	if (!r->error)
		resolve_keywords(r, p, &names);
	INDEX_NAMES(r, &names.levels, &p->levels, name, "level");
	if (!r->error)
		resolve_tasks(r, p, &names);
	if (!r->error)
		resolve_opcodes(r, p, &names);
	if (!r->error)
		resolve_maps(r, p, &names);
	if (!r->error)
		resolve_templates(r, p, &names);
	if (!r->error)
		resolve_events(r, p, &names);
	map_done(&names.keywords);
	map_done(&names.levels);
	map_done(&names.tasks);
	map_done(&names.opcodes);
	map_done(&names.maps);
	map_done(&names.templates);
}

int manifest_resolve(struct manifest *manifest, const char *name, struct diag *diag)
{
	struct resolving r = { .manifest = manifest, .name = name, .diag = diag };

	INDEX_NAMES(&r, &r.strings, &manifest->strings, id, "string");
	if (!manifest->providers.count)
		fail(&r, 1, "there is no provider");
	vec_each(p, &manifest->providers)
		if (!r.error)
			resolve_provider(&r, p);
	if (!r.error)
		check_symbols(&r);
	map_done(&r.strings);
	map_done(&r.symbols);
	return r.error;
}

const struct man_template *manifest_template(const struct man_provider *provider,
	const struct man_event *event)
{
	return event->tmpl == MANIFEST_NONE ? NULL : &provider->templates.items[event->tmpl];
}

bool manifest_template_is_used(const struct man_provider *provider, const struct man_template *tmpl)
{
	return tmpl ? tmpl->is_used : provider->has_bare_events;
}

const char *manifest_task_name(const struct man_provider *provider, const struct man_event *event)
{
	return event->task == MANIFEST_NONE ? "" : provider->tasks.items[event->task].name;
}
