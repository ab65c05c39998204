/*
 * See swift_name.h. A mangled name is a list of operators in postfix order: identifiers, types and
 * contexts are pushed on a stack, and operators take them from there. Of the path, the stack has the
 * text; of types, only that there is one.
 */
#include "code/swift_name.h"

#include <string.h>

#include "base/bytes.h"

#define STACK_MAX  128u
#define WORDS_MAX  26u
#define TEXT_MAX   4096u
#define REPEAT_MAX 64u

enum swift_item {
	ITEM_NONE,
	ITEM_IDENTIFIER, /* also a module */
	ITEM_TYPE,
	ITEM_ANY,    /* a substitution: a type, a module or another identifier */
	ITEM_EMPTY,  /* 'y', an empty list */
	ITEM_FIRST,  /* '_', after the first element of a list, or a label */
	ITEM_EFFECT, /* throws, async */
	ITEM_REQUIREMENT,
	ITEM_SIGNATURE,
};

struct swift_parser {
	const char *at;
	const char *end;
	const char *words[WORDS_MAX];
	uint8_t word_lens[WORDS_MAX];
	uint32_t word_count;
	struct bytes text; /* of the last identifier */
	uint8_t stack[STACK_MAX];
	uint32_t depth;
};

static char peek(const struct swift_parser *p)
{
	return p->at < p->end ? *p->at : 0;
}

