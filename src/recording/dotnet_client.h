/*
 * All requests and sessions of one .NET process: its name and version, the methods that exist, the
 * methods that it compiles later.
 *
 * A client is a state machine that never blocks; the caller's poll loop drives any number of them:
 *
 *   dotnet_client_new(&target, &handler, now_ns, &client);
 *   dotnet_client_wishes(client)->samples = true;
 *   each turn:  dotnet_client_await(client, &set); poll_set_wait(&set);
 *               dotnet_client_advance(client, now_ns);   more often does no harm
 *   at the end: dotnet_client_stop(client, now_ns);  the same turns, until DOTNET_ENDED
 *   always:     dotnet_client_free(client);
 *
 * Its steps: send ProcessInfo (3, 2 or 1); open the live session, which reports the methods that
 * are compiled from now on; as the wishes say, sessions for the events that carry a stack, for
 * activities, which the caller ends when it has enough of them, for exceptions, for allocations,
 * and one with the runtime's own sampler, separate so that its many events fill only their own
 * buffer; a session for the rundown, which is stopped immediately, so that the runtime reports all
 * methods that exist. At the end of the rundown the names are known; the live session runs until the
 * stop. dotnet_client_rundown() begins another rundown at any time. The nettrace bytes of all
 * sessions go to the handler in order; no event is parsed here.
 *
 * Promises: a session that was opened is ended by StopTracing, whatever happens (each process has
 * only 64); its stream is read until its end meanwhile, because the runtime would block otherwise.
 * A process that hangs, sends wrong data or exits disturbs no other client. A peer that does not
 * answer is not given up while it is connected, only reported (DOTNET_HUNG): once it answers, the
 * client continues.
 *
 * With a guard (guard.h) its sessions are ended too when this process is stopped, hangs or is
 * killed. After that the client is in state DOTNET_ENDED with the reason "guarded"; to continue,
 * the caller makes a new client.
 *
 * Times are CLOCK_MONOTONIC in nanoseconds. How many rundowns run at a time is up to the caller.
 */
#ifndef SPOOR_RECORDING_DOTNET_CLIENT_H
#define SPOOR_RECORDING_DOTNET_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dotnet/reason.h"
#include "recording/dotnet_stream.h"

struct dotnet_client;
struct dotnet_target;
struct guard;
struct ipc_process_info;
struct ipc_provider;
struct poll_set;

/* Silence after which a process counts as hung; time after which a stop is cut short. */
#define DOTNET_ANSWER_NS UINT64_C(5000000000)
#define DOTNET_STOP_NS   UINT64_C(5000000000)

enum dotnet_state {
	DOTNET_ASKING, /* the names of the existing methods are being requested */
	/* the peer has been silent for too long, but may still answer */
	DOTNET_HUNG,
	/* all existing methods are known (or cannot be: the reason), the live session runs */
	DOTNET_LIVE,
	DOTNET_STOPPING, /* dotnet_client_stop() was called */
	DOTNET_ENDED,    /* nothing is open any more */
};

struct dotnet_handler {
	/*
	 * Bytes of a stream, in order, from its first ("Nettrace") on. size 0 is the end of the
	 * stream, reported once for each that was opened. After a negative return the session is
	 * stopped and its stream read to the end, but the handler is not called for it again, not
	 * even for the end.
	 */
	int (*bytes)(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size);
	void *user;
};

/* The target is copied. -ENOMEM. All other failures show in the client's state and reason. */
int dotnet_client_new(const struct dotnet_target *target, const struct dotnet_handler *handler,
	uint64_t now_ns, struct dotnet_client **ret_client);

/* All its sessions are put under this guard, which outlives the client. Before its first turn. */
void dotnet_client_guard(struct dotnet_client *client, struct guard *guard);

/* What its sessions report: set before its first turn, and not changed later. */
struct dotnet_wishes *dotnet_client_wishes(struct dotnet_client *client);

