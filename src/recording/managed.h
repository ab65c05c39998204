/*
 * The .NET processes of a live session: requests their method names and events over one runtime
 * connection for each process.
 *
 * For every process passed to managed_watch(), a client (recording/dotnet_client.h) opens a live and
 * a rundown session. Their streams are decoded (nettrace/nettrace_read.h) and the methods are added
 * (trace/clr.h) to the process's codemap in `symbolizer`. At most MANAGED_RUNDOWNS_MAX processes are in
 * their rundown at a time; the others wait. A process without a diagnostics socket (it is starting)
 * is retried for 5 s.
 *
 * A guard process (dotnet/guard.h), started with the first session, ends the sessions when this
 * process is stopped or hangs for too long. They are opened again afterwards. Each
 * managed_advance() sends the guard a heartbeat, so it must be called at least once a second.
 *
 * Sessions with events use the caller's own rights only. Sessions for names only may also use
 * spoor's file capabilities (dotnet/port.h). So a spoor with file capabilities gets the names of
 * another user's process but no events; managed_withheld() counts such processes.
 *
 * With managed_relay() the live streams pass through a relay (relay.h). Enabled events wait in its
 * reorder window; other events only name methods.
 *
 * The session of a runtime that has run for 10 s or more does not report new methods
 * (dotnet_wishes.without_methods), which lowers its overhead: most of its code is compiled already. When
 * samples fall into unknown code (symbolizer_process.has_unresolved_samples), another rundown names it. Such a
 * runtime still names dynamic methods when it frees them. Methods of collectible assemblies are
 * removed without an event at that level; if the process has any, its methods are reported after
 * all.
 *
 * Many processes run the same code: method names are stored once for all of them.
 *
 * Nothing here blocks except managed_free(), for at most 100 ms a process.
 */
#ifndef SPOOR_RECORDING_MANAGED_H
#define SPOOR_RECORDING_MANAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/managed_outcome.h"

struct exception_gap;
struct guard;
struct held_runtime;
struct ipc_process_info;
struct ipc_provider;
struct managed;
struct poll_set;
struct symbolizer;
struct relay;
struct trace;
struct windows_gap;

/* The guard of the sessions; NULL: there is none. Valid until managed_free(), or the next managed_advance(). */
struct guard *managed_guard(const struct managed *managed);

int managed_new(struct trace *trace, struct symbolizer *symbolizer, managed_report *report,
	managed_notice *notice, void *context, struct managed **ret_managed);

/*
 * Enables events of these providers and relays them; at most `pending_max` bytes wait in the
 * reorder window. Called before the first managed_watch(). The relay and the providers are borrowed
 * and must outlive `managed`.
 */
void managed_relay(struct managed *managed, struct relay *relay,
	const struct ipc_provider *providers, uint32_t count, size_t pending_max);

/*
 * Events of these kinds (enum stacks_of, dotnet/stack_events.h) are enabled as well, and have
 * stacks. Called after managed_relay(), before the first managed_watch().
 */
void managed_stacks(struct managed *managed, unsigned kinds);

/*
 * Activities (trace/activity_events.def) are recorded as well, with stacks, until a process has sent
 * `max` events of them. Called after managed_relay(), before the first managed_watch().
 */
void managed_activities(struct managed *managed, uint64_t max);

/*
 * Of a process that throws more than `rate` exceptions a second they are observed in short windows
 * only (exception_watch.h), and so are sampled allocations with stacks above a rate of their own; 0:
 * always. No effect on exceptions if the requested keywords have all steps of an
 * exception. Called after managed_stacks(), before the first managed_watch().
 */
void managed_bound(struct managed *managed, uint32_t rate);

/* What happens after end_ns does not belong to the recording. Called once, before managed_stop(). */
void managed_limit(struct managed *managed, uint64_t end_ns);

/* The next exceptions of a process that were not observed. False: none for now. */
bool managed_take_gap(struct managed *managed, uint32_t process, uint64_t now_ns,
	struct exception_gap *ret_gap);

/* The next time in which a process's sampled allocations were not observed. False: none for now. */
bool managed_take_windows_gap(struct managed *managed, uint32_t process,
	struct windows_gap *ret_gap);

/*
 * Lets the runtimes sample their managed threads, and reports each sample: `stack` is an index of
 * the trace's stack table, `runs` is true if the thread was in managed code. Called after
 * managed_relay(), before the first managed_watch().
 */
void managed_sample(struct managed *managed, managed_sampled *sampled, void *context);

/*
 * Events of a process lost since the last call: by the runtime (lost), and here because pending_max
 * was reached (dropped). Returns false for none.
 */
bool managed_take_losses(struct managed *managed, uint32_t process, uint64_t *ret_lost,
	uint64_t *ret_dropped);

/* Connects to a process with signs of .NET, from `from_ns` on. A second call has no effect. */
void managed_watch(struct managed *managed, uint32_t process, uint64_t from_ns);

/*
 * A runtime of that process has connected to the listen port and waits before its first
 * instruction. Its session is opened, then the runtime is resumed, within MANAGED_HOLD_NS in any
 * case. Returns true if `held` was taken over. The port must outlive `managed`.
 */
bool managed_hold(struct managed *managed, uint32_t process, const struct held_runtime *held,
	uint64_t now_ns);

/* Reports a process that shows signs of .NET as found too late to connect to. */
void managed_miss(struct managed *managed, uint32_t process);

/* A connection is open: its stream may hold events older than records that left the rings. */
bool managed_is_streaming(const struct managed *managed);

/* The process has ended: the rest of its streams is read, but no session is opened. */
void managed_process_ended(struct managed *managed, uint32_t process);

/* Its streams are read, or its events wait in the window: the process's tables must stay. */
bool managed_is_busy(const struct managed *managed, uint32_t process);

/* Frees the connection, because the process's slot will be reused. The process must not be busy. */
void managed_forget(struct managed *managed, uint32_t process);

/* Adds the descriptors to wait for, and the time to call managed_advance() at the latest. */
void managed_await(const struct managed *managed, struct poll_set *set);

void managed_advance(struct managed *managed, uint64_t now_ns);

/*
 * managed_pause() ends all sessions before this process is stopped, as managed_stop() does;
 * managed_ended() reports the end. managed_resume() opens them again, even if they have not ended
 * yet.
 */
void managed_pause(struct managed *managed, uint64_t now_ns);
void managed_resume(struct managed *managed, uint64_t now_ns);

/*
 * True while samples fell into code that no rundown has reported, and a rundown that may report it
 * is running or waiting, or while the number of exceptions is about to be known. Called before managed_stop(), in each step until it is false; the caller
 * limits the time.
 */
bool managed_names_rest(struct managed *managed, uint64_t now_ns);

/*
 * managed_stop() begins to end all sessions; managed_ended() is true when they have ended (within
 * DOTNET_STOP_NS).
 */
void managed_stop(struct managed *managed, uint64_t now_ns);
bool managed_ended(const struct managed *managed);

/*
 * Events lost according to the streams' sequence numbers, without those that managed_take_losses()
 * has returned.
 */
uint64_t managed_lost(const struct managed *managed);

/*
 * Number of processes whose events were not recorded: the file capabilities of spoor reach them,
 * the caller's own rights do not. Their names are recorded.
 */
uint32_t managed_withheld(const struct managed *managed);

/* Memory of the names that the processes' code maps share. */
size_t managed_size_bytes(const struct managed *managed);

/* Number of processes that were connected to, and of those with known names. */
void managed_counts(const struct managed *managed, uint32_t *ret_asked, uint32_t *ret_known);

void managed_free(struct managed *managed);

#endif
