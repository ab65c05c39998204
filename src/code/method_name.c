/*
 * See method_name.h. Names come from files and other processes, so the text may have any form:
 * parts are found by their brackets, the depth is limited, and unknown forms are copied unchanged.
 */
#include "code/method_name.h"

#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

#define DEPTH_MAX 16u
#define PARTS_MAX 32u
/* the runtime's placeholder in code that is shared by all reference types */
#define SHARED_TYPE "__Canon"

/* A piece of text, not NUL-terminated. */
struct name_span {
	const char *text;
	size_t len;
};

static bool span_is(struct name_span s, const char *word)
{
	return s.len == strlen(word) && !memcmp(s.text, word, s.len);
}

static bool span_begins(struct name_span s, const char *word)
{
	size_t len = strlen(word);

	return s.len >= len && !memcmp(s.text, word, len);
}

static bool span_ends(struct name_span s, const char *word)
{
	size_t len = strlen(word);

	return s.len >= len && !memcmp(s.text + s.len - len, word, len);
}

static struct name_span span_from(struct name_span s, size_t at)
{
	return (struct name_span){ s.text + at, s.len - at };
}

static struct name_span span_trim(struct name_span s)
{
	while (s.len && s.text[0] == ' ')
		s = span_from(s, 1);
	while (s.len && s.text[s.len - 1] == ' ')
		s.len--;
	return s;
}

static size_t span_find(struct name_span s, char c)
{
	const char *at = s.len ? memchr(s.text, c, s.len) : NULL;

	return at ? (size_t)(at - s.text) : s.len;
}

