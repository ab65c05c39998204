/* The states of one EventPipe session (eventpipe.c): of this end, of the runtime's session, and of its stream. */
#ifndef SPOOR_DOTNET_EVENTPIPE_STATE_H
#define SPOOR_DOTNET_EVENTPIPE_STATE_H

#include <stdbool.h>

enum eventpipe_step {
	STEP_INFO,
	STEP_COLLECT,
	STEP_DONE, /* only StopTracing is left */
};

/* Of this end. It only advances. */
enum eventpipe_phase {
	PHASE_RUN,
	PHASE_STOPPING, /* eventpipe_stop() was called */
	PHASE_ENDED,    /* nothing is open, and nothing will be opened */
};

/* Of the runtime's session. It only advances: session_state_may_follow(). */
enum session_state {
	SESSION_NONE,      /* no reply has its id */
	SESSION_OPEN,      /* the guard would stop it */
	SESSION_STOP_DUE,  /* StopTracing is to be sent */
	SESSION_STOP_SENT, /* all its bytes are sent: the guard does not stop the session any more */
	SESSION_OVER,      /* StopTracing cannot be sent any more, or had no reply */
	SESSION_ACKNOWLEDGED, /* the reply to StopTracing was a success */
	SESSION_STATE_COUNT
};

enum stream_state {
	STREAM_NONE,
	STREAM_READ,    /* its bytes go to the handler */
	STREAM_REFUSED, /* the handler takes no more of them */
	STREAM_WHOLE,   /* the handler has all */
	STREAM_CUT,
};

/* Whether `next` is a legal state after `state`. */
bool session_state_may_follow(enum session_state state, enum session_state next);

/* StopTracing was sent and is answered, or cannot be sent any more. */
bool session_state_is_over(enum session_state state);

#endif
