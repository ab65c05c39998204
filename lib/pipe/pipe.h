/*
 * The pass over all rings: what threads have fired becomes events in the hands of sessions, in the order of time.
 *
 * A pass takes a point in time T, then a barrier in every thread (membarrier). A thread that is outside of any record after that has published all that it
 * stamped before T; one that is inside is given a moment, and else holds the pass back to when it was last known to be outside: in a
 * pass before, or at the last record it has published (for 50 ms at most: what it then still brings is moved to the end of what was written). So each pass hands over exactly the events up to its cutoff, and no event comes
 * behind a later one.
 *
 * Within a pass events go thread by thread, each thread's run beginning where the oldest pending event is.
 */
#ifndef SPOOR_LIB_PIPE_PIPE_H
#define SPOOR_LIB_PIPE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/platform/clock.h"

/* What one pass has found. */
struct pipe_pass {
	uint64_t number; /* counts the passes, from 1 */
	uint64_t now_ns;
	uint64_t cutoff_ns; /* all events up to this time have been written to the sinks */
	bool quiet;         /* every thread was seen outside of a record */
	bool barrier;       /* every thread has passed a memory barrier (platform_barrier_everywhere()) */
	bool idle;          /* no event was found */
};

/* Makes one pass. Loop thread. */
void pipe_pass(struct pipe_pass *ret_pass);

/*
 * The time in ns until the next pass: at most sessions_ns, 0 while threads wait for room or the rings fill fast. Wakes threads that wait for room. Loop thread,
 * after pipe_pass().
 */
uint64_t pipe_next_pass_ns(const struct pipe_pass *pass, uint64_t sessions_ns);

/*
 * `counter`: stamps are of the processor's counter. `clock_taken`, when not NULL, gets the newest pair of counter and clock here and at each pass, and what the
 * rings contain is not given back to the system between sessions: another process may read it (recover.h). 0 or a negative errno.
 */
int pipe_set_up(bool counter, void (*clock_taken)(const struct clock_line *line, struct clock_pair newest));
void pipe_child(void);

/* A session begins in this slot: losses before it are none of its. One ends: what its threads have lost and no record tells of is told. */
void pipe_slot_begin(uint32_t slot);
void pipe_slot_end(uint32_t slot);

/* No session is left: the memory behind the rings goes back to the system. */
void pipe_trim(void);

/* Of the last pass. */
uint64_t pipe_cutoff_ns(void);

/* Half the width of reading clock and counter together in the newest pass: how wrong a converted time may be. 0 with CLOCK_MONOTONIC. */
uint64_t pipe_clock_error_ns(void);

#endif
