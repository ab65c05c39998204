/*
 * How long a resumed runtime is left alone, because EventCounters that are enabled during its start can
 * deadlock it: one second, in which the process is not kept waiting for a CPU.
 *
 *   runtime_start_begin(&start, pid, now_ns);           it was resumed
 *   ... until start.due_ns ...
 *   if (runtime_start_is_over(&start, pid, now_ns))     else due_ns has moved
 */
#ifndef SPOOR_DOTNET_RUNTIME_START_H
#define SPOOR_DOTNET_RUNTIME_START_H

#include <stdbool.h>
#include <stdint.h>

/* A start takes some 0.1 s of CPU time. */
#define RUNTIME_START_NS UINT64_C(1000000000)
/* After this time it is over in any case. */
#define RUNTIME_START_MOST_NS UINT64_C(10000000000)

struct runtime_start {
	uint64_t begin_ns;  /* CLOCK_MONOTONIC */
	uint64_t waited_ns; /* that its threads had been ready to run and had no CPU by then */
	uint64_t due_ns;    /* CLOCK_MONOTONIC; not over before */
};

/* `pid` is in the caller's pid namespace. If /proc has no such process, only the second is waited. */
void runtime_start_begin(struct runtime_start *start, uint32_t pid, uint64_t now_ns);

bool runtime_start_is_over(struct runtime_start *start, uint32_t pid, uint64_t now_ns);

#endif
