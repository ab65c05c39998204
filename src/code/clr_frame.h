/*
 * How to unwind the frame of managed code at an address: finds its function in the runtime's tables
 * (clr_code.h), reads its unwind information and evaluates it (clr_unwind.h).
 */
#ifndef SPOOR_CODE_CLR_FRAME_H
#define SPOOR_CODE_CLR_FRAME_H

#include <stdbool.h>
#include <stdint.h>

struct clr_code;
struct unwind_rules;

enum clr_frame {
	CLR_FRAME_NONE,    /* the address is in no managed function */
	CLR_FRAME_UNKNOWN, /* it has no frame that can be described by rules */
	CLR_FRAME_RULES,
};

/*
 * `exact`: the address is that of an instruction to come, so it may be in an epilog; else it is within a
 * call. *ret_lasts (with CLR_FRAME_RULES): the code is never freed, so that the answer stays true.
 */
enum clr_frame clr_frame_find(struct clr_code *code, uint64_t address, bool exact,
	struct unwind_rules *ret_rules, bool *ret_lasts);

/*
 * Whether a walk by frame pointers passes this address, but misses its caller: the frame pointer is not
 * of this function there. *ret_lasts as above.
 */
bool clr_frame_misses_caller(struct clr_code *code, uint64_t address, bool exact, bool *ret_lasts);

#endif
