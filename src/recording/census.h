/*
 * The process table of a live session: who lives, what is mapped where, what has been told of it.
 *
 * It begins with /proc, read while the rings already run, and goes on with the kernel's records as they leave the window, in order of time;
 * what a process's reading from /proc has shown already is passed over. A process becomes part of the file when a sample first hits it.
 * Places of ended processes and threads are given to others, so that memory does not grow with every process that ever ran.
 */
#ifndef SPOOR_RECORDING_CENSUS_H
#define SPOOR_RECORDING_CENSUS_H

#include <stdint.h>

struct live;
struct live_process;
struct pending;

/* Side of PENDING_MAPPING. */
struct pending_mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t file_offset;
	uint64_t device;
	uint64_t inode;
	uint32_t path;     /* strtab */
	uint32_t build_id; /* strtab */
};

/* What is known of the newest process with this pid, made when there is none; 0 when there is no memory. */
uint32_t census_process(struct live *live, uint32_t pid);

/* The same, without making one. */
uint32_t census_find(const struct live *live, uint32_t pid);

/*
 * Whom a record of the kernel belongs to: as census_process() does, but 0 for a process that is not to be recorded. Where the CPUs are sampled for some
 * processes, one that nobody told of is looked at once.
 */
uint32_t census_owner(struct live *live, uint32_t pid);

/* The session's own entry of a process; NULL when there is no memory. Valid until the next process appears. */
struct live_process *census_entry(struct live *live, uint32_t process);

/* Reads all that is to be recorded from /proc. The rings run. */
void census_scan(struct live *live);

/*
 * Without rings: looks at a process that nobody told of. It is in the tables then if it is to be recorded: one of the targets, or a child of one that is. 0: it is
 * not, or has ended.
 */
uint32_t census_look(struct live *live, uint32_t pid);

/* Its mappings, as they are now. */
void census_read_mappings(struct live *live, uint32_t process);

/* The kernel's records, in order of time. */
void census_fork(struct live *live, const struct pending *item);
void census_comm(struct live *live, const struct pending *item);
void census_exit(struct live *live, const struct pending *item);
void census_add_mapping(struct live *live, uint32_t process, const struct pending_mapping *in,
	uint64_t time_ns);

/* Before a process's sample: it is in the file from now on, and what it shares with the process it was forked from is its own. */
void census_announce(struct live *live, uint32_t process);
void census_adopt_mappings(struct live *live, uint32_t process);

/* The row of a sampled thread; that of the main thread when there is no memory. */
uint32_t census_thread(struct live *live, uint32_t process, uint32_t pid, uint32_t tid);

/* Right after a flush: gives up the places of what has ended. */
void census_bury(struct live *live);

#endif
