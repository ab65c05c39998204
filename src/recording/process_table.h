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

#include <stdint.h>

struct live;
struct live_process;
struct pending;

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

/*
 * The entry of the newest process with this pid; created if there is none. Returns 0 without
 * memory.
 */
uint32_t process_table_process(struct live *live, uint32_t pid);

/* As process_table_process(), but returns 0 instead of creating an entry. */
uint32_t process_table_find(const struct live *live, uint32_t pid);

/*
 * The process of a kernel record: as process_table_process(), but returns 0 for a process that is not
 * recorded. In CPU-wide sampling with a pid filter, an unknown process is looked up in /proc one
 * time.
 */
uint32_t process_table_owner(struct live *live, uint32_t pid);

/*
 * The session's own data of a process; NULL without memory. Valid until the next process is added.
 */
struct live_process *process_table_entry(struct live *live, uint32_t process);

/* Reads the processes to record from /proc. The rings must run already. */
void process_table_scan(struct live *live);

/*
 * Looks up an unknown process in /proc. If it is a target or the child of a recorded process, it is
 * added to the tables and its index is returned. Returns 0 if it is neither or has ended.
 */
uint32_t process_table_look(struct live *live, uint32_t pid);

/* Reads the process's current mappings from /proc. */
void process_table_read_mappings(struct live *live, uint32_t process);

/* Apply one kernel record each, in time order. */
void process_table_fork(struct live *live, const struct pending *item);
void process_table_comm(struct live *live, const struct pending *item);
void process_table_exit(struct live *live, const struct pending *item);
void process_table_add_mapping(struct live *live, uint32_t process,
	const struct pending_mapping *in, uint64_t time_ns);

/*
 * Called before a process's sample is written: process_table_announce() writes the process to the file,
 * process_table_adopt_mappings() copies the mappings that it shares with its parent since fork.
 */
void process_table_announce(struct live *live, uint32_t process);
void process_table_adopt_mappings(struct live *live, uint32_t process);

/* The row of a sampled thread; the main thread's row without memory. */
uint32_t process_table_thread(struct live *live, uint32_t process, uint32_t pid, uint32_t tid);

/* Frees the slots of ended processes and threads. Called right after a flush. */
void process_table_bury(struct live *live);

#endif
