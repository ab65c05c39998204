/*
 * Reads a manifest's XML with expat. See manifest.h.
 *
 * Elements are known by name and parent, as `events`, `level` and `keywords` occur at several places.
 * What the compiler does not need (how Windows renders and routes events) is skipped whole; any other
 * element or attribute that is not known is an error, since it may be a misspelt one.
 */
#include "gen/manifest.h"

#include <errno.h>
#include <expat.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"

#define IN_TYPE(identifier, name, size, type, element, kind) \
	[IN_##identifier] = { name, size, #type, element, KIND_##kind },
const struct in_type_facts in_types[IN_TYPE_COUNT] = {
#include "gen/in_types.def"
};

enum element {
	EL_NONE = 0,
	EL_MANIFEST,
	EL_INSTRUMENTATION,
	EL_ALL_EVENTS, /* around the providers */
	EL_PROVIDER,
	EL_KEYWORDS,
	EL_KEYWORD,
	EL_LEVELS,
	EL_LEVEL,
	EL_TASKS,
	EL_TASK,
	EL_OPCODES,
	EL_TASK_OPCODES,
	EL_OPCODE,
	EL_MAPS,
	EL_VALUE_MAP,
	EL_BIT_MAP,
	EL_MAP,
	EL_TEMPLATES,
	EL_TEMPLATE,
	EL_DATA,
	EL_STRUCT,
	EL_STRUCT_DATA,
	EL_EVENTS,
	EL_EVENT,
	EL_LOCALIZATION,
	EL_RESOURCES,
	EL_STRING_TABLE,
	EL_STRING,
	EL_SKIPPED,
};

static const struct {
	enum element parent;
	const char *name;
	enum element element;
	const char *attributes; /* each between blanks; NULL: any */
} elements[] = {
	{ EL_NONE, "instrumentationManifest", EL_MANIFEST, NULL },
	{ EL_NONE, "assembly", EL_SKIPPED, NULL },
	{ EL_MANIFEST, "instrumentation", EL_INSTRUMENTATION, NULL },
	{ EL_MANIFEST, "localization", EL_LOCALIZATION, NULL },
	{ EL_MANIFEST, "metadata", EL_SKIPPED, NULL },
	{ EL_INSTRUMENTATION, "events", EL_ALL_EVENTS, NULL },
	{ EL_INSTRUMENTATION, "counters", EL_SKIPPED, NULL },
	{ EL_ALL_EVENTS, "provider", EL_PROVIDER, NULL },
	{ EL_ALL_EVENTS, "messageTable", EL_SKIPPED, NULL },
	{ EL_PROVIDER, "keywords", EL_KEYWORDS, NULL },
	{ EL_PROVIDER, "levels", EL_LEVELS, NULL },
	{ EL_PROVIDER, "tasks", EL_TASKS, NULL },
	{ EL_PROVIDER, "opcodes", EL_OPCODES, NULL },
	{ EL_PROVIDER, "maps", EL_MAPS, NULL },
	{ EL_PROVIDER, "templates", EL_TEMPLATES, NULL },
	{ EL_PROVIDER, "events", EL_EVENTS, NULL },
	{ EL_PROVIDER, "channels", EL_SKIPPED, NULL },
	{ EL_PROVIDER, "filters", EL_SKIPPED, NULL },
	{ EL_PROVIDER, "namedQueries", EL_SKIPPED, NULL },
	{ EL_PROVIDER, "traits", EL_SKIPPED, NULL },
	{ EL_KEYWORDS, "keyword", EL_KEYWORD, " name mask symbol message " },
	{ EL_LEVELS, "level", EL_LEVEL, " name value symbol message " },
	{ EL_TASKS, "task", EL_TASK, " name value symbol message eventGUID " },
	{ EL_TASK, "opcodes", EL_TASK_OPCODES, NULL },
	{ EL_TASK_OPCODES, "opcode", EL_OPCODE, " name value symbol message mofValue " },
	{ EL_OPCODES, "opcode", EL_OPCODE, " name value symbol message mofValue " },
	{ EL_MAPS, "valueMap", EL_VALUE_MAP, " name symbol " },
	{ EL_MAPS, "bitMap", EL_BIT_MAP, " name symbol " },
	{ EL_VALUE_MAP, "map", EL_MAP, " value message symbol mofValue " },
	{ EL_BIT_MAP, "map", EL_MAP, " value message symbol mofValue " },
	{ EL_TEMPLATES, "template", EL_TEMPLATE, " tid name " },
	{ EL_TEMPLATE, "data", EL_DATA, " name inType outType map count length " },
	{ EL_TEMPLATE, "struct", EL_STRUCT, " name count " },
	{ EL_TEMPLATE, "UserData", EL_SKIPPED, NULL },
	{ EL_TEMPLATE, "binary", EL_SKIPPED, NULL },
	{ EL_STRUCT, "data", EL_STRUCT_DATA, " name inType outType map count length " },
	{ EL_EVENTS, "event", EL_EVENT,
		" value version level template keywords opcode task symbol message channel notLogged attributes " },
	{ EL_LOCALIZATION, "resources", EL_RESOURCES, NULL },
	{ EL_RESOURCES, "stringTable", EL_STRING_TABLE, NULL },
	{ EL_RESOURCES, "messageTable", EL_SKIPPED, NULL },
	{ EL_STRING_TABLE, "string", EL_STRING, " id value " },
};

struct reading {
	XML_Parser parser;
	struct manifest *manifest;
	const char *name;
	struct diag *diag;
	int error;
	unsigned depth;
	unsigned skipped_depth; /* of the element that is skipped whole; 0: none */
	enum element open[MANIFEST_DEPTH_MAX];
	bool skips_strings; /* another culture than the first one */
	uint32_t cultures;
	uint32_t struct_index; /* of the open struct in its template */
};

__attribute__((format(printf, 2, 3))) static void fail(struct reading *r, const char *format, ...)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	va_list args;

	if (r->error)
		return;
	va_start(args, format);
	bytes_vprintf(&text, format, args);
	va_end(args);
	r->error = diag_set(r->diag, -EBADMSG, "'%s' line %lu: %s", r->name,
		(unsigned long)XML_GetCurrentLineNumber(r->parser), bytes_z(&text));
	XML_StopParser(r->parser, XML_FALSE);
}

