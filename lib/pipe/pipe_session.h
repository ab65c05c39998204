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

#include "lib/sink/sink.h"

#define SESSIONS_MAX 64u

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

/*
 * Loop thread only: writes an event straight to this session, past the rings (rundown, process information, losses). entry: of registry_describe(), or
 * of a registered event. Sequence and loss are the session's. -ENOBUFS: no room now, try again next turn.
 */
int session_emit(struct session *session, const struct event_entry *entry, uint64_t time_ns, uint64_t thread_id, const void *payload,
	uint32_t payload_size);

/* The same with a call stack (leaf first), for sessions that want stacks: what the loop knows of another thread. */
int session_emit_stack(struct session *session, const struct event_entry *entry, uint64_t time_ns, uint64_t thread_id, const void *payload,
	uint32_t payload_size, const uint64_t *frames, uint32_t frame_count);

/*
 * Every slot's bit of the sessions that want this event now and are among `sessions`; fires for those alone. For providers that answer one session (its own
 * filter arguments). With frames (leaf first) they are the event's stack for sessions that want stacks; NULL: the calling thread's stack is walked. Safe in signal
 * handlers, also in a thread that has never fired.
 */
void pipe_fire(struct spoor_event *event, uint64_t sessions, const void *payload, uint32_t payload_size, const uint64_t *frames,
	uint32_t frame_count);

/* The bit of a session by its id; 0 when it is gone. For pipe_fire(). */
uint64_t session_bit(uint64_t id);

/*
 * The calling thread's activity, carried by every event it fires while `set` is true (activity.c writes it; 16 bytes each, zeroes are none). Static
 * thread-local memory: no allocation.
 */
struct pipe_activity {
	uint8_t current[16];
	uint8_t related[16];
	bool set;
};
struct pipe_activity *pipe_activity(void);

#endif
