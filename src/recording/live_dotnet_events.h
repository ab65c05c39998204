/*
 * Events of .NET 10 processes by the kernel's user_events: for each provider a tracepoint, whose events live_user_events.h
 * records with the thread's call chain, and in each process a session that writes the provider's events into it.
 *
 *   live_dotnet_events_start(&dotnet, &user_events, &diag);          registers the tracepoints
 *   live_dotnet_events_begin(&dotnet, process, guard, now_ns);      for each .NET process
 *   each turn: live_dotnet_events_await(&dotnet, &set); poll; live_dotnet_events_advance(&dotnet, now_ns);
 *   live_dotnet_events_stop(&dotnet);                               ends the sessions, within 2 s
 *   live_dotnet_events_done(&dotnet);
 *
 * A session that was opened is stopped: by this module, or by the guard (dotnet/guard.h) if the process that records
 * cannot, or if the runtime does not answer until the end.
 */
#ifndef SPOOR_RECORDING_LIVE_DOTNET_EVENTS_H
#define SPOOR_RECORDING_LIVE_DOTNET_EVENTS_H

#include <stdint.h>

#include "base/vec.h"

struct diag;
struct guard;
struct ipc_provider;
struct live_user_events;
struct poll_set;
struct user_session;

/* A tracepoint of a provider. */
struct user_provider {
	char *name;    /* of the tracepoint */
	uint32_t word; /* the kernel's */
};

/* All zero: no such events. */
struct live_dotnet_events {
	struct live_user_events *events; /* borrowed; NULL: not started */
	struct ipc_provider *providers;  /* as of the options, with their tracepoints */
	struct user_provider *tracepoints;
	uint32_t provider_count;
	int data_fd; /* user_events_data */
	VEC(struct user_session *) sessions;
	uint32_t opened;  /* sessions */
	uint32_t refused; /* processes without a session */
};

/* Errors as of user_tracepoints_open_data(), or -ENOMEM. Nothing to do without such providers. */
int live_dotnet_events_start(struct live_dotnet_events *dotnet, struct live_user_events *events,
	struct diag *diag);

/* Requests a session in a process (an index of the trace). `guard` is borrowed. */
void live_dotnet_events_begin(struct live_dotnet_events *dotnet, uint32_t process,
	struct guard *guard, uint64_t now_ns);

void live_dotnet_events_await(const struct live_dotnet_events *dotnet, struct poll_set *set);
void live_dotnet_events_advance(struct live_dotnet_events *dotnet, uint64_t now_ns);

void live_dotnet_events_stop(struct live_dotnet_events *dotnet);

void live_dotnet_events_done(struct live_dotnet_events *dotnet);

#endif
