/*
 * What each session of a runtime requests: its providers with keywords, levels and event ids, from
 * what the caller of the runtime client wants (dotnet_client.h).
 */
#ifndef SPOOR_RECORDING_SESSION_REQUESTS_H
#define SPOOR_RECORDING_SESSION_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "dotnet/activity_providers.h"
#include "dotnet/eventpipe.h"
#include "dotnet/ipc.h"
#include "dotnet/stack_events.h"
#include "recording/dotnet_stream.h"

struct bytes;

#define SESSION_PROVIDERS_MAX 64u
#define SESSION_DENIED_MAX    64u

struct session_requests {
	enum ipc_command collect_command; /* the newest that is not known to be unknown */
	struct dotnet_wishes wishes;
	/* Made by session_requests_options(). */
	struct ipc_provider live[SESSION_PROVIDERS_MAX]; /* of the live session */
	uint32_t denied[SESSION_DENIED_MAX];             /* events of the runtime's own provider */
	struct ipc_provider stacked;                     /* of the session with stacks */
	uint32_t stacked_ids[STACK_EVENTS_MAX];
	struct ipc_provider thrown; /* of the session for exceptions */
	uint32_t thrown_ids[STACK_EVENTS_MAX];
	struct ipc_provider allocated; /* of the session for allocations */
	uint32_t allocated_ids[STACK_EVENTS_MAX];
	struct activity_providers activity;
};

/* The request of a session, which borrows `requests`. The caller adds the queue, guard and target. */
struct eventpipe_options session_requests_options(struct session_requests *requests,
	enum dotnet_stream stream);

/* The events of the session with stacks. */
struct stack_events session_requests_stacked(const struct session_requests *requests);

/* Appends the session as text; `sent`: the command with which it was opened. */
void session_requests_describe(struct session_requests *requests, enum dotnet_stream stream,
	enum ipc_command sent, struct bytes *text);

#endif
