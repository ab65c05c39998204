/*
 * Moves records from the perf rings into the reorder window: they are decoded in place, their call
 * chains are interned, and the space of a ring is released when all its records have been read.
 */
#ifndef SPOOR_RECORDING_INTAKE_H
#define SPOOR_RECORDING_INTAKE_H

#include <stdint.h>

#include "perf/perf_record.h"

struct arch;
struct pid_filter;
struct recorder;
struct stack_unwinder;
struct reorder_window;
struct trace;

#define INTAKE_FRAMES_MAX 2048u

struct intake {
	/* borrowed; set by the session */
	struct recorder *recorder;
	struct trace *trace;
	struct reorder_window *window;
	struct pid_filter *filter;
	const struct arch *arch;
	struct stack_unwinder *unwinder; /* NULL: the kernel's chains are taken as they are */
	struct perf_layout layout;
	uint64_t frames[INTAKE_FRAMES_MAX]; /* scratch */
};

/* Reads all records that are in the rings now. */
void intake_drain(struct intake *intake);

#endif
