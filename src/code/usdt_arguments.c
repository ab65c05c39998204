/*
 * See usdt_arguments.h. A text has the arguments separated by blanks, each SIZE@OPERAND. SIZE is in bytes,
 * negative for a signed number, with an f for a floating-point one. OPERAND is what the compiler put into
 * an instruction:
 *
 *   x86     $3  %eax  (%rax)  -8(%rbp)  8(%rax,%rbx,4)  name(%rip)  name+8(%rip)  8+name(%rip)  name
 *   arm64   3   #3  w0  [x0]  [sp, 16]  [x0, #16]  [x0, x1]  [x0, x1, lsl 3]
 */
#include "code/usdt_arguments.h"

#include <string.h>

struct register_name {
	char name[6];
	uint8_t shift;
	uint16_t offset;
};

/* The kernel's struct pt_regs of x86-64. */
#define FAMILY(offset, quad, wide, half, low)                          \
	{ quad, 0, offset }, { wide, 0, offset }, { half, 0, offset }, \
	{                                                              \
		low, 0, offset                                         \
	}
#define NUMBERED(offset, name) FAMILY(offset, name, name "d", name "w", name "b")

static const struct register_name x86_registers[] = {
	NUMBERED(0, "r15"),
	NUMBERED(8, "r14"),
	NUMBERED(16, "r13"),
	NUMBERED(24, "r12"),
	FAMILY(32, "rbp", "ebp", "bp", "bpl"),
	FAMILY(40, "rbx", "ebx", "bx", "bl"),
	NUMBERED(48, "r11"),
	NUMBERED(56, "r10"),
	NUMBERED(64, "r9"),
	NUMBERED(72, "r8"),
	FAMILY(80, "rax", "eax", "ax", "al"),
	FAMILY(88, "rcx", "ecx", "cx", "cl"),
	FAMILY(96, "rdx", "edx", "dx", "dl"),
	FAMILY(104, "rsi", "esi", "si", "sil"),
	FAMILY(112, "rdi", "edi", "di", "dil"),
	FAMILY(152, "rsp", "esp", "sp", "spl"),
	{ "ah", 8, 80 },
	{ "bh", 8, 40 },
	{ "ch", 8, 88 },
	{ "dh", 8, 96 },
};

#define X86_IP   128u
#define ARM64_SP 248u
#define ARM64_PC 256u

/* The text of one operand. */
struct operand {
	const char *at;
	const char *end;
};

static bool skip(struct operand *o, char c)
{
	if (o->at == o->end || *o->at != c)
		return false;
	o->at++;
	return true;
}

