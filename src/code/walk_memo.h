/*
 * The last complete walks of some stacks. A thread that is sampled again has most of its callers as before: where a
 * walk comes to a frame that the last walk of the same stack had too, with the same registers, and the words that
 * the last walk read above it are unchanged, the callers are the same. So a walk costs two loads for each frame that
 * has not changed. Part of unwind.c.
 *
 *   memo = walk_memo_of(memos, space, stack_pointer);
 *   for each frame but the leaf: if (walk_memo_meets(memo, ...)) the callers are those of the memo
 *                                else walk_steps_add(&steps, ...), and step_row() completes it
 *   at the start of the thread: walk_memo_keep(memo, &steps)
 */
#ifndef SPOOR_CODE_WALK_MEMO_H
#define SPOOR_CODE_WALK_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind_state.h"

struct arch_unwind;

#define WALK_MEMO_FRAMES 128u
#define WALK_MEMOS       32u /* a power of two */

/* A frame whose function is at a call. */
struct walk_frame {
	uint64_t pc;            /* a return address */
	uint64_t stack_pointer; /* of the frame, as the next */
	uint64_t frame_pointer;
	uint64_t
		return_at; /* where the caller's pc is; 0: the frame is the last one, and nothing was read */
	uint64_t frame_at; /* where the caller's frame pointer is; 0: the register has it still */
	uint8_t base;      /* the register from which the CFA is computed */
	bool by_frame;     /* the frame pointer of this frame is used, here or by a caller */
};

/* The frames that a walk has come through, from the leaf's caller on. */
struct walk_steps {
	uint32_t count;
	bool overflow;
	struct walk_frame frames[WALK_MEMO_FRAMES];
};

struct walk_memo {
	uint64_t key; /* of the stack; 0: empty */
	uint64_t end; /* the stack pointer at the end of the walk */
	uint32_t count;
	struct walk_frame frames[WALK_MEMO_FRAMES]; /* from the start of the thread on */
};

/* The memo for the stack; emptied if it was that of another one. */
struct walk_memo *walk_memo_of(struct walk_memo *memos, uint16_t space, uint64_t stack_pointer);

/* Empties all of them: code was replaced. */
void walk_memo_forget(struct walk_memo *memos);

/*
 * Whether the callers of the frame that the registers describe are those of the memo: the first *next frames of it, of
 * which the last is that frame. Frames from *next on are not sought any more; it begins with memo->count.
 */
bool walk_memo_meets(const struct walk_memo *memo, const struct arch_unwind *arch,
	const struct unwind_registers *registers, const struct unwind_stack *stack, uint32_t *next);

/* Adds a frame; its last three members are still to be set. */
static inline struct walk_frame *walk_steps_add(struct walk_steps *steps, uint64_t pc,
	uint64_t stack_pointer, uint64_t frame_pointer)
{
	if (steps->count == WALK_MEMO_FRAMES) {
		steps->overflow = true;
		return &steps->frames[0];
	}
	struct walk_frame *frame = &steps->frames[steps->count++];

	frame->pc = pc;
	frame->stack_pointer = stack_pointer;
	frame->frame_pointer = frame_pointer;
	frame->return_at = frame->frame_at = 0;
	return frame;
}

/* The walk went through `steps` to the first `met` frames of the memo, which ends at `end`. */
void walk_memo_keep(struct walk_memo *memo, const struct arch_unwind *arch,
	const struct walk_steps *steps, uint32_t met, uint64_t end);

#endif