static void add_span(struct bytes *out, struct name_span s)
{
	bytes_add(out, s.text, s.len);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char closer_of(char c)
{
	return c == '<' ? '>' : c == '[' ? ']' : c == '(' ? ')' : 0;
}

/* The bracket that closes the one at `at`, or s.len. Only the depth counts, not the kind. */
static size_t span_close(struct name_span s, size_t at)
{
	unsigned depth = 0;

	for (size_t i = at; i < s.len; i++) {
		if (closer_of(s.text[i]))
			depth++;
		else if ((s.text[i] == '>' || s.text[i] == ']' || s.text[i] == ')') && --depth == 0)
			return i;
	}
	return s.len;
}

bool method_name_parse(const char *text, size_t len, struct method_name *ret_name)
{
	struct method_name name = { 0 };
	struct name_span rest = { text, len };

	/* [Tier] directly after the arguments. */
	if (len && text[len - 1] == ']') {
		size_t open = len - 1;
		while (open > 0 && text[open] != '[')
			open--;
		if (open > 0 && text[open - 1] == ')') {
			name.tier = text + open + 1;
			name.tier_len = len - open - 2;
			rest.len = open;
		}
	}
	if (!rest.len || rest.text[rest.len - 1] != ')')
		return false;

	/* The last balanced pair: function pointers among them have their own. */
	size_t open = rest.len;
	unsigned depth = 0;
	for (size_t i = rest.len; i-- > 0;) {
		if (rest.text[i] == ')')
			depth++;
		else if (rest.text[i] == '(' && --depth == 0) {
			open = i;
			break;
		}
	}
	if (open == rest.len)
		return false;
	name.arguments = rest.text + open + 1;
	name.arguments_len = rest.len - open - 2;
	rest.len = open;

	size_t colons = rest.len;
	for (size_t i = rest.len; i-- > 1;) {
		if (rest.text[i] == ':' && rest.text[i - 1] == ':') {
			colons = i - 1;
			break;
		}
	}
	if (colons == rest.len || colons + 2 == rest.len)
		return false;
	name.method = rest.text + colons + 2;
	name.method_len = rest.len - colons - 2;
	rest.len = colons;

	/* "RETURN [Assembly] ": the first bracketed word between blanks, as PerfView takes it. */
	for (size_t i = 0; i < rest.len; i++) {
		if (rest.text[i] != '[' || (i && rest.text[i - 1] != ' '))
			continue;
		size_t close = i + span_find(span_from(rest, i), ']');
		if (close + 1 >= rest.len || rest.text[close + 1] != ' ')
			continue;
		struct name_span result = span_trim((struct name_span){ rest.text, i });
		name.return_type = result.text;
		name.return_type_len = result.len;
		name.assembly = rest.text + i + 1;
		name.assembly_len = close - i - 1;
		rest = span_from(rest, close + 2);
		break;
	}
	rest = span_trim(rest);
	if (!rest.len)
		return false;
	/* Two pairs of colons before the arguments: C++ or Rust. */
	for (size_t i = 1; i < rest.len; i++) {
		if (rest.text[i] == ':' && rest.text[i - 1] == ':')
			return false;
	}
	name.type = rest.text;
	name.type_len = rest.len;
	*ret_name = name;
	return true;
}

/* Types */

static const struct {
	const char *il;
	const char *csharp;
} keywords[] = {
	{ "bool", "bool" },
	{ "char", "char" },
	{ "wchar", "char" },
	{ "int8", "sbyte" },
	{ "uint8", "byte" },
	{ "unsigned int8", "byte" },
	{ "int16", "short" },
	{ "uint16", "ushort" },
	{ "unsigned int16", "ushort" },
	{ "int32", "int" },
	{ "uint32", "uint" },
	{ "unsigned int32", "uint" },
	{ "int64", "long" },
	{ "uint64", "ulong" },
	{ "unsigned int64", "ulong" },
	{ "float32", "float" },
	{ "float64", "double" },
	{ "int", "nint" }, /* the runtime's events; int32 is the other one */
	{ "unsigned int", "nuint" },
	{ "native int", "nint" },
	{ "native uint", "nuint" },
	{ "unsigned native int", "nuint" },
	{ "native unsigned int", "nuint" },
	{ "void", "void" },
	{ "string", "string" },
	{ "object", "object" },
	{ "refany", "TypedReference" },
	{ "typedref", "TypedReference" },
	{ "System.Boolean", "bool" },
	{ "System.Char", "char" },
	{ "System.SByte", "sbyte" },
	{ "System.Byte", "byte" },
	{ "System.Int16", "short" },
	{ "System.UInt16", "ushort" },
	{ "System.Int32", "int" },
	{ "System.UInt32", "uint" },
	{ "System.Int64", "long" },
	{ "System.UInt64", "ulong" },
	{ "System.Single", "float" },
	{ "System.Double", "double" },
	{ "System.IntPtr", "nint" },
	{ "System.UIntPtr", "nuint" },
	{ "System.Decimal", "decimal" },
	{ "System.String", "string" },
	{ "System.Object", "object" },
	{ "System.Void", "void" },
	{ SHARED_TYPE, "_" },
	{ "System." SHARED_TYPE, "_" },
};

static void add_type(struct bytes *out, struct name_span type, unsigned depth);
static void add_path(struct bytes *out, struct name_span type, unsigned depth);

/* Drops the namespace: up to the last dot before the nested part, arity or arguments. */
static struct name_span without_namespace(struct name_span name)
{
	size_t begin = 0;

	for (size_t i = 0; i < name.len && !strchr("`+/<[", name.text[i]); i++) {
		if (name.text[i] == '.' && i + 1 < name.len)
			begin = i + 1;
	}
	return span_from(name, begin);
}

static struct name_span without_words(struct name_span type)
{
	static const char *const words[] = { "class ", "valuetype ", "value class ", "value ",
		"instance ", "explicit ", "pinned " };

	type = span_trim(type);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]);) {
		if (span_begins(type, words[i])) {
			type = span_trim(span_from(type, strlen(words[i])));
			i = 0;
		} else {
			i++;
		}
	}
	if (span_ends(type, " pinned"))
		type.len -= strlen(" pinned");
	/* "int32 modreq([System.Runtime]System.Runtime.InteropServices.InAttribute)" */
	while (span_ends(type, ")")) {
		size_t open = type.len - 1;
		while (open > 0 && type.text[open] != '(')
			open--;
		struct name_span before = { type.text, open };
		if (!span_ends(before, " modreq") && !span_ends(before, " modopt"))
			break;
		type.len = open - strlen(" modreq");
	}
	return span_trim(type);
}

