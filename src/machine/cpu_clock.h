/*
 * How much CPU time a thread or a process has used, as /proc tells of it. Nothing is sent to it, and it takes no right but to see it.
 *
 * A thread's clock is schedstat's, in nanoseconds; it stands still while the thread does, and for one that runs it is as old as the kernel's last tick. Kernels
 * without it have stat's ticks of 10 ms. A process's clock is stat's: of all its threads, of those that have ended too, and there until somebody has waited for it.
 */
#ifndef SPOOR_MACHINE_CPU_CLOCK_H
#define SPOOR_MACHINE_CPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/proc.h"

struct process_clock {
	uint64_t cpu_ns;
	uint64_t children_ns;  /* of children that it has waited for, and of theirs */
	uint32_t parent_pid;
	uint64_t start_ticks;  /* the same process has the same */
	uint32_t thread_count;
	char state;
	char comm[PROC_COMM_MAX];
};

/* -ESRCH: there is no such process, or it was waited for. */
int process_clock_read(const struct proc_reader *proc, uint32_t pid, struct process_clock *ret_clock);

/* A thread's clock, kept open so that a reading is one call; the descriptor stays with its thread, whoever gets the number next. */
int thread_clock_open(const struct proc_reader *proc, uint32_t pid, uint32_t tid, int *ret_fd);

/* From a descriptor of thread_clock_open(). -ESRCH: it has ended. */
int thread_clock_read(const struct proc_reader *proc, int fd, uint64_t *ret_cpu_ns);

/* The parsers, apart from the files. They take any bytes. */

/* schedstat: "CPU_NS WAIT_NS SLICES". */
bool cpu_clock_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns);

/* stat: utime and stime, cutime and cstime, fields 14 to 17, in ticks of `tick_ns`. */
bool cpu_clock_parse_stat(const char *text, size_t len, uint64_t tick_ns, uint64_t *ret_cpu_ns, uint64_t *ret_children_ns);

#endif
