/*
 * One EventPipe session of one process: opened with given providers, streamed, stopped.
 *
 *   eventpipe_new(&endpoint, &options, &handler, now_ns, &pipe);
 *   each turn:  eventpipe_await(pipe, &set); poll_set_wait(&set);
 *               eventpipe_advance(pipe, now_ns);     more often does no harm
 *   at the end: eventpipe_stop(pipe, now_ns);  the same turns, until EVENTPIPE_ENDED
 *   always:     eventpipe_free(pipe);
 *
 * A state machine that never blocks; the caller's poll loop drives any number of them. The bytes
 * are nettrace version 4, from "Nettrace" on, and go to the handler in order, as soon as they are
 * read; nothing is parsed here.
 *
 * Promises: a session that was opened is ended by StopTracing, whatever happens; its stream is read
 * until its end meanwhile, and the guard process, if there is one, watches it; a runtime that
 * hangs, sends wrong data or exits disturbs no other session; nothing is sent to a process that a
 * signal has stopped. After a stop the stream is read while it makes progress: a large program's
 * rundown takes its time. The session is given up after EVENTPIPE_SILENCE_NS with less than
 * EVENTPIPE_PROGRESS_BYTES, after EVENTPIPE_RUNDOWN_NS in all (without a rundown EVENTPIPE_END_NS),
 * or when it has sent more than the runtime can have buffered and EVENTPIPE_RUNDOWN_BYTES. So a
 * hostile process cannot delay a verb without limit. The caller may give up earlier:
 * eventpipe_free() never waits for more than 100 ms.
 *
 * A runtime can deadlock if a session with counters is stopped before its first values came (.NET
 * 10.0.12). So the StopTracing of such a session is held back until eventpipe_valued() was called,
 * for EVENTPIPE_VALUES_NS after its opening at most, and its stream is read meanwhile.
 * eventpipe_free() does not wait for this.
 */
#ifndef SPOOR_DOTNET_EVENTPIPE_H
#define SPOOR_DOTNET_EVENTPIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dotnet/exchange.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"

struct dotnet_target;
struct eventpipe;
struct guard;
struct ipc_provider;
struct ipc_process_info;
struct poll_set;

/* until a request is answered, without a byte of the answer */
#define EVENTPIPE_ANSWER_NS UINT64_C(5000000000)
/* after a stop: until EVENTPIPE_PROGRESS_BYTES more have come */
#define EVENTPIPE_SILENCE_NS UINT64_C(5000000000)
/* after a stop: until the end of a stream without a rundown */
#define EVENTPIPE_END_NS UINT64_C(10000000000)
/* after a stop: until the end of a stream with a rundown */
#define EVENTPIPE_RUNDOWN_NS UINT64_C(30000000000)
/* after the opening: a StopTracing waits for the first values of counters at most until then */
#define EVENTPIPE_VALUES_NS UINT64_C(2000000000)
/* after a stop: fewer bytes are no progress; without a rundown also the most beyond the buffer */
#define EVENTPIPE_PROGRESS_BYTES (16u << 10)
/* after a stop: the most bytes of a rundown beyond those that the runtime can have buffered */
#define EVENTPIPE_RUNDOWN_BYTES (UINT64_C(256) << 20)

/* Sessions that share a queue send one request at a time. All zero is an empty queue. */
struct eventpipe_queue {
	/* the session whose request is being sent or answered; NULL: none */
	const struct eventpipe *holder;
};

struct eventpipe_options {
	const struct ipc_provider *providers; /* borrowed until eventpipe_free() */
	uint32_t provider_count;
	uint32_t buffer_mb; /* in the target, taken on demand */
	/* 0: none. IPC_RUNDOWN_WHOLE is what every runtime knows */
	uint64_t rundown_keywords;
	/* .NET 9 and later; earlier runtimes send stacks in any case */
	bool no_stacks;
	bool no_info; /* no ProcessInfo request before the session */
	/* no session with a process whose reply to ProcessInfo cannot be decoded */
	bool strict_info;
	/* StopTracing follows the opening: for a rundown alone */
	bool stop_at_once;
	/* a runtime before .NET 10 gets the request without ids to leave out, instead of none */
	bool filters_optional;
	/* the first to try; 0: the oldest one that can express the request */
	enum ipc_command collect_command;
	/*
	 * the session is given up so long after eventpipe_stop(), even while data arrives; 0: as
	 * above
	 */
	uint64_t end_limit_ns;
	/* NULL: requests do not wait for other sessions. Borrowed */
	struct eventpipe_queue *queue;
	/* CLOCK_MONOTONIC until which the socket may still appear; 0: it must exist */
	uint64_t appear_ns;
	/* NULL: none. Borrowed; the caller calls guard_beat() (guard.h) */
	struct guard *guard;
	const struct dotnet_target *target; /* of the guard, and only with one; borrowed */
};

