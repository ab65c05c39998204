/* See pass_pace.h. */
#include "lib/pipe/pass_pace.h"

#include "lib/pipe/slow_path.h"

#define NAP_NS UINT64_C(1000000) /* events were found: the next pass is this soon */
/* no events were found: a ring of 4 MiB fills within 6 ms */
#define IDLE_NS UINT64_C(5000000)
/* events come in bursts: for this long after a long one, passes follow after NAP_NS */
#define BUSY_NS UINT64_C(20000000)
/*
 * After a time without events that is as long as the burst before, the next event wakes the loop
 * thread, which sleeps till then.
 */
#define REST_AFTER_MIN_NS UINT64_C(10000000)
#define REST_AFTER_MAX_NS UINT64_C(100000000)
#define REST_NS           UINT64_C(1000000000)
#define DRAINED_MUCH      64u /* of most_drained */

void pass_pace_busy(struct pass_pace *pace, uint64_t now_ns)
{
	pace->busy_ns = now_ns;
	pace->burst_ns = pace->burst_ns ? pace->burst_ns : now_ns;
}

static uint64_t clamp_ns(uint64_t ns, uint64_t least, uint64_t most)
{
	return ns < least ? least : ns > most ? most : ns;
}

uint64_t pass_pace_next_ns(struct pass_pace *pace, uint64_t now_ns, bool quiescent, bool again,
	uint64_t sessions_ns)
{
	uint64_t idle_ns = now_ns - pace->busy_ns;
	uint64_t burst_ns = pace->burst_ns ? pace->busy_ns - pace->burst_ns : 0;
	bool rests = idle_ns >= clamp_ns(burst_ns, REST_AFTER_MIN_NS, REST_AFTER_MAX_NS) &&
		     sessions_ns > IDLE_NS && quiescent;

	/* Immediately: while this thread rests, each event takes the slow path. */
	if (!rests)
		slow_path_work();
	if (again || pace->most_drained > DRAINED_MUCH || pace->behind || pace->prepares)
		return 0;
	if (!rests) {
		uint64_t sleep_ns = idle_ns < BUSY_NS && idle_ns < burst_ns
					    ? NAP_NS
					    : clamp_ns(idle_ns, NAP_NS, IDLE_NS);
		return sleep_ns < sessions_ns ? sleep_ns : sessions_ns;
	}
	if (!slow_path_rest())
		return 0;
	pace->burst_ns = 0;
	return sessions_ns < REST_NS ? sessions_ns : REST_NS;
}
