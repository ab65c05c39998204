/*
 * Which managed frames belong to what a thread waits for.
 *
 * The kernel's state of a thread and its managed frames are read at different times. A thread may
 * end one wait and begin another one in between, so frames are joined with a wait only where
 * something proves that they are of the same one. A pure function: thread_stacks.h gathers the
 * evidence.
 */
#ifndef SPOOR_STACKS_FRAME_EVIDENCE_H
#define SPOOR_STACKS_FRAME_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

struct frame_evidence {
	bool runs;           /* the thread is running, by its state in /proc */
	bool walked;         /* native frames were found in its stack, while it did not run */
	bool walked_managed; /* with them the managed frames of the sample before, */
	uint32_t skipped;    /* but for so many at the leaf */
	bool before;         /* there is a sample of the time before its state was read */
	bool before_proved;  /* it did not run from before that sample until its state was read */
	bool after;          /* there is a sample of the time after its state was read */
	bool after_proved;   /* it did not run between its state and that sample */
};

enum frame_choice { FRAMES_NONE, FRAMES_WALKED, FRAMES_BEFORE, FRAMES_AFTER };

/* *ret_moved: it waits, and nothing proves that it had these frames when its state was read. */
enum frame_choice frame_evidence_choose(const struct frame_evidence *evidence, bool *ret_moved);

/* Another reading of the context switches may prove more. */
bool frame_evidence_needs_more(const struct frame_evidence *evidence);

#endif
