/*
 * Counters of any number of .NET processes: one EventPipe session each, their events made into a
 * table of series a process.
 *
 *   counting_new(&options, &counting, &diag);
 *   counting_add(counting, target, &diag);                  each chosen process
 *   counting_add_path(counting, path, &diag);               a runtime that listens at a path
 *   counting_listen(counting, reverse);                     runtimes that connect to Spoor's port: counted from their first instruction on
 *   while (poll_set_begin(&set, until_ns), counting_step(counting, &set) > 0) ...   until the caller has a reason to end
 *   counting_stop(counting);                                begins the end; then further steps until it returns 0
 *   counting_free(counting);
 *
 * options.ready() is called each time an interval of a process is over: its series hold the figures
 * of that interval until the next call.
 *
 * The interval is set by the caller: the runtime's may be shorter (another tool requested that) or
 * longer, and begins at its own time. The arrival of a process's first values sets the time at
 * which its intervals end: SETTLE_NS (counting.c) after the runtime's own, so that each holds the
 * values of one runtime interval.
 *
 * The Meters' session is shared (SessionId SHARED, and our own client id): the session of a tool
 * that started earlier continues, and when it has other limits we join it with these. One thread,
 * nothing blocks.
 */
#ifndef SPOOR_COUNTERS_COUNTING_H
#define SPOOR_COUNTERS_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "dotnet/reason.h"

struct counter_choice;
struct counter_instrument;
struct counters;
struct counting;
struct diag;
struct guard;
struct poll_set;
struct reverse;
struct target;

#define COUNTING_INTERVAL_MIN_NS UINT64_C(100000000)
#define COUNTING_BUFFER_MB       4u

enum counting_state {
	COUNTING_OPENING,
	COUNTING_RUNNING,
	COUNTING_STOPPING,
	COUNTING_ENDED,
	COUNTING_FAILED, /* no session, or it broke off: the reason */
};

/* Whether a process has had more time for its next values than any runtime needs. */
enum counting_wait {
	COUNTING_ON_TIME,
	COUNTING_UNANSWERED, /* its session is not open: reason */
	COUNTING_SILENT,     /* its session is open, but no values arrive */
};

struct counting_process {
	uint32_t pid;
	const char *name;
	enum counting_state state;
	const char *reason; /* sentence part; "" */
	enum reason_kind reason_kind;
	const char *runtime_version; /* "10.0.12"; "" not known */
	const struct counters *counters;
	uint64_t utc_ns;                              /* when the last interval ended */
	uint64_t monotonic_ns;                        /* when the last interval ended */
	uint64_t intervals;                           /* that are over */
	uint64_t bytes;                               /* of the stream */
	uint64_t lost;                                /* events, by its sequence numbers */
	const struct counter_instrument *instruments; /* of its Meters */
	uint32_t instrument_count;
	bool listed; /* options.list: all instruments were reported */
	enum counting_wait wait;
};

struct counting_options {
	const struct counter_choice *choice; /* borrowed, as the rest */
	uint64_t interval_ns;
	uint32_t max_histograms;
	uint32_t max_time_series;
	bool list;   /* report the instruments, not their values */
	bool hold;   /* runtimes of counting_listen() are not resumed */
	bool derive; /* CPU, GC pause, allocations are worked out */
	struct guard *guard;
	void (*ready)(void *context, uint32_t process);
	/* A sentence about a process, reported once: the missing values, and the reason. */
	void (*tell)(void *context, uint32_t process, const char *sentence);
	void *context;
};

int counting_new(const struct counting_options *options, struct counting **ret_counting,
	struct diag *diag);

/* -ENOMEM, or an error of dotnet_target_read(). Other failures show in the process's state. */
int counting_add(struct counting *counting, const struct target *target, struct diag *diag);

/*
 * A runtime that listens at a path; its pid is the one in its reply to ProcessInfo. `path` is
 * borrowed until counting_free().
 */
int counting_add_path(struct counting *counting, const char *path, struct diag *diag);

/*
 * Counts the runtimes that connect to this port; each is resumed once its session is open. The port
 * belongs to the caller and must outlive `counting`.
 */
void counting_listen(struct counting *counting, struct reverse *reverse);

/*
 * One turn: waits until there is something to do, or for what the caller has added to the set since
 * poll_set_begin(). Returns the number of processes
 * that have not ended, plus one while runtimes can still connect to the port; negative errno.
 */
int counting_step(struct counting *counting, struct poll_set *set);

/*
 * Begins the end of all sessions. Runtimes that connect from now on are resumed without a session.
 */
void counting_stop(struct counting *counting);

uint32_t counting_count(const struct counting *counting);
void counting_process(const struct counting *counting, uint32_t index,
	struct counting_process *ret_process);

void counting_free(struct counting *counting);

#endif
