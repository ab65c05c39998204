/*
 * See ctf_tsdl.h. A recursive descent over tokens. The first error is kept in the parser, whose
 * further tokens are then the end, so the callers do not test after each step.
 */
#include "formats/ctf_tsdl.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "formats/ctf_token.h"
#include "formats/ctf_types.h"

#define ALIGN_MAX    (1u << 16) /* bits */
#define ELEMENTS_MAX (1u << 28)
#define TYPES_MAX    (1u << 20)
#define PATH_MAX_LEN 128u

struct tsdl_parser {
	struct ctf_metadata *metadata;
	struct diag *diag;
	const char *begin;
	const char *at;
	const char *end;
	struct token token; /* the next one */
	struct token ahead; /* the one after it */
	int error;
	unsigned depth;
};

/* ---- tokens ---- */

static void fail(struct tsdl_parser *p, const char *what)
{
	if (p->error)
		return;
	const struct token *t = &p->token;
	int len = t->kind == TOKEN_END ? 0 : (int)(t->len > 40 ? 40 : t->len);
	p->error = diag_set(p->diag, -EBADMSG, "the metadata cannot be understood: %s%s%.*s%s",
		what, len ? ", at '" : "", len, len ? t->at : "", len ? "'" : "");
}

static void fail_memory(struct tsdl_parser *p)
{
	if (!p->error)
		p->error = diag_set(p->diag, -ENOMEM, "cannot read the metadata: %m");
}

static void advance(struct tsdl_parser *p)
{
	p->token = p->error ? (struct token){ 0 } : p->ahead;
	p->ahead = p->error ? (struct token){ 0 } : token_next(&p->at, p->end);
}

static bool at_sign(const struct tsdl_parser *p, char sign)
{
	return !p->error && p->token.kind == TOKEN_SIGN && p->token.sign == sign &&
	       !p->token.is_define;
}

static bool take_sign(struct tsdl_parser *p, char sign)
{
	bool is = at_sign(p, sign);

	if (is)
		advance(p);
	return is;
}

static void want_sign(struct tsdl_parser *p, char sign)
{
	char what[] = "' ' is missing";

	what[1] = sign;
	if (!take_sign(p, sign))
		fail(p, what);
}

static bool token_is(const struct token *t, const char *word)
{
	return t->kind == TOKEN_WORD && t->len == strlen(word) && memcmp(t->at, word, t->len) == 0;
}

static bool at_word(const struct tsdl_parser *p, const char *word)
{
	return !p->error && token_is(&p->token, word);
}

static bool take_word(struct tsdl_parser *p, const char *word)
{
	bool is = at_word(p, word);

	if (is)
		advance(p);
	return is;
}

static uint32_t intern(struct tsdl_parser *p, const char *text, size_t len)
{
	uint32_t index = strtab_add(&p->metadata->strings, text, len);

	if (!index && len)
		fail_memory(p);
	return index;
}

static uint32_t intern_token(struct tsdl_parser *p)
{
	const struct token *t = &p->token;
	struct bytes text = { 0 };

	if (t->kind != TOKEN_TEXT || !memchr(t->at, '\\', t->len))
		return intern(p, t->at, t->len);
	token_add_text(t, &text);
	uint32_t index = text.failed ? 0 : intern(p, (const char *)text.data, text.len);
	if (text.failed)
		fail_memory(p);
	bytes_done(&text);
	return index;
}

static uint32_t take_name(struct tsdl_parser *p)
{
	uint32_t name = 0;

	if (p->error || p->token.kind != TOKEN_WORD)
		fail(p, "a name is missing");
	else
		name = intern(p, p->token.at, p->token.len);
	advance(p);
	return name;
}

static uint64_t take_number(struct tsdl_parser *p)
{
	uint64_t number = p->token.number;

	if (p->error || p->token.kind != TOKEN_NUMBER)
		fail(p, "a number is missing");
	advance(p);
	return p->error ? 0 : number;
}