static bool next_if(struct swift_parser *p, char c)
{
	if (peek(p) != c || p->at == p->end)
		return false;
	p->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool natural(struct swift_parser *p, uint32_t *ret_number)
{
	uint32_t number = 0;

	if (!is_digit(peek(p)))
		return false;
	while (is_digit(peek(p)) && number < 100000)
		number = number * 10 + (uint32_t)(*p->at++ - '0');
	*ret_number = number;
	return number < 100000;
}

/* "_": 0; "0_": 1; "1_": 2 */
static bool index_of(struct swift_parser *p, uint32_t *ret_index)
{
	uint32_t number;

	*ret_index = 0;
	if (next_if(p, '_'))
		return true;
	if (!natural(p, &number) || !next_if(p, '_'))
		return false;
	*ret_index = number + 1;
	return true;
}

/* The number of a generic parameter, after "d" with its depth. */
static bool parameter_of(struct swift_parser *p)
{
	uint32_t index;

	return (!next_if(p, 'd') || index_of(p, &index)) && index_of(p, &index);
}

/* ---- identifiers ---- */

/* Later identifiers refer to the words of earlier ones. */
static void note_words(struct swift_parser *p, const char *text, uint32_t len)
{
	uint32_t begin = UINT32_MAX;

	for (uint32_t i = 0; i <= len; i++) {
		char c = i < len ? text[i] : 0;
		bool ends = !c || c == '_' || (i && !is_upper(text[i - 1]) && is_upper(c));
		if (begin != UINT32_MAX && ends) {
			if (i - begin >= 2 && i - begin <= UINT8_MAX && p->word_count < WORDS_MAX) {
				p->words[p->word_count] = text + begin;
				p->word_lens[p->word_count++] = (uint8_t)(i - begin);
			}
			begin = UINT32_MAX;
		}
		if (begin == UINT32_MAX && c && c != '_' && !is_digit(c))
			begin = i;
	}
}

/* A length, then the text; after "0" letters that select words come first. The result is in p->text. */
static bool identifier(struct swift_parser *p)
{
	bool words = next_if(p, '0');
	uint32_t len;

	bytes_reset(&p->text);
	if (words && peek(p) == '0')
		return false; /* Punycode */
	do {
		while (words && (is_lower(peek(p)) || is_upper(peek(p)))) {
			char c = *p->at++;
			uint32_t word = (uint32_t)(is_lower(c) ? c - 'a' : c - 'A');
			words = is_lower(c);
			if (word >= p->word_count)
				return false;
			bytes_add(&p->text, p->words[word], p->word_lens[word]);
		}
		if (next_if(p, '0'))
			break;
		if (!natural(p, &len) || !len || len > (size_t)(p->end - p->at))
			return false;
		bytes_add(&p->text, p->at, len);
		note_words(p, p->at, len);
		p->at += len;
	} while (words);
	return p->text.len && p->text.len <= TEXT_MAX && !p->text.failed;
}

/* ---- the stack ---- */

static bool push(struct swift_parser *p, enum swift_item item)
{
	if (p->depth == STACK_MAX)
		return false;
	p->stack[p->depth++] = (uint8_t)item;
	return true;
}

static enum swift_item top(const struct swift_parser *p)
{
	return p->depth ? (enum swift_item)p->stack[p->depth - 1] : ITEM_NONE;
}

static bool pop_if(struct swift_parser *p, enum swift_item item)
{
	if (top(p) != item)
		return false;
	p->depth--;
	return true;
}

static bool pop_type(struct swift_parser *p)
{
	return pop_if(p, ITEM_TYPE) || pop_if(p, ITEM_ANY);
}

static bool pop_context(struct swift_parser *p)
{
	return pop_type(p) || pop_if(p, ITEM_IDENTIFIER);
}

static bool pop_protocol(struct swift_parser *p)
{
	return pop_type(p) || (pop_if(p, ITEM_IDENTIFIER) && pop_context(p));
}

static bool change_type(struct swift_parser *p)
{
	return pop_type(p) && push(p, ITEM_TYPE);
}

static bool pop_function(struct swift_parser *p)
{
	while (pop_if(p, ITEM_EFFECT))
		;
	return (pop_if(p, ITEM_EMPTY) || pop_type(p)) && (pop_if(p, ITEM_EMPTY) || pop_type(p));
}

/* A list of types: empty, or with a mark after the first. */
static bool pop_tuple(struct swift_parser *p)
{
	if (pop_if(p, ITEM_EMPTY))
		return true;
	for (bool first = false; !first;) {
		first = pop_if(p, ITEM_FIRST);
		(void)pop_if(p, ITEM_IDENTIFIER); /* a label, if there is one */
		if (!pop_type(p))
			return false;
	}
	return true;
}

static bool pop_protocols(struct swift_parser *p)
{
	if (pop_if(p, ITEM_EMPTY))
		return true;
	for (bool first = false; !first;) {
		first = pop_if(p, ITEM_FIRST);
		if (!pop_protocol(p))
			return false;
	}
	return true;
}

static bool pop_arguments(struct swift_parser *p)
{
	while (!pop_if(p, ITEM_EMPTY))
		if (!pop_type(p) && !pop_if(p, ITEM_FIRST))
			return false;
	return pop_type(p);
}

/* ---- operators of types ---- */

static bool push_standard(struct swift_parser *p)
{
	uint32_t count = 1;

	if (next_if(p, 'g'))
		return change_type(p); /* an optional */
	if (next_if(p, 'o') || next_if(p, 'C'))
		return push(p, ITEM_IDENTIFIER); /* a module */
	if (is_digit(peek(p)) && (!natural(p, &count) || count > REPEAT_MAX))
		return false;
	if (next_if(p, 'c') && !is_lower(peek(p)) && !is_upper(peek(p)))
		return false;
	if (!is_lower(peek(p)) && !is_upper(peek(p)))
		return false;
	p->at++;
	while (count-- > 0)
		if (!push(p, ITEM_TYPE))
			return false;
	return true;
}

/* Letters, the last one upper-case, each maybe after a number of repetitions; or the number of one and "_". */
static bool push_substitutions(struct swift_parser *p)
{
	for (;;) {
		uint32_t count = 1;
		if (is_digit(peek(p)) && (!natural(p, &count) || count > REPEAT_MAX))
			return false;
		if (next_if(p, '_'))
			return push(p, ITEM_ANY);
		char c = peek(p);
		if (!is_lower(c) && !is_upper(c))
			return false;
		p->at++;
		while (count-- > 0)
			if (!push(p, ITEM_ANY))
				return false;
		if (is_upper(c))
			return true;
	}
}

static bool push_builtin(struct swift_parser *p)
{
	uint32_t bits;

	if (next_if(p, 'f') || next_if(p, 'i'))
		return natural(p, &bits) && next_if(p, '_') && push(p, ITEM_TYPE);
	if (next_if(p, 'v'))
		return natural(p, &bits) && next_if(p, '_') && change_type(p);
	if (!is_lower(peek(p)) && !is_upper(peek(p)))
		return false;
	p->at++;
	return push(p, ITEM_TYPE);
}

static bool take_special(struct swift_parser *p)
{
	char c = peek(p);

	if (!c)
		return false;
	p->at++;
	if (strchr("EBCfKAU", c))
		return pop_function(p) && push(p, ITEM_TYPE);
	return strchr("ouwDp", c) && change_type(p);
}

/* An opaque result, or an associated type of a generic parameter. */
static bool take_associated(struct swift_parser *p)
{
	if (next_if(p, 'r'))
		return true;
	return (next_if(p, 'z') || (next_if(p, 'y') && parameter_of(p))) &&
	       pop_if(p, ITEM_IDENTIFIER);
}

static bool take_annotation(struct swift_parser *p)
{
	char c = peek(p);

	if (!c)
		return false;
	p->at++;
	if (c == 'a' || c == 'b')
		return push(p, ITEM_EFFECT);
	if (c == 'c' || c == 'K')
		return pop_type(p) && push(p, ITEM_EFFECT);
	return (c == 'i' || c == 't') && change_type(p);
}

static bool take_signature(struct swift_parser *p, char c)
{
	if (c == 'r') {
		while (is_digit(peek(p)) || peek(p) == '_' || peek(p) == 'z')
			p->at++;
		if (!next_if(p, 'l'))
			return false;
	}
	while (pop_if(p, ITEM_REQUIREMENT))
		;
	return push(p, ITEM_SIGNATURE);
}

/* One operator that is part of a type, a label or a signature. */
static bool take_type(struct swift_parser *p)
{
	char c = peek(p);

	if (is_digit(c))
		return identifier(p) && push(p, ITEM_IDENTIFIER);
	if (!c)
		return false;
	p->at++;
	switch (c) {
	case 'S':
		return push_standard(p);
	case 'A':
		return push_substitutions(p);
	case 'B':
		return push_builtin(p);
	case 's':
		return push(p, ITEM_IDENTIFIER);
	case 'y':
		return push(p, ITEM_EMPTY);
	case '_':
		return push(p, ITEM_FIRST);
	case 'x':
		return push(p, ITEM_TYPE);
	case 'q':
		return parameter_of(p) && push(p, ITEM_TYPE);
	case 'Q':
		return take_associated(p) && push(p, ITEM_TYPE);
	case 'C':
	case 'V':
	case 'O':
	case 'P':
	case 'a':
		return (pop_if(p, ITEM_IDENTIFIER) || pop_if(p, ITEM_ANY)) && pop_context(p) &&
		       push(p, ITEM_TYPE);
	case 'L':
		return next_if(p, 'L') && pop_if(p, ITEM_IDENTIFIER) && top(p) == ITEM_IDENTIFIER;
	case 't':
		return pop_tuple(p) && push(p, ITEM_TYPE);
	case 'G':
		return pop_arguments(p) && push(p, ITEM_TYPE);
	case 'p':
		return pop_protocols(p) && push(p, ITEM_TYPE);
	case 'c':
		return pop_function(p) && push(p, ITEM_TYPE);
	case 'X':
		return take_special(p);
	case 'Y':
		return take_annotation(p);
	case 'K':
		return push(p, ITEM_EFFECT);
	case 'z':
	case 'n':
	case 'h':
	case 'm':
	case 'd':
		return change_type(p);
	case 'R':
		return (next_if(p, 'z') || parameter_of(p)) && pop_protocol(p) &&
		       push(p, ITEM_REQUIREMENT);
	case 'l':
	case 'r':
		return take_signature(p, c);
	default:
		return false;
	}
}

/* ---- the path ---- */

static const char *standard_type(char c)
{
	switch (c) {
	case 'a':
		return "Swift.Array";
	case 'b':
		return "Swift.Bool";
	case 'D':
		return "Swift.Dictionary";
	case 'd':
		return "Swift.Double";
	case 'f':
		return "Swift.Float";
	case 'h':
		return "Swift.Set";
	case 'i':
		return "Swift.Int";
	case 'J':
		return "Swift.Character";
	case 'q':
		return "Swift.Optional";
	case 'S':
		return "Swift.String";
	case 's':
		return "Swift.Substring";
	case 'u':
		return "Swift.UInt";
	default:
		return NULL;
	}
}

/* The second of two identifiers before "LL" tells files apart. False: what follows is something else. */
static bool skip_discriminator(struct swift_parser *p)
{
	const char *before = p->at;
	uint32_t len;

	if (peek(p) != '0' && natural(p, &len) && len > 1 && len + 2 <= (size_t)(p->end - p->at) &&
		p->at[0] == '_' && memcmp(p->at + len, "LL", 2) == 0) {
		p->at += len + 2;
		return true;
	}
	p->at = before;
	return false;
}

/* What `out` has so far. */
struct swift_path {
	bool is_type; /* it begins with a type, or a module and a type */
	bool is_named; /* the last part is a function, a variable, or the first label of an initializer */
	size_t name_at; /* where the last part begins */
};

/* Module and types, then the name of the function or variable, if it has one. p->at is after it. */
static bool take_path(struct swift_parser *p, struct swift_path *path, struct bytes *out)
{
	*path = (struct swift_path){ .is_type = false };
	if (next_if(p, 's')) {
		bytes_text(out, "Swift");
	} else if (next_if(p, 'S')) {
		const char *name = standard_type(peek(p));
		if (!name)
			return false;
		p->at++;
		bytes_text(out, name);
		path->is_type = true;
	} else {
		if (!is_digit(peek(p)) || !identifier(p))
			return false;
		bytes_add(out, p->text.data, p->text.len);
	}
	while (is_digit(peek(p))) {
		if (!identifier(p))
			return false;
		(void)skip_discriminator(p);
		path->name_at = out->len;
		bytes_u8(out, '.');
		bytes_add(out, p->text.data, p->text.len);
		char c = peek(p);
		if (c == 'o')
			return false; /* an operator */
		if (c != 'C' && c != 'V' && c != 'O' && c != 'P') {
			path->is_named = true;
			return c != 'E' && c != 'L';
		}
		p->at++;
		path->is_type = true;
	}
	return path->is_type; /* an initializer, for example */
}

/* What follows the labels and types. */
struct ending {
	const char *tag;
	const char *text;
	bool named; /* of something with a name; else of a type */
	bool function; /* after labels and the type of a function; else after labels and a type, or nothing */
};

static const struct ending endings[] = {
	{ "F", "", true, true },
	{ "vg", ".getter", true, false },
	{ "vs", ".setter", true, false },
	{ "vM", ".modify", true, false },
	{ "vr", ".read", true, false },
	{ "vw", ".willset", true, false },
	{ "vW", ".didset", true, false },
	{ "vau", ".unsafeMutableAddressor", true, false },
	{ "fC", ".__allocating_init", false, false },
	{ "fc", ".init", false, false },
	{ "fD", ".__deallocating_deinit", false, false },
	{ "fd", ".deinit", false, false },
	{ "ig", ".subscript.getter", false, false },
	{ "is", ".subscript.setter", false, false },
	{ "iM", ".subscript.modify", false, false },
	{ "ir", ".subscript.read", false, false },
};

/* The ending at p->at, which moves past it; NULL: it is something else. */
static const struct ending *take_ending(struct swift_parser *p, const struct swift_path *path)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		const struct ending *ending = &endings[i];
		size_t len = strlen(ending->tag);
		if (len <= (size_t)(p->end - p->at) && memcmp(p->at, ending->tag, len) == 0 &&
			(ending->named ? path->is_named : path->is_type)) {
			p->at += len;
			return ending;
		}
	}
	return NULL;
}

