/*
 * Where the time of each thread went: on a CPU, runnable, blocked. The three add up to the time
 * that the thread lived in the recording, or in the selected part of it.
 *
 *   thread_time_event(&times, &event)            for each event, in file order
 *   thread_time_finish(&times, &selection)       once: applies the filter, and sorts
 *   ... times.processes, times.rows, times.functions ...
 *   thread_time_done(&times)
 *
 * Blocks that were too short for an event each count where their sum was written, within 0.5 s.
 */
#ifndef SPOOR_ANALYSIS_THREAD_TIME_H
#define SPOOR_ANALYSIS_THREAD_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct blocks;
struct profile;
struct runtime_event;
struct symbolmap;

struct thread_time_row {
	uint32_t thread; /* row of trace.threads */
	uint32_t process;
	uint64_t begin_ns; /* of its life in the recording, on its clock */
	uint64_t end_ns;
	uint64_t wall_ns; /* in the selected time, of all its lives where the id was used again */
	uint64_t on_cpu_ns;
	uint64_t runnable_ns;
	uint64_t blocked_ns;
	uint64_t switches; /* in its whole life */
	bool ended;
	bool is_open; /* until thread_time_finish(): blocks follow its last summary */
};

/* Time attributed to the innermost function of the program itself, or to the leaf. */
struct thread_time_function {
	uint32_t process;
	uint32_t function;  /* 0: without a stack */
	uint64_t on_cpu_ns; /* by CPU samples, so not exact */
	uint64_t runnable_ns;
	uint64_t blocked_ns;
};

struct thread_time_process {
	uint32_t process;
	uint32_t row_at; /* its rows, most time on CPU and runnable first */
	uint32_t row_count;
	uint32_t function_at; /* its functions, most time first */
	uint32_t function_count;
	uint64_t wall_ns;
	uint64_t on_cpu_ns;
	uint64_t runnable_ns;
	uint64_t blocked_ns;
};

struct thread_time {
	VEC(struct thread_time_row) rows;          /* until thread_time_finish(): by thread row */
	VEC(struct thread_time_process) processes; /* most time on CPU and runnable first */
	VEC(struct thread_time_function) functions;
	/* false: of some blocks it is not known when they ended and the thread could run */
	bool runnable_unknown;
};

struct thread_time_selection {
	const struct profile *profile; /* has the CPU samples, and the filter */
	const struct symbolmap *names;
	const struct blocks *blocks;
	uint64_t begin_ns; /* of the recording, on its clock */
	uint64_t from_ns;  /* the selected time, since begin_ns */
	uint64_t to_ns;
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int thread_time_event(struct thread_time *times, const struct runtime_event *event);

/* 0, or -ENOMEM. */
int thread_time_finish(struct thread_time *times, const struct thread_time_selection *selection);

void thread_time_done(struct thread_time *times);

#endif