/* "a.b.c" into `path`; the last name alone. */
static uint32_t take_path(struct tsdl_parser *p, char *path)
{
	size_t len = 0;
	uint32_t last = 0;

	do {
		if (p->token.kind != TOKEN_WORD || len + p->token.len + 2 > PATH_MAX_LEN) {
			fail(p, "a name is missing or too long");
			break;
		}
		if (len)
			path[len++] = '.';
		memcpy(path + len, p->token.at, p->token.len);
		len += p->token.len;
		last = take_name(p);
	} while (take_sign(p, '.'));
	path[len] = '\0';
	return last;
}

/* ---- types ---- */

static uint32_t parse_type(struct tsdl_parser *p, bool declares);

static uint32_t add_type(struct tsdl_parser *p, const struct ctf_type *type)
{
	uint32_t index = p->metadata->types.count;

	if (p->error)
		return 0;
	if (index >= TYPES_MAX)
		fail(p, "too many types");
	else if (!vec_add(&p->metadata->types, *type))
		fail_memory(p);
	return p->error ? 0 : index;
}

static const struct ctf_type *type_at(const struct tsdl_parser *p, uint32_t type)
{
	return &p->metadata->types.items[type];
}

static uint32_t slot_of(struct tsdl_parser *p, uint32_t name)
{
	struct ctf_metadata *metadata = p->metadata;
	uint32_t slot = name ? map_get(&metadata->slots, name) : 0;

	if (slot || p->error)
		return slot;
	if (metadata->slot_count >= CTF_SLOTS_MAX) {
		fail(p, "too many lengths and tags");
		return 0;
	}
	if (!map_put(&metadata->slots, name, metadata->slot_count)) {
		fail_memory(p);
		return 0;
	}
	return metadata->slot_count++;
}

static uint32_t checked_align(struct tsdl_parser *p, uint64_t align)
{
	if (align && align <= ALIGN_MAX && !(align & (align - 1)))
		return (uint32_t)align;
	fail(p, "an alignment is no power of two");
	return 1;
}

struct number_attributes {
	uint64_t size;
	uint64_t align;
	uint64_t exponent;
	uint64_t mantissa;
	struct ctf_type type;
};

static bool token_is_true(const struct token *t)
{
	return token_is(t, "true") || token_is(t, "TRUE") || (t->kind == TOKEN_NUMBER && t->number);
}

static bool token_is_any(const struct token *t, const char *a, const char *b)
{
	return token_is(t, a) || token_is(t, b);
}

/* { name = value; ... } of a number or a text. */
static void parse_attributes(struct tsdl_parser *p, struct number_attributes *attributes)
{
	char path[PATH_MAX_LEN];

	want_sign(p, '{');
	while (!p->error && !at_sign(p, '}')) {
		take_path(p, path);
		want_sign(p, '=');
		const struct token value = p->token;
		if (strcmp(path, "size") == 0)
			attributes->size = value.number;
		else if (strcmp(path, "align") == 0)
			attributes->align = value.number;
		else if (strcmp(path, "exp_dig") == 0)
			attributes->exponent = value.number;
		else if (strcmp(path, "mant_dig") == 0)
			attributes->mantissa = value.number;
		else if (strcmp(path, "signed") == 0)
			attributes->type.is_signed = token_is_true(&value);
		else if (strcmp(path, "encoding") == 0)
			attributes->type.is_text = token_is_any(&value, "UTF8", "utf8") ||
						   token_is_any(&value, "ASCII", "ascii");
		else if (strcmp(path, "byte_order") == 0)
			attributes->type.byte_order = token_is_any(&value, "be", "network")
							      ? CTF_BIG
						      : token_is(&value, "le") ? CTF_LITTLE
									       : CTF_NATIVE;
		else if (strcmp(path, "map") == 0)
			attributes->type.is_clock = token_is(&value, "clock");
		while (!p->error && p->token.kind != TOKEN_END && !at_sign(p, ';'))
			advance(p);
		want_sign(p, ';');
	}
	want_sign(p, '}');
}

static uint32_t parse_integer(struct tsdl_parser *p)
{
	struct number_attributes a = { .type.kind = CTF_INTEGER };

	parse_attributes(p, &a);
	if (!a.size || a.size > 64)
		fail(p, "an integer has no size of 1 to 64 bits");
	a.type.size = (uint32_t)a.size;
	a.type.align = checked_align(p, a.align ? a.align : a.size % 8 ? 1 : 8);
	return add_type(p, &a.type);
}

