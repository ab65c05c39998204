/*
 * Grace periods, as of RCU: one is complete when each thread was seen outside of the record that it
 * was inside when the period began. Threads that fire without pause need not be outside of records
 * at the same time, so a period takes as long as the slowest thread needs for one record, or to get
 * a processor. A record that was begun before a period is published when the period is complete.
 *
 * In each pass after a barrier: grace_pass_begin(), grace_thread() for each thread that has rings,
 * grace_pass_end(). Loop thread.
 */
#ifndef SPOOR_LIB_PIPE_GRACE_PERIOD_H
#define SPOOR_LIB_PIPE_GRACE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/event/thread_ring.h"

struct grace {
	uint64_t running;  /* the pass in which the running period began; 0: none */
	uint64_t complete; /* the pass in which the last complete period began; 0: none */
	bool all_passed;   /* of the threads that this pass has looked at */
	bool begins;       /* in this pass */
};

/* `begin`: a period begins in this pass; one that runs is given up. */
void grace_pass_begin(struct grace *grace, uint64_t pass, bool begin);
/*
 * `main_quiescent`, `nested_quiescent`: the thread was seen outside of a record of that ring, or in one that
 * it began after the barrier. `stuck`: it has been inside a record for long, and is not waited for.
 */
void grace_thread(struct grace *grace, struct thread_state *state, bool main_quiescent,
	bool nested_quiescent, bool stuck);
/* Does a period run, and is it complete now? */
bool grace_pass_end(struct grace *grace);

#endif
