/*
 * A live session without perf events. Threads' CPU clocks (thread_clocks.h) give their CPU time,
 * and the .NET runtimes' samples of managed threads (managed.h) give stacks. Both are joined
 * (trace/clock_join.h) into the CPU samples of the recording.
 *
 * Process starts, exits and execs are not reported either: /proc is scanned ten times a second, so
 * a process that lives for less than 100 ms may be missed.
 */
#ifndef SPOOR_RECORDING_LIVE_CLOCKS_H
#define SPOOR_RECORDING_LIVE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct live_clocks;
struct process_table;
struct stack_table;

/*
 * `samples`: the runtimes are asked for samples; called after managed_relay() then. The table is
 * borrowed. Returns a negative errno without memory or /proc.
 */
int live_clocks_open(struct process_table *table, bool samples, struct live_clocks **ret_clocks);

/* Starts counting CPU time. Called after process_table_scan(). */
void live_clocks_start(struct live_clocks *clocks);

/* When to call live_clocks_turn() at the latest. */
uint64_t live_clocks_wake_ns(const struct live_clocks *clocks);

/*
 * Reads the clocks that are due. `soon`: reads all of them, because a target may be about to exit
 * and its clock would be lost.
 */
void live_clocks_turn(struct live_clocks *clocks, uint64_t now_ns, bool soon);

/* The watermark: all samples up to this time are in the reorder window. */
uint64_t live_clocks_limit_ns(const struct live_clocks *clocks);

/*
 * live_clocks_stop() reads all clocks one last time. live_clocks_finish() writes the remaining
 * samples; it is called when the runtimes have sent all theirs.
 */
void live_clocks_stop(struct live_clocks *clocks);
void live_clocks_finish(struct live_clocks *clocks);

void live_clocks_move_stacks(struct live_clocks *clocks, struct stack_table *fresh);
uint64_t live_clocks_size_bytes(const struct live_clocks *clocks);
void live_clocks_close(struct live_clocks *clocks);

#endif