static uint32_t parse_float(struct tsdl_parser *p)
{
	struct number_attributes a = { .type.kind = CTF_FLOAT };

	parse_attributes(p, &a);
	if (a.exponent == 8 && a.mantissa == 24)
		a.type.size = 32;
	else if (a.exponent == 11 && a.mantissa == 53)
		a.type.size = 64;
	else
		fail(p, "a floating-point number is neither float nor double");
	a.type.align = checked_align(p, a.align ? a.align : 1);
	return add_type(p, &a.type);
}

static void add_alias(struct tsdl_parser *p, uint32_t name, uint32_t type)
{
	if (!p->error && name && !map_put(&p->metadata->aliases, name, type))
		fail_memory(p);
}

static uint32_t find_alias(struct tsdl_parser *p, const char *text, size_t len)
{
	uint32_t name = strtab_find(&p->metadata->strings, text, len);
	uint32_t type = name ? map_get(&p->metadata->aliases, name) : 0;

	if (!type && !p->error)
		p->error = diag_set(p->diag, -EBADMSG,
			"the metadata cannot be understood: the type '%.*s' has no description",
			(int)len, text);
	return type;
}

/* "struct name" is an alias of its own. */
static uint32_t kind_name(struct tsdl_parser *p, const char *kind, const struct token *name)
{
	char text[PATH_MAX_LEN + 16];
	size_t len = strlen(kind);

	if (p->error || name->len > PATH_MAX_LEN) {
		fail(p, "the name of a type is too long");
		return 0;
	}
	memcpy(text, kind, len);
	text[len] = ' ';
	memcpy(text + len + 1, name->at, name->len);
	return intern(p, text, len + 1 + name->len);
}

static uint32_t named_type(struct tsdl_parser *p, uint32_t name)
{
	uint32_t type = name ? map_get(&p->metadata->aliases, name) : 0;

	if (!type)
		fail(p, "a type has no description");
	return type;
}

/* The [ ] after a field's name: the first is the outermost. */
static uint32_t parse_brackets(struct tsdl_parser *p, uint32_t type)
{
	struct ctf_type outer = { 0 };
	char path[PATH_MAX_LEN];

	if (!at_sign(p, '['))
		return type;
	if (++p->depth > CTF_DEPTH_MAX) {
		fail(p, "types are nested too deeply");
		return 0;
	}
	advance(p);
	if (p->token.kind == TOKEN_NUMBER) {
		uint64_t count = take_number(p);
		if (count > ELEMENTS_MAX)
			fail(p, "an array is too long");
		outer.kind = CTF_ARRAY;
		outer.size = (uint32_t)count;
	} else {
		outer.kind = CTF_SEQUENCE;
		outer.slot = slot_of(p, take_path(p, path));
	}
	want_sign(p, ']');
	outer.inner = parse_brackets(p, type);
	p->depth--;
	outer.align = type_at(p, outer.inner)->align;
	outer.align = outer.align ? outer.align : 1;
	return add_type(p, &outer);
}

struct field_list {
	VEC(struct ctf_field) items;
};

static void parse_fields(struct tsdl_parser *p, struct field_list *list)
{
	want_sign(p, '{');
	while (!p->error && !at_sign(p, '}')) {
		struct ctf_field field = { .type = parse_type(p, true) };
		field.name = take_name(p);
		field.type = parse_brackets(p, field.type);
		want_sign(p, ';');
		if (p->error)
			break;
		const struct ctf_type *type = type_at(p, field.type);
		struct ctf_field *before = list->items.count ? vec_last(&list->items) : NULL;
		if (type->kind == CTF_SEQUENCE && before &&
			map_get(&p->metadata->slots, before->name) == type->slot &&
			type->slot >= CTF_SLOT_FIRST_FREE)
			before->is_length = true;
		if (!vec_add(&list->items, field))
			fail_memory(p);
	}
	want_sign(p, '}');
}

static void store_fields(struct tsdl_parser *p, const struct field_list *list,
	struct ctf_type *type)
{
	struct ctf_metadata *metadata = p->metadata;

