/* The states of a runtime that has connected to Spoor's diagnostics port (reverse.c). */
#ifndef SPOOR_DOTNET_PEER_STATE_H
#define SPOOR_DOTNET_PEER_STATE_H

#include <stdbool.h>

enum peer_state {
	PEER_NEW,     /* reverse_next() will return it */
	PEER_HELD,    /* reverse_next() has returned it; it waits for ResumeRuntime */
	PEER_RESUMED, /* ResumeRuntime was sent; a second one makes the runtime connect again */
	PEER_LEFT,    /* forgotten before it was resumed; reverse_release() resumes it */
	PEER_OVER,    /* resumed and forgotten */
};

enum peer_event {
	PEER_EVENT_RETURN, /* by reverse_next(); only of a PEER_NEW */
	PEER_EVENT_RESUME, /* reverse_resumed() */
	PEER_EVENT_FORGET, /* reverse_forget() */
};

/* The state that follows. Asserts that the event is legal; a repeated one changes nothing. */
enum peer_state peer_state_after(enum peer_state state, enum peer_event event);

bool peer_was_resumed(enum peer_state state);

/* Its place is free once its process has ended. */
bool peer_was_forgotten(enum peer_state state);

#endif