enum eventpipe_state {
	EVENTPIPE_OPENING,
	/* the peer has been silent for too long, but may still answer */
	EVENTPIPE_HUNG,
	EVENTPIPE_STREAMING,
	EVENTPIPE_STOPPING,
	/* nothing is open any more: the stream was read to its end, or the reason says why not */
	EVENTPIPE_ENDED,
};

struct eventpipe_handler {
	/*
	 * Bytes of the stream, in order. size 0 is the end of the stream, reported once if the
	 * session was opened. After a negative return the session is stopped and its stream read to
	 * the end, but the handler is not called again, not even for the end.
	 */
	int (*bytes)(void *user, const uint8_t *data, size_t size);
	/*
	 * Returns the memory into which the next bytes (at most `size`) are read, so that they need
	 * no copy: `bytes` is then called with a pointer into it. NULL: no memory. The function
	 * pointer itself may be NULL.
	 */
	uint8_t *(*room)(void *user, size_t size);
	void *user;
};

/* The endpoint is copied, its context borrowed. -ENOMEM; other failures show in the state. */
int eventpipe_new(const struct dotnet_endpoint *endpoint, const struct eventpipe_options *options,
	const struct eventpipe_handler *handler, uint64_t now_ns, struct eventpipe **ret_pipe);

/* Adds the descriptors to wait for, and the time to call eventpipe_advance() at the latest. */
void eventpipe_await(const struct eventpipe *pipe, struct poll_set *set);

/* Takes all steps that need no waiting; reads about a megabyte at most. */
enum eventpipe_state eventpipe_advance(struct eventpipe *pipe, uint64_t now_ns);

/* Begins the end. */
void eventpipe_stop(struct eventpipe *pipe, uint64_t now_ns);

/* The first values of its counters have come: a stop is not held back any more. */
void eventpipe_valued(struct eventpipe *pipe);

/* Until then or eventpipe_stop() the stream is not waited for, to read it in larger pieces. */
void eventpipe_rest(struct eventpipe *pipe, uint64_t until_ns);

void eventpipe_free(struct eventpipe *pipe);

enum eventpipe_state eventpipe_state(const struct eventpipe *pipe);

/* True when the stream ended properly: after the stop, or because the process ended. */
bool eventpipe_whole(const struct eventpipe *pipe);

/* When the session was opened; 0: it was not. */
uint64_t eventpipe_opened_ns(const struct eventpipe *pipe);

/* When the present or last CollectTracing was begun, before its connection; 0: none was. */
uint64_t eventpipe_asked_ns(const struct eventpipe *pipe);

/* The command of the last request; once the session is open, one that the runtime knows. */
enum ipc_command eventpipe_collect_command(const struct eventpipe *pipe);

/* The runtime has answered that it opens no session. */
bool eventpipe_is_refused(const struct eventpipe *pipe);

/* A request is under way, or one is due and waits for the queue. */
bool eventpipe_is_asking(const struct eventpipe *pipe);

/* The stream is open. */
bool eventpipe_is_reading(const struct eventpipe *pipe);

/* The runtime has answered StopTracing with a success, which it sends after the whole stream. */
bool eventpipe_is_acknowledged(const struct eventpipe *pipe);

/* When the peer last sent something, or the request that is under way was begun. */
uint64_t eventpipe_heard_ns(const struct eventpipe *pipe);

/* The last turn left bytes unread: its share was used up. */
bool eventpipe_behind(const struct eventpipe *pipe);

/* Bytes of the stream so far. */
uint64_t eventpipe_bytes(const struct eventpipe *pipe);

/* Why there is no whole stream; a note of zeros if nothing is wrong. */
const struct reason_note *eventpipe_reason(const struct eventpipe *pipe);

/* The process's answer to ProcessInfo; NULL before it arrives, or with no_info. */
const struct ipc_process_info *eventpipe_info(const struct eventpipe *pipe);

#endif