/* True for "System.__Canon,System.__Canon": the list has no information about the types. */
static bool is_shared_list(struct name_span list)
{
	for (;;) {
		size_t comma = span_find(list, ',');
		struct name_span type =
			without_namespace(without_words((struct name_span){ list.text, comma }));
		if (!span_is(type, SHARED_TYPE))
			return false;
		if (comma == list.len)
			return true;
		list = span_from(list, comma + 1);
	}
}

/* "A,B<C,D>" as "A, B<C, D>". */
static void add_types(struct bytes *out, struct name_span list, unsigned depth)
{
	unsigned nested = 0;
	size_t begin = 0;

	list = span_trim(list);
	if (!list.len)
		return;
	for (size_t i = 0; i <= list.len; i++) {
		char c = i < list.len ? list.text[i] : ',';
		if (closer_of(c)) {
			nested++;
		} else if ((c == '>' || c == ']' || c == ')') && nested) {
			nested--;
		} else if (i == list.len || (c == ',' && !nested)) {
			if (begin)
				bytes_text(out, ", ");
			add_type(out, (struct name_span){ list.text + begin, i - begin }, depth);
			begin = i + 1;
		}
	}
}

/*
 * "Dictionary`2[System.Int32,System.__Canon]" with angle brackets and without arity marks. A '<' at
 * the begin of a part is the compiler's ("<Get>d__3").
 */
static void add_generic_from(struct bytes *out, struct name_span name, bool part_begins,
	unsigned depth)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.text[i];
		if (c == '`' && i + 1 < name.len && is_digit(name.text[i + 1])) {
			while (i + 1 < name.len && is_digit(name.text[i + 1]))
				i++;
			continue;
		}
		if (c == '<' && part_begins) {
			size_t close = span_close(name, i);
			add_span(out, (struct name_span){ name.text + i, close - i });
			i = close - 1;
			part_begins = false;
			continue;
		}
		if (c == '<' || c == '[') {
			size_t close = span_close(name, i);
			struct name_span list = { name.text + i + 1, close - i - 1 };
			if (!is_shared_list(list)) {
				bytes_u8(out, '<');
				add_types(out, list, depth + 1);
				bytes_u8(out, '>');
			}
			i = close;
			continue;
		}
		part_begins = c == '+' || c == '/' || c == '.';
		bytes_u8(out, c == '+' || c == '/' ? '.' : (uint8_t)c);
	}
}

static void add_generic(struct bytes *out, struct name_span name, unsigned depth)
{
	add_generic_from(out, name, true, depth);
}

/* "[System.Int32]" or "<int32>", and what may follow. */
static void add_arguments(struct bytes *out, struct name_span arguments, unsigned depth)
{
	add_generic_from(out, arguments, false, depth);
}

/* True for "[]", "[,]", "[0...,0...]": not for generic arguments. */
static bool is_array_suffix(struct name_span s)
{
	for (size_t i = 1; i + 1 < s.len; i++) {
		char c = s.text[i];
		if (c != ',' && c != '.' && c != ' ' && c != '*' && !is_digit(c))
			return false;
	}
	return true;
}

/* Where the array suffix at the end begins; s.len when there is none. */
static size_t array_suffix(struct name_span s)
{
	if (!s.len || s.text[s.len - 1] != ']')
		return s.len;
	size_t open = s.len - 1;
	while (open > 0 && s.text[open] != '[')
		open--;
	return open > 0 && is_array_suffix(span_from(s, open)) ? open : s.len;
}

