/*
 * Events that the library itself writes into one session, without a ring: rundown, process
 * information, losses, samples of sleeping threads. Loop thread only.
 */
#ifndef SPOOR_LIB_PIPE_SESSION_EMIT_H
#define SPOOR_LIB_PIPE_SESSION_EMIT_H

#include <stdint.h>

struct event_entry;
struct session;

/*
 * Writes an event into the session's stream, with the session's next sequence number. `entry` is of
 * registry_describe() or of a registered event. The payload is borrowed during the call. 0 or a
 * negative errno; -ENOBUFS: no room now, try again after the next pass.
 * The event is not in the session's counts.
 */
int session_emit(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size);

/*
 * The same for an event that the session's counts contain: as written, or, on any error, as lost.
 * With a call stack (leaf first), for sessions that record stacks.
 */
int session_emit_counted(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size, const uint64_t *frames,
	uint32_t frame_count);

#endif
