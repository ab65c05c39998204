/*
 * Programs in the kernel that count the system calls for input and output (trace/io_calls.def) of all
 * processes but muted ones: by process, call, and file or descriptor. No call is written one by one, so
 * the cost does not grow with the data, and the counts are exact.
 *
 *   io_probe_open(&options, &probe);  io_probe_start(probe);
 *   io_probe_take(probe, each, context);           now and then: the counts since the last time
 *   io_probe_take_names(probe, each, context);     after it: the texts of names in them
 *   io_probe_stop(probe); both once more; io_probe_close(probe);
 *
 * A file has the name by which it was opened, and a socket the address to which it was connected, as the
 * process passed them. Descriptors from before the recording, accepted sockets, pipes and the like have
 * a class at most; /proc/PID/fd may say more, and io_probe_is_current() whether it is about the same file.
 */
#ifndef SPOOR_PERF_IO_PROBE_H
#define SPOOR_PERF_IO_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf/io_sum.h"

struct io_probe;

struct io_name {
	bool is_address; /* `text` is a struct sockaddr, otherwise a path */
	const char *text;
	size_t len;
};

/*
 * `waiting_pid`: a child before its exec, which is not counted until then; 0: none. -EPERM: without the
 * right to use BPF. -EXDEV: inside a pid namespace, whose pids the programs do not know. -ENOTSUP: not on this
 * processor. Other errors: this kernel cannot.
 */
int io_probe_open(uint32_t waiting_pid, struct io_probe **ret_probe);

int io_probe_start(struct io_probe *probe);
void io_probe_stop(struct io_probe *probe);

/* One bit for each pid below IO_PIDS_MAX (io_sum.h) that is not counted: bit pid % 64 of word pid / 64. */
uint64_t *io_probe_muted(struct io_probe *probe);

/*
 * Waits some 10 ms for programs that run, if there is anything to take. 0, or a negative errno: the rest comes
 * with the next call.
 */
int io_probe_take(struct io_probe *probe, void (*each)(void *context, const struct io_sum *sum),
	void *context);

/* Names that have not been passed yet. One may come twice, also with another number. */
int io_probe_take_names(struct io_probe *probe,
	void (*each)(void *context, uint32_t number, const struct io_name *name), void *context);

/* Whether the descriptor still refers to the same file as in the sum. */
bool io_probe_is_current(const struct io_probe *probe, const struct io_sum *sum);

/* Calls that were not counted, because the tables were full. */
uint64_t io_probe_lost(const struct io_probe *probe);

void io_probe_close(struct io_probe *probe);

#endif
