/*
 * The connection to one .NET runtime of a recording, and the set of them (managed.h): shared by
 * managed.c, connection.c, connection_exceptions.c and connection_stream.c, and by no other file. connection.c has the steps: the
 * start, rundowns, reports, the end. connection_stream.c decodes the event streams, takes names from
 * them, and passes the requested events to the relay. connection_exceptions.c opens and closes the
 * sessions for exceptions.
 */
#ifndef SPOOR_RECORDING_CONNECTION_H
#define SPOOR_RECORDING_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "dotnet/held_runtime.h"
#include "recording/dotnet_client.h"
#include "recording/event_windows.h"
#include "recording/exception_watch.h"
#include "recording/managed_outcome.h"
#include "symbolize/symbolizer_state.h"
#include "trace/trace.h"

struct event;
struct guard;
struct nettrace_decoder;
struct relay;

/*
 * Method names shared by several processes. A table larger than TEXTS_BYTES_MAX accepts no new
 * processes, and is freed with its last one.
 */
struct method_texts {
	struct strtab table;
	uint32_t users;
};

/* How far the names of one process are. */
enum connection_state {
	CONNECTION_WAITING, /* no client: the next try is at retry_ns */
	CONNECTION_ASKING,  /* the first rundown since the start of this client is under way */
	CONNECTION_NAMED,   /* that rundown is over, and so is each later one */
	CONNECTION_AGAIN,   /* another rundown is under way */
	CONNECTION_OVER,    /* no client, and none will follow */
};

/* Whether the runtime announces the methods that it compiles from now on. */
enum methods_state {
	METHODS_NONE,      /* no client */
	METHODS_ANNOUNCED, /* its live session does */
	METHODS_QUIET,     /* it does not: rundowns name them */
	METHODS_WANTED,    /* it does not, but it should: code of its assemblies can be removed */
	METHODS_ASKED,     /* a session for them was requested */
	METHODS_REPORTED,  /* that session is open, and managed_report was called for it */
	METHODS_REFUSED,   /* that session could not be opened: rundowns name them */
};

/* What managed_report was called with. */
enum report_state {
	REPORT_NONE,
	REPORT_UNREACHABLE, /* no names; they may still come from a runtime that hung */
	REPORT_NAMED,       /* its names were known; kept if a later connection fails */
};

struct connection {
	struct managed *managed;
	struct method_texts *texts;   /* shared by its code map */
	struct dotnet_client *client; /* NULL: waiting to connect, or over */
	struct nettrace_decoder *decoders[DOTNET_STREAM_COUNT];
	struct trace streams[DOTNET_STREAM_COUNT]; /* the schemas of each stream only */
	uint64_t retry_ns;                         /* when to connect (again); UINT64_MAX: never */
	uint64_t lost;                             /* by decoders that were freed */
	uint64_t lost_reported;
	uint64_t dropped; /* by relayed streams that were closed */
	uint64_t dropped_reported;
	/*
	 * all events up to this time have been read; UINT64_MAX: the stream has ended, or was not
	 * requested
	 */
	uint64_t reported_ns[DOTNET_STREAM_COUNT];
	/* the stream's number in the relay; -1: not relayed */
	int relayed[DOTNET_STREAM_COUNT];
	uint64_t activity_count; /* events of the session for activities */
	struct exception_watch watch;
	struct event_windows allocations;
	uint64_t switch_ns; /* earliest time at which a session for exceptions is opened again */
	bool unsettled;     /* a session was closed, whose events may still be enabled */
	uint64_t reopen_ns; /* likewise, for allocations */
	uint32_t process;
	uint32_t pid;
	uint32_t inner_pid; /* its pid in its own namespace */
	int64_t clock_offset_ns;
	uint64_t clock_error_ns; /* 0: not measured */
	uint64_t rundown_ns;     /* begin of the current or last rundown */
	uint64_t again_ns;       /* earliest time of the next rundown */
	unsigned retries;
	/* the thread that suspends the others for a sample, until it has resumed them; 0: none */
	uint32_t stopper;
	enum connection_state state;
	enum methods_state methods;
	enum report_state report;
	/* once-flag: the rundown before the end of the recording was begun */
	bool rested;
	bool valued; /* the first counter values of this client's session have come */
	bool process_ended;
	/* the caller has no rights over the process: names only, with borrowed rights */
	bool names_only;
	struct held_runtime held;
	uint64_t held_ns; /* since when it waits */
};