/* Only the labels are left. */
static bool is_complete(struct swift_parser *p, bool function)
{
	(void)pop_if(p, ITEM_SIGNATURE); /* of a generic function */
	if (function ? !pop_function(p) : p->depth && !pop_type(p))
		return false;
	if (pop_if(p, ITEM_EMPTY))
		return !p->depth;
	while (pop_if(p, ITEM_IDENTIFIER) || pop_if(p, ITEM_FIRST))
		;
	return !p->depth;
}

static bool take_entity(struct swift_parser *p, struct bytes *out)
{
	struct swift_path path;
	const struct ending *ending;

	if (!take_path(p, &path, out))
		return false;
	while (!(ending = take_ending(p, &path)))
		if (!take_type(p))
			return false;
	if (path.is_named && !ending->named)
		out->len = path.name_at; /* it was the first label */
	bytes_text(out, ending->text);
	if (!is_complete(p, ending->function))
		return false;
	(void)next_if(p, 'Z'); /* a static member */
	return true;
}

/* Puts a text before the path. */
static void put_before(struct bytes *out, const struct bytes *text)
{
	struct bytes path = *out;

	*out = (struct bytes){ .failed = text->failed };
	bytes_add(out, text->data, text->len);
	bytes_add(out, path.data, path.len);
	out->failed |= path.failed;
	bytes_done(&path);
}