static void no_memory(struct reading *r)
{
	if (r->error)
		return;
	r->error = diag_set(r->diag, -ENOMEM, "cannot read '%s': %m", r->name);
	XML_StopParser(r->parser, XML_FALSE);
}

static uint32_t line_of(const struct reading *r)
{
	return (uint32_t)XML_GetCurrentLineNumber(r->parser);
}

/* Without the prefix of a namespace. */
static const char *local_name(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

/* The attribute's value, or NULL. */
static const char *attribute(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return NULL;
}

/* A copy in the arena; NULL stays NULL. */
static const char *keep(struct reading *r, const char *text, size_t limit, const char *what)
{
	if (!text)
		return NULL;
	size_t len = strlen(text);
	if (len > limit) {
		fail(r, "%s of %zu bytes; the limit is %zu", what, len, limit);
		return NULL;
	}
	const char *copy = arena_copy(&r->manifest->arena, text, len + 1);
	if (!copy)
		no_memory(r);
	return copy;
}

static const char *optional(struct reading *r, const char **attributes, const char *name)
{
	return keep(r, attribute(attributes, name), MANIFEST_NAME_MAX, name);
}

static const char *text_of(struct reading *r, const char **attributes, const char *name)
{
	return keep(r, attribute(attributes, name), MANIFEST_TEXT_MAX, name);
}

static const char *required(struct reading *r, const char *element, const char **attributes,
	const char *name)
{
	const char *value = attribute(attributes, name);

	if (!value || !value[0]) {
		fail(r, "<%s> has no attribute %s", element, name);
		return NULL;
	}
	return keep(r, value, MANIFEST_NAME_MAX, name);
}

/* A whole number, decimal or after 0x. */
static bool number_parse(const char *text, uint64_t *ret_value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	char *end;

	if (!digits[0] ||
		strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") != strlen(digits))
		return false;
	errno = 0;
	*ret_value = strtoull(digits, &end, hex ? 16 : 10);
	return errno == 0 && !*end;
}

static uint64_t number(struct reading *r, const char *element, const char **attributes,
	const char *name, uint64_t max)
{
	const char *text = required(r, element, attributes, name);
	uint64_t value = 0;

	if (!text)
		return 0;
	if (!number_parse(text, &value))
		fail(r, "%s=\"%s\" of <%s> is not a whole number", name, text, element);
	else if (value > max)
		fail(r, "%s=\"%s\" of <%s> is more than %llu", name, text, element,
			(unsigned long long)max);
	return value <= max ? value : 0;
}

/* "{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}", with or without braces. */
static bool guid_parse(const char *text, uint8_t guid[16])
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	size_t len = strlen(text);
	unsigned digits = 0;

	if (len == 38 && text[0] == '{' && text[37] == '}') {
		text++;
		len = 36;
	}
	if (len != 36)
		return false;
	memset(guid, 0, 16);
	for (size_t i = 0; i < len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		const char *hex = strchr("0123456789abcdef0123456789ABCDEF", text[i]);
		if (dash ? text[i] != '-' : !hex)
			return false;
		if (dash)
			continue;
		unsigned value = (unsigned)(hex - "0123456789abcdef0123456789ABCDEF") & 15;
		uint8_t *byte = &guid[order[digits / 2]];
		*byte = (uint8_t)((unsigned)*byte << 4 | value);
		digits++;
	}
	return true;
}

static bool has_room(struct reading *r, uint32_t count, const char *what)
{
	if (count >= MANIFEST_ITEMS_MAX)
		fail(r, "more than %u %s", MANIFEST_ITEMS_MAX, what);
	return count < MANIFEST_ITEMS_MAX;
}

/* A new element of one of the model's lists; NULL and a message: too many, or no memory. */
#define ADD(r, list, what)                                                        \
	({                                                                        \
		__typeof__((list)->items) item_ =                                 \
			has_room(r, (list)->count, what) ? vec_push(list) : NULL; \
		if (!item_)                                                       \
			no_memory(r);                                             \
		item_;                                                            \
	})

static struct man_provider *provider_of(struct reading *r)
{
	return vec_last(&r->manifest->providers);
}

static void add_provider(struct reading *r, const char **attributes)
{
	const char *guid = required(r, "provider", attributes, "guid");

	if (r->manifest->providers.count >= MANIFEST_PROVIDERS_MAX) {
		fail(r, "more than %u providers", MANIFEST_PROVIDERS_MAX);
		return;
	}
	struct man_provider *p = ADD(r, &r->manifest->providers, "providers");
	if (!p)
		return;
	p->line = line_of(r);
	p->name = required(r, "provider", attributes, "name");
	p->symbol = optional(r, attributes, "symbol");
	if (guid && !guid_parse(guid, p->guid))
		fail(r, "guid=\"%s\" is not a GUID", guid);
}

static void add_map_entry(struct reading *r, const char **attributes)
{
	struct man_map *map = vec_last(&provider_of(r)->maps);
	struct man_map_entry *entry = ADD(r, &map->entries, "entries of a map");

	if (!entry)
		return;
	*entry = (struct man_map_entry){
		.value = (uint32_t)number(r, "map", attributes, "value", UINT32_MAX),
		.message = text_of(r, attributes, "message"),
		.symbol = optional(r, attributes, "symbol"),
		.line = line_of(r),
	};
}

static struct amount amount_of(struct reading *r, const char **attributes, const char *name)
{
	const char *text = optional(r, attributes, name);
	uint64_t value;

	if (!text)
		return (struct amount){ 0 };
	if (!text[0])
		fail(r, "%s=\"\" is neither a number nor a field", name);
	if (!number_parse(text, &value))
		return (struct amount){ .kind = AMOUNT_FIELD, .name = text };
	if (value < 1 || value > UINT16_MAX)
		fail(r, "%s=\"%s\" is not from 1 to %u", name, text, UINT16_MAX);
	/* A count of 1 is a single value, as the runtime's scripts have it. */
	if (value == 1 && strcmp(name, "count") == 0)
		return (struct amount){ 0 };
	return (struct amount){ .kind = AMOUNT_FIXED, .value = (uint32_t)value, .name = text };
}

static enum in_type in_type_of(struct reading *r, const char **attributes)
{
	const char *text = required(r, "data", attributes, "inType");

	for (unsigned i = IN_NONE + 1; text && i < IN_TYPE_COUNT; i++)
		if (strcmp(local_name(text), in_types[i].name) == 0)
			return (enum in_type)i;
	if (text)
		fail(r, "inType=\"%s\" is not a type", text);
	return IN_UINT32;
}

static void add_field(struct reading *r, enum element element, const char **attributes)
{
	struct man_template *tmpl = vec_last(&provider_of(r)->templates);
	bool is_struct = element == EL_STRUCT;

	if (tmpl->fields.count >= MANIFEST_FIELDS_MAX) {
		fail(r, "template %s has more than %u fields", tmpl->tid, MANIFEST_FIELDS_MAX);
		return;
	}
	struct man_field *field = ADD(r, &tmpl->fields, "fields");
	if (!field)
		return;
	*field = (struct man_field){
		.name = required(r, is_struct ? "struct" : "data", attributes, "name"),
		.type = is_struct ? IN_NONE : in_type_of(r, attributes),
		.out_type = optional(r, attributes, "outType"),
		.map_name = optional(r, attributes, "map"),
		.map = MANIFEST_NONE,
		.count = amount_of(r, attributes, "count"),
		.length = amount_of(r, attributes, "length"),
		.parent = element == EL_STRUCT_DATA ? r->struct_index : MANIFEST_NONE,
		.line = line_of(r),
	};
	if (element == EL_STRUCT_DATA)
		tmpl->fields.items[r->struct_index].member_count++;
	if (is_struct)
		r->struct_index = tmpl->fields.count - 1;
}

static void add_event(struct reading *r, const char **attributes)
{
	const bool versioned = attribute(attributes, "version") != NULL;
	struct man_event *event = ADD(r, &provider_of(r)->events, "events");

	if (!event)
		return;
	*event = (struct man_event){
		.symbol = optional(r, attributes, "symbol"),
		.message = text_of(r, attributes, "message"),
		.tmpl = MANIFEST_NONE,
		.task = MANIFEST_NONE,
		.id = (uint16_t)number(r, "event", attributes, "value", UINT16_MAX),
		.version = versioned ? (uint8_t)number(r, "event", attributes, "version", UINT8_MAX)
				     : 0,
		.opcode_name = optional(r, attributes, "opcode"),
		.template_name = optional(r, attributes, "template"),
		.keyword_names = text_of(r, attributes, "keywords"),
		.level_name = optional(r, attributes, "level"),
		.task_name = optional(r, attributes, "task"),
		.line = line_of(r),
	};
}

static void add_opcode(struct reading *r, enum element parent, const char **attributes)
{
	struct man_provider *p = provider_of(r);
	struct man_opcode *opcode = ADD(r, &p->opcodes, "opcodes");

	if (!opcode)
		return;
	*opcode = (struct man_opcode){
		.name = required(r, "opcode", attributes, "name"),
		.symbol = optional(r, attributes, "symbol"),
		.message = text_of(r, attributes, "message"),
		.value = (uint8_t)number(r, "opcode", attributes, "value", UINT8_MAX),
		.task = parent == EL_TASK_OPCODES ? p->tasks.count - 1 : MANIFEST_NONE,
		.line = line_of(r),
	};
}

static void add_map(struct reading *r, const char *name, bool bits, const char **attributes)
{
	struct man_map *map = ADD(r, &provider_of(r)->maps, "maps");

	if (!map)
		return;
	map->name = required(r, name, attributes, "name");
	map->bits = bits;
	map->line = line_of(r);
}

static void add_template(struct reading *r, const char **attributes)
{
	struct man_template *tmpl = ADD(r, &provider_of(r)->templates, "templates");

	if (!tmpl)
		return;
	tmpl->tid = required(r, "template", attributes, "tid");
	tmpl->line = line_of(r);
}

static void add_keyword(struct reading *r, const char **attributes)
{
	struct man_keyword *keyword = ADD(r, &provider_of(r)->keywords, "keywords");

	if (!keyword)
		return;
	*keyword = (struct man_keyword){
		.name = required(r, "keyword", attributes, "name"),
		.symbol = optional(r, attributes, "symbol"),
		.message = text_of(r, attributes, "message"),
		.mask = number(r, "keyword", attributes, "mask", UINT64_MAX),
		.line = line_of(r),
	};
	if (!r->error && !keyword->mask)
		fail(r, "keyword %s has no bit", keyword->name);
}

static void add_level(struct reading *r, const char **attributes)
{
	struct man_level *level = ADD(r, &provider_of(r)->levels, "levels");

	if (!level)
		return;
	level->name = required(r, "level", attributes, "name");
	level->value = (uint8_t)number(r, "level", attributes, "value", UINT8_MAX);
	level->line = line_of(r);
}

static void add_task(struct reading *r, const char **attributes)
{
	struct man_task *task = ADD(r, &provider_of(r)->tasks, "tasks");

	if (!task)
		return;
	*task = (struct man_task){
		.name = required(r, "task", attributes, "name"),
		.symbol = optional(r, attributes, "symbol"),
		.message = text_of(r, attributes, "message"),
		.value = (uint16_t)number(r, "task", attributes, "value", UINT16_MAX),
		.line = line_of(r),
	};
}

static void add_string(struct reading *r, const char **attributes)
{
	const char *value = attribute(attributes, "value");

	if (r->skips_strings)
		return;
	struct man_string *string = ADD(r, &r->manifest->strings, "strings");
	if (!string)
		return;
	string->id = required(r, "string", attributes, "id");
	string->value = keep(r, value ? value : "", MANIFEST_TEXT_MAX, "string");
	string->line = line_of(r);
}

static void element_begin(struct reading *r, enum element element, enum element parent,
	const char **attributes)
{
	switch (element) {
	case EL_PROVIDER:
		add_provider(r, attributes);
		break;
	case EL_KEYWORD:
		add_keyword(r, attributes);
		break;
	case EL_LEVEL:
		add_level(r, attributes);
		break;
	case EL_TASK:
		add_task(r, attributes);
		break;
	case EL_OPCODE:
		add_opcode(r, parent, attributes);
		break;
	case EL_VALUE_MAP:
		add_map(r, "valueMap", false, attributes);
		break;
	case EL_BIT_MAP:
		add_map(r, "bitMap", true, attributes);
		break;
	case EL_MAP:
		add_map_entry(r, attributes);
		break;
	case EL_TEMPLATE:
		add_template(r, attributes);
		break;
	case EL_DATA:
	case EL_STRUCT:
	case EL_STRUCT_DATA:
		add_field(r, element, attributes);
		break;
	case EL_EVENT:
		add_event(r, attributes);
		break;
	case EL_RESOURCES:
		r->skips_strings = r->cultures++ > 0;
		break;
	case EL_STRING:
		add_string(r, attributes);
		break;
	default:
		break;
	}
}

static const char *name_of(enum element element)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		if (elements[i].element == element)
			return elements[i].name;
	return "";
}

