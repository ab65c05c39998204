/*
 * The guard of open diagnostics sessions: a small process that ends them when the Spoor process
 * that reads them cannot.
 *
 * A session whose reader does not run (stopped by a signal or a debugger, blocked by a failed disk)
 * hurts its target: the next stop of any session, the next tool, and the target's own exit wait in
 * the runtime until the stream is read. A reader that was killed leaves its sessions open: a
 * runtime that sends no events does not notice, and each of them permanently takes one of the
 * runtime's 64 session slots. So the guard, forked into a separate terminal session (setsid()),
 * where neither Ctrl-Z nor the hangup of the terminal reaches it, has a duplicate of each
 * connection's descriptor and watches the process that forked it, the owner. When the owner has
 * exited, or has used no CPU for 2 s (8 s when it uses CPU but does not call guard_beat()), the
 * guard reads the streams in its place, sends StopTracing to the runtimes, and shuts down the
 * connections whose streams have not ended 2 s later.
 *
 *   guard_start(&guard, &diag);                        one for all sessions of a program
 *   key = guard_add(guard, fd, &target);               before CollectTracing is sent on this connection
 *   guard_session(guard, key, session_id);             once its id is known; 0 once StopTracing was sent
 *   guard_remove(guard, key);                          before the connection is closed
 *   guard_beat(guard, now_ns);                         in each turn, at least once a second
 *   guard_rounds(guard)                                has grown: the guard has ended every session it had. Bytes read since may follow a gap, so
 *                                                      compare after each read
 *   guard_free(guard);                                 ends the sessions that are still listed, and the guard
 *
 * A struct runtime_client does all of this but start, beat and free (runtime_client.h). A guard
 * that dies is started again. Limit: a cause that stops or ends both processes together (a frozen
 * cgroup, the end of a container's first process) leaves the sessions open. SECURITY.md and spoor
 * doctor say so.
 */
#ifndef SPOOR_DOTNET_GUARD_H
#define SPOOR_DOTNET_GUARD_H

#include <stdint.h>

struct diag;
struct dotnet_target;
struct guard;

/*
 * The sessions' owner may use no CPU for the first of these times, and may use CPU without calling
 * guard_beat() for the second; then the guard ends its sessions.
 */
#define GUARD_PATIENCE_NS UINT64_C(2000000000)
#define GUARD_BUSY_NS     UINT64_C(8000000000)

/* The same in ticks of the watching process, which does not count while it is stopped. */
#define GUARD_TICK_MS      250
#define GUARD_SILENT_TICKS (GUARD_PATIENCE_NS / (GUARD_TICK_MS * UINT64_C(1000000)))
#define GUARD_BUSY_TICKS   (GUARD_BUSY_NS / (GUARD_TICK_MS * UINT64_C(1000000)))

/* CPU time of the process's main thread in ns; 0 where the kernel does not count it. */
uint64_t guard_cpu_ns(uint32_t pid);

/* Forks the guard. Call it early: the guard shares the memory that the process has then. */
int guard_start(struct guard **ret_guard, struct diag *diag);

/* Signals that the owner runs. A memory access, and a system call every 250 ms. */
void guard_beat(struct guard *guard, uint64_t now_ns);

/* The key of the guarded connection; 0: not guarded. `guard` may be NULL here and below. */
uint32_t guard_add(struct guard *guard, int fd, const struct dotnet_target *target);

void guard_session(struct guard *guard, uint32_t key, uint64_t session_id);

/* 0 is no key, and ignored. */
void guard_remove(struct guard *guard, uint32_t key);

/* The number of rounds, in each of which the guard ended the sessions; 0 without a guard. */
uint32_t guard_rounds(const struct guard *guard);

/* Of the last round: when the process was last seen (CLOCK_MONOTONIC), and its state. */
void guard_last_round(const struct guard *guard, uint64_t *ret_seen_ns, char *ret_state);

/* Why nothing is guarded any more: a sentence part; NULL while all is well. */
const char *guard_problem(const struct guard *guard);

/* The process id of the guard; 0 when there is none. */
uint32_t guard_pid(const struct guard *guard);

void guard_free(struct guard *guard);

#endif
