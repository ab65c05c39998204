/*
 * How a managed function's frame is unwound, on x86-64: from the unwind information that the compiler
 * writes for the runtime (Windows' UNWIND_INFO, in .NET on all systems). What that does not describe
 * follows from the instructions: epilogs, and which functions have a frame pointer.
 *
 * The bytes are foreign: any are accepted. Pure.
 */
#ifndef SPOOR_CODE_CLR_UNWIND_H
#define SPOOR_CODE_CLR_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/unwind_rules.h"

#define CLR_UNWIND_HEAD      4u
#define CLR_UNWIND_BYTES_MAX (CLR_UNWIND_HEAD + 2u * UINT8_MAX)
/* an epilog, or a prolog up to its frame pointer, that pops all registers, twice because of on-stack replacement, is shorter */
#define CLR_EDGE_BYTES_MAX 64u

/* Bytes of the unwind information that begins with `head` (CLR_UNWIND_HEAD bytes). */
size_t clr_unwind_size(const uint8_t *head);

/*
 * The rules `offset` bytes after the begin of the function. False: malformed, or of a kind that managed
 * code does not have.
 */
bool clr_unwind_rules(const uint8_t *info, size_t size, uint64_t offset,
	struct unwind_rules *ret_rules);

/* DWARF's number of the frame pointer */
#define CLR_FRAME_POINTER 6u

/* How a function begins. */
struct clr_prolog {
	bool saves_first; /* the frame pointer is the first register that it saves */
	uint32_t
		set_end; /* offset after the instruction that sets the frame pointer; 0: none was found */
};

/*
 * Follows the instructions that build a frame. False: they end, or one is not known, before the frame
 * pointer is set.
 */
bool clr_unwind_prolog(const uint8_t *code, size_t size, struct clr_prolog *ret_prolog);

/* A function, or a funclet of one. */
struct clr_range {
	uint64_t begin;
	uint64_t end; /* exclusive */
};

/*
 * The rules before the instruction at `address`, whose bytes `code` has, if it is in an epilog: from
 * there on frames are only released, up to a return, or a jump out of `function`. False: it is not.
 */
bool clr_unwind_epilog(const uint8_t *code, size_t size, uint64_t address,
	const struct clr_range *function, struct unwind_rules *ret_rules);

#endif
