/*
 * Which events of the runtime a session with stacks requests (stack_events.def). EventPipe's stack
 * flag applies to a whole session, so these events get a session of their own, and the session
 * without stacks leaves them out. All of it is constant data.
 */
#ifndef SPOOR_DOTNET_STACK_EVENTS_H
#define SPOOR_DOTNET_STACK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_provider;

/* Kinds of events that get stacks; a set of them is an unsigned. */
enum stacks_of {
	STACKS_OF_EXCEPTIONS = 1 << 0,
	STACKS_OF_ALLOCATIONS = 1 << 1,
	STACKS_OF_LOCKS = 1 << 2,
	STACKS_OF_WAITS = 1 << 3,
	STACKS_OF_POOL = 1 << 4,
	STACKS_OF_COLLECTIONS = 1 << 5,
	STACKS_OF_ALL = (1 << 6) - 1,
	/* context switches: of the scheduler, so no runtime is asked for them */
	STACKS_OF_SWITCHES = 1 << 16,
};

/* The request for one runtime. */
struct stack_events {
	unsigned kinds; /* enum stacks_of; 0: none */
	/*
	 * .NET 10 and later: the runtime has sampled allocations, and filters events by id; earlier
	 * ones send all events of the keywords
	 */
	bool since_10;
};

/* Most events of one request. */
#define STACK_EVENTS_MAX 8u

/* Fills `ids` with the events of the request and returns their number. */
uint32_t stack_events_ids(const struct stack_events *events, uint32_t ids[STACK_EVENTS_MAX]);

/* The runtime's provider with keywords and level of the request, without event ids. */
struct ipc_provider stack_events_provider(const struct stack_events *events);

/* True if the runtime's event of this id is in the request. */
bool stack_events_has(const struct stack_events *events, uint32_t event_id);

#endif
