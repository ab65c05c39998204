/* See counted_state.h. */
#include "counters/counted_state.h"

bool counted_may_enter(enum counted_state from, enum counted_state to)
{
	enum {
		OPENING = 1u << COUNTED_OPENING,
		STOPPING = 1u << COUNTED_STOPPING,
		OVER = 1u << COUNTED_ENDED | 1u << COUNTED_FAILED,
	};
	static const unsigned next[] = {
		[COUNTED_NEW] = 1u << COUNTED_HELD | OPENING,
		[COUNTED_HELD] = 1u << COUNTED_DELAYED | 1u << COUNTED_ENDED,
		[COUNTED_DELAYED] = OPENING | OVER,
		[COUNTED_OPENING] = 1u << COUNTED_RUNNING | STOPPING | OVER,
		[COUNTED_RUNNING] = 1u << COUNTED_REOPENING | STOPPING | OVER,
		[COUNTED_REOPENING] = OPENING | STOPPING | OVER,
		[COUNTED_STOPPING] = OVER,
		[COUNTED_ENDED] = 0,
		[COUNTED_FAILED] = 0,
	};

	return next[from] & 1u << to;
}

bool counted_awaits_start(enum counted_state state)
{
	return state == COUNTED_HELD || state == COUNTED_DELAYED;
}

bool counted_is_running(enum counted_state state)
{
	return state == COUNTED_RUNNING || state == COUNTED_REOPENING;
}