	type->first = metadata->fields.count;
	type->count = list->items.count;
	for (uint32_t i = 0; !p->error && i < list->items.count; i++) {
		const struct ctf_field *field = &list->items.items[i];
		uint32_t align = type_at(p, field->type)->align;
		if (type->kind == CTF_STRUCT && align > type->align)
			type->align = align;
		if (!vec_add(&metadata->fields, *field))
			fail_memory(p);
	}
}

static uint32_t parse_struct(struct tsdl_parser *p)
{
	struct ctf_type type = { .kind = CTF_STRUCT, .align = 1 };
	struct field_list list = { 0 };
	uint32_t name = 0, index;

	if (p->token.kind == TOKEN_WORD) {
		name = kind_name(p, "struct", &p->token);
		advance(p);
		if (!at_sign(p, '{'))
			return named_type(p, name);
	}
	parse_fields(p, &list);
	if (take_word(p, "align")) {
		want_sign(p, '(');
		type.align = checked_align(p, take_number(p));
		want_sign(p, ')');
	}
	store_fields(p, &list, &type);
	vec_done(&list.items);
	index = add_type(p, &type);
	add_alias(p, name, index);
	return index;
}

static uint32_t parse_variant(struct tsdl_parser *p)
{
	struct ctf_type type = { .kind = CTF_VARIANT, .align = 1 };
	struct field_list list = { 0 };
	char path[PATH_MAX_LEN];
	uint32_t name = 0, index;

	if (p->token.kind == TOKEN_WORD) {
		name = kind_name(p, "variant", &p->token);
		advance(p);
	}
	if (take_sign(p, '<')) {
		type.slot = slot_of(p, take_path(p, path));
		want_sign(p, '>');
	}
	if (!at_sign(p, '{')) {
		uint32_t body = named_type(p, name);
		if (p->error || type_at(p, body)->kind != CTF_VARIANT) {
			fail(p, "a variant has no description");
			return 0;
		}
		type.first = type_at(p, body)->first;
		type.count = type_at(p, body)->count;
		return add_type(p, &type);
	}
	parse_fields(p, &list);
	store_fields(p, &list, &type);
	vec_done(&list.items);
	index = add_type(p, &type);
	add_alias(p, name, index);
	return index;
}

static void parse_ranges(struct tsdl_parser *p, struct ctf_type *type)
{
	uint64_t next = 0;

	want_sign(p, '{');
	type->first = p->metadata->ranges.count;
	while (!p->error && !at_sign(p, '}')) {
		struct ctf_range range = { 0 };
		if (p->token.kind == TOKEN_TEXT) {
			range.label = intern_token(p);
			advance(p);
		} else {
			range.label = take_name(p);
		}
		range.low = range.high = next;
		if (take_sign(p, '=')) {
			range.low = range.high = take_number(p);
			if (take_sign(p, '~'))
				range.high = take_number(p);
		}
		next = range.high + 1;
		if (!p->error && !vec_add(&p->metadata->ranges, range))
			fail_memory(p);
		type->count++;
		if (!take_sign(p, ','))
			break;
	}
	want_sign(p, '}');
}

static uint32_t parse_enum(struct tsdl_parser *p)
{
	struct ctf_type type = { .kind = CTF_ENUM };
	uint32_t name = 0, index;

	if (p->token.kind == TOKEN_WORD) {
		name = kind_name(p, "enum", &p->token);
		advance(p);
	}
	if (take_sign(p, ':'))
		type.inner = parse_type(p, false);
	else if (at_sign(p, '{'))
		type.inner = find_alias(p, "int", 3);
	else
		return named_type(p, name);
	if (!p->error && type_at(p, type.inner)->kind != CTF_INTEGER)
		fail(p, "an enumeration is of no integer");
	if (p->error)
		return 0;
	const struct ctf_type *inner = type_at(p, type.inner);
	type.size = inner->size;
	type.align = inner->align;
	type.is_signed = inner->is_signed;
	type.byte_order = inner->byte_order;
	parse_ranges(p, &type);
	index = add_type(p, &type);
	add_alias(p, name, index);
	return index;
}

