/*
 * What threads still have for a session that ends: events that they write or that wait for room. Loop
 * thread.
 */
#ifndef SPOOR_LIB_PIPE_ENDED_SLOT_H
#define SPOOR_LIB_PIPE_ENDED_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/event/thread_ring.h"
#include "lib/pipe/grace_period.h"

/* Does any session end, for which threads may still have events? */
bool ended_slot_any(void);

/*
 * Does a grace period begin in this pass? Sessions that end wait for one that has begun since they
 * were cleared; one that runs is given up for that if none of them waits for it. `wanted`: also if
 * no session ends.
 */
bool ended_slot_wants_grace(const struct grace *grace, bool wanted);

/*
 * The thread was inside a record when this pass began. If that is ever published, it is not for the
 * session of this slot. Returns the number of its events that are lost for the session.
 */
uint64_t ended_slot_records(struct thread_state *state, uint32_t slot);

/* Events that waited for room when the session ended were not written. Returns their number. */
uint64_t ended_slot_waits(struct thread_state *state, uint32_t slot);

/*
 * A session begins in the slot. The thread may have left the record of ended_slot_records() without
 * publishing it: the next record at that position is another one, and may be for the new session.
 */
void ended_slot_forget(struct thread_state *state, uint32_t slot);

#endif