static void check_attributes(struct reading *r, const char *element, const char *known,
	const char **attributes)
{
	for (; attributes[0]; attributes += 2) {
		const char *name = attributes[0];
		size_t len = strlen(name);
		bool found = strncmp(name, "xmlns", 5) == 0 || strchr(name, ':') != NULL;
		for (const char *at = known; !found && (at = strstr(at, name)); at++)
			found = at[-1] == ' ' && at[len] == ' ';
		if (!found)
			fail(r, "<%s> has an attribute %.100s, which is not known", element, name);
	}
}

static void XMLCALL on_start(void *user, const char *full_name, const char **attributes)
{
	struct reading *r = user;
	const char *name = local_name(full_name);
	enum element parent = r->depth ? r->open[r->depth - 1] : EL_NONE;
	enum element element = EL_NONE;

	if (r->error)
		return;
	if (r->depth == MANIFEST_DEPTH_MAX) {
		fail(r, "elements are nested more than %u deep", MANIFEST_DEPTH_MAX);
		return;
	}
	r->open[r->depth++] = EL_SKIPPED;
	if (r->skipped_depth)
		return;
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]) && !element; i++) {
		if (elements[i].parent != parent || strcmp(elements[i].name, name) != 0)
			continue;
		element = elements[i].element;
		if (elements[i].attributes)
			check_attributes(r, name, elements[i].attributes, attributes);
	}
	if (element == EL_NONE && parent == EL_NONE)
		fail(r, "the file begins with <%.100s>, not with <instrumentationManifest>", name);
	else if (element == EL_NONE && parent == EL_STRUCT && strcmp(name, "struct") == 0)
		fail(r, "a struct inside a struct");
	else if (element == EL_NONE)
		fail(r, "an element <%.100s> in <%s> is not known", name, name_of(parent));
	else if (element == EL_SKIPPED)
		r->skipped_depth = r->depth;
	r->open[r->depth - 1] = element;
	if (!r->error)
		element_begin(r, element, parent, attributes);
}

