/* What an unwinder starts from: the registers of a thread, and a copy of the end of its stack. */
#ifndef SPOOR_CODE_UNWIND_STATE_H
#define SPOOR_CODE_UNWIND_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "code/unwind_rules.h"

struct unwind_registers {
	uint64_t values[UNWIND_REGISTERS]; /* by DWARF number */
	uint64_t pc;
	uint32_t known; /* bit i: values[i] is the frame's */
};

struct unwind_stack {
	const uint8_t *bytes; /* borrowed; need not be aligned */
	size_t size;
	uint64_t begin; /* address of bytes[0] */
};

/* The word at an address; false: not in the copy. */
static inline bool unwind_stack_read(const struct unwind_stack *stack, uint64_t address,
	uint64_t *ret_value)
{
	uint64_t at = address - stack->begin;

	if (stack->size < sizeof(*ret_value) || at > stack->size - sizeof(*ret_value))
		return false;
	memcpy(ret_value, stack->bytes + at, sizeof(*ret_value));
	return true;
}

static inline bool unwind_register_known(const struct unwind_registers *registers, uint32_t number)
{
	return number < UNWIND_REGISTERS && registers->known >> number & 1;
}

#endif