static void add_type(struct bytes *out, struct name_span type, unsigned depth)
{
	type = without_words(type);
	if (depth > DEPTH_MAX) {
		add_span(out, type);
		return;
	}
	if (span_begins(type, "method ") || span_begins(type, "fnptr")) {
		bytes_text(out, "delegate*");
		return;
	}
	/* "pMT: 0x7fbcc97736a8": the runtime has no name at hand, only the type's address. */
	if (span_begins(type, "pMT: ")) {
		bytes_u8(out, '?');
		return;
	}
	/* Suffixes from the right: "int32[]&" is a reference to an array. */
	if (span_ends(type, "&")) {
		type.len--;
		bytes_text(out, "ref ");
		add_type(out, type, depth + 1);
		return;
	}
	if (span_ends(type, "*")) {
		type.len--;
		add_type(out, type, depth + 1);
		bytes_u8(out, '*');
		return;
	}
	size_t array = array_suffix(type);
	if (array < type.len) {
		add_type(out, (struct name_span){ type.text, array }, depth + 1);
		bytes_u8(out, '[');
		for (size_t i = array; i < type.len; i++) {
			if (type.text[i] == ',')
				bytes_u8(out, ',');
		}
		bytes_u8(out, ']');
		return;
	}
	/* "[System.Runtime]System.String" */
	if (span_begins(type, "[")) {
		size_t close = span_find(type, ']');
		if (close < type.len)
			type = span_trim(span_from(type, close + 1));
	}
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (span_is(type, keywords[i].il)) {
			bytes_text(out, keywords[i].csharp);
			return;
		}
	}
	/* Parameters of the type (!0) and of the method (!!0). */
	if (span_begins(type, "!!") && type.len > 2 && is_digit(type.text[2])) {
		bytes_u8(out, 'M');
		add_span(out, span_from(type, 2));
		return;
	}
	if (span_begins(type, "!") && type.len > 1 && is_digit(type.text[1])) {
		bytes_u8(out, 'T');
		add_span(out, span_from(type, 1));
		return;
	}
	add_path(out, without_namespace(type), depth);
}

/* What the compiler made */

/* Splits "<Get>d__3" into the text in the brackets and after them. False for other names. */
static bool compiler_name(struct name_span name, struct name_span *ret_inside,
	struct name_span *ret_behind)
{
	if (!span_begins(name, "<"))
		return false;
	size_t close = span_close(name, 0);
	if (close >= name.len)
		return false;
	*ret_inside = (struct name_span){ name.text + 1, close - 1 };
	*ret_behind = span_from(name, close + 1);
	return true;
}

static struct name_span without_generics(struct name_span name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.text[i] == '`' || (i && name.text[i] == '['))
			return (struct name_span){ name.text, i };
	}
	return name;
}

/* A lambda's number: "1" of "0_1" (method, lambda) and of "1" (in a class of variables) */
static struct name_span lambda_number(struct name_span numbers)
{
	size_t begin = 0;
	size_t end = 0;

	for (; end < numbers.len && (is_digit(numbers.text[end]) || numbers.text[end] == '_');
		end++) {
		if (numbers.text[end] == '_')
			begin = end + 1;
	}
	return (struct name_span){ numbers.text + begin, end - begin };
}

/*
 * A member's name made readable: "<Main>b__0_1" is Main.lambda#1, "<Main>g__Add|0_1" is Main.Add,
 * "<Main>$" is Main. Nested ones ("<<Main>b__0>g__Add|1") are undone from the inside.
 */
