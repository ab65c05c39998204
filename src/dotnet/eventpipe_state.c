/* See eventpipe_state.h. */
#include "dotnet/eventpipe_state.h"

bool session_state_may_follow(enum session_state state, enum session_state next)
{
	/* bit N: the state N may follow */
	static const unsigned next_of[SESSION_STATE_COUNT] = {
		[SESSION_NONE] = 1u << SESSION_OPEN,
		[SESSION_OPEN] = 1u << SESSION_STOP_DUE | 1u << SESSION_OVER,
		[SESSION_STOP_DUE] =
			1u << SESSION_STOP_SENT | 1u << SESSION_OVER | 1u << SESSION_ACKNOWLEDGED,
		[SESSION_STOP_SENT] = 1u << SESSION_OVER | 1u << SESSION_ACKNOWLEDGED,
	};

	return next_of[state] >> next & 1;
}

bool session_state_is_over(enum session_state state)
{
	return state >= SESSION_OVER;
}
