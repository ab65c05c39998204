/*
 * DWARF expressions in unwind tables: the frames of PLT stubs, signal handlers and realigned stacks
 * need a few operations of the language, which are those evaluated here.
 */
#ifndef SPOOR_CODE_UNWIND_EXPRESSION_H
#define SPOOR_CODE_UNWIND_EXPRESSION_H

#include <stddef.h>
#include <stdint.h>

struct unwind_registers;
struct unwind_stack;

/*
 * The value of the expression. `initial` is on its stack at the begin, if not NULL. -EFAULT: it needs
 * memory outside of the copy, at *ret_value. -ENODATA: a register that is not known. -EBADMSG:
 * malformed, or an operation that no unwind table needs.
 */
int unwind_expression_value(const uint8_t *expression, size_t size,
	const struct unwind_registers *registers, const struct unwind_stack *stack,
	const uint64_t *initial, uint64_t *ret_value);

#endif