static void skip_blanks(struct operand *o)
{
	while (skip(o, ' '))
		;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A decimal or hexadecimal number with a sign; wraps where it has more than 64 bits. */
static bool read_number(struct operand *o, int64_t *ret_value)
{
	struct operand from = *o;
	bool minus = skip(&from, '-');
	uint64_t value = 0;
	const char *first;

	if (!minus)
		(void)skip(&from, '+');
	bool hex = from.end - from.at > 2 && from.at[0] == '0' && (from.at[1] | 32) == 'x';
	if (hex)
		from.at += 2;
	for (first = from.at; from.at < from.end; from.at++) {
		char c = *from.at;
		if (is_digit(c))
			value = value * (hex ? 16 : 10) + (uint64_t)(c - '0');
		else if (hex && (c | 32) >= 'a' && (c | 32) <= 'f')
			value = value * 16 + (uint64_t)((c | 32) - 'a' + 10);
		else
			break;
	}
	if (from.at == first)
		return false;
	*ret_value = (int64_t)(minus ? 0 - value : value);
	o->at = from.at;
	return true;
}

/* A name: letters, digits, '_', '.' and '$', not beginning with a digit. */
static bool read_name(struct operand *o, const char **ret_name, size_t *ret_len)
{
	const char *first = o->at;

	if (o->at == o->end || is_digit(*o->at))
		return false;
	while (o->at < o->end &&
		(is_word(*o->at) || *o->at == '.' || (*o->at == '$' && o->at > first)))
		o->at++;
	*ret_name = first;
	*ret_len = (size_t)(o->at - first);
	return o->at > first;
}

static bool read_x86_register(struct operand *o, uint16_t *ret_offset, uint8_t *ret_shift)
{
	const char *name;
	size_t len;

	if (!skip(o, '%') || !read_name(o, &name, &len))
		return false;
	for (size_t i = 0; i < sizeof(x86_registers) / sizeof(x86_registers[0]); i++) {
		const struct register_name *each = &x86_registers[i];
		if (strlen(each->name) != len || memcmp(each->name, name, len) != 0)
			continue;
		*ret_offset = each->offset;
		*ret_shift = each->shift;
		return true;
	}
	return false;
}

/* The part of a memory operand in parentheses: (base), (base,index), (base,index,scale), (,index,scale). */
static bool read_x86_address(struct operand *o, struct usdt_argument *argument)
{
	uint8_t shift = 0;
	int64_t factor = 1;

	skip_blanks(o);
	if (o->at < o->end && *o->at == '%' && !read_x86_register(o, &argument->base, &shift))
		return false;
	skip_blanks(o);
	if (skip(o, ',')) {
		skip_blanks(o);
		if (!read_x86_register(o, &argument->index, &shift))
			return false;
		skip_blanks(o);
		if (skip(o, ',')) {
			skip_blanks(o);
			if (!read_number(o, &factor))
				return false;
			skip_blanks(o);
		}
	}
	if (factor != 1 && factor != 2 && factor != 4 && factor != 8)
		return false;
	argument->scale = (uint8_t)__builtin_ctzll((unsigned long long)factor);
	return skip(o, ')') && !shift &&
	       (argument->base != USDT_NO_REGISTER || argument->index != USDT_NO_REGISTER);
}

/* name, name+8, 8+name, each with or without (%rip): sets symbol and value. */
static bool read_x86_symbol(struct operand *o, struct usdt_argument *argument)
{
	int64_t more = 0;
	size_t len;

	if (read_number(o, &argument->value) && !skip(o, '+'))
		return false;
	if (!read_name(o, &argument->symbol, &len) || len > UINT16_MAX)
		return false;
	argument->symbol_len = (uint16_t)len;
	if (read_number(o, &more))
		argument->value = (int64_t)((uint64_t)argument->value + (uint64_t)more);
	if (o->end - o->at == 6 && memcmp(o->at, "(%rip)", 6) == 0)
		o->at += 6;
	argument->place = USDT_SYMBOL;
	return true;
}

static bool read_x86(struct operand *o, struct usdt_argument *argument)
{
	if (skip(o, '$')) {
		argument->place = USDT_CONSTANT;
		return read_number(o, &argument->value);
	}
	if (o->at < o->end && *o->at == '%') {
		argument->place = USDT_REGISTER;
		return read_x86_register(o, &argument->base, &argument->shift);
	}
	struct operand memory = *o;
	if (!read_number(&memory, &argument->value))
		argument->value = 0;
	if (skip(&memory, '(')) {
		argument->place = USDT_MEMORY;
		*o = memory;
		return read_x86_address(o, argument);
	}
	argument->value = 0;
	return read_x86_symbol(o, argument);
}

static bool read_arm64_register(struct operand *o, uint16_t *ret_offset)
{
	const char *name;
	size_t len;
	struct operand from = *o;

	if (!read_name(&from, &name, &len))
		return false;
	if ((len == 2 && memcmp(name, "sp", 2) == 0) || (len == 3 && memcmp(name, "wsp", 3) == 0)) {
		*ret_offset = ARM64_SP;
	} else {
		unsigned number = 0;
		if ((name[0] != 'x' && name[0] != 'w') || len < 2 || len > 3)
			return false;
		for (size_t i = 1; i < len; i++) {
			if (!is_digit(name[i]))
				return false;
			number = number * 10 + (unsigned)(name[i] - '0');
		}
		if (number > 30)
			return false;
		*ret_offset = (uint16_t)(number * 8);
	}
	o->at = from.at;
	return true;
}

static bool read_arm64_address(struct operand *o, struct usdt_argument *argument)
{
	int64_t shift;

	skip_blanks(o);
	if (!read_arm64_register(o, &argument->base))
		return false;
	skip_blanks(o);
	if (!skip(o, ','))
		return skip(o, ']');
	skip_blanks(o);
	if (!read_arm64_register(o, &argument->index)) {
		(void)skip(o, '#');
		if (!read_number(o, &argument->value))
			return false;
	}
	skip_blanks(o);
	if (argument->index != USDT_NO_REGISTER && skip(o, ',')) {
		skip_blanks(o);
		if (o->end - o->at < 3 || memcmp(o->at, "lsl", 3) != 0)
			return false;
		o->at += 3;
		skip_blanks(o);
		(void)skip(o, '#');
		if (!read_number(o, &shift) || shift < 0 || shift > 4)
			return false;
		argument->scale = (uint8_t)shift;
		skip_blanks(o);
	}
	return skip(o, ']');
}

static bool read_arm64(struct operand *o, struct usdt_argument *argument)
{
	if (skip(o, '[')) {
		argument->place = USDT_MEMORY;
		return read_arm64_address(o, argument);
	}
	if (read_arm64_register(o, &argument->base)) {
		argument->place = USDT_REGISTER;
		return true;
	}
	argument->place = USDT_CONSTANT;
	if ((o->end - o->at == 3) &&
		(memcmp(o->at, "xzr", 3) == 0 || memcmp(o->at, "wzr", 3) == 0)) {
		o->at += 3;
		return true;
	}
	(void)skip(o, '#');
	return read_number(o, &argument->value);
}

/* SIZE@: 8 bytes without it, as in the first version of the notes. False: it is malformed. */
static bool read_size(struct operand *o, struct usdt_argument *argument)
{
	struct operand from = *o;
	int64_t size;

	argument->size = 8;
	if (!memchr(from.at, '@', (size_t)(from.end - from.at)))
		return true;
	if (!read_number(&from, &size))
		return false;
	argument->is_float = skip(&from, 'f');
	argument->is_signed = size < 0;
	/* not negated: the lowest number has no positive one */
	if (size != 1 && size != -1 && size != 2 && size != -2 && size != 4 && size != -4 &&
		size != 8 && size != -8)
		return false;
	argument->size = (uint8_t)(size < 0 ? -size : size);
	if (!skip(&from, '@') || (argument->is_float && argument->size < 4))
		return false;
	*o = from;
	return true;
}

static struct usdt_argument read_argument(uint16_t machine, struct operand text)
{
	const struct usdt_argument none = {
		.base = USDT_NO_REGISTER, .index = USDT_NO_REGISTER, .size = 8
	};
	struct usdt_argument argument = none;

	if (!read_size(&text, &argument))
		return none;
	struct usdt_argument unknown = none;
	unknown.size = argument.size;
	unknown.is_signed = argument.is_signed;
	unknown.is_float = argument.is_float;
	bool understood = machine == USDT_ARM64 ? read_arm64(&text, &argument)
			  : machine == USDT_X86_64 || machine == USDT_X86
				  ? read_x86(&text, &argument)
				  : false;
	return understood && text.at == text.end ? argument : unknown;
}

unsigned usdt_arguments_parse(uint16_t machine, const char *text,
	struct usdt_argument ret_arguments[USDT_ARGUMENTS_MAX])
{
	unsigned count = 0;

	while (count < USDT_ARGUMENTS_MAX) {
		while (*text == ' ')
			text++;
		if (!*text)
			break;
		struct operand one = { .at = text };
		bool inside = false; /* of brackets, in which blanks are allowed */
		for (; *text && (inside || *text != ' '); text++)
			inside = *text == '[' || *text == '(' ||
				 (inside && *text != ']' && *text != ')');
		one.end = text;
		ret_arguments[count++] = read_argument(machine, one);
	}
	return count;
}

uint16_t usdt_instruction_pointer(uint16_t machine)
{
	return machine == USDT_ARM64                           ? ARM64_PC
	       : machine == USDT_X86_64 || machine == USDT_X86 ? X86_IP
							       : USDT_NO_REGISTER;
}
