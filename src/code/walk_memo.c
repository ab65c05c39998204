/*
 * See walk_memo.h. A step from a frame to its caller depends on the frame's pc and stack pointer, on the word with the
 * return address, and sometimes on the frame pointer; the other registers do not reach the chain, unless a CFA is
 * computed from one. Such a frame, and those that it was called through, are not kept.
 */
#include "code/walk_memo.h"

#include "code/arch.h"

#define STACK_BITS 16 /* of an address within what one memo is for */

struct walk_memo *walk_memo_of(struct walk_memo *memos, uint16_t space, uint64_t stack_pointer)
{
	uint64_t key = ((uint64_t)space << 48 | stack_pointer >> STACK_BITS) + 1;
	struct walk_memo *memo =
		&memos[key * UINT64_C(0x9e3779b97f4a7c15) >> 40 & (WALK_MEMOS - 1)];

	if (memo->key != key) {
		memo->key = key;
		memo->count = 0;
	}
	return memo;
}

void walk_memo_forget(struct walk_memo *memos)
{
	for (uint32_t i = 0; i < WALK_MEMOS; i++)
		memos[i].key = 0;
}

/* The words are in memory that another CPU has written: they are fetched at the same time, not one after the other. */
static void fetch(const struct walk_memo *memo, const struct unwind_stack *stack, uint32_t count)
{
	for (uint32_t i = count; i-- > 0;) {
		uint64_t at = memo->frames[i].return_at - stack->begin;
		if (at < stack->size)
			__builtin_prefetch(stack->bytes + at);
	}
}

/*
 * Whether the words that the steps from frames[count - 1] on depend on are unchanged. Else *next becomes the number of
 * frames above the change.
 */
static bool holds(const struct walk_memo *memo, const struct arch_unwind *arch,
	const struct unwind_stack *stack, uint32_t count, uint32_t *next)
{
	fetch(memo, stack, count);
	for (uint32_t i = count; i-- > 0;) {
		const struct walk_frame *frame = &memo->frames[i];
		const struct walk_frame *caller = i ? frame - 1 : NULL;
		uint64_t word = 0;
		bool same = !frame->return_at ||
			    (unwind_stack_read(stack, frame->return_at, &word) &&
				    (word & arch->code_mask) == (caller ? caller->pc : 0));
		if (same && caller && caller->by_frame && frame->frame_at)
			same = unwind_stack_read(stack, frame->frame_at, &word) &&
			       word == caller->frame_pointer;
		if (!same) {
			*next = i;
			return false;
		}
	}
	return true;
}

bool walk_memo_meets(const struct walk_memo *memo, const struct arch_unwind *arch,
	const struct unwind_registers *registers, const struct unwind_stack *stack, uint32_t *next)
{
	uint64_t stack_pointer = registers->values[arch->stack_register];
	const struct walk_frame *frame;

	while (*next && memo->frames[*next - 1].stack_pointer < stack_pointer)
		--*next;
	if (!*next)
		return false;
	frame = &memo->frames[*next - 1];
	if (frame->stack_pointer != stack_pointer || frame->pc != registers->pc)
		return false;
	if (frame->by_frame &&
		(!unwind_register_known(registers, arch->frame_register) ||
			registers->values[arch->frame_register] != frame->frame_pointer))
		return false;
	return holds(memo, arch, stack, *next, next);
}

void walk_memo_keep(struct walk_memo *memo, const struct arch_unwind *arch,
	const struct walk_steps *steps, uint32_t met, uint64_t end)
{
	bool by_frame = met && memo->frames[met - 1].by_frame;

	memo->end = end;
	memo->count = met;
	for (uint32_t i = steps->count; i-- > 0 && !steps->overflow;) {
		const struct walk_frame *step = &steps->frames[i];
		if (memo->count == WALK_MEMO_FRAMES ||
			(step->base != arch->stack_register && step->base != arch->frame_register))
			break;
		by_frame = step->base == arch->frame_register || (by_frame && !step->frame_at);
		struct walk_frame *frame = &memo->frames[memo->count++];
		*frame = *step;
		frame->by_frame = by_frame;
	}
}
