/*
 * What a call chain depends on: the words of the stack, and the registers of the thread, that a walk has used. Another
 * stack of the same process in which these are the same has the same chain.
 */
#ifndef SPOOR_CODE_UNWIND_TRACE_H
#define SPOOR_CODE_UNWIND_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind_rules.h"

#define UNWIND_TRACE_WORDS 64u

struct unwind_trace {
	bool failed; /* it depends on more than can be described here */
	uint32_t
		registers; /* bit i: the thread's register i, beside the pc and the stack pointer */
	uint32_t word_count;
	uint32_t offsets
		[UNWIND_TRACE_WORDS]; /* from the stack pointer, in bytes; without repetition */
	uint64_t values[UNWIND_TRACE_WORDS];
	/*
	 * used by the walk: where the value of each register comes from, an offset in the stack, or one of
	 * enum unwind_source
	 */
	int64_t sources[UNWIND_REGISTERS];
};

enum unwind_source {
	UNWIND_FROM_THREAD = -1,  /* as the thread had it */
	UNWIND_FROM_TRACED = -2,  /* computed from what the trace has */
	UNWIND_FROM_NOWHERE = -3, /* not known */
};

#endif
