/*
 * USDT probes in a live session: finds the images of the recorded processes that have probes, also those that are mapped
 * later, probes them (usdt_sites.h), and writes their events with the call chains.
 *
 * Each file is read one time, however many processes map it. Files that libspoor makes at run time grow, so they
 * stay open and are read again when they have grown. Events of processes that are not recorded are dropped.
 */
#ifndef SPOOR_RECORDING_LIVE_USDT_H
#define SPOOR_RECORDING_LIVE_USDT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "recording/hits.h"
#include "recording/usdt_sites.h"

struct diag;
struct pending;
struct perf_record;
struct poll_set;
struct process_table;
struct usdt_probe;

/* A file that grows. */
struct usdt_file {
	int fd;
	uint64_t size_bytes;
	uint32_t note_count; /* that were read */
};

/* A process whose mappings are to be read. */
struct usdt_process {
	uint32_t pid;
	uint32_t tries; /* readings that met a mapping that had changed */
};

/* A file that was mapped for the first time: read by its path if the process ends before. */
struct usdt_path {
	uint32_t pid;
	uint32_t path; /* strtab of the trace */
};

/* All zero: no USDT probes are recorded. */
struct live_usdt {
	struct process_table *table; /* borrowed; NULL: not started */
	struct usdt_sites sites;
	struct map seen; /* hash of a file's device and inode */
	VEC(struct usdt_file) growing;
	VEC(struct usdt_process) processes;
	VEC(struct usdt_path) paths; /* since the last look */
	struct map known_paths;      /* that were among them */
	struct map recorded;         /* pids; not used if all processes are recorded */
	struct bytes payload;
	uint64_t looked_ns;
	struct hits hits;
	uint64_t unreadable; /* arguments of written events that could not be read */
	/* of processes that ended before: images with probes, read by their paths; and that could not be read */
	uint32_t late_files;
	uint32_t missed_files;
	uint32_t refused;  /* sites that could not be probed */
	int refused_error; /* of the last */
};

/*
 * Whether `patterns` (NULL: none; NULL-terminated, each PROVIDER or PROVIDER:PROBE, several with commas) can be used; `threads`:
 * single threads are recorded, for which there are no USDT probes. 0 or -EINVAL.
 */
int live_usdt_check(const char *const *patterns, bool threads, struct diag *diag);

/* Probes the images of the processes in the table, and of the command that is about to start. */
void live_usdt_start(struct live_usdt *usdt, struct process_table *table, struct usdt_probe *probe);

void live_usdt_await(const struct live_usdt *usdt, struct poll_set *set);

/* For the kernel's records, in their order: a process has a new executable mapping of a file (0: not known), forks, has ended. */
void live_usdt_note(struct live_usdt *usdt, uint32_t pid, uint32_t path);
void live_usdt_fork(struct live_usdt *usdt, uint32_t parent_pid, uint32_t pid);
void live_usdt_exit(struct live_usdt *usdt, uint32_t pid);

/* Probes the images that were mapped since the last call, and the new probes of files that grow. */
void live_usdt_look(struct live_usdt *usdt, uint64_t now_ns);

/* Puts a sample with raw data into the window; false: it is not of a USDT probe. */
bool live_usdt_take(struct live_usdt *usdt, const struct perf_record *record, uint32_t stack_index);
/* Whether live_usdt_take() would take it. Cheap. */
bool live_usdt_is_hit(const struct perf_record *record);

/* Writes an item of kind PENDING_USDT that leaves the window. */
void live_usdt_write(struct live_usdt *usdt, const struct pending *item, uint64_t late_ns);

/* Events of probes that were not written, apart from those that full rings lost. */
uint64_t live_usdt_lost(const struct live_usdt *usdt);

/* Writes notices about what could not be recorded. */
void live_usdt_tell(struct live_usdt *usdt);

void live_usdt_done(struct live_usdt *usdt);

#endif
