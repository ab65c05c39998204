/* What a live session is asked to record, and its clock: for live.h and for the parts of the session. */
#ifndef SPOOR_RECORDING_LIVE_OPTIONS_H
#define SPOOR_RECORDING_LIVE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct ipc_provider;
struct reverse;

struct live_options {
	bool machine;                    /* every process; else pids or command */
	const uint32_t *pids;            /* borrowed until live_close() */
	size_t pid_count;
	const uint32_t *tids;            /* of `pids` these threads only, and nothing they start; borrowed likewise */
	size_t tid_count;
	const uint32_t *cpus;            /* these CPUs only; borrowed for live_open() */
	size_t cpu_count;                /* 0: all */
	char *const *command;            /* NULL-terminated; NULL: none. Beside `machine` or `pids` it only runs, and is not recorded for itself */
	uint32_t frequency_hz;
	bool user_only;
	bool kernel_only;
	struct reverse *reverse;         /* the command's runtimes come to this port before their first instruction; NULL: none. Borrowed until live_close() */
	bool late_start;                 /* the command runs from live_run_command() on, live_start() comes later */
	bool no_names;                   /* addresses only */
	bool no_dotnet;                  /* open no diagnostics session */
	/* What .NET processes are asked for beside the names of their methods: borrowed until live_close(). None: no events. */
	const struct ipc_provider *providers;
	uint32_t provider_count;
	const char *providers_text;      /* the same, for the file */
	bool no_arguments;               /* no process's command line goes into the file */
	const char *const *symbol_paths; /* NULL-terminated, or NULL */
	uint64_t size_max;               /* of the recording, about; 0: none */
	const struct diag *instead;      /* no perf events: CPU time by the threads' clocks, stacks by .NET runtimes (live_clocks.h), and this says why; NULL: perf events. Borrowed for live_open() */
	bool spare_page_cache;           /* pages of the file are given back: they count against a limit of the target */
	const char *command_line;        /* of the recorder, for the file */
	const char *version;
};

#endif
