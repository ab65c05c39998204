/* See event_session.h. */
#include "pipeline/event_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "nettrace/nettrace_read.h"
#include "trace/event.h"

static int on_bytes(void *user, const uint8_t *data, size_t size)
{
	struct event_session *s = user;
	struct event event;

	s->bytes += size;
	if (!size || s->broken.error || !s->decoder)
		return 0; /* read on, so that the runtime does not block on a full socket */
	if (nettrace_decoder_push(s->decoder, data, size) < 0)
		(void)diag_set(&s->broken, -ENOMEM, "there is no memory for its stream: %m");
	while (!s->broken.error && nettrace_decoder_next(s->decoder, &event, &s->broken) > 0)
		s->reading.take(s->reading.user, &s->trace.schemas.items[event.schema_index],
			&event, &s->broken);
	return 0;
}

int event_session_open(struct event_session *session, struct runtime_client *client,
	const struct eventpipe_options *options, const struct event_reading *reading)
{
	const struct eventpipe_handler handler = { .bytes = on_bytes, .user = session };

	event_session_close(session);
	session->client = client;
	session->reading = *reading;
	if (reading->take) {
		int result = trace_init(&session->trace);
		if (result < 0)
			return result;
		session->decoder =
			nettrace_decoder_new(&session->trace, reading->name, reading->flags);
		if (!session->decoder)
			return -ENOMEM;
	}
	return runtime_client_open(client, options, &handler, clock_monotonic_ns(), &session->pipe);
}

void event_session_stop(struct event_session *session, uint64_t now_ns)
{
	if (session->pipe)
		eventpipe_stop(session->pipe, now_ns);
}

bool event_session_is_over(const struct event_session *session)
{
	return !session->pipe || eventpipe_state(session->pipe) == EVENTPIPE_ENDED;
}

uint64_t event_session_lost(const struct event_session *session)
{
	return session->decoder ? nettrace_decoder_lost(session->decoder) : 0;
}

bool event_session_version(const struct event_session *session, char *version, size_t room)
{
	const struct ipc_process_info *info = session->pipe ? eventpipe_info(session->pipe) : NULL;

	if (!info || !*info->runtime_version)
		return false;
	(void)snprintf(version, room, "%.*s", (int)strcspn(info->runtime_version, "+"),
		info->runtime_version); /* cut if it is long */
	return true;
}

int event_session_explain(const struct event_session *session, const char *what, uint32_t pid,
	struct diag *diag)
{
	const struct reason_note *reason = eventpipe_reason(session->pipe);
	bool refused = reason->kind == REASON_KIND_PERMISSION;

	diag_set(diag, refused ? -EACCES : -EIO, "%s %u: %s", what, pid,
		*reason->text ? reason->text : "its stream ended immediately");
	if (refused)
		diag_remedy(diag, "run it as that user, or with sudo");
	return diag->error;
}

void event_session_end(struct event_session *session)
{
	if (session->pipe)
		runtime_client_close(session->client, &session->pipe);
}

void event_session_close(struct event_session *session)
{
	event_session_end(session);
	nettrace_decoder_free(TAKE(session->decoder));
	trace_done(&session->trace);
}
