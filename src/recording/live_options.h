/* The recording options of a live session, for live.h and the files that implement it. */
#ifndef SPOOR_RECORDING_LIVE_OPTIONS_H
#define SPOOR_RECORDING_LIVE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct diag;
struct ipc_provider;
struct record_child;
struct recorder_info;
struct recorder_options;
struct reverse;

struct live_options {
	bool machine;         /* every process; else `pids` or `child` */
	const uint32_t *pids; /* borrowed until live_close() */
	size_t pid_count;
	/*
	 * only these threads of `pids`, without threads and children that they start; borrowed
	 * until live_close()
	 */
	const uint32_t *tids;
	size_t tid_count;
	const uint32_t *cpus; /* only these CPUs; borrowed for live_open() */
	size_t cpu_count;     /* 0: all CPUs */
	/*
	 * the command, which waits for its start; NULL: none. With `machine` or `pids` it runs but
	 * is not a target. Borrowed until live_close()
	 */
	struct record_child *child;
	uint32_t frequency_hz;
	bool user_only;
	bool off_cpu;          /* record context switches */
	bool wakers;           /* with off_cpu: which thread woke a thread, in which stack */
	uint64_t min_block_ns; /* with off_cpu: shorter blocks are summed; 0: none are */
	bool io;               /* count system calls for input and output */
	bool kernel_only;
	bool unwind;          /* copy user stacks, and unwind them by tables */
	bool fit_copies;      /* copy less of them where that suffices */
	uint32_t stack_bytes; /* of these copies, a multiple of 8; 0: the default */
	/*
	 * listen port of the command's runtimes, which connect before their first instruction;
	 * NULL: none. Borrowed until live_close()
	 */
	struct reverse *reverse;
	/* the command starts at live_run_command(), recording at live_start() */
	bool late_start;
	bool no_names;  /* write addresses only */
	bool no_dotnet; /* open no diagnostics session */
	/* with no_dotnet: names of managed code are read from the processes' memory */
	bool names_from_memory;
	bool code;  /* write the machine code of sampled managed code */
	bool lines; /* write the IL offsets of sampled managed code */
	/*
	 * Event providers to enable in .NET processes in addition to method names; none: no events.
	 * Borrowed until live_close().
	 */
	const struct ipc_provider *providers;
	uint32_t provider_count;
	const char *providers_text;     /* `providers` as text, for the file */
	unsigned stack_kinds;           /* enum stacks_of: events with stacks; needs providers */
	uint64_t activity_max;          /* events of activities of a process; needs providers */
	uint32_t event_rate;            /* see event_bound.h; 0: no bound */
	const char *const *lttng;       /* NULL-terminated: events of LTTng; NULL: none */
	const char *const *usdt;        /* NULL-terminated: USDT probes; NULL: none */
	const char *const *user_events; /* NULL-terminated: events of user_events; NULL: none */
	/* Event providers to enable in .NET 10 processes by user_events, as `providers`. Borrowed likewise. */
	const struct ipc_provider *user_providers;
	uint32_t user_provider_count;
	const char *user_providers_text; /* as providers_text */
	bool no_arguments;               /* write no command lines to the file */
	const char *const *symbol_paths; /* NULL-terminated, or NULL */
	uint64_t size_max;               /* approximate limit of the recording; 0: none */
	/*
	 * why perf events are not used: then CPU time comes from thread clocks (live_clocks.h);
	 * NULL: they are used. Borrowed for live_open()
	 */
	const struct diag *instead;
	/* release the file's cached pages, because they count against the target's memory limit */
	bool spare_page_cache;
	/* a socket on which another process sends what it observes (live_observations.h); 0: none. Borrowed */
	int observations_fd;
	const char *command_line; /* the recorder's, for the file */
	const char *version;
};

/* Whether anything is recorded by the kernel's user_events. */
bool live_options_want_user_events(const struct live_options *options);

/*
 * What the recorder is to open. `unwinds`: user stacks are copied. Borrows what `options` borrows,
 * and `command_pid`, the pid of options->child.
 */
void live_options_recorder(const struct live_options *options, bool unwinds,
	const uint32_t *command_pid, struct recorder_options *ret_options);

/* Appends the options as JSON for the file; `info` is what was opened for them. */
void live_options_json(const struct live_options *options, const struct recorder_info *info,
	struct bytes *out);

#endif
