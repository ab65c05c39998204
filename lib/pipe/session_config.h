/* What a session is made of: which events, by which policy, into which sink. */
#ifndef SPOOR_LIB_PIPE_SESSION_CONFIG_H
#define SPOOR_LIB_PIPE_SESSION_CONFIG_H

#include <spoor/spoor.h>

#include "lib/pipe/sink.h"

struct session;

struct session_config {
	struct spoor_session_options options; /* wants, policy, stacks, buffer_bytes, notice */
	struct sink *sink;                    /* owned by the session, also when session_new() fails */
	/*
	 * Called on the loop thread after the last event, before the sink ends, as often as it returns 1 (once a turn; the loop sleeps a few ms between).
	 * Writes with session_emit(). 0: done; negative: give it up. NULL: nothing to write.
	 */
	int (*rundown)(struct session *session, void *context);
	/* Called on the loop thread when all is over and the sink is closed; error 0, or why the sink failed. NULL: nobody wants to know. */
	void (*ended)(struct session *session, int error, void *context);
	void *context;
};

#endif