static void XMLCALL on_end(void *user, const char *name)
{
	struct reading *r = user;

	(void)name;
	if (r->skipped_depth == r->depth)
		r->skipped_depth = 0;
	if (r->depth)
		r->depth--;
}

/* Text is in attributes; between elements it is the rest of a damaged one. */
static void XMLCALL on_text(void *user, const XML_Char *text, int length)
{
	struct reading *r = user;
	size_t start = 0;
	const size_t size = (size_t)length;

	if (r->error || r->skipped_depth || !r->depth)
		return;
	while (start < size && strchr(" \t\r\n", text[start]))
		start++;
	if (start < size)
		fail(r, "text in <%s>: '%.*s'", name_of(r->open[r->depth - 1]),
			(int)(size - start < 40 ? size - start : 40), text + start);
}

/* No manifest has one, and entities are how small files become large. */
static void XMLCALL on_doctype(void *user, const char *name, const char *system, const char *public,
	int has_internal)
{
	struct reading *r = user;

	(void)name, (void)system, (void)public, (void)has_internal;
	fail(r, "a manifest has no DOCTYPE");
}

int manifest_read(const void *data, size_t size, const char *name, struct manifest *ret_manifest,
	struct diag *diag)
{
	struct reading r = { .manifest = ret_manifest, .name = name, .diag = diag };
	const char *slash = strrchr(name, '/');

