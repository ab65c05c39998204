/*
 * Where the return addresses of a call chain are in the kernel's stack, counted from its innermost frame: they are at
 * the same places each time that the chain is the same. An address may also be there because an earlier call left it,
 * but then not always: the places in which all samples of a chain agree are the right ones, and maybe a few more, all of
 * which a later stack must have (perf/known_block.h).
 *
 * The outermost frame is left out. It is the entry of the kernel that leads to the frame before it, and where the
 * kernel randomizes the stack of each system call its place differs.
 *
 *   kernel_returns_new(&returns);
 *   for each sample: if (kernel_returns_learn(returns, &sample, &places)) ...
 *   kernel_returns_free(returns);
 */
#ifndef SPOOR_RECORDING_KERNEL_RETURNS_H
#define SPOOR_RECORDING_KERNEL_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf/known_block.h"

struct kernel_returns;

struct kernel_stack {
	const uint64_t *frames; /* innermost first */
	uint32_t frame_count;
	const uint8_t *words; /* so many of the stack, which need not be aligned */
	uint32_t word_count;
};

struct kernel_places {
	uint32_t count;
	uint16_t offsets[KNOWN_BLOCK_RETURNS]; /* in words, ascending */
	uint64_t returns[KNOWN_BLOCK_RETURNS];
};

/* 0 or -ENOMEM. */
int kernel_returns_new(struct kernel_returns **ret_returns);
void kernel_returns_free(struct kernel_returns *returns);

/* False: its chain has had too few samples yet, or does not fit. */
bool kernel_returns_learn(struct kernel_returns *returns, const struct kernel_stack *stack,
	struct kernel_places *ret_places);

size_t kernel_returns_size_bytes(const struct kernel_returns *returns);

#endif
