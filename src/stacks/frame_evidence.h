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

/* What the memory of the thread's stack shows, read while the thread did not run. */
enum stack_walk {
	STACK_WALK_NONE,    /* the thread ran, or no return address was found */
	STACK_WALK_NATIVE,  /* native frames only, from the thread's start */
	STACK_WALK_MANAGED, /* and the managed frames of the sample before */
};

/* A sample of the thread from the time after its state was read. */
enum later_sample {
	LATER_SAMPLE_NONE,
	LATER_SAMPLE_SEEN,
	LATER_SAMPLE_PROVED, /* the thread did not run between its state and this sample */
};

struct frame_evidence {
	bool runs;           /* the thread is running: its state in /proc shows no wait */
	bool stood_before;   /* it did not run from before the samples until its state was read */
	bool sampled_before; /* there is a sample of the time before its state was read */
	enum later_sample after;
	enum stack_walk walk;
	uint32_t skipped; /* STACK_WALK_MANAGED: managed frames at the leaf, not in the stack */
};

enum frame_choice { FRAMES_NONE, FRAMES_WALKED, FRAMES_BEFORE, FRAMES_AFTER };

/* *ret_moved: it waits, and nothing proves that it had these frames when its state was read. */
enum frame_choice frame_evidence_choose(const struct frame_evidence *evidence, bool *ret_moved);

/* Another reading of the context switches may prove more. */
bool frame_evidence_needs_more(const struct frame_evidence *evidence);

#endif
