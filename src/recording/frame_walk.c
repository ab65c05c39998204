/* See frame_walk.h. A frame is two words: the address of the next frame, and the return address. */
#include "recording/frame_walk.h"

#include "code/arch.h"
#include "code/unwind_state.h"
#include "code/unwind_trace.h"
#include "perf/perf_record.h"
#include "recording/stack_unwinder.h"

#define FIRST_ADDRESS 4096u /* the first page is never mapped */
#define USER_END     \
	(UINT64_C(1) \
		<< 47) /* no processor here has user memory that is both higher and mapped unasked */

static bool add_word(struct unwind_trace *trace, const struct unwind_stack *stack, uint64_t address,
	uint64_t *ret_value)
{
	if (trace->word_count == UNWIND_TRACE_WORDS || address % 8 ||
		!unwind_stack_read(stack, address, ret_value))
		return false;
	trace->offsets[trace->word_count] = (uint32_t)(address - stack->begin);
	trace->values[trace->word_count++] = *ret_value;
	return true;
}

bool frame_walk_trace(const struct arch *arch, const struct perf_record *record,
	const uint64_t *frames, uint32_t frame_count, struct unwind_registers *ret_registers,
	struct unwind_trace *ret_trace)
{
	if (!frame_count || !record->user_registers || !record->user_is_64)
		return false;
	stack_unwinder_registers(arch->unwind, record->user_registers, ret_registers);
	struct unwind_stack stack = { record->user_stack, record->user_stack_size,
		ret_registers->values[arch->unwind->stack_register] };
	uint64_t next = ret_registers->values[arch->unwind->frame_register];

	*ret_trace = (struct unwind_trace){ .registers = 1u << arch->unwind->frame_register };
	if (frames[0] != ret_registers->pc)
		return false;
	for (uint32_t i = 1;; i++) {
		uint64_t address;
		/* Here the kernel's walk ends too. */
		if (next < FIRST_ADDRESS || next >= USER_END)
			return i == frame_count;
		if (!add_word(ret_trace, &stack, next + 8, &address))
			return false;
		/* perf_callchain_flatten() ends at an address that cannot be code */
		if (address < FIRST_ADDRESS || address >= arch->kernel_begin)
			return i == frame_count;
		if (i == frame_count || frames[i] != address ||
			!add_word(ret_trace, &stack, next, &next))
			return false;
	}
}
