/* See name_states.h. */
#include "symbolize/name_states.h"

#include <assert.h>

bool managed_state_may_follow(enum managed_state from, enum managed_state to)
{
	/* A connection that ends is opened again, and one that hung may still send the names. */
	static const unsigned next[] = {
		[MANAGED_NONE] = 1u << MANAGED_ASKING | 1u << MANAGED_REFUSED,
		[MANAGED_ASKING] =
			1u << MANAGED_ASKING | 1u << MANAGED_KNOWN | 1u << MANAGED_REFUSED,
		[MANAGED_KNOWN] =
			1u << MANAGED_ASKING | 1u << MANAGED_KNOWN | 1u << MANAGED_REFUSED,
		[MANAGED_REFUSED] =
			1u << MANAGED_ASKING | 1u << MANAGED_KNOWN | 1u << MANAGED_REFUSED,
	};

	return next[from] & 1u << to;
}

void managed_state_enter(enum managed_state *state, enum managed_state next)
{
	assert(managed_state_may_follow(*state, next));
	*state = next;
}

bool maps_state_may_follow(enum maps_state from, enum maps_state to)
{
	return to > from; /* without memory for the question they count as read */
}

void maps_state_enter(enum maps_state *state, enum maps_state next)
{
	assert(maps_state_may_follow(*state, next));
	*state = next;
}

bool code_memory_may_follow(enum code_memory_state from, enum code_memory_state to)
{
	return to > from; /* it is opened one time */
}

void code_memory_enter(enum code_memory_state *state, enum code_memory_state next)
{
	assert(code_memory_may_follow(*state, next));
	*state = next;
}

void source_state_enter(enum source_state *state, bool opened)
{
	assert(*state == SOURCE_UNTRIED);
	*state = opened ? SOURCE_OPEN : SOURCE_FAILED;
}
