/*
 * Sessions: a session enables events of some providers, has a policy for full buffers, and writes
 * to one sink.
 *
 *   session_new()      allocates it and takes the sink; its id is assigned, no event flows
 *   session_enable()   events flow from here on; enable callbacks of providers are called
 *   session_stop()     no further event is fired; events in the rings still reach the sink, then `rundown`, then the sink ends, then `ended` is called
 *   session_unref()    releases the caller's reference; the last one frees the session and its sink
 *
 * session_new(), session_enable(), session_stop() and the functions on references may be called
 * from any thread, except in signal handlers; session_enable() waits for the loop thread. The rest
 * happens on the loop thread. Errors are a negative errno; -EBUSY: all 64 slots are in use.
 */
#ifndef SPOOR_LIB_PIPE_PIPE_SESSION_H
#define SPOOR_LIB_PIPE_PIPE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spoor/spoor.h>

#include "lib/pipe/pipe.h"
#include "lib/pipe/session_config.h"

int session_new(const struct session_config *config, struct session **ret_session);
int session_enable(struct session *session);

/*
 * Ends a session; does not wait. A second call has no effect. `aborted`: close the connection of a
 * slow peer instead of waiting for it.
 */
void session_stop(struct session *session, bool aborted);

/* Waits until the session has ended. 0 or -ETIMEDOUT. Not on the loop thread. */
int session_wait(struct session *session, uint64_t timeout_ns);

struct session *session_ref(struct session *session);
void session_unref(struct session *session);

uint64_t session_id(const struct session *session);
struct sink *session_sink(const struct session *session);
/* The bit of a session in an event's mask, by id; 0: it has ended. For pipe_fire(). */
uint64_t session_bit(uint64_t id);

/* ---- For the library's start and the pass over the rings ---- */

void sessions_lock(void);
void sessions_unlock(void);
void sessions_set_up(void);
void sessions_stop_all(void); /* stops all sessions and waits for their ends */
void sessions_child(void);    /* after fork() */

/* Makes and enables a session of the public interface. Owns the sink, also on failure. */
int session_start_public(const struct spoor_session_options *options, struct sink *sink,
	struct spoor_session **ret_session);

/*
 * One step of a session after each pass: flushes, and advances a session that ends. Returns the
 * time in ns until the next step is due.
 */
uint64_t session_turn(struct session *session, const struct pipe_pass *pass);

/*
 * A slot is quarantined if its session had to end while a thread was inside a record (for example,
 * stopped by a debugger). Until that thread was seen outside, it is used again only if no other slot
 * is free. sessions_release_slots() does that when, in the last pass, a grace period has ended that
 * waited for all threads.
 */
bool sessions_quarantined(void);
void sessions_release_slots(const struct pipe_pass *pass);

#endif
