/*
 * Unwinds the user stacks of samples while they are in the ring: the copied bytes are never kept.
 *
 *   stack_unwinder_new(strings, proc, arch, &unwinder);
 *   for each record of the rings: stack_unwinder_note(unwinder, &record);
 *   for each sample:              count = stack_unwinder_replace(unwinder, &record, frames, ...);
 *   after all rings were read:    stack_unwinder_pass(unwinder);
 *
 * The frames found replace the user part of the kernel's chain, which follows frame pointers. Where the
 * copy ends, the kernel's chain continues: from the outermost frame that both have.
 *
 * Images are read by a thread, since a file system of a target may never answer. An image that takes
 * longer than UNWIND_IMAGE_WAIT_NS is unwound by frame pointers until it has been read.
 */
#ifndef SPOOR_RECORDING_STACK_UNWINDER_H
#define SPOOR_RECORDING_STACK_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind.h"

struct arch;
struct managed_frames;
struct perf_record;
struct proc_reader;
struct stack_unwinder;
struct strtab;
struct unwind_trace;

#define STACK_COPY_BYTES 16384u
/* of a thread that blocks: it is seldom deep, and there are many of them */
#define SWITCH_COPY_BYTES 8192u
/* of a thread that wakes another one: enough for the function that does it */
#define WAKER_COPY_BYTES 1024u

/* -ENOTSUP: not for this processor. `strings` and `proc` are borrowed. */
int stack_unwinder_new(struct strtab *strings, struct proc_reader *proc, const struct arch *arch,
	struct stack_unwinder **ret_unwinder);

/* Unwinds managed code by what `managed` says, not by frame pointers. Borrowed; NULL ends it. */
void stack_unwinder_use(struct stack_unwinder *unwinder, struct managed_frames *managed);

/* Images are waited for much shorter, in each pass over the rings: those may fill in less time. */
void stack_unwinder_hurry(struct stack_unwinder *unwinder);
void stack_unwinder_free(struct stack_unwinder *unwinder);

void stack_unwinder_note(struct stack_unwinder *unwinder, const struct perf_record *record);
void stack_unwinder_pass(struct stack_unwinder *unwinder);

/* Whether it follows the mappings of the process already. */
bool stack_unwinder_knows(const struct stack_unwinder *unwinder, uint32_t pid);

/*
 * Replaces the user frames, those from `kernel_count` to `count`, and returns the new count, at most
 * `room`. *ret_end is how the walk ended, *ret_stack_end the address that the walk needed the stack up to; 0: it
 * did not find the start of the thread in the copy. A sample without user registers keeps its frames: false.
 */
bool stack_unwinder_replace(struct stack_unwinder *unwinder, const struct perf_record *record,
	uint64_t *frames, uint32_t kernel_count, uint32_t *count, uint32_t room,
	enum unwind_end *ret_end, uint64_t *ret_stack_end);

/* The registers of a record, whose words are those of arch->kernel_order. */
void stack_unwinder_registers(const struct arch_unwind *arch, const uint8_t *words,
	struct unwind_registers *ret_registers);

/*
 * For a sample that stack_unwinder_replace() has unwound to the start of its thread: what its user frames depend on.
 * False: on more than ret_trace can describe. The frames are borrowed until the next call.
 */
bool stack_unwinder_trace(struct stack_unwinder *unwinder, const struct perf_record *record,
	struct unwind_registers *ret_registers, struct unwind_trace *ret_trace,
	const uint64_t **ret_frames, uint32_t *ret_count);

/*
 * Called when code of a process may be unwound in another way than before, when it starts another program, and when
 * it has ended.
 */
typedef void stack_unwinder_change_fn(void *user, uint32_t pid);
void stack_unwinder_on_change(struct stack_unwinder *unwinder, stack_unwinder_change_fn *changed,
	void *user);

/* How many addresses were prepared for unwinding: each costs more than many frames. */
uint64_t stack_unwinder_rows_made(const struct stack_unwinder *unwinder);

#endif
