/* See clr_frame.h. */
#include "code/clr_frame.h"

#include "code/clr_code.h"
#include "code/clr_memory.h"
#include "code/clr_unwind.h"

static bool in_epilog(struct clr_memory *memory, uint64_t address,
	const struct clr_function *function, struct unwind_rules *ret_rules)
{
	uint8_t bytes[CLR_EDGE_BYTES_MAX];
	const struct clr_range range = { function->begin, function->end };
	uint64_t left = function->end - address;
	size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);

	return clr_memory_bytes(memory, address, bytes, size) &&
	       clr_unwind_epilog(bytes, size, address, &range, ret_rules);
}

enum clr_frame clr_frame_find(struct clr_code *code, uint64_t address, bool exact,
	struct unwind_rules *ret_rules, bool *ret_lasts)
{
	struct clr_memory *memory = code->memory;
	uint8_t info[CLR_UNWIND_BYTES_MAX];
	struct clr_function function;

	if (!clr_code_function(code, address, &function))
		return CLR_FRAME_NONE;
	*ret_lasts = !function.collectible;
	if (exact && in_epilog(memory, address, &function, ret_rules))
		return CLR_FRAME_RULES;
	memory->failed = false; /* the unwind information is elsewhere */
	if (!clr_memory_bytes(memory, function.unwind, info, CLR_UNWIND_HEAD))
		return CLR_FRAME_UNKNOWN;
	size_t size = clr_unwind_size(info);
	if (!clr_memory_bytes(memory, function.unwind, info, size) ||
		!clr_unwind_rules(info, size, address - function.begin, ret_rules))
		return CLR_FRAME_UNKNOWN;
	return CLR_FRAME_RULES;
}

bool clr_frame_misses_caller(struct clr_code *code, uint64_t address, bool exact, bool *ret_lasts)
{
	uint8_t bytes[CLR_EDGE_BYTES_MAX];
	struct clr_function function;
	struct clr_prolog prolog;
	struct unwind_rules rules;

	*ret_lasts = true;
	if (clr_frame_find(code, address, exact, &rules, ret_lasts) != CLR_FRAME_RULES ||
		rules.cfa_register == CLR_FRAME_POINTER)
		return false;
	/* Its register is not saved here: it is the caller's, or of a frame further out. */
	if (rules.registers[CLR_FRAME_POINTER].kind != RULE_OFFSET)
		return true;
	if (!clr_code_function(code, address, &function))
		return false;
	uint64_t length = function.end - function.begin;
	size_t size = length < sizeof(bytes) ? (size_t)length : sizeof(bytes);
	if (!clr_memory_bytes(code->memory, function.begin, bytes, size))
		return false;
	if (clr_unwind_prolog(bytes, size, &prolog))
		return address < function.begin + prolog.set_end;
	/* Compilers save it first if it becomes the frame pointer, else among the other registers. */
	return !prolog.saves_first;
}
