/*
 * The session of a trace in one process, and the trace that it belongs to: shared by tracing.c and
 * traced.c, and by no other file.
 *
 *   traced_add(tracing, &target, seen, endpoint, peer, &diag);
 *   each turn:  traced_advance(traced, now_ns);
 *   at the end: eventpipe_stop(traced->pipe), and traced_advance() until it is over
 */
#ifndef SPOOR_TRACING_TRACED_H
#define SPOOR_TRACING_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/poll_set.h"
#include "base/vec.h"
#include "dotnet/held_runtime.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "dotnet/runtime_client.h"
#include "dotnet/runtime_start.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "trace/trace.h"
#include "tracing/late_providers.h"
#include "tracing/tracing_options.h"

struct guard;
struct nettrace_decoder;
struct relay;
struct reverse;
struct target;
struct thread_clocks;

/* interval of checks that no descriptor announces */
#define TRACING_BEAT_NS UINT64_C(250000000)

enum traced_state {
	TRACED_NEW,
	TRACED_HELD,    /* to be opened after the start of the runtime, which was not resumed yet */
	TRACED_DELAYED, /* the runtime was resumed: to be opened when its start is over */
	TRACED_OPEN,    /* it has an eventpipe, which opens, streams or stops */
	TRACED_PAUSING, /* as TRACED_OPEN, but ended by tracing_pause(), to be opened again */
	TRACED_PAUSED,  /* has ended, to be opened again */
	TRACED_ENDED,   /* its stream was read to its end */
	TRACED_FAILED,  /* no session, or it broke off */
};

enum traced_stream {
	TRACED_STREAM_READ, /* none yet, or being read */
	TRACED_STREAM_ENDED,
	TRACED_STREAM_CUT, /* it ended in the middle, or was empty */
};

/*
 * A session in a process. A process that starts during the trace may have a second one, for the
 * providers that must not be enabled before it runs.
 */
struct traced {
	struct tracing *tracing;
	struct traced *later;   /* the second session; NULL: none */
	struct traced *earlier; /* of a second session: the first */
	enum traced_state state;
	enum traced_stream stream_state;
	struct runtime_start start; /* in TRACED_DELAYED */
	uint64_t asked_ns;          /* when its opening began */
	/* when to check again whether another program has resumed the runtime */
	uint64_t look_ns;
	char *name;
	uint32_t pid;
	bool seen;                        /* its pid is in the recorder's pid namespace */
	struct dotnet_target port;        /* known if `client` has a target */
	struct runtime_client own;        /* of the process; a second session has none */
	struct runtime_client *client;    /* that of the process */
	struct eventpipe *pipe;           /* the client's: in TRACED_OPEN and TRACED_PAUSING */
	uint32_t process;                 /* index in the trace */
	int stream;                       /* number in the relay; -1: none yet */
	int raw_fd;                       /* -1: none */
	struct nettrace_decoder *watcher; /* decoder of raw bytes, for options.event */
	struct trace watched;
	uint64_t events;
	uint64_t lost_reported;
	uint64_t bytes; /* of the process's earlier sessions */
	int peer;       /* index in the listen port; -1: none */
	struct held_runtime held;
	bool runtime_reported;
	bool late;   /* it was in TRACED_DELAYED */
	bool opened; /* a session was open at some time */
	bool whole;
	int write_error;
	char write_reason[640];
	struct reason_note reason;
};

enum tracing_phase { PHASE_RUNNING, PHASE_PAUSING, PHASE_ENDING };

struct tracing {
	struct tracing_options options;
	struct late_providers split; /* options.providers, split for runtimes that are starting */
	struct trace trace;
	struct reorder_window window;
	struct session_writer writer;
	struct relay *relay;
	struct thread_clocks *clocks; /* NULL: no samples are requested that need them */
	struct guard *guard;
	uint32_t guarded; /* processes whose sessions the guard has ended, since the last notice */
	struct reverse *reverse;
	VEC(struct traced *) list; /* entries are not moved: handlers point to them */
	struct poll_set set;
	uint64_t first_open_ns;
	uint64_t due_open_ns;
	uint64_t flush_ns;
	uint64_t released_ns;
	size_t released_bytes; /* the window is released early when more bytes than this wait */
	uint64_t events;
	uint64_t late;
	uint64_t raw_bytes;
	const char *end_reason;
	enum tracing_phase phase;
	bool wants_end;
	bool unguarded_emitted;
	char unguarded[768]; /* why there is no guard; "" if there is one */
};

/* The trace's bytes go to files as they are. */
bool tracing_is_raw(const struct tracing *tracing);

/*
 * Adds a process. `seen`: its pid is in the recorder's pid namespace, so the guard can connect to it.
 * `endpoint` NULL: its own socket. `peer`: its index in the listen port; -1: none. A process without a
 * session is in TRACED_FAILED.
 */
int traced_add(struct tracing *tracing, const struct target *target, bool seen,
	const struct dotnet_endpoint *endpoint, int peer, struct diag *diag);

/* The one place where the state changes. */
void traced_enter(struct traced *traced, enum traced_state state);

/* All steps that need no waiting. traced_advance_wait(): only those of a runtime's start. */
void traced_advance(struct traced *traced, uint64_t now_ns);
void traced_advance_wait(struct traced *traced, uint64_t now_ns);

/* Resumes the runtime if it waits for that. */
void traced_begin_resume(struct traced *traced, uint64_t now_ns);

/* Opens the session of a pause that is over. */
void traced_open_again(struct traced *traced, uint64_t now_ns);

/* Write to the file: what the runtime is, one time; events that were lost. */
void traced_tell_runtime(struct traced *traced);
void traced_tell_rest_of_loss(struct traced *traced);
void traced_write_loss(struct tracing *tracing, const struct traced *traced, uint64_t count,
	uint32_t tid, uint64_t time_ns, bool gap);

/* It waits for a runtime's start; it is still ending. */
bool traced_is_waiting(const struct traced *traced);
bool traced_still_ends(const struct traced *traced);

/* The state, and the counts and reasons added to those of the process, for callers. */
enum tracing_state traced_public_state(const struct traced *traced);
void traced_add_facts(const struct traced *traced, struct tracing_process *facts);

#endif
