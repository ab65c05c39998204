/*
 * Which blocks of threads the kernel's program recognizes (perf/known_block.h), and the call chain that each of them
 * has. A thread that blocks again where it blocked before has the same call chain, and its stack is not copied.
 *
 *   block_stacks_new(rows, arch, &stacks);
 *   for each block that was not recognized and has all frames up to the start of its thread:
 *           if (block_stacks_wants(stacks, tid, hash of the frames)) block_stacks_add(stacks, ...);
 *   for each recognized one: block_stacks_find(stacks, row, version, &found);
 *   when the code of a process changes, it starts another program, or ends: block_stacks_drop(stacks, pid);
 *   when records of the kernel were lost: block_stacks_drop_all(stacks);
 *   after all rings were read: block_stacks_pass(stacks);
 *
 * A chain must hold for the code that the process has when the thread blocks. Rings are read one after the other, so
 * the record of a changed mapping may be read after a block that follows it:
 *
 * - A new row is matched only after two passes: then all changes before its block have been read, and dropped it.
 * - A dropped row is not matched any more, but blocks that were matched before are still in the rings. Its frames are
 *   kept for two passes. The caller compares learned_ns, the time of the block that the frames are from, with the
 *   time of the last change, when both leave the reorder window in order of time.
 */
#ifndef SPOOR_RECORDING_BLOCK_STACKS_H
#define SPOOR_RECORDING_BLOCK_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_unwind;
struct block_stacks;
struct kernel_places;
struct known_block;
struct unwind_registers;
struct unwind_trace;

#define BLOCK_STACKS_FRAMES_MAX 160u /* deeper ones are not kept */

/* A block and its call chain. */
struct block_stack {
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	const struct unwind_registers *registers; /* of the thread */
	const struct unwind_trace *trace;         /* what the user frames depend on */
	const uint64_t *frames;                   /* first those of the kernel */
	uint32_t frame_count;
	const struct kernel_places
		*kernel_places; /* where the kernel's are; NULL: there are none */
};

/* What a recognized block has. */
struct block_found {
	const uint64_t *frames; /* all of the kernel and of the user, borrowed */
	uint32_t frame_count;
	uint32_t *stack_index; /* for the caller; 0 at first, and after block_stacks_forget() */
	uint64_t learned_ns;
};

/* `rows`: KNOWN_BLOCKS of them, all zero; borrowed. 0 or -ENOMEM. */
int block_stacks_new(struct known_block *rows, const struct arch_unwind *arch,
	struct block_stacks **ret_stacks);
void block_stacks_free(struct block_stacks *stacks);

/* Whether this thread had this chain lately: one that occurs once is not worth a row. */
bool block_stacks_wants(struct block_stacks *stacks, uint32_t tid, uint64_t chain_hash);

/* This chain cannot be recognized: block_stacks_wants() is false until it is forgotten. */
void block_stacks_refuse(struct block_stacks *stacks, uint32_t tid, uint64_t chain_hash);

/* False: it does not fit a row, or there is no row for it now. */
bool block_stacks_add(struct block_stacks *stacks, const struct block_stack *block);

/* The call chain of a recognized block, borrowed until the next call of another function. False: it is not known. */
bool block_stacks_find(struct block_stacks *stacks, uint32_t row, uint32_t version,
	struct block_found *ret_found);

/* Sets the stack indexes of all rows to 0. */
void block_stacks_forget(struct block_stacks *stacks);

void block_stacks_drop(struct block_stacks *stacks, uint32_t pid);
void block_stacks_drop_all(struct block_stacks *stacks);
void block_stacks_pass(struct block_stacks *stacks);

/* Rows that are matched now, and blocks that were found. */
uint32_t block_stacks_row_count(const struct block_stacks *stacks);
uint64_t block_stacks_found(const struct block_stacks *stacks);

size_t block_stacks_size_bytes(const struct block_stacks *stacks);

#endif
