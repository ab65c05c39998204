/*
 * Moves records from the perf rings into the reorder window: they are decoded in place, their call
 * chains are interned, and the space of a ring is released when all its records have been read.
 */
#ifndef SPOOR_RECORDING_INTAKE_H
#define SPOOR_RECORDING_INTAKE_H

#include <stdint.h>

#include "base/vec.h"
#include "perf/perf_record.h"
#include "recording/copy_size.h"
#include "recording/pid_filter.h"

struct arch;
struct block_stacks;
struct kernel_returns;
struct live_usdt;
struct live_user_events;
struct managed_frames;
struct process_table;
struct recorder;
struct stack_unwinder;
struct reorder_window;
struct memory_names;
struct trace;

#define INTAKE_FRAMES_MAX 2048u

/* What sched_switch said right before the switch record that it belongs to. */
struct intake_block {
	uint32_t tid; /* 0: nothing */
	uint32_t stack_index;
	uint32_t state; /* enum switch_state */
	uint64_t
		time_ns; /* of the entry in the ring of switches that it belongs to (perf/switch_ring.h) */
};

/* Of one ring. */
struct intake_blocks {
	struct intake_block last;        /* without a ring of switches */
	VEC(struct intake_block) stacks; /* those that wait for their entries, in order of time */
	uint32_t next_tid;               /* the thread that came with the last entry */
	uint64_t entry_ns;               /* its time; 0: there was none */
	uint32_t taken;                  /* so many of them have had theirs */
};

/*
 * PENDING_SWITCH of a thread that left the CPU: enum switch_state is in the lowest byte of the value, with
 * SWITCH_CAME_UNSEEN if the record of its coming is missing. The others are 0, or the time when a known block's stack
 * was learned, rounded down.
 */
#define INTAKE_LEARNED_MASK (~UINT64_C(0xff))

struct intake {
	/* borrowed; set by the session */
	struct recorder *recorder;
	struct trace *trace;
	struct reorder_window *window;
	struct pid_filter *filter;
	struct process_table *table;
	const struct arch *arch;
	struct memory_names *memory;           /* NULL: no names are read from memory */
	struct stack_unwinder *unwinder;       /* NULL: the kernel's chains are taken as they are */
	struct block_stacks *block_stacks;     /* NULL: no blocks are recognized */
	struct kernel_returns *kernel_returns; /* NULL as well then */
	struct live_usdt *usdt;                /* NULL: no USDT probes are recorded */
	struct live_user_events *user_events;  /* NULL: no user_events are recorded */
	struct managed_frames *managed; /* its own; NULL: nothing is known of managed frames */
	struct perf_layout layout;
	struct pid_filter other_threads;  /* threads of processes that are not recorded, by tid */
	VEC(struct intake_blocks) blocks; /* by ring */
	bool copies_vary;                 /* as copy_size says */
	bool copy_fixed;                  /* the size of the copy does not follow copy_size */
	uint64_t change_ns; /* a change of code that is found now has happened since then */
	uint64_t pass_ns;   /* when the last pass over the rings began */
	uint64_t stack_end; /* of the last stack that was unwound; 0: unknown */
	struct copy_size copy_size;
	uint64_t frames[INTAKE_FRAMES_MAX]; /* scratch, both */
	uint64_t small_frames[INTAKE_FRAMES_MAX];
};

/*
 * Frames of managed code are read from the memory of processes from now on, if the options allow it. Without
 * memory, and on other processors, managed code is taken to have frame pointers. The members above are set.
 */
void intake_read_frames(struct intake *intake);

/* Blocks that the recorder recognizes have stacks from now on. The members above are set. 0 or -ENOMEM. */
int intake_recognize_blocks(struct intake *intake);

/* Reads all records that are in the rings now. */
void intake_drain(struct intake *intake);

/* Called when the stacks of the trace are replaced. */
void intake_forget_stacks(struct intake *intake);

void intake_done(struct intake *intake);

#endif
