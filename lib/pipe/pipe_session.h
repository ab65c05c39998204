/*
 * Sessions: who wants which events, by which policy, and where they go (the sink).
 *
 *   session_new()      makes it and takes the sink; its id is known, nothing flows
 *   session_enable()   events flow from here on; providers are told
 *   session_stop()     they stop; what is in the rings still reaches the sink, then `rundown`, then the sink ends, then `ended` is called
 *   session_unref()
 *
 * session_new(), session_enable() and session_stop() work from any thread. The rest happens on the loop thread. All 64 slots in use: -EBUSY.
 */
#ifndef SPOOR_LIB_PIPE_PIPE_SESSION_H
#define SPOOR_LIB_PIPE_PIPE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spoor/spoor.h>

#include "lib/pipe/session_config.h"

int session_new(const struct session_config *config, struct session **ret_session);
int session_enable(struct session *session);

/* Does not wait. Twice is once. `aborted`: do not wait for a slow peer, cut it off. */
void session_stop(struct session *session, bool aborted);

/* Waits until it has ended (not on the loop thread). -ETIMEDOUT. */
int session_wait(struct session *session, uint64_t timeout_ns);

struct session *session_ref(struct session *session);
void session_unref(struct session *session);

uint64_t session_id(const struct session *session);
struct sink *session_sink(const struct session *session);
uint32_t session_slot(const struct session *session);  /* bit in an event's mask */
bool session_wants_stacks(const struct session *session);

/* A session that has not ended, by its id, with a reference; NULL. */
struct session *session_find(uint64_t id);

/* The bit of a session by its id; 0 when it is gone. For pipe_fire(). */
uint64_t session_bit(uint64_t id);

/* ---- For the library's start and the pass over the rings ---- */

void sessions_lock(void);
void sessions_unlock(void);
void sessions_set_up(void);
void sessions_stop_all(void); /* waits for their ends */
void sessions_child(void);    /* after fork() */

/* A session of the public interface: made, enabled. Owns the sink, also on failure. */
int session_start_public(const struct spoor_session_options *options, struct sink *sink, struct spoor_session **ret_session);

/* After each pass. Moves sessions that stop on. Returns in how many ns it wants to be called again. */
uint64_t session_turn(struct session *session, uint64_t now_ns, uint64_t cutoff_ns, bool quiet, bool idle);

/*
 * Slots whose session had to end while a thread sat inside a record (stopped by a debugger, say) are not given out before that thread has
 * been seen outside. sessions_quiet(): this pass has seen all threads outside, or not.
 */
bool sessions_quarantined(void);
void sessions_quiet(bool quiet);

#endif
