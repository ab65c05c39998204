/*
 * The .NET processes of a live session: asked for their methods, each in a conversation of its own.
 *
 * For every process that managed_watch() is told of, a client (dotnet/runtime_client.h) opens a live and a rundown session; what they stream is
 * decoded (nettrace/nettrace_read.h) and absorbed (trace/clr.h) into the process's codemap in `names`. At most eight processes are in
 * their rundown at a time; the others wait. One that has no socket yet (it is just starting) is tried again for a while.
 *
 * The sessions stand under a guard (dotnet/guard.h), started with the first of them: when this process was stopped or hung for too long they are
 * gone, and are opened again. Each turn (managed_advance()) tells the guard that all is well, so one must come at least once a second.
 *
 * Sessions with events are opened with the caller's own rights alone, sessions with names only also with borrowed ones (dotnet/port.h). So a spoor with
 * file capabilities gets the names of another user's process, and managed_withheld() counts it.
 *
 * With managed_relay() what the live sessions tell goes through a relay (relay.h), and those of the events that were asked for wait in its window; the others name
 * methods, and no more.
 *
 * A runtime that has been running for some time is not asked to tell of new methods, which costs it the less (dotnet_client_untold()): most of what it runs is compiled, and
 * when other code is hit (names_process.untold_hit) another rundown tells what it is. What such a runtime makes at run time and frees again it names when it does.
 * Assemblies that can be unloaded take their methods with them unsaid: where there are any, methods are told of after all.
 *
 * Many processes run the same code: the names of their methods are kept once for all of them.
 *
 * Nothing here blocks but managed_free(), for 100 ms a process at most.
 */
#ifndef SPOOR_RECORDING_MANAGED_H
#define SPOOR_RECORDING_MANAGED_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_runtime;
struct ipc_process_info;
struct ipc_provider;
struct managed;
struct names;
struct relay;
struct trace;

#define MANAGED_RUNDOWNS_MAX 8u
#define MANAGED_HOLD_NS      UINT64_C(5000000000)

/* What became of one process: reported once it is known, and again when it changes. */
struct managed_outcome {
	uint32_t process;
	bool reachable;
	const char *reason;                  /* sentence part; "" when reachable */
	const char *reason_code;             /* one word */
	const struct ipc_process_info *info; /* NULL when it said nothing */
	const char *sessions;                /* that were opened in it, one a line; "" none */
	bool clock_measured;
	int64_t clock_offset_ns;             /* its events' clock minus CLOCK_MONOTONIC */
	uint64_t clock_error_ns;             /* to within which that is known */
};

typedef void managed_report(void *context, const struct managed_outcome *outcome);

/*
 * What befell all sessions at once: the guard ended them ("guard"), they were left unguarded ("unguarded"). `text` is a sentence; what was
 * ended is already being opened again.
 */
typedef void managed_told(void *context, const char *code, const char *text);

int managed_new(struct trace *trace, struct names *names, managed_report *report, managed_told *told,
	void *context, struct managed **ret_managed);

/*
 * Events of these providers are asked for and relayed; at most `pending_max` bytes of them wait. Before the first managed_watch(). The relay is the caller's and
 * outlives `managed`, the providers are borrowed likewise.
 */
void managed_relay(struct managed *managed, struct relay *relay, const struct ipc_provider *providers, uint32_t count,
	size_t pending_max);

/*
 * The runtimes sample their managed threads, and each sample is told: `stack` in the trace's table, `runs` when the thread was in managed code then. Behind managed_relay(), before the
 * first managed_watch().
 */
typedef void managed_sampled(void *context, uint32_t process, uint32_t tid, uint64_t time_ns, uint32_t stack, bool runs);
void managed_sample(struct managed *managed, managed_sampled *sampled);

/* Events of a process that were lost since this was asked last: by the runtime, and for want of room here. False: none. */
bool managed_take_losses(struct managed *managed, uint32_t process, uint64_t *ret_lost, uint64_t *ret_dropped);

/* A process that shows signs of .NET, to be asked from then on. A second call does no harm. */
void managed_watch(struct managed *managed, uint32_t process, uint64_t from_ns);

/*
 * A runtime of that process has come to our listen port and waits before its first instruction. Its session is opened, then the runtime is resumed; within
 * MANAGED_HOLD_NS whatever happens. True: `held` was taken over. The port outlives `managed`.
 */
bool managed_hold(struct managed *managed, uint32_t process, const struct held_runtime *held, uint64_t now_ns);

/* A process that shows signs of .NET, too late to be asked. */
void managed_miss(struct managed *managed, uint32_t process);

/* A stream of some process is open: its events may be older than records that have left the rings. */
bool managed_is_streaming(const struct managed *managed);

/* The process is gone: what its streams still hold is read, nothing new is tried. */
void managed_process_ended(struct managed *managed, uint32_t process);

/* True while its streams are still read, or events of them wait: the process's tables must stay. */
bool managed_is_busy(const struct managed *managed, uint32_t process);

/* The process's place is given to another one. It is not busy. */
void managed_forget(struct managed *managed, uint32_t process);

/* Descriptors to wait for: written to `fds` (at most `room`), their number returned. */
size_t managed_fds(const struct managed *managed, struct pollfd *fds, size_t room);

/* When to call managed_advance() at the latest; UINT64_MAX for never. */
uint64_t managed_wake_ns(const struct managed *managed);

void managed_advance(struct managed *managed, uint64_t now_ns);

/*
 * Before this process is stopped: all sessions are ended, as by managed_stop(), until managed_ended(). managed_resume() opens them again, also when
 * they have not ended yet.
 */
void managed_pause(struct managed *managed, uint64_t now_ns);
void managed_resume(struct managed *managed, uint64_t now_ns);

/*
 * Before managed_stop(), in each turn until it is false: code was hit that no rundown has told of, and one is under way that will. It is for the caller to
 * bound.
 */
bool managed_names_rest(struct managed *managed, uint64_t now_ns);

/* Begins the end of all sessions; managed_ended() tells when it is through (bounded by DOTNET_STOP_NS). */
void managed_stop(struct managed *managed, uint64_t now_ns);
bool managed_ended(const struct managed *managed);

/* Events that the streams' sequence numbers say were lost, without those that managed_take_losses() has told. */
uint64_t managed_lost(const struct managed *managed);

/* Processes whose events were left out: rights borrowed from spoor's file reach them, the caller's own do not. They have their names. */
uint32_t managed_withheld(const struct managed *managed);

/* Memory of the texts that the processes' code maps share. */
size_t managed_size_bytes(const struct managed *managed);

/* How many processes were asked, and of how many the names are known. */
void managed_counts(const struct managed *managed, uint32_t *ret_asked, uint32_t *ret_known);

void managed_free(struct managed *managed);

#endif