static void add_member(struct bytes *out, struct name_span name, unsigned depth)
{
	struct name_span inside;
	struct name_span behind;

	if (depth > DEPTH_MAX || !compiler_name(name, &inside, &behind) || !inside.len) {
		if (span_is(name, ".ctor"))
			bytes_text(out, "ctor");
		else if (span_is(name, ".cctor"))
			bytes_text(out, "cctor");
		else
			add_generic(out, name, depth);
		return;
	}
	if (span_begins(behind, "b__")) {
		struct name_span number = lambda_number(span_from(behind, 3));
		add_member(out, inside, depth + 1);
		bytes_text(out, ".lambda");
		if (number.len)
			bytes_u8(out, '#');
		add_span(out, number);
	} else if (span_begins(behind, "g__")) {
		struct name_span local = span_from(behind, 3);
		size_t bar = span_find(local, '|');
		add_member(out, inside, depth + 1);
		bytes_u8(out, '.');
		add_span(out, (struct name_span){ local.text, bar });
		/* The type arguments of a generic local function follow the number. */
		size_t open = span_find(local, '[');
		if (open < local.len)
			add_arguments(out, span_from(local, open), depth);
	} else if (span_begins(behind, "$") || !behind.len) {
		add_member(out, inside, depth + 1);
	} else {
		add_generic(out, name, depth);
	}
}

/* Splits at '+' and '/' outside brackets; the last part contains the rest if there are too many. */
static size_t split_nested(struct name_span type, struct name_span *parts,
	struct name_span *ret_arguments)
{
	size_t count = 0;
	size_t begin = 0;
	bool part_begins = true;

	*ret_arguments = (struct name_span){ type.text + type.len, 0 };
	for (size_t i = 0; i < type.len; i++) {
		char c = type.text[i];
		if (c == '<' && part_begins) {
			size_t close = span_close(type, i);
			i = close < type.len ? close : type.len - 1;
			part_begins = false;
		} else if (c == '[' || c == '<') {
			*ret_arguments = span_from(type, i);
			type.len = i;
			break;
		} else if ((c == '+' || c == '/') && count + 1 < PARTS_MAX) {
			parts[count++] = (struct name_span){ type.text + begin, i - begin };
			begin = i + 1;
			part_begins = true;
		} else {
			part_begins = c == '.';
		}
	}
	parts[count++] = (struct name_span){ type.text + begin, type.len - begin };
	return count;
}

