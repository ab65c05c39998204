/* See session_emit.h. */
#include "lib/pipe/session_emit.h"

#include <errno.h>

#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"

int session_emit(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size)
{
	return session_emit_stack(session, entry, time_ns, thread_id, payload, payload_size, NULL,
		0);
}

int session_emit_stack(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size, const uint64_t *frames,
	uint32_t frame_count)
{
	struct session_thread *thread = session_thread_of(session, thread_id);

	if (!thread)
		return -ENOMEM;
	/*
	 * Not earlier than events that were written from the rings, nor than earlier events of this
	 * function.
	 */
	if (time_ns < pipe_cutoff_ns())
		time_ns = pipe_cutoff_ns();
	if (time_ns < session->last_emit_ns)
		time_ns = session->last_emit_ns;

	struct pipe_event event = {
		.entry = entry,
		.time_ns = time_ns,
		.thread_id = thread_id,
		.capture_thread_id = thread_id,
		.sequence = thread->sequence + 1,
		.stack = session->config.options.stacks && frame_count ? frames : NULL,
		.stack_count = frame_count,
		.payload = payload,
		.payload_size = payload_size,
		.lost_before = thread->lost_pending,
		.run_start = true,
		.sorted = true,
	};
	int r = session->sink->ops->event(session->sink, &event);
	if (r == -ENOBUFS)
		return r;
	if (r == 0) {
		thread->sequence++;
		thread->lost_pending = 0;
		thread->gone = false;
		thread->known = true;
		session->run = 0;
		session->last_emit_ns = time_ns;
	}
	return r;
}
