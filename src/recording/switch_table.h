/*
 * The context switches that leave the reorder window: pairs them to blocks of threads and writes
 * each as a cswitch event when the thread is back on a CPU.
 *
 *   switch_table_begin()     once switches are recorded: which threads can run
 *   switch_table_switch(), switch_table_waking(), switch_table_fork(), switch_table_exec(),
 *   switch_table_exit()      in time order
 *   switch_table_flush()     at each flush of the file: writes the sums of short blocks
 *   switch_table_end()       once: the threads that live on
 *
 * All zero is an empty table; the members above `threads` are set by the session. Each thread has
 * its time split into on CPU, runnable and blocked, from the begin of the recording or its own to
 * the end of either; the three add up to this time.
 */
#ifndef SPOOR_RECORDING_SWITCH_TABLE_H
#define SPOOR_RECORDING_SWITCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct pending;
struct process_table;
struct samples;
struct stack_table;

/* Where a thread is. */
enum switch_place {
	SWITCH_PLACE_FREE, /* the row has no thread */
	SWITCH_PLACE_ON,   /* on a CPU since since_ns */
	SWITCH_PLACE_OFF,
	/* its exit was recorded; its last switches may follow */
	SWITCH_PLACE_ENDED,
};

/* in the value of a PENDING_SWITCH, beside the state */
#define SWITCH_CAME_UNSEEN 0x80u

struct switch_thread {
	uint64_t begin_ns; /* of the recording, or its own */
	uint64_t since_ns;
	uint64_t waking_ns; /* when it was woken; 0: not yet, or not recorded */
	uint64_t run_ns;
	uint64_t ready_ns;
	uint64_t blocked_ns;
	uint64_t switches;
	uint32_t process; /* index */
	uint32_t pid;
	uint32_t tid;
	uint32_t stack_index; /* where it left the CPU */
	uint32_t waker_pid;
	uint32_t waker_tid;
	uint32_t waker_stack;
	int16_t waker_cpu;
	uint8_t place; /* enum switch_place */
	uint8_t state; /* enum switch_state */
	uint8_t flags; /* enum switch_flag */
};

/* The sum of short blocks of one thread, stack and state, since the last flush. */
struct short_block {
	uint64_t value_ns;
	uint64_t ready_ns;
	uint64_t count;
	uint32_t thread; /* row of switch_table.threads */
	uint32_t stack_index;
	uint8_t state;
	uint8_t flags;
};

struct switch_table {
	/* borrowed */
	struct process_table *table;
	struct samples *samples; /* counts what the size limit cut */
	uint64_t min_block_ns;   /* shorter blocks are summed */
	bool wakers;             /* write the wakers and their stacks */
	VEC(struct switch_thread) threads;
	VEC(uint32_t) free_rows;
	VEC(struct short_block) short_blocks;
	struct map by_tid; /* row + 1 */
	struct map ready;  /* tid -> 1: it could run at the begin, and has had no record so far */
	struct map short_index;
	uint64_t count; /* blocks, short ones included */
	uint64_t short_count;
};

/*
 * Reads the states of the threads of these processes. One that can run and is switched to next has
 * waited for a CPU since the begin; otherwise it would count as blocked.
 */
void switch_table_begin(struct switch_table *switches, const uint32_t *pids, size_t count);
void switch_table_note_ready(struct switch_table *switches, uint32_t tid);

void switch_table_switch(struct switch_table *switches, const struct pending *item,
	uint64_t late_ns);
void switch_table_waking(struct switch_table *switches, const struct pending *item);
void switch_table_fork(struct switch_table *switches, const struct pending *item);
/* After process_table_comm() of an exec, which may have begun another process in the file. */
void switch_table_exec(struct switch_table *switches, const struct pending *item);
void switch_table_exit(struct switch_table *switches, const struct pending *item);

void switch_table_flush(struct switch_table *switches);

/* Writes the blocks that last at the end, and the times of all threads. */
void switch_table_end(struct switch_table *switches, uint64_t end_ns);

/* The stacks that threads are blocked in move to another table. */
void switch_table_move_stacks(struct switch_table *switches, struct stack_table *fresh);

size_t switch_table_size_bytes(const struct switch_table *switches);

void switch_table_done(struct switch_table *switches);

#endif
