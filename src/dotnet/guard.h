/*
 * The guard of open diagnostics sessions: a small process that ends them when their reader cannot.
 *
 * A session whose reader stands still (stopped by a signal, held by a debugger, waiting for a dead disk) hurts its target: the next stop of
 * any session, the next tool, and the target's own exit wait in the runtime until somebody reads. A reader that was killed leaves sessions
 * that keep one of the 64 places of a quiet target for good. So the guard, forked into a session of its own where neither Ctrl-Z nor the
 * terminal's end reaches it, has a copy of each session's socket and watches who made it. When that process has gone, or has not run for
 * 2 s (8 s when it runs but does not come by), it reads the streams in its place, asks the runtimes to stop, and shuts down what has not ended 2 s later.
 *
 *   guard_start(&guard, &diag);                        one for all sessions of a program
 *   key = guard_add(guard, fd, &target);               before a session is asked for on this connection
 *   guard_session(guard, key, session_id);             once its id is known; 0 once it was asked to stop
 *   guard_remove(guard, key);                          before the connection is closed
 *   guard_beat(guard, now_ns);                         in each turn, at least once a second
 *   guard_rounds(guard)                                has grown: every session of before was ended. Bytes that are read from one
 *                                                      after that are not its next ones: look again behind each read
 *   guard_free(guard);                                 ends what is left, and the guard
 *
 * A struct dotnet_client does all of this but start, beat and free (dotnet_client_guard()). A guard that dies is started again. Limit: what
 * stops or ends both processes at once (a frozen cgroup, the end of the first process of a container) is not helped. SECURITY.md and spoor doctor say so.
 */
#ifndef SPOOR_DOTNET_GUARD_H
#define SPOOR_DOTNET_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct dotnet_target;
struct guard;

/* For so long the sessions' owner may stay away without having run, and for so long when it runs: it may be busy, but not for ever. */
#define GUARD_PATIENCE_NS UINT64_C(2000000000)
#define GUARD_BUSY_NS     UINT64_C(8000000000)

/* The same in ticks of a watching process's own: while it stands still itself, no time passes. */
#define GUARD_TICK_MS      250
#define GUARD_SILENT_TICKS (GUARD_PATIENCE_NS / (GUARD_TICK_MS * UINT64_C(1000000)))
#define GUARD_BUSY_TICKS   (GUARD_BUSY_NS / (GUARD_TICK_MS * UINT64_C(1000000)))

/* Nanoseconds of CPU time that the process's main thread has had; 0 where the kernel does not count them. */
uint64_t guard_cpu_ns(uint32_t pid);

/* Forks it. Call it early: what memory the process has by then, the guard has too (shared until it is written to). */
int guard_start(struct guard **ret_guard, struct diag *diag);

/* I am still here. Costs a memory access, and a system call every quarter of a second. */
void guard_beat(struct guard *guard, uint64_t now_ns);

/* The key of a connection that is now guarded; 0 when it is not (no guard, no memory). `guard` may be NULL here and below. */
uint32_t guard_add(struct guard *guard, int fd, const struct dotnet_target *target);

void guard_session(struct guard *guard, uint32_t key, uint64_t session_id);

/* 0 is no key, and ignored. */
void guard_remove(struct guard *guard, uint32_t key);

/* How many times it has ended the sessions; 0 without a guard. */
uint32_t guard_rounds(const struct guard *guard);

/* About the last round: the process was last seen at *ret_seen_ns (CLOCK_MONOTONIC), in this state of /proc/PID/stat ('T' stopped). */
void guard_last_round(const struct guard *guard, uint64_t *ret_seen_ns, char *ret_state);

/* Why nothing is guarded any more: a sentence part; NULL while all is well. */
const char *guard_problem(const struct guard *guard);

/* The process id of the guard; 0 when there is none. */
uint32_t guard_pid(const struct guard *guard);

void guard_free(struct guard *guard);

#endif