/* Words up to the last one, which is the field's name where a field is declared. */
static uint32_t parse_alias(struct tsdl_parser *p, bool declares)
{
	char text[PATH_MAX_LEN];
	size_t len = 0;

	while (!p->error && p->token.kind == TOKEN_WORD &&
		(!declares || p->ahead.kind == TOKEN_WORD)) {
		if (len + p->token.len + 1 > sizeof(text)) {
			fail(p, "the name of a type is too long");
			return 0;
		}
		if (len)
			text[len++] = ' ';
		memcpy(text + len, p->token.at, p->token.len);
		len += p->token.len;
		advance(p);
	}
	return find_alias(p, text, len);
}

static uint32_t parse_type(struct tsdl_parser *p, bool declares)
{
	uint32_t type;

	if (++p->depth > CTF_DEPTH_MAX) {
		fail(p, "types are nested too deeply");
		return 0;
	}
	if (take_word(p, "integer")) {
		type = parse_integer(p);
	} else if (take_word(p, "floating_point")) {
		type = parse_float(p);
	} else if (take_word(p, "string")) {
		struct number_attributes unused = { 0 };
		if (at_sign(p, '{'))
			parse_attributes(p, &unused);
		type = add_type(p, &(struct ctf_type){ .kind = CTF_STRING, .align = 8 });
	} else if (take_word(p, "struct")) {
		type = parse_struct(p);
	} else if (take_word(p, "variant")) {
		type = parse_variant(p);
	} else if (take_word(p, "enum")) {
		type = parse_enum(p);
	} else {
		type = parse_alias(p, declares);
	}
	p->depth--;
	return type;
}

/* ---- blocks ---- */

struct block {
	struct ctf_stream_class stream;
	struct ctf_event_class event;
	uint32_t packet_header;
	uint32_t name;
	uint32_t uuid;
	uint32_t domain;
	uint64_t vpid;
	uint64_t hz;
	uint64_t offset;
	uint64_t offset_s;
	uint8_t byte_order;
};

static void take_type(struct block *block, const char *path, uint32_t type)
{
	if (strcmp(path, "packet.header") == 0)
		block->packet_header = type;
	else if (strcmp(path, "packet.context") == 0)
		block->stream.packet_context = type;
	else if (strcmp(path, "event.header") == 0)
		block->stream.event_header = type;
	else if (strcmp(path, "event.context") == 0)
		block->stream.event_context = type;
	else if (strcmp(path, "context") == 0)
		block->event.context = type;
	else if (strcmp(path, "fields") == 0)
		block->event.fields = type;
}

static void take_value(struct tsdl_parser *p, struct block *block, const char *path)
{
	const struct token *t = &p->token;

	if (strcmp(path, "id") == 0)
		block->stream.id = block->event.id = t->number;
	else if (strcmp(path, "stream_id") == 0)
		block->event.stream_id = t->number;
	else if (strcmp(path, "name") == 0)
		block->name = intern_token(p);
	else if (strcmp(path, "uuid") == 0)
		block->uuid = intern_token(p);
	else if (strcmp(path, "model.emf.uri") == 0)
		block->event.uri = intern_token(p);
	else if (strcmp(path, "loglevel") == 0)
		block->event.loglevel = (int32_t)t->number;
	else if (strcmp(path, "freq") == 0)
		block->hz = t->number;
	else if (strcmp(path, "offset") == 0)
		block->offset = t->number;
	else if (strcmp(path, "offset_s") == 0)
		block->offset_s = t->number;
	else if (strcmp(path, "domain") == 0)
		block->domain = intern_token(p);
	else if (strcmp(path, "vpid") == 0)
		block->vpid = t->number;
	else if (strcmp(path, "byte_order") == 0)
		block->byte_order = token_is_any(t, "be", "network") ? CTF_BIG : CTF_LITTLE;
}

static void parse_alias_declaration(struct tsdl_parser *p)
{
	char text[PATH_MAX_LEN];
	size_t len = 0;
	uint32_t type = parse_type(p, false);

	if (!p->token.is_define)
		fail(p, "':=' is missing");
	advance(p);
	while (!p->error && p->token.kind == TOKEN_WORD && len + p->token.len + 1 < sizeof(text)) {
		if (len)
			text[len++] = ' ';
		memcpy(text + len, p->token.at, p->token.len);
		len += p->token.len;
		advance(p);
	}
	if (!len)
		fail(p, "a name is missing");
	add_alias(p, p->error ? 0 : intern(p, text, len), type);
	want_sign(p, ';');
}

