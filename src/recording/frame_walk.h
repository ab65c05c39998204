/*
 * What a call chain that the kernel has walked by frame pointers depends on: the same walk over a copy of the stack.
 */
#ifndef SPOOR_RECORDING_FRAME_WALK_H
#define SPOOR_RECORDING_FRAME_WALK_H

#include <stdbool.h>
#include <stdint.h>

struct arch;
struct perf_record;
struct unwind_registers;
struct unwind_trace;

/*
 * `frames`: the user part of the chain of the record, which has a copy of the stack. False: the walk over the copy finds
 * another chain, or leaves the copy.
 */
bool frame_walk_trace(const struct arch *arch, const struct perf_record *record,
	const uint64_t *frames, uint32_t frame_count, struct unwind_registers *ret_registers,
	struct unwind_trace *ret_trace);

#endif
