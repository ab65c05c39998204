/*
 * A live session: merges the kernel's perf rings and the .NET processes' event streams in time
 * order, names their addresses, and writes them to a sink.
 *
 *   live_open(&options, &live, &diag);           opens the perf events; nothing runs yet
 *   live_write_to(live, fd, name, packed, &diag); opens the file sink
 *   live_start(live, &diag);
 *   while (live_step(live, fds, count, until_ns, &diag) > 0) ...     until the caller has a reason to end
 *   live_end(live, "reason", fds, count, &diag); bounded; shorter once one of the caller's fds is
 *   ready live_close(live);
 *
 * If no perf event can be opened (options.instead), there are no rings: the threads' CPU clocks
 * give CPU time and the .NET runtimes' samples give stacks.
 *
 * The caller's thread does all the work but reading symbol files, for which a second thread runs at
 * idle priority (symbol_worker.h). Samples wait 250 ms in the reorder window (reorder_window.h) and the sink is
 * flushed every 500 ms, so a SIGKILL loses less than one second of data. Losses, limits and .NET
 * processes that did not answer are written as events.
 */
#ifndef SPOOR_RECORDING_LIVE_H
#define SPOOR_RECORDING_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/live_counts.h"
#include "recording/live_options.h"

struct diag;
struct live;
struct pollfd;
struct recorder_info;

int live_open(const struct live_options *options, struct live **ret_live, struct diag *diag);

/* Why system calls are not counted although options.io is set; NULL: they are, or it is not set. */
const struct diag *live_io_limit(const struct live *live);

/* The opened perf events; info->limit describes the part that cannot be recorded. */
const struct recorder_info *live_recorder_info(const struct live *live);

/* Writes the file header to `fd`, which the caller keeps owning. `packed`: compressed with zstd. */
int live_write_to(struct live *live, int fd, const char *name, bool packed, struct diag *diag);

/* Starts the command, before live_start(). Only with options.late_start. The caller reaps it. */
int live_run_command(struct live *live, struct diag *diag);

/* Starts the rings, reads the process table, and starts the command if it does not run yet. */
int live_start(struct live *live, struct diag *diag);

/* The rights that a started session still needs (a set of enum right), for rights_reduce(). */
uint32_t live_rights(const struct live *live);

/*
 * Reports the CPU time of the command and of the children that it waited for, as accounted by the
 * kernel. With events for each task (info->filter_by_pid is false), tasks that lived for less than
 * a sampling period have no samples; the missing CPU time is written at the end of the recording.
 * Called before live_end().
 */
void live_command_used(struct live *live, uint64_t user_ns, uint64_t system_ns);

/*
 * Waits until work is due, until `until_ns`, or until one of the caller's `fds` is ready (its
 * revents are then set), then does the work. Returns 1 to continue, 0 to end (live_end_reason()
 * names the reason), or a negative errno if the sink failed; the data written before the failure is
 * valid.
 */
int live_step(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag);

/* The reason for ending: all targets have ended, or a limit (live_counts.limit) is reached. */
const char *live_end_reason(const struct live *live);

/*
 * live_pause() ends the .NET sessions, within 2 s, and flushes; called before the caller stops
 * itself (Ctrl-Z). live_resume() opens the sessions again and writes a notice with the duration of
 * the pause.
 */
void live_pause(struct live *live);
void live_resume(struct live *live, uint64_t paused_ns);

/*
 * Stops the rings, ends the .NET sessions, resolves the remaining names, and ends the file. `fds`
 * are polled as in live_step(): when one becomes ready, waiting for the .NET sessions is cut short.
 */
int live_end(struct live *live, const char *reason, struct pollfd *fds, size_t fd_count,
	struct diag *diag);

void live_close(struct live *live);

#endif
