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

struct live;
struct pending;
struct stack_table;

/*
 * Does nothing unless options.instead is set. Called after managed_new() and live_events_open().
 * Returns a negative errno without memory or /proc.
 */
int live_clocks_open(struct live *live);

/* Starts counting CPU time. Called after process_table_scan(). */
void live_clocks_start(struct live *live);

/* When to call live_clocks_turn() at the latest. */
uint64_t live_clocks_wake_ns(const struct live *live);

/*
 * Reads the clocks that are due. `soon`: reads all of them, because a target may be about to exit
 * and its clock would be lost.
 */
void live_clocks_turn(struct live *live, uint64_t now_ns, bool soon);

/* The watermark: all samples up to this time are in the reorder window. */
uint64_t live_clocks_limit_ns(const struct live *live);

/*
 * live_clocks_stop() reads all clocks one last time. live_clocks_finish() writes the remaining
 * samples; it is called when the runtimes have sent all theirs.
 */
void live_clocks_stop(struct live *live);
void live_clocks_finish(struct live *live);

/* Writes an item of kind PENDING_SHARE that leaves the reorder window. */
void live_clocks_hand_over(struct live *live, const struct pending *item);

void live_clocks_move_stacks(struct live *live, struct stack_table *fresh);
uint64_t live_clocks_size_bytes(const struct live *live);
void live_clocks_close(struct live *live);

#endif
