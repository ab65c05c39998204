/*
 * The CPU time of a thread or a process, read from /proc; visibility is the only right that this
 * needs.
 *
 * A thread's clock is that of schedstat, in ns. It does not advance while the thread is blocked;
 * for a running thread it is as old as the kernel's last tick. Without schedstat it is that of
 * stat, in ticks (10 ms). A process's clock is that of stat: it includes threads that have ended,
 * and exists until the parent has reaped the process.
 */
#ifndef SPOOR_MACHINE_CPU_CLOCK_H
#define SPOOR_MACHINE_CPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/proc.h"

struct process_clock {
	uint64_t cpu_ns;
	uint64_t children_ns; /* of its reaped children and their descendants */
	uint32_t parent_pid;
	uint64_t start_ticks; /* with the pid, it identifies the process */
	uint32_t thread_count;
	char state;
	char comm[PROC_COMM_MAX];
};

/* -ESRCH: the process does not exist or was reaped. */
int process_clock_read(const struct proc_reader *proc, uint32_t pid,
	struct process_clock *ret_clock);

/* A reading is then one system call. The descriptor keeps to its thread if the id is reused. */
int thread_clock_open(const struct proc_reader *proc, uint32_t pid, uint32_t tid, int *ret_fd);

/* From a descriptor of thread_clock_open(). -ESRCH: the thread has ended. */
int thread_clock_read(const struct proc_reader *proc, int fd, uint64_t *ret_cpu_ns);

/* The parsers, separate from the files. They accept any bytes. */

/* schedstat: "CPU_NS WAIT_NS SLICES". */
bool cpu_clock_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns);

/* stat: utime and stime, cutime and cstime, fields 14 to 17, in ticks of `tick_ns`. */
bool cpu_clock_parse_stat(const char *text, size_t len, uint64_t tick_ns, uint64_t *ret_cpu_ns,
	uint64_t *ret_children_ns);

#endif
