/*
 * The talk with one .NET process: who it is, which methods exist, which ones come.
 *
 * A client is a state machine that never blocks; the caller's poll loop drives any number of them:
 *
 *   dotnet_client_new(&target, &handler, now_ns, &client);
 *   each turn:  n = dotnet_client_fds(client, fds);  poll them no longer than until dotnet_client_wake_ns(client);
 *               dotnet_client_advance(client, now_ns);   when one of them is ready or that time has come (more often does no harm)
 *   at the end: dotnet_client_stop(client, now_ns);  the same turns, until DOTNET_ENDED
 *   always:     dotnet_client_free(client);
 *
 * What it does: ask who it is (ProcessInfo3, 2, 1); open the live session, which tells of methods that come; open one with the runtime's own sampler, if that was
 * asked for (dotnet_client_sample()), so that what it floods is its own buffer; open another one for the
 * rundown, which is stopped at once and thereby tells of all that exist; at its end the names are known, and the live one goes on until
 * the stop. Another rundown can be had at any time (dotnet_client_rundown()). Nettrace bytes of all go to the handler as they come; no event is parsed here.
 *
 * Promises: a session that was opened is ended by StopTracing, whatever happens (each process has only 64); its stream is read until its
 * end meanwhile, because the runtime would stand still otherwise. A peer that hangs, lies or dies costs only itself. A peer that does not
 * answer is not given up while it is connected, only reported (DOTNET_HUNG): when it wakes up, the talk goes on.
 *
 * With a guard (guard.h) its sessions are ended too when this process is stopped, hangs or is killed. When that has happened the client is
 * at its end, with "guarded" for its reason: what is to go on is begun anew.
 *
 * Times are CLOCK_MONOTONIC in nanoseconds. How many rundowns run at a time is the caller's business.
 */
#ifndef SPOOR_DOTNET_RUNTIME_CLIENT_H
#define SPOOR_DOTNET_RUNTIME_CLIENT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dotnet_client;
struct dotnet_target;
struct guard;
struct ipc_process_info;
struct ipc_provider;

#define DOTNET_FDS_MAX 5u

/* Silence for longer than this is a hung peer; a stop that takes longer than the second is cut short. */
#define DOTNET_ANSWER_NS UINT64_C(5000000000)
#define DOTNET_STOP_NS   UINT64_C(5000000000)

enum dotnet_stream {
	DOTNET_STREAM_LIVE,
	DOTNET_STREAM_SAMPLES, /* the runtime's sampled stacks, when they were asked for */
	DOTNET_STREAM_RUNDOWN,
	DOTNET_STREAM_METHODS, /* methods that come, when the live one does not tell of them */
	DOTNET_STREAM_COUNT,
};

enum dotnet_state {
	DOTNET_ASKING,   /* the names of what exists are on their way */
	DOTNET_HUNG,     /* as before, but the peer has been silent for too long; dotnet_client_reason() says so. May get better */
	DOTNET_LIVE,     /* what exists is known (or cannot be: the reason), what comes is streamed */
	DOTNET_STOPPING, /* dotnet_client_stop() was called */
	DOTNET_ENDED,    /* nothing is open any more */
};

struct dotnet_handler {
	/*
	 * Bytes of a stream, in order, from its first ("Nettrace") on. size 0 = the end of the stream, told once for each that was opened.
	 * A negative return gives the stream up: it is stopped and read to its end, but no more is told of it, the end neither.
	 */
	int (*bytes)(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size);
	void *user;
};

/* The target is copied. -ENOMEM. Whatever else fails is told by the client's state and reason. */
int dotnet_client_new(const struct dotnet_target *target, const struct dotnet_handler *handler,
	uint64_t now_ns, struct dotnet_client **ret_client);

/* All its sessions are put under this guard, which outlives the client. Before its first turn. */
void dotnet_client_guard(struct dotnet_client *client, struct guard *guard);

