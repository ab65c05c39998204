/*
 * An LTTng session of the recorder's own, for events of user space.
 *
 *   lttng_session_start(&session, &options, &diag);      session.folder then fills with a CTF trace
 *   lttng_session_stop(&session, &diag);                 all of it is in the folder
 *   lttng_session_done(&session);                        the session and the folder are gone
 *
 * It is controlled by the program `lttng`, which starts a session daemon if none runs. Another
 * process destroys the session and removes the folder when lttng_session_done() is called, or when
 * this process has ended in another way. If the daemon does not answer, a call fails after some
 * seconds with -ETIMEDOUT, the session may be left, and the folder is removed nevertheless.
 */
#ifndef SPOOR_RECORDING_LTTNG_SESSION_H
#define SPOOR_RECORDING_LTTNG_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct diag;

struct lttng_options {
	const char *const *events; /* NULL-terminated: names or patterns, with commas */
	const uint32_t *pids;      /* only these processes */
	size_t pid_count;          /* 0: all processes */
};

#define LTTNG_NAME_ROOM 48u

/* All zero: no session. */
struct lttng_session {
	char name[LTTNG_NAME_ROOM];
	char folder[256];
	int keep_fd; /* while it is open, the session is kept */
	pid_t keeper;
	bool stuck; /* the daemon did not answer lttng_session_stop(): the session may be left */
};

int lttng_session_start(struct lttng_session *session, const struct lttng_options *options,
	struct diag *diag);
int lttng_session_stop(struct lttng_session *session, struct diag *diag);
void lttng_session_done(struct lttng_session *session);

#endif
