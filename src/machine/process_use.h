/*
 * What a process uses of the machine at one moment, read from /proc. Two readings tell how it
 * changed. Visibility is the only right that this needs, but for the descriptors and writes.
 */
#ifndef SPOOR_MACHINE_PROCESS_USE_H
#define SPOOR_MACHINE_PROCESS_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/proc.h"

struct process_use {
	uint64_t time_ns;       /* CLOCK_MONOTONIC of the reading */
	uint64_t cpu_ns;        /* of the threads that exist */
	uint64_t wait_ns;       /* that they were ready to run and had no CPU */
	uint64_t private_bytes; /* resident memory that no file has; 0: unknown */
	uint64_t descriptors;   /* open ones */
	uint64_t write_calls;   /* system calls that write to files, pipes and terminals */
	uint64_t written_bytes; /* by them */
	bool has_wait;          /* cpu_ns and wait_ns are known */
	bool has_descriptors;
	bool has_writes;
};

/* -ESRCH: the process has ended. */
int process_use_read(struct proc_reader *proc, uint32_t pid, struct process_use *ret_use);

/* Only wait_ns, as above. False: not known. */
bool process_use_read_wait(struct proc_reader *proc, uint32_t pid, uint64_t *ret_wait_ns);

/* The parsers, separate from the files. They accept any bytes. */

/* schedstat: "CPU_NS WAIT_NS SLICES". */
bool process_use_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns,
	uint64_t *ret_wait_ns);

/* statm: "SIZE RESIDENT SHARED ...", in pages; the resident pages that are not shared. */
bool process_use_parse_statm(const char *text, size_t len, uint64_t *ret_pages);

/* io: lines "wchar: BYTES" and "syscw: CALLS" among others. */
bool process_use_parse_io(const char *text, size_t len, uint64_t *ret_calls, uint64_t *ret_bytes);

#endif