/*
 * What the live session asks for beside the methods that come: borrowed until the client is freed. Before its first turn. Of the runtime's own provider
 * methods are told at level 5 (but see dotnet_client_untold()); where the level asked for here is lower, what else comes at 5 is left out in the runtime where it can be (.NET 10), and
 * comes, for the caller to pass over, where not.
 */
void dotnet_client_ask(struct dotnet_client *client, const struct ipc_provider *providers, uint32_t count);

/*
 * New methods are not told of, unless level 5 was asked for, which takes that: at 5 a runtime makes events of its allocations and of the joins of its collector ready too,
 * whether they are sent or not. At 4 it still says, by name, which ones made at run time (LCG) were freed, and which modules come and go. Before its first turn.
 */
void dotnet_client_untold(struct dotnet_client *client);

/*
 * The runtime waits before its first instruction until it is resumed. So its live session reports every method that is compiled, and the precompiled ones at its end; there
 * is no other rundown. The names are known once the session is open. Before its first turn.
 */
void dotnet_client_from_start(struct dotnet_client *client);

/* The runtime samples the stacks of its managed threads, which it stops for that some hundred times a second. Before its first turn. */
void dotnet_client_sample(struct dotnet_client *client);

/* The descriptors to wait for, and how many they are. */
size_t dotnet_client_fds(const struct dotnet_client *client, struct pollfd fds[DOTNET_FDS_MAX]);

/* When to call dotnet_client_advance() although no descriptor is ready; UINT64_MAX for never. */
uint64_t dotnet_client_wake_ns(const struct dotnet_client *client);

/* Does what can be done without waiting; at most about a megabyte is read from each stream. */
enum dotnet_state dotnet_client_advance(struct dotnet_client *client, uint64_t now_ns);

/*
 * Begins another rundown: while it runs the state is DOTNET_ASKING, dotnet_client_named() says at its end whether all came. False: not now, an exchange is under way,
 * or the client is at its end.
 */
bool dotnet_client_rundown(struct dotnet_client *client);

/* After dotnet_client_untold(): from now on new methods are told of, in a session of its own. False: not now. */
bool dotnet_client_methods(struct dotnet_client *client);

/* There was more to read in the last turn than was taken. */
bool dotnet_client_behind(const struct dotnet_client *client);

/* Begins the end. Both streams are still told until they end, which takes 100 ms or so, at most DOTNET_STOP_NS. */
void dotnet_client_stop(struct dotnet_client *client, uint64_t now_ns);

/*
 * Frees it. When it has not ended, open sessions are told to stop first, without waiting for the answer, within 100 ms at most.
 */
void dotnet_client_free(struct dotnet_client *client);

enum dotnet_state dotnet_client_state(const struct dotnet_client *client);

/*
 * What was opened in the process: "live Microsoft-Windows-DotNETRuntime:0x38:5, 16 MB, no stacks", with the most memory that its events
 * may take in there. NULL when none of this kind was.
 */
const char *dotnet_client_session(const struct dotnet_client *client, enum dotnet_stream stream);

/* When a stream's session was asked for; 0: it was not opened. Its first bytes are from after that. */
uint64_t dotnet_client_asked_ns(const struct dotnet_client *client, enum dotnet_stream stream);

/* True once the rundown was read to its end: all methods that existed have been told. */
bool dotnet_client_named(const struct dotnet_client *client);

/*
 * Why names are missing: a sentence part, "it belongs to another user"; "" when nothing is. And its kind for counting and Notice.Code,
 * one word with dashes: "no-socket", "refused", "permission", "hung", "stopped", "cut-name", "spoofed", "lied", "slots", "ended" (the process,
 * before its names were known), "closed" (the stream, although it lives), "cut-short" (by dotnet_client_stop()), "guarded" (the guard ended it),
 * "error".
 */
const char *dotnet_client_reason(const struct dotnet_client *client);
const char *dotnet_client_reason_code(const struct dotnet_client *client);

/* What the peer said of itself; NULL until it has. */
const struct ipc_process_info *dotnet_client_info(const struct dotnet_client *client);

#endif
