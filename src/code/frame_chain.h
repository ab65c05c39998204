/*
 * Unwinds a waiting thread from a copy of its stack, without its registers.
 *
 * Code that keeps frame pointers (the runtime's own, and most managed code) has a record in each
 * frame: the address of the caller's record, and the return address. The address of the first
 * record is unknown, and remains of earlier calls look like records too. So the walk begins at a
 * record that is certain: the one that returns to a managed frame that the runtime reported, if the
 * chain contains all other reported frames; without managed frames, the one that returns to where
 * libc starts threads. From there it continues towards the leaf as long as exactly one record
 * points to the current one.
 */
#ifndef SPOOR_CODE_FRAME_CHAIN_H
#define SPOOR_CODE_FRAME_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* from where managed code was left, by the runtime, to the return address; observed: 29 bytes */
#define FRAME_CHAIN_LEAF_REACH 64u

struct frame_chain {
	const uint64_t *words; /* the stack, beginning at the stack pointer */
	size_t count;
	uint64_t sp; /* the address of words[0] */
	/* Whether a call ends at the address; *ret_target is its target, 0 if unknown. */
	bool (*is_return)(void *context, uint64_t address, uint64_t *ret_target);
	bool (*is_start)(void *context, uint64_t address);
	void *context;
};

/*
 * Return addresses, leaf first, at most `room`: their number, 0 if no record is certain. The first
 * *ret_skipped (few) of `managed`, the runtime's frames, leaf first, are not in the chain.
 */
uint32_t frame_chain_find(const struct frame_chain *chain, const uint64_t *managed,
	uint32_t managed_count, uint64_t *ret_frames, uint32_t room, uint32_t *ret_skipped);

#endif
