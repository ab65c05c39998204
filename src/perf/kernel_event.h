/* The system calls on perf events. Tests link their own, to test src/perf without the kernel. */
#ifndef SPOOR_PERF_KERNEL_EVENT_H
#define SPOOR_PERF_KERNEL_EVENT_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/types.h>

/* perf_event_open(2): returns the descriptor or a negative errno. `group` is always none. */
int event_open(const struct perf_event_attr *attr, pid_t pid, int cpu);

/* These return 0 or a negative errno. */
int event_enable(int fd);
int event_disable(int fd);
int event_read_id(int fd, uint64_t *ret_id);

/* Lets the event write into the ring of the event `owner`. */
int event_redirect(int fd, int owner);

/* Only events of a tracepoint whose fields pass the filter, such as "prev_pid != 0", are recorded. */
int event_filter(int fd, const char *filter);

/* Runs a BPF program at each event of the tracepoint, on all CPUs, as long as this one is open. */
int event_run_program(int fd, int program_fd);

#endif