struct managed {
	struct trace *trace;
	struct symbolizer *symbolizer;
	managed_report *report;
	managed_notice *notice;
	void *context;
	struct relay *relay; /* NULL: names only */
	const struct ipc_provider *providers;
	uint32_t provider_count;
	size_t pending_max;
	unsigned stack_kinds;     /* enum stacks_of */
	uint64_t activity_max;    /* events of activities of a process; 0: no session for them */
	uint32_t exception_rate;  /* exceptions a second of a process; 0: all are observed */
	uint32_t allocation_rate; /* sampled allocations a second, likewise */
	uint64_t end_ns;          /* of the recording; 0: it has not ended */
	bool live_counts;         /* the live session has the values of the runtime's counters */
	managed_sampled *sampled; /* NULL: no samples */
	void *sampled_context;
	VEC(uint8_t) wanted;              /* by schema: enum wish */
	struct guard *guard;              /* NULL: not started yet, or not available */
	uint32_t guard_rounds;            /* number of the guard's interventions already handled */
	uint64_t pause_ns;                /* since when; 0: not paused */
	VEC(struct connection *) list;    /* entries are not moved: clients point to them */
	struct map by_process;            /* process -> list index + 1 */
	VEC(struct method_texts *) texts; /* the last table is used for new processes */
	uint64_t past_lost;               /* of connections that were freed */
	uint32_t past_asked;
	uint32_t past_known;
	uint32_t rundowns; /* rundowns read to their end */
	uint32_t withheld; /* connections that became names_only */
	bool unguarded;    /* this was reported */
	bool stopping;
};

/* The one place where the state changes. */
void connection_enter(struct connection *connection, enum connection_state state);

/* The one place where `methods` changes. */
void connection_enter_methods(struct connection *connection, enum methods_state state);

/* The rules that both assert. */
bool connection_may_enter(enum connection_state from, enum connection_state to);
bool connection_may_enter_methods(enum methods_state from, enum methods_state to);

/* The state that the symbolizer sees. */
void connection_set_state(struct connection *connection, enum managed_state state);

/*
 * Lets the process's code map, which must be empty, share a table of names. Without memory the code
 * map keeps its own names.
 */
void connection_share_texts(struct connection *connection);

/* Called when the process's code map is not read any more. The last process frees the table. */
void connection_give_up_texts(struct connection *connection);

/* Calls managed_report, and is the one place where `report` changes. */
void connection_report(struct connection *connection, bool reachable, const char *reason,
	enum reason_kind kind);

/* Enters MANAGED_REFUSED and reports a reason of reasons.def. */
void connection_refuse(struct connection *connection, enum reason reason);

void connection_drop_client(struct connection *connection);

/* Reports a missing guard, one time; the recording continues without it. */
void managed_tell_unguarded(struct managed *managed, const char *why);

/* Connects to the runtime, or sets the time of the next try. */
void connection_start(struct connection *connection, uint64_t now_ns);

/* Resumes a held runtime: its session is open, none will be, or MANAGED_HOLD_NS has passed. */
void connection_advance_hold(struct connection *connection, uint64_t now_ns);

/*
 * Opens the sessions again after they were ended during the recording. Its rundown reports the
 * methods that were compiled meanwhile.
 */
void connection_begin_again(struct connection *connection, uint64_t since_ns, uint64_t now_ns);

/* Begins another rundown, for methods that were compiled after the last one. */
void connection_begin_rundown(struct connection *connection, uint64_t now_ns);

/* Handles the client's new state: names known, refused, hung or ended. */
void connection_look(struct connection *connection, enum dotnet_state state, uint64_t now_ns);

/* ---- connection_exceptions.c ---- */

/* The client is new: requests the sessions for exceptions and allocations, if they are bounded. */
void connection_begin_exceptions(struct connection *connection);

/* All streams have ended. */
void connection_end_exceptions(struct connection *connection, uint64_t now_ns);

/* Opens and closes the sessions for exceptions, for their counter, and for allocations. */
void connection_advance_exceptions(struct connection *connection, uint64_t now_ns);

/* Called by the relay for an event of the session for exceptions. `context` is the connection. */
bool connection_on_exception(void *context, const struct event *event);
bool connection_on_allocation(void *context, const struct event *event); /* likewise */

/* Takes the number of exceptions from an event of the stream that is a value of their counter. */
void connection_take_count(struct connection *connection, enum dotnet_stream stream,
	const struct event *event, uint64_t now_ns);

/* ---- connection_stream.c ---- */

/*
 * Updates symbolizer_process.reported_ns: the time up to which the streams that report method loads and
 * unloads have been read.
 */
void connection_note_reported(struct connection *connection, enum dotnet_stream stream,
	uint64_t reported_ns);

/* The dotnet_client's handler of bytes; `user` is the connection. */
int connection_bytes(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size);

/*
 * Sends the guard a heartbeat, and opens the sessions again that it ended because this process was
 * not running.
 */
void managed_look_at_guard(struct managed *managed, uint64_t now_ns);

#endif