/* True if the runtime's event of this id arrives with its stack, in the session for it. */
bool dotnet_client_takes_stacks(const struct dotnet_client *client, uint32_t event_id);

/* Ends a session that is open, the others continue. A second call has no effect. */
void dotnet_client_end(struct dotnet_client *client, enum dotnet_stream stream, uint64_t now_ns);

/* True while the session is open. */
bool dotnet_client_streams(const struct dotnet_client *client, enum dotnet_stream stream);

/* True when the session was ended, and its stream was read. */
bool dotnet_client_has_ended(const struct dotnet_client *client, enum dotnet_stream stream);

/* The first values of the counters that a session requests have come (eventpipe_valued()). */
void dotnet_client_valued(struct dotnet_client *client, enum dotnet_stream stream);

/* False while the sessions for events are still to be opened. */
bool dotnet_client_is_prepared(const struct dotnet_client *client);

/* Adds the descriptors to wait for, and the time to call dotnet_client_advance() at the latest. */
void dotnet_client_await(const struct dotnet_client *client, struct poll_set *set);

/* Takes all steps that need no waiting; reads about a megabyte at most from each stream. */
enum dotnet_state dotnet_client_advance(struct dotnet_client *client, uint64_t now_ns);

/*
 * Begins another rundown: while it runs the state is DOTNET_ASKING, dotnet_client_named() is true
 * at its end if all methods were reported. False: not possible now, an exchange is under way, or
 * the client is at its end.
 */
bool dotnet_client_rundown(struct dotnet_client *client);

/* From now on newly compiled methods are reported. False: not possible now. */
bool dotnet_client_methods(struct dotnet_client *client);

/*
 * DOTNET_STREAM_SETTLE is opened and closed immediately: while a session of the runtime's provider is open,
 * the end of another one leaves its events enabled inside the runtime (.NET 10), where they cost as much as
 * before, until the next session begins.
 *
 * Opens the session for exceptions or allocations again, or the one for counters; the state is DOTNET_ASKING until
 * then. False: not possible now.
 */
bool dotnet_client_open(struct dotnet_client *client, enum dotnet_stream stream);

/* There was more to read in the last turn than was taken. */
bool dotnet_client_behind(const struct dotnet_client *client);

/* Begins the end: streams are read until they end, at most DOTNET_STOP_NS. */
void dotnet_client_stop(struct dotnet_client *client, uint64_t now_ns);

/* Sends StopTracing for open sessions without waiting for replies (100 ms), and frees. */
void dotnet_client_free(struct dotnet_client *client);

enum dotnet_state dotnet_client_state(const struct dotnet_client *client);

/*
 * The session of this kind in the process, as text: "live Microsoft-Windows-DotNETRuntime:0x38:5,
 * 16 MB, no stacks"; the size is the limit of the runtime's event buffer. NULL when none was
 * opened.
 */
const char *dotnet_client_session(const struct dotnet_client *client, enum dotnet_stream stream);

/* CLOCK_MONOTONIC of its CollectTracing, before its first byte; 0: not opened. */
uint64_t dotnet_client_asked_ns(const struct dotnet_client *client, enum dotnet_stream stream);

/* True once the rundown was read to its end: all methods that existed have been reported. */
bool dotnet_client_named(const struct dotnet_client *client);

/*
 * Why names are missing: a sentence part, "it belongs to another user"; "" when nothing is. And its
 * kind: REASON_KIND_ENDED (the process, before its names were known), REASON_KIND_CLOSED (the
 * stream, although the process runs), REASON_KIND_CUT_SHORT (by dotnet_client_stop()).
 */
const char *dotnet_client_reason(const struct dotnet_client *client);
enum reason_kind dotnet_client_reason_kind(const struct dotnet_client *client);

/* The process's reply to ProcessInfo; NULL before it arrives. */
const struct ipc_process_info *dotnet_client_info(const struct dotnet_client *client);

#endif
