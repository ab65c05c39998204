/*
 * A live session: the kernel's rings and the .NET processes' streams, brought into one order, named, and handed to a sink.
 *
 *   live_open(&options, &live, &diag);           opens the events; nothing runs yet
 *   live_write_to(live, fd, name, packed, &diag); the file sink
 *   live_start(live, &diag);
 *   while (live_step(live, fds, count, until_ns, &diag) > 0) ...     until the caller has a reason to end
 *   live_end(live, "reason", &diag);             bounded; live_end_now() makes it quicker from a second signal
 *   live_close(live);
 *
 * Where no perf event may be opened there are no rings (options.instead), and what threads do is known by their CPU clocks and their runtimes' samples.
 *
 * One thread, and one at idle priority that reads the files behind names (name_desk.h). Samples wait 250 ms (merge.h), a flush comes every 500 ms,
 * so what a kill costs is below a second. Losses, limits and processes that could not be asked become events.
 */
#ifndef SPOOR_RECORDING_LIVE_H
#define SPOOR_RECORDING_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/output_limit.h"
#include "recording/live_options.h"
#include "symbolize/names.h"

struct diag;
struct live;
struct pollfd;
struct recorder_info;

/* What a progress line and a summary show. */
/* What live_counts.dotnet_withheld means: "1 .NET process", "its", or "2 .NET processes", "their". */
#define LIVE_WITHHELD                                                                                                 \
	"the events of %s of other users were left out: the capabilities of spoor's file are for %s names and stacks only"
#define LIVE_WITHHELD_REMEDY "record with sudo to have the events too, or choose --no-events"

struct live_counts {
	uint64_t samples;
	uint64_t lost;                   /* samples, by the kernel's word */
	uint64_t late;
	uint64_t events;                 /* of .NET runtimes */
	uint64_t events_lost;            /* by a runtime, or here for want of room */
	uint64_t bytes;                  /* in the file */
	uint64_t unsampled_ns;           /* CPU time of the command that no sample stands for, as far as that is known, */
	uint64_t command_ns;             /* of so much */
	uint64_t frames;                 /* of samples; counted at the end */
	uint64_t unnamed[UNNAMED_CAUSE_COUNT];
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t dotnet_asked;
	uint32_t dotnet_known;
	uint32_t dotnet_withheld;        /* whose events were left out, as managed_withheld() counts them */
	uint32_t targets_left;
	bool memory_full;
	enum output_limit_kind limit;    /* that has been reached */
};

int live_open(const struct live_options *options, struct live **ret_live, struct diag *diag);

/* What is recorded, and the sentence on what is not (info->limit). */
const struct recorder_info *live_recorder_info(const struct live *live);

/* Writes the head of the recording, packed with zstd if so wanted, to `fd`, which stays the caller's. */
int live_write_to(struct live *live, int fd, const char *name, bool packed, struct diag *diag);

/* Lets the command run, before live_start(). For late_start only. */
int live_run_command(struct live *live, struct diag *diag);

/* Starts rings, reads the process table, lets the command run if it does not yet. */
int live_start(struct live *live, struct diag *diag);

/* Of enum right: what a started session still needs, for rights_reduce(). */
uint32_t live_rights(const struct live *live);

/*
 * The command and the children that it waited for used that much CPU time, by the kernel's own account. Where each task has events of its own (info->filter_by_pid is false) those
 * that lived for less than a sampling period were never sampled: what is missing is written with the recording's end. Before live_end().
 */
void live_command_used(struct live *live, uint64_t user_ns, uint64_t system_ns);

/* 127 or 126 as of a shell, when the command could not be run; else 0. */
int live_command_code(const struct live *live);

/* The command's process; 0 when there is none. The caller waits for it. */
uint32_t live_child_pid(const struct live *live);

/*
 * Waits until something is to be done (at most until `until_ns`, or until one of the caller's `fds` is ready, whose revents are then set) and does it. 1: goes on. 0: it
 * is to end, and live_end_reason() says why. Negative: the sink failed, and what it holds up to then is valid.
 */
int live_step(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag);

/* Why it ends by itself: all targets have ended, or a limit (live_count() says which) is reached. */
const char *live_end_reason(const struct live *live);

/*
 * Before the caller stops itself (Ctrl-Z): ends the .NET sessions, within 2 s, and flushes. Afterwards they are opened again, and the file
 * says how long it was.
 */
void live_pause(struct live *live);
void live_resume(struct live *live, uint64_t paused_ns);

/*
 * Stops the rings, ends the .NET sessions, names what can still be named, and ends the file. `fds` are watched as in live_step(): when one becomes
 * ready, the rest is cut short.
 */
int live_end(struct live *live, const char *reason, struct pollfd *fds, size_t fd_count,
	struct diag *diag);

void live_count(const struct live *live, struct live_counts *ret_counts);

void live_close(struct live *live);

#endif