static bool is_hexadecimal(char c)
{
	return is_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

/* A type that is local to its source file: "<Regex_g>F1C07__Runner" is Runner. */
static struct name_span without_file(struct name_span name)
{
	struct name_span inside;
	struct name_span behind;
	size_t i = 1;

	if (!compiler_name(name, &inside, &behind) || !span_begins(behind, "F"))
		return name;
	while (i < behind.len && is_hexadecimal(behind.text[i]))
		i++;
	if (i == 1 || i + 2 >= behind.len || behind.text[i] != '_' || behind.text[i + 1] != '_')
		return name;
	return span_from(behind, i + 2);
}

/* One part of a nested type's name; the first one has the namespace in front. */
static void add_part(struct bytes *out, struct name_span part, unsigned depth)
{
	size_t open = span_find(part, '<');

	if (open < part.len && (!open || part.text[open - 1] == '.')) {
		struct name_span local = without_file(span_from(part, open));
		if (local.len < part.len - open) {
			add_span(out, (struct name_span){ part.text, open });
			part = local;
		}
	}
	add_generic(out, part, depth);
}

/* "<Get>d__3" and "<<Main>b__0>d": the class of a method that is resumed. */
static bool is_state_machine(struct name_span part, struct name_span *ret_method)
{
	struct name_span behind;

	part = without_generics(part);
	if (!compiler_name(part, ret_method, &behind) || !ret_method->len)
		return false;
	return span_is(behind, "d") || span_begins(behind, "d__");
}

/* "<>c", "<>c__DisplayClass3_0": where lambdas and what they captured live. */
static bool is_closure(struct name_span part)
{
	part = without_generics(part);
	return span_is(part, "<>c") || span_begins(part, "<>c__") || span_begins(part, "<>o__");
}

/* A type among arguments: its parts, without closures; a state machine is shown as its method. */
static void add_path(struct bytes *out, struct name_span type, unsigned depth)
{
	struct name_span parts[PARTS_MAX];
	struct name_span generics;
	struct name_span resumed;
	size_t count = split_nested(type, parts, &generics);

	for (size_t i = 0; i < count; i++) {
		if (i && is_closure(parts[i]))
			continue;
		if (i)
			bytes_u8(out, '.');
		if (i && is_state_machine(parts[i], &resumed))
			add_member(out, resumed, depth);
		else
			add_part(out, parts[i], depth);
	}
	add_arguments(out, generics, depth);
}

static const char *machine_words(const struct method_name *name, struct name_span method)
{
	struct name_span result = { name->return_type, name->return_type_len };

	/* MoveNext of an iterator returns bool, that of an async method nothing. */
	if (span_is(result, "bool") || span_ends(result, " bool"))
		return " (iterator)";
	if (span_is(result, "void") || span_ends(result, " void") || span_ends(method, "Async"))
		return " (async)";
	return " (state machine)";
}

/* "Generic.List`1" of "System.Collections.Generic.List`1" */
static struct name_span with_last_namespace(struct name_span type)
{
	size_t type_begin = (size_t)(without_namespace(type).text - type.text);
	size_t begin = type_begin ? type_begin - 1 : 0;

	while (begin > 0 && type.text[begin - 1] != '.')
		begin--;
	return span_from(type, begin);
}

/* "System.IDisposable.Dispose" as "IDisposable.Dispose": an explicit interface implementation. */
static struct name_span without_interface_namespace(struct name_span method)
{
	struct name_span interface = { method.text, 0 };
	unsigned depth = 0;

	for (size_t i = 1; i < method.len; i++) {
		if (closer_of(method.text[i]))
			depth++;
		else if ((method.text[i] == '>' || method.text[i] == ']' ||
				 method.text[i] == ')') &&
			 depth)
			depth--;
		else if (method.text[i] == '.' && !depth)
			interface.len = i;
	}
	return method.text[0] == '<'
		       ? method
		       : span_from(method,
				 (size_t)(without_namespace(interface).text - method.text));
}

void method_name_format(const struct method_name *name, enum method_name_form form,
	struct bytes *out)
{
	struct name_span type = { name->type, name->type_len };
	struct name_span method = { name->method, name->method_len };
	struct name_span arguments = { name->arguments, name->arguments_len };
	struct name_span parts[PARTS_MAX];
	struct name_span generics;
	struct name_span resumed = { 0 };
	const char *words = "";

	if (form == METHOD_NAME_RAW) {
		add_span(out, type);
		bytes_u8(out, '.');
		add_span(out, method);
		bytes_u8(out, '(');
		add_span(out, arguments);
		bytes_u8(out, ')');
		return;
	}
	if (form == METHOD_NAME_SHORT) {
		type = with_last_namespace(type);
		method = without_interface_namespace(method);
	}
	size_t count = split_nested(type, parts, &generics);
	if (count > 1 && is_state_machine(parts[count - 1], &resumed)) {
		count--;
		if (span_is(method, "MoveNext")) {
			words = machine_words(name, resumed);
			method = (struct name_span){ 0 };
		}
	}
	/* A closure inside a type has no information beyond the lambda's name. */
	while (count > 1 && is_closure(parts[count - 1]))
		count--;
	if (!(count == 1 && span_is(parts[0], "<Module>"))) {
		for (size_t i = 0; i < count; i++) {
			if (i)
				bytes_u8(out, '.');
			add_part(out, parts[i], 0);
		}
		add_arguments(out, generics, 0);
		bytes_u8(out, '.');
	}
	if (resumed.len) {
		add_member(out, resumed, 0);
		if (method.len)
			bytes_u8(out, '.');
	}
	if (method.len) {
		add_member(out, method, 0);
		bytes_u8(out, '(');
		add_types(out, arguments, 0);
		bytes_u8(out, ')');
	}
	bytes_text(out, words);
}
