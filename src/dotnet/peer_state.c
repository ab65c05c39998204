/* See peer_state.h. */
#include "dotnet/peer_state.h"

#include <assert.h>

enum peer_state peer_state_after(enum peer_state state, enum peer_event event)
{
	switch (event) {
	case PEER_EVENT_RETURN:
		assert(state == PEER_NEW);
		return PEER_HELD;
	case PEER_EVENT_RESUME:
		return peer_was_forgotten(state) ? PEER_OVER : PEER_RESUMED;
	case PEER_EVENT_FORGET:
		break;
	}
	return peer_was_resumed(state) ? PEER_OVER : PEER_LEFT;
}

bool peer_was_resumed(enum peer_state state)
{
	return state == PEER_RESUMED || state == PEER_OVER;
}

bool peer_was_forgotten(enum peer_state state)
{
	return state == PEER_LEFT || state == PEER_OVER;
}
