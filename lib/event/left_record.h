/*
 * Events that a signal handler has left by siglongjmp(): inside a record, or while the thread waited
 * for room. The thread finds them when it fires next or stops a session, the loop thread when the
 * thread has ended. Such an event counts as lost for the sessions that it was for.
 */
#ifndef SPOOR_LIB_EVENT_LEFT_RECORD_H
#define SPOOR_LIB_EVENT_LEFT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/event/thread_ring.h"

/*
 * Counts this event as lost for these sessions. The next record on this ring that finds room is
 * preceded by a loss record.
 */
void record_lose(struct thread_state *state, struct thread_ring *ring, uint64_t sessions);
/* The same for those of `sessions` that are noted for the record the thread is inside. */
void record_lose_noted(struct thread_state *state, struct thread_ring *ring, uint64_t sessions);

/*
 * Is the thread inside a record of this ring? One that was left is finished first. `frame`: the frame
 * address of the library's function that the program has called.
 */
bool left_record_inside(struct thread_state *state, struct thread_ring *ring, uintptr_t frame);

/*
 * The calling thread leaves its record, and waits for room for an event of these sessions. Returns
 * the wait's number, for left_wait_end(), or -1: too many handlers wait already.
 */
int left_wait_begin(struct thread_state *state, uintptr_t frame, uint64_t sessions);
void left_wait_end(struct thread_state *state, int number);
/* Has the thread waits that it has not ended? Then each event takes the slow path. */
static inline bool left_wait_any(const struct thread_state *state)
{
	return state->root->wait_count != 0;
}
/* Counts the events of waits that were left. The thread is inside a record of `ring`. */
void left_wait_settle(struct thread_state *state, struct thread_ring *ring, uintptr_t frame);

/*
 * The calling thread stops or flushes a session, which is not allowed in a handler: all that it is
 * inside was left.
 */
void left_settle(void);

/* Counts the events that an ended thread has left as lost. Loop thread. */
void thread_state_finish(struct thread_state *state);

#endif
