/*
 * The pass over all rings: writes the events that threads have fired to the sinks of the sessions,
 * ordered by time.
 *
 * A pass takes a point in time T and then executes a memory barrier in every thread (membarrier;
 * where it is refused, threads make a fence in each record, and the pass makes one here). A thread that is outside of any record afterwards has published all records that it stamped before
 * T. If a thread is inside a record, the pass waits for some 200 reads, and then lowers its watermark
 * (watermark) to the last time at which the thread was outside, or to its last published record.
 * After 50 ms it no longer does, and events that the thread then still publishes get a later time.
 * So each pass delivers exactly the events up to its watermark, and no event follows a later one. If
 * the rings hold much, T is earlier, so that a pass remains short. A session that ends gets its events
 * without waiting for T, when all of them are published.
 *
 * Within a pass events are delivered thread by thread, in the order of each thread's first pending
 * event.
 *
 * All functions are called on the loop thread, except pipe_set_up() and pipe_child().
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
	uint64_t watermark_ns;    /* all events up to this time have been written to the sinks */
	uint64_t ticks;           /* stamps of events before the pass are lower */
	uint64_t watermark_ticks; /* watermark_ns as a stamp */
	/*
	 * The pass in which the last complete grace period began (grace_period.h): records that were
	 * begun before it are published.
	 */
	uint64_t grace_complete;
	bool grace_ends; /* in this pass */
	bool quiescent;  /* every thread but stuck ones was seen outside of a record */
	bool stuck;      /* a thread has been inside the same record for 1 s */
	bool idle;       /* no event was found */
};

/*
 * Makes one pass. `wants_grace`: records that were begun before have to be published, for a slot that
 * is not in use now. Loop thread.
 */
void pipe_pass(bool wants_grace, struct pipe_pass *ret_pass);

/*
 * The time in ns until the next pass: 0 while threads wait for room, a ring fills fast or much is
 * left in the rings, 1 to 5 ms
 * while events arrive or sessions_ns is at most 5 ms, else up to 1 s, which the next event ends.
 * Wakes threads that wait for room. Called after pipe_pass().
 */
uint64_t pipe_next_pass_ns(const struct pipe_pass *pass, uint64_t sessions_ns);

/*
 * `counter`: stamps are of the processor's counter. `clock_taken`, if not NULL, gets the newest
 * pair of counter and clock here and at each pass; the content of the rings is then not returned to
 * the system between sessions, because another process may read it (recover.h). 0 or a negative
 * errno.
 */
int pipe_set_up(bool counter,
	void (*clock_taken)(const struct clock_line *line, struct clock_pair newest));
void pipe_child(void);

/*
 * pipe_slot_begin(): a session starts in this slot, and losses before are not counted for it.
 * pipe_slot_drain(): delivers what this pass has seen for the session, and has left in the rings.
 * Called once, before pipe_slot_end(); the session has no other events but those that threads have
 * not left yet.
 * pipe_slot_end(): a session ends that no event is fired for since the pass `cleared_pass`; losses
 * that no record reports yet are counted. A record that a thread has not left since counts as lost
 * for the session, and its bit for the slot is ignored. Returns whether there is such a thread.
 */
void pipe_slot_begin(uint32_t slot);
void pipe_slot_drain(uint32_t slot);
bool pipe_slot_end(uint32_t slot, uint64_t cleared_pass);

/* Returns the memory of the rings' content to the system, when no session exists. */
void pipe_trim(void);

/* The watermark of the last pass. */
uint64_t pipe_watermark_ns(void);

#endif
