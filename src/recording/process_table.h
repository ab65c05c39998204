/*
 * The process table of a live session: running processes, their threads and mappings, and which of
 * them are already in the file.
 *
 * The table starts with a reading of /proc, made while the rings already run. After that the
 * kernel's records update it as they leave the reorder window, in time order; a record older than
 * the process's /proc reading is skipped. A process is written to the file with its first sample.
 * Slots of ended processes and threads are reused, so that memory does not grow with every process
 * that ever ran.
 */
#ifndef SPOOR_RECORDING_PROCESS_TABLE_H
#define SPOOR_RECORDING_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "machine/proc.h"
#include "recording/pid_filter.h"

struct live_options;
struct managed;
struct pending;
struct session_writer;
struct symbolizer;
struct throttling;
struct trace;

/* A session's own data of a process, in addition to the trace's. */
struct live_process {
	/* when its tables were read from /proc: older sideband records are already included */
	uint64_t read_ns;
	/* it shares the first fork_end mappings of this process's list; 0: none */
	uint32_t fork_parent;
	uint32_t fork_end;
	bool wanted;    /* a target or started by one */
	bool announced; /* written to the file */
	/* time of the exec record; 0: none in this recording */
	uint64_t exec_ns;
	uint64_t code_ns;     /* of the last PENDING_CODE_CHANGED */
	unsigned start_steps; /* set of 1 << enum start_step: written to the file */
	bool follows_exec;    /* an entry for the same pid before its exec is in the file */
	/* children that started in the recording and ended without an event, since the last report */
	uint64_t other_children;
	uint32_t counted_by; /* the process whose other_children count this one; 0: none */
	uint64_t other_lives_ns;
	/* events dropped because the file size limit was reached, since the last report */
	uint64_t events_cut;
	/* Members of live_clocks.c from here on. */
	bool sampled;       /* its runtime sends samples */
	uint64_t comm_hash; /* of its program at the last check */
	uint64_t exe_hash;
	uint64_t looked_ns;   /* last reading of its mappings */
	uint64_t look_gap_ns; /* interval to the next reading */
	uint32_t stacks_seen; /* stacks with lower indexes were checked for unknown mappings */
};

struct process_table {
	/* borrowed; set by the session */
	const struct live_options *options;
	struct trace *trace;
	struct session_writer *writer;
	struct symbolizer *symbolizer;
	struct managed *managed;
	/* called for each mapping that is read from /proc; may be NULL */
	void (*mapped)(void *context, uint32_t pid, const char *path);
	void *mapped_context;
	struct throttling *throttling;
	bool filter_by_pid; /* the rings have records of other processes too */
	/* the command; 0: none. Before its exec it is a copy of spoor. */
	uint32_t command_pid;
	uint64_t command_exec_ns;
	/* own */
	struct proc_reader proc;
	VEC(struct live_process) rows; /* parallel to trace.processes */
	struct pid_filter filter;
	VEC(uint32_t) free_processes;
	VEC(uint32_t) free_threads;
	VEC(uint32_t) free_mappings;
	VEC(uint32_t) ended;         /* processes whose slots may be reused after a flush */
	VEC(uint32_t) ended_threads; /* threads, likewise */
};

/* Frees what the table owns. */
void process_table_done(struct process_table *table);

/* Attached to an item of kind PENDING_MAPPING (pending.side). */
struct pending_mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t file_offset;
	uint64_t device;
	uint64_t inode;
	uint32_t path;     /* strtab */
	uint32_t build_id; /* strtab */
};

/* The entry of the newest process with this pid, created if needed. Returns 0 without memory. */
uint32_t process_table_process(struct process_table *table, uint32_t pid);

/* As process_table_process(), but returns 0 instead of creating an entry. */
uint32_t process_table_find(const struct process_table *table, uint32_t pid);

/*
 * The process of a kernel record: as process_table_process(), but returns 0 for a process that is not
 * recorded. In CPU-wide sampling with a pid filter, an unknown process is looked up in /proc one
 * time.
 */
uint32_t process_table_owner(struct process_table *table, uint32_t pid);

/*
 * As process_table_owner(), but a process that is not recorded is read from /proc, for events that
 * mention it: its name and mappings, without a session in it. 0: it has ended.
 */
uint32_t process_table_other(struct process_table *table, uint32_t pid);

/*
 * Whether a process that may not be in the table yet is certainly not recorded: with a pid filter, one that
 * ran before the recording and is no target. It is added to the filter.
 */
bool process_table_is_foreign(struct process_table *table, uint32_t pid);

/*
 * At the end of the recording: writes how many children of each process have no event. Of a process
 * that has ended, this was written at its end.
 */
void process_table_tell_others(struct process_table *table, uint64_t end_ns);

/*
 * The session's own data of a process; NULL without memory. Valid until the next process is added.
 */
struct live_process *process_table_entry(struct process_table *table, uint32_t process);

/*
 * Between fork and exec the command is a copy of spoor. Per-task events begin at its exec, but
 * CPU-wide events do not.
 */
bool process_table_is_before_exec(const struct process_table *table, const struct pending *item);

/* Reads the processes to record from /proc. The rings must run already. */
void process_table_scan(struct process_table *table);

/*
 * Looks up an unknown process in /proc. If it is a target or the child of a recorded process, it is
 * added to the tables and its index is returned. Returns 0 if it is neither or has ended.
 */
uint32_t process_table_look(struct process_table *table, uint32_t pid);

/* Reads the process's current mappings from /proc. */
void process_table_read_mappings(struct process_table *table, uint32_t process);

/* Apply one kernel record each, in time order. */
void process_table_fork(struct process_table *table, const struct pending *item);
void process_table_comm(struct process_table *table, const struct pending *item);
void process_table_exit(struct process_table *table, const struct pending *item);
void process_table_add_mapping(struct process_table *table, uint32_t process,
	const struct pending_mapping *in, uint64_t time_ns);

/*
 * Called before a process's sample is written: process_table_announce() writes the process to the file,
 * process_table_adopt_mappings() copies the mappings that it shares with its parent since fork.
 */
void process_table_announce(struct process_table *table, uint32_t process);
void process_table_adopt_mappings(struct process_table *table, uint32_t process);

/* The row of a sampled thread; the main thread's row without memory. */
uint32_t process_table_thread(struct process_table *table, uint32_t process, uint32_t pid,
	uint32_t tid);

/* Frees the slots of ended processes and threads. Called right after a flush. */
void process_table_bury(struct process_table *table);

#endif
