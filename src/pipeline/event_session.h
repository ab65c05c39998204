/*
 * One EventPipe session whose events its feature takes itself, one by one in the order of arrival.
 *
 *   event_session_open(&session, &client, &options, &reading);
 *   each turn:  runtime_client_await(&client, &set); poll_set_wait(&set);
 *               guard_beat(guard, now_ns); runtime_client_advance(&client, now_ns);
 *   at the end: event_session_stop(&session, now_ns);  the same turns, until event_session_is_over()
 *   always:     event_session_close(&session);
 *
 * The session is one of a client's (dotnet/runtime_client.h). The struct owns the decoder of its
 * stream and the tables that the events refer to. A stream that cannot be decoded is still read to
 * its end, because the runtime would block otherwise; `broken` says why no more events come. A struct
 * of zeros is a session that was not opened: it is over, and all functions but the opening ignore it.
 */
#ifndef SPOOR_PIPELINE_EVENT_SESSION_H
#define SPOOR_PIPELINE_EVENT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "dotnet/runtime_client.h"
#include "trace/trace.h"

struct event;
struct nettrace_decoder;
struct schema;

/* What is done with the stream. */
struct event_reading {
	/*
	 * One event; its payload is borrowed. An error set in `broken` is the last event's. NULL: the
	 * stream is read and ignored.
	 */
	void (*take)(void *user, const struct schema *schema, const struct event *event,
		struct diag *broken);
	void *user;
	const char *name; /* of the stream in messages: "the heap's events" */
	unsigned flags;   /* of nettrace_decoder_new() */
};

struct event_session {
	struct runtime_client *client;
	struct eventpipe
		*pipe;      /* the client's; NULL: not opened, or closed by event_session_end() */
	struct trace trace; /* schemas, threads and stacks of the stream */
	struct nettrace_decoder *decoder;
	struct event_reading reading;
	struct diag broken; /* the first error of the stream or of take() */
	uint64_t bytes;     /* of the stream */
};

/*
 * The client is borrowed; `options` is as for runtime_client_open(). A session that was opened before
 * is closed first, with its tables; `broken` and `bytes` stay. -ENOMEM. All other failures show in
 * the state of the pipe.
 */
int event_session_open(struct event_session *session, struct runtime_client *client,
	const struct eventpipe_options *options, const struct event_reading *reading);

void event_session_stop(struct event_session *session, uint64_t now_ns);

/* Not opened, or ended. */
bool event_session_is_over(const struct event_session *session);

/* Events lost by the stream's sequence numbers. */
uint64_t event_session_lost(const struct event_session *session);

/* The runtime's version without its commit, "10.0.12"; false and unchanged: it is not known. */
bool event_session_version(const struct event_session *session, char *version, size_t room);

/*
 * Why there are no events, as "WHAT PID: reason" and what to do about it. Returns -EACCES if a right
 * is missing, else -EIO. The session has a pipe.
 */
int event_session_explain(const struct event_session *session, const char *what, uint32_t pid,
	struct diag *diag);

/* Frees the pipe; the tables of the stream stay. */
void event_session_end(struct event_session *session);

void event_session_close(struct event_session *session);

#endif
