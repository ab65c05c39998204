/* What a session is made of: the events it enables, its policy and its sink. */
#ifndef SPOOR_LIB_PIPE_SESSION_CONFIG_H
#define SPOOR_LIB_PIPE_SESSION_CONFIG_H

#include <spoor/spoor.h>

#include "lib/pipe/sink.h"

struct session;

struct session_config {
	struct spoor_session_options options; /* wants, policy, stacks, buffer_bytes, notice */
	/* owned by the session, also when session_new() fails */
	struct sink *sink;
	/*
	 * Writes the rundown: called on the loop thread after the last event, before the sink ends,
	 * again while it returns 1 (once per pass, a few ms apart). Writes with session_emit(). 0:
	 * done; negative: failed. NULL: no rundown.
	 */
	int (*rundown)(struct session *session, void *context);
	/*
	 * Called on the loop thread after the sink is closed; error 0, or why the sink failed.
	 * NULL: not called.
	 */
	void (*ended)(struct session *session, int error, void *context);
	void *context;
};

#endif