/* "fU_": a closure in the path so far. */
static bool take_closure(struct swift_parser *p, struct bytes *before)
{
	uint32_t number;

	while (peek(p) != 'f')
		if (!take_type(p))
			return false;
	p->at++;
	bool implicit = next_if(p, 'u');
	if ((!implicit && !next_if(p, 'U')) || !index_of(p, &number) || !pop_type(p) || p->depth)
		return false;
	bytes_printf(before, "%sclosure #%u in ", implicit ? "implicit " : "", number + 1);
	return true;
}

/* A part of the function with separate code. */
static bool take_part(struct swift_parser *p, struct bytes *before)
{
	uint32_t number;
	char c = peek(p);

	if (!c)
		return false;
	p->at++;
	switch (c) {
	case 'A':
		bytes_text(before, "partial apply forwarder for ");
		return true;
	case 'm':
		bytes_text(before, "merged ");
		return true;
	case 'j':
		bytes_text(before, "dispatch thunk of ");
		return true;
	case 'Q':
	case 'Y':
		if (!index_of(p, &number))
			return false;
		bytes_printf(before, "(%u) %s resume partial function for ", number,
			c == 'Q' ? "await" : "suspend");
		return true;
	default:
		return false;
	}
}

/* Closures in the entity and parts of them, the outermost first. */
static bool take_inner(struct swift_parser *p, struct bytes *out)
{
	struct bytes before = { 0 };
	bool valid = true;

	while (p->at < p->end && valid) {
		bytes_reset(&before);
		valid = next_if(p, 'T') ? take_part(p, &before) : take_closure(p, &before);
		put_before(out, &before);
		valid = valid && !out->failed && out->len <= TEXT_MAX;
	}
	bytes_done(&before);
	return valid;
}

bool swift_name(const char *name, size_t len, struct bytes *out)
{
	struct swift_parser p = { .at = name, .end = name + len };
	struct bytes text = { 0 };

	(void)next_if(&p, '_');
	bool done = next_if(&p, '$') && (next_if(&p, 's') || next_if(&p, 'S')) &&
		    take_entity(&p, &text) && take_inner(&p, &text) && !text.failed;
	if (done)
		bytes_add(out, text.data, text.len);
	bytes_done(&p.text);
	bytes_done(&text);
	return done;
}
