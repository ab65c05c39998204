/*
 * A live session without perf events: what threads used is known by their CPU clocks (thread_clocks.h), where they were by the samples that .NET runtimes take of
 * their managed threads (managed.h), and both are joined (trace/clock_join.h) into the CPU samples of the recording.
 *
 * Nobody tells of processes that come, end or become other programs either: they are looked for ten times a second, so one that lives for less may go unseen.
 */
#ifndef SPOOR_RECORDING_LIVE_CLOCKS_H
#define SPOOR_RECORDING_LIVE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct live;
struct pending;
struct stack_table;

/* When the options want it: behind managed_new() and live_events_open(). Without memory, or /proc: negative. */
int live_clocks_open(struct live *live);

/* Behind the reading of the process table: clocks count from now on. */
void live_clocks_start(struct live *live);

/* When to call live_clocks_turn() at the latest. */
uint64_t live_clocks_wake_ns(const struct live *live);

/* Reads what is due. `soon`: something has happened, perhaps the end of a target, whose clock is to be read before it is gone. */
void live_clocks_turn(struct live *live, uint64_t now_ns, bool soon);

/* Up to which time samples are in the window, or never will be. */
uint64_t live_clocks_limit_ns(const struct live *live);

/* The last readings; behind it live_clocks_finish() when the runtimes' samples have all come. */
void live_clocks_stop(struct live *live);
void live_clocks_finish(struct live *live);

/* An item of kind PENDING_SHARE, in its turn. */
void live_clocks_hand_over(struct live *live, const struct pending *item);

void live_clocks_move_stacks(struct live *live, struct stack_table *fresh);
uint64_t live_clocks_size_bytes(const struct live *live);
void live_clocks_close(struct live *live);

#endif
