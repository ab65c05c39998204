/*
 * The frames of a thread that waits, found in a copy of its stack without its registers.
 *
 * Code that keeps frame pointers (the runtime's own, and all managed code) leaves a record in each frame: the address of the caller's record, and where the call
 * returns to. Where the first of them lies is not known, and remains of earlier calls look like records too. So the walk begins where there is no doubt: at
 * the record that returns to a managed frame the runtime told of, and what follows has to have all of them; for a thread without managed frames
 * at the record that returns to where libc starts threads. From there it goes to the leaf while exactly one record leads on; where none does, or several do, it ends.
 */
#ifndef SPOOR_CODE_FRAME_CHAIN_H
#define SPOOR_CODE_FRAME_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From where the runtime says that managed code was left to where its call returns; 29 bytes at most were seen. */
#define FRAME_CHAIN_LEAF_REACH 64u

struct frame_chain {
	const uint64_t *words;  /* the stack from its pointer on */
	size_t count;
	uint64_t sp;            /* where words[0] lies */
	/* A call ends at the address; *ret_target is what it calls, 0 not known. */
	bool (*is_return)(void *context, uint64_t address, uint64_t *ret_target);
	bool (*is_start)(void *context, uint64_t address);
	void *context;
};

/*
 * Return addresses, leaf first, at most `room`: their number, 0 when nothing is sure. `managed` are those the runtime told of, leaf first. *ret_skipped of
 * them (few) are not in the chain: they stand before it.
 */
uint32_t frame_chain_find(const struct frame_chain *chain, const uint64_t *managed, uint32_t managed_count, uint64_t *ret_frames,
	uint32_t room, uint32_t *ret_skipped);

#endif
