/*
 * CPU time of garbage collection, by the samples: of the collector's own threads, and of all threads
 * while a collection stops the program, because only the collector runs then. A file without CPU
 * samples has none.
 *
 *   collector_cpu_event(&cpu, &event, trace)    for each event, in file order
 *   collector_cpu_of(&cpu, process)
 *   collector_cpu_done(&cpu)
 */
#ifndef SPOOR_ANALYSIS_COLLECTOR_CPU_H
#define SPOOR_ANALYSIS_COLLECTOR_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct runtime_event;
struct trace;

struct collector_cpu_process {
	uint32_t process;
	bool is_stopped;     /* all threads are suspended */
	uint64_t all_ns;     /* CPU time of the process */
	uint64_t pauses_ns;  /* while its threads were suspended */
	uint64_t threads_ns; /* of the collector's threads at other times */
};

struct collector_cpu {
	VEC(struct collector_cpu_process) processes;
};

/* 0, or -ENOMEM. */
int collector_cpu_event(struct collector_cpu *cpu, const struct runtime_event *event,
	const struct trace *trace);

/* NULL: it has no CPU samples. */
const struct collector_cpu_process *collector_cpu_of(const struct collector_cpu *cpu,
	uint32_t process);

void collector_cpu_done(struct collector_cpu *cpu);

#endif
