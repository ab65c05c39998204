/*
 * A trace: EventPipe sessions of any number of processes, written to one file, or each runtime's
 * bytes unchanged to a separate file.
 *
 *   tracing_new(&options, &tracing, &diag);
 *   tracing_add(tracing, target, &diag);                     each chosen process
 *   tracing_write_to(tracing, fd, name, &diag);              the one file; not with options.open_raw
 *   tracing_start(tracing, &diag);
 *   while (tracing_step(tracing, fds, count, until_ns, &diag) > 0) ...    until the caller has a reason to end
 *   tracing_end(tracing, "reason");                          begins the end; then further steps until tracing_ended()
 *   tracing_finish(tracing, &diag);                          closes the remaining sessions and ends the file
 *   tracing_close(tracing);
 *
 * Runtimes that connect to the listen port (tracing_listen()) are added when they connect: their
 * session is opened before their first instruction, then they are resumed. Providers that must not
 * be enabled during the start (late_providers.h) get a second session, which is opened after it.
 *
 * Not thread-safe. Only tracing_step() waits for events, and no session can hold it up. If a
 * session could not be opened, or broke off, tracing_process() reports it; the other sessions
 * continue. Lost events are written as an event, and as a gap in the file's sequence numbers.
 */
#ifndef SPOOR_TRACING_TRACING_H
#define SPOOR_TRACING_TRACING_H

#include "tracing/tracing_options.h"

int tracing_new(const struct tracing_options *options, struct tracing **ret_tracing,
	struct diag *diag);

/* Returns 0 or -ENOMEM. If the process cannot be traced, tracing_process() reports it. */
int tracing_add(struct tracing *tracing, const struct target *target, struct diag *diag);

/*
 * Adds a runtime that listens at a path, with the pid that it reports. `path` is borrowed until
 * tracing_close().
 */
int tracing_add_path(struct tracing *tracing, const char *path, struct diag *diag);

/* Adds the runtimes that connect to the port. The port is borrowed and must outlive the trace. */
void tracing_listen(struct tracing *tracing, struct reverse *reverse);

int tracing_write_to(struct tracing *tracing, int fd, const char *name, struct diag *diag);

int tracing_start(struct tracing *tracing, struct diag *diag);

/*
 * Waits until work is due, until `until_ns`, or until one of the caller's `fds` is ready (its
 * revents are then set), then does the work. Returns 1 to continue, 0 if every session has ended
 * and no runtime can connect any more, or a negative errno if the file cannot be written; the data
 * written before is valid.
 */
int tracing_step(struct tracing *tracing, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag);

/*
 * The reason why the sessions have no guard (dotnet/guard.h): a sentence, also written to the file
 * as a notice. NULL if they have one.
 */
const char *tracing_unguarded(const struct tracing *tracing);

/* options.event has returned nonzero. */
bool tracing_wants_end(const struct tracing *tracing);

/*
 * For a stop of this process (Ctrl-Z), so that no target is held up: tracing_pause() begins to end
 * the sessions; the caller makes further steps until tracing_paused(), which does not wait for
 * targets that are stopped themselves. Sessions still open then are ended by the guard.
 * tracing_flush() writes the events so far. tracing_resume() opens a session again in each process
 * that had one, and writes a notice with the gap. With options.open_raw, where a file is one
 * session, the sessions end permanently.
 */
void tracing_pause(struct tracing *tracing);
bool tracing_paused(const struct tracing *tracing);
int tracing_flush(struct tracing *tracing, struct diag *diag);
void tracing_resume(struct tracing *tracing, uint64_t paused_ns);

/* Begins to end all sessions. Runtimes that connect later are resumed without a session. */
void tracing_end(struct tracing *tracing, const char *reason);
bool tracing_ended(const struct tracing *tracing);

int tracing_finish(struct tracing *tracing, struct diag *diag);

size_t tracing_process_count(const struct tracing *tracing);
void tracing_process(const struct tracing *tracing, size_t i, struct tracing_process *ret_process);

void tracing_count(const struct tracing *tracing, struct tracing_counts *ret_counts);

void tracing_close(struct tracing *tracing);

#endif
