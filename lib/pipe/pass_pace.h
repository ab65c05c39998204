/*
 * When the next pass over the rings follows: immediately while there is much to do, soon while events
 * come, else when the next event wakes the loop thread. All zero: no event has come. Loop thread.
 */
#ifndef SPOOR_LIB_PIPE_PASS_PACE_H
#define SPOOR_LIB_PIPE_PASS_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pass_pace {
	uint64_t most_drained; /* of a ring in this pass, in 1/256 of its size */
	uint64_t busy_ns;      /* time of the last pass that found events or left some */
	uint64_t burst_ns;     /* of the first such pass after a rest; 0: none */
	bool prepares;         /* rings that threads need next are not ready yet */
	bool behind;           /* this pass has left much in the rings */
};

/* The pass at this time has found events or left some. */
void pass_pace_busy(struct pass_pace *pace, uint64_t now_ns);

/*
 * The time in ns until the next pass, after one at now_ns: see pipe_next_pass_ns(). `quiescent`: every
 * thread but stuck ones was seen outside of a record; `again`: threads have waited for room.
 */
uint64_t pass_pace_next_ns(struct pass_pace *pace, uint64_t now_ns, bool quiescent, bool again,
	uint64_t sessions_ns);

#endif
