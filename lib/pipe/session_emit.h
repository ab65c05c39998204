/* Events that the library itself writes into one session, without a ring: rundown, process information, losses, samples of sleeping threads. */
#ifndef SPOOR_LIB_PIPE_SESSION_EMIT_H
#define SPOOR_LIB_PIPE_SESSION_EMIT_H

#include <stdint.h>

struct event_entry;
struct session;

/*
 * Loop thread only: writes an event straight to this session, past the rings (rundown, process information, losses). entry: of registry_describe(), or
 * of a registered event. Sequence and loss are the session's. -ENOBUFS: no room now, try again next turn.
 */
int session_emit(struct session *session, const struct event_entry *entry, uint64_t time_ns, uint64_t thread_id, const void *payload,
	uint32_t payload_size);

/* The same with a call stack (leaf first), for sessions that want stacks: what the loop knows of another thread. */
int session_emit_stack(struct session *session, const struct event_entry *entry, uint64_t time_ns, uint64_t thread_id, const void *payload,
	uint32_t payload_size, const uint64_t *frames, uint32_t frame_count);

#endif