	*ret_manifest = (struct manifest){ 0 };
	if (size > MANIFEST_BYTES_MAX)
		return diag_set(diag, -EFBIG, "'%s' has more than %u bytes", name,
			MANIFEST_BYTES_MAX);
	r.parser = XML_ParserCreate(NULL);
	if (!r.parser)
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", name);
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	ret_manifest->name = keep(&r, slash ? slash + 1 : name, MANIFEST_TEXT_MAX, "name");
	if (!r.error && XML_Parse(r.parser, data, (int)size, XML_TRUE) != XML_STATUS_OK &&
		!r.error) {
		enum XML_Error code = XML_GetErrorCode(r.parser);
		if (code == XML_ERROR_NO_MEMORY)
			no_memory(&r);
		else if (code == XML_ERROR_NO_ELEMENTS)
			fail(&r, "the file has no XML element");
		else
			fail(&r, "not well-formed XML: %s (column %lu)", XML_ErrorString(code),
				(unsigned long)XML_GetCurrentColumnNumber(r.parser) + 1);
	}
	XML_ParserFree(r.parser);
	if (!r.error)
		r.error = manifest_resolve(ret_manifest, name, diag);
	if (r.error)
		manifest_done(ret_manifest);
	return r.error;
}

static void provider_done(struct man_provider *p)
{
	vec_each(map, &p->maps)
		vec_done(&map->entries);
	vec_each(tmpl, &p->templates)
		vec_done(&tmpl->fields);
	vec_done(&p->keywords);
	vec_done(&p->levels);
	vec_done(&p->tasks);
	vec_done(&p->opcodes);
	vec_done(&p->maps);
	vec_done(&p->templates);
	vec_done(&p->events);
}

void manifest_done(struct manifest *manifest)
{
	vec_each(p, &manifest->providers)
		provider_done(p);
	vec_done(&manifest->providers);
	vec_done(&manifest->strings);
	arena_done(&manifest->arena);
	*manifest = (struct manifest){ 0 };
}