static void parse_block(struct tsdl_parser *p, struct block *block)
{
	char path[PATH_MAX_LEN];

	want_sign(p, '{');
	while (!p->error && !at_sign(p, '}')) {
		if (take_word(p, "typealias")) {
			parse_alias_declaration(p);
			continue;
		}
		if (at_word(p, "struct") || at_word(p, "enum") || at_word(p, "variant")) {
			(void)parse_type(p, false); /* for its name */
			want_sign(p, ';');
			continue;
		}
		take_path(p, path);
		if (!p->error && p->token.is_define) {
			advance(p);
			take_type(block, path, parse_type(p, false));
		} else {
			want_sign(p, '=');
			if (!p->error)
				take_value(p, block, path);
			while (!p->error && p->token.kind != TOKEN_END && !at_sign(p, ';'))
				advance(p);
		}
		want_sign(p, ';');
	}
	want_sign(p, '}');
}

static void add_event(struct tsdl_parser *p, struct block *block)
{
	struct ctf_metadata *metadata = p->metadata;

	block->event.name = block->name;
	if (p->error || ctf_metadata_event(metadata, block->event.stream_id, block->event.id))
		return; /* an event that is described again: the same, of another program */
	if (!ctf_metadata_add_event(metadata, &block->event))
		fail_memory(p);
}

static void parse_declaration(struct tsdl_parser *p)
{
	struct ctf_metadata *metadata = p->metadata;
	struct block block = { .event.loglevel = -1 };

	if (take_word(p, "typealias")) {
		parse_alias_declaration(p);
		return;
	}
	if (take_word(p, "trace")) {
		parse_block(p, &block);
		metadata->uuid = block.uuid;
		metadata->packet_header = block.packet_header;
		metadata->byte_order = block.byte_order;
	} else if (take_word(p, "stream")) {
		parse_block(p, &block);
		if (!p->error && !ctf_metadata_stream(metadata, block.stream.id) &&
			!vec_add(&metadata->streams, block.stream))
			fail_memory(p);
	} else if (take_word(p, "event")) {
		parse_block(p, &block);
		add_event(p, &block);
	} else if (take_word(p, "clock")) {
		parse_block(p, &block);
		if (!metadata->clock_hz) {
			metadata->clock_hz = block.hz ? block.hz : 1000000000;
			metadata->clock_offset = (int64_t)block.offset;
			metadata->clock_offset_s = (int64_t)block.offset_s;
			metadata->clock_uuid = block.uuid;
			metadata->clock_name = block.name;
		}
	} else if (take_word(p, "env")) {
		parse_block(p, &block);
		metadata->domain = block.domain;
		metadata->vpid = block.vpid;
	} else if (take_word(p, "callsite")) {
		parse_block(p, &block);
	} else if (take_word(p, "typedef")) {
		uint32_t type = parse_type(p, true);
		uint32_t name = take_name(p);
		add_alias(p, name, parse_brackets(p, type));
	} else {
		(void)parse_type(p, false); /* for its name */
	}
	want_sign(p, ';');
}

/* Fields that a length or a tag names, whichever was parsed first. */
static void assign_slots(struct ctf_metadata *metadata, uint32_t from)
{
	for (uint32_t i = from; i < metadata->fields.count; i++) {
		struct ctf_field *field = &metadata->fields.items[i];
		field->slot = map_get(&metadata->slots, field->name);
	}
}

int ctf_tsdl_declaration(struct ctf_metadata *metadata, const char *text, size_t size,
	struct diag *diag)
{
	struct tsdl_parser p = {
		.metadata = metadata,
		.diag = diag,
		.begin = text,
		.at = text,
		.end = text + size,
	};
	uint32_t slots = metadata->slot_count;
	uint32_t from = metadata->fields.count;

	p.token = token_next(&p.at, p.end);
	p.ahead = token_next(&p.at, p.end);
	if (at_sign(&p, ';'))
		return 0;
	parse_declaration(&p);
	/* A new slot may be of a field that was described before. */
	assign_slots(metadata, metadata->slot_count > slots ? 0 : from);
	return p.error;
}
