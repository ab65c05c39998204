/*
 * Where the frames of managed code are found on the stack, and which of its methods have no frame
 * pointer: read from the memory of .NET processes, as the runtime unwinds them (code/clr_frame.h).
 *
 * Compilers give small optimized methods no frame pointer. A walk by frame pointers passes such a method, but
 * misses its caller: managed_frames_mark() puts STACK_LOST_CALLER in the caller's place.
 *
 *   managed_frames_new(proc, arch, &frames)
 *   for each new address to unwind:  managed_frames_find(frames, pid, address, exact, &frame)
 *   for each chain of the kernel:    count = managed_frames_mark(frames, pid, chain, ...)
 *   all rings were read:             managed_frames_pass(frames)
 *   exec, or the process has ended:  managed_frames_forget(frames, pid)
 *
 * Needs the rights of ptrace; without them, or with a runtime that is not supported, frames are not
 * known. Not thread-safe.
 */
#ifndef SPOOR_RECORDING_MANAGED_FRAMES_H
#define SPOOR_RECORDING_MANAGED_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind_rules.h"

struct arch;
struct managed_frames;
struct proc_reader;

enum managed_frame_kind {
	MANAGED_FRAME_UNKNOWN,
	MANAGED_FRAME_STUB, /* no managed function in a .NET process: in managed memory, it has no frame */
	MANAGED_FRAME_RULES,
};

struct managed_frame {
	enum managed_frame_kind kind;
	bool transient; /* the answer may be another one later: it is not to be kept */
	struct unwind_rules rules;
};

/* `proc` and `arch` are borrowed. -ENOTSUP: not for this processor. */
int managed_frames_new(struct proc_reader *proc, const struct arch *arch,
	struct managed_frames **ret_frames);
void managed_frames_free(struct managed_frames *frames); /* NULL is harmless */

/* As clr_frame_find(). The process is opened with the first call. */
void managed_frames_find(struct managed_frames *frames, uint32_t pid, uint64_t address, bool exact,
	struct managed_frame *ret_frame);

/*
 * Inserts STACK_LOST_CALLER after each frame of a method that has no frame pointer at that address,
 * into a chain that was walked by frame pointers. The first of `count` items of `chain` is exact if
 * `leaf`. Returns the new count, at most `room`.
 */
uint32_t managed_frames_mark(struct managed_frames *frames, uint32_t pid, uint64_t *chain,
	uint32_t count, uint32_t room, bool leaf);

void managed_frames_pass(struct managed_frames *frames);
void managed_frames_forget(struct managed_frames *frames, uint32_t pid);

uint64_t managed_frames_size_bytes(const struct managed_frames *frames);

#endif
