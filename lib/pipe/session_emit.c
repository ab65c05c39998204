/* See session_emit.h. */
#include "lib/pipe/session_emit.h"

#include <errno.h>

#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"

static int emit(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size, const uint64_t *frames,
	uint32_t frame_count, bool is_counted)
{
	struct session_thread *thread = session_thread_of(session, thread_id);

	if (!thread && is_counted)
		session_not_delivered(session, NULL, 1, time_ns, time_ns, 0);
	if (!thread)
		return -ENOMEM;
	/*
	 * Not earlier than events that were written from the rings, nor than earlier events of this
	 * function.
	 */
	if (time_ns < pipe_watermark_ns())
		time_ns = pipe_watermark_ns();
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
	if (r && is_counted)
		session_not_delivered(session, thread, 1, time_ns, time_ns, r);
	if (r)
		return r;
	thread->tombstone = false;
	session->run = 0;
	session->last_emit_ns = time_ns;
	if (is_counted)
		session_delivered(session, thread, 1);
	else
		session_thread_advance(thread, 1);
	return 0;
}

int session_emit(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size)
{
	return emit(session, entry, time_ns, thread_id, payload, payload_size, NULL, 0, false);
}

int session_emit_counted(struct session *session, const struct event_entry *entry, uint64_t time_ns,
	uint64_t thread_id, const void *payload, uint32_t payload_size, const uint64_t *frames,
	uint32_t frame_count)
{
	return emit(session, entry, time_ns, thread_id, payload, payload_size, frames, frame_count,
		true);
}
