/*
 * The BPF program of sched_probe.c, instruction by instruction, and the memory that both share. Only sched_probe.c
 * calls this; the first part is for its users as well.
 */
#ifndef SPOOR_PERF_SCHED_PROGRAM_H
#define SPOOR_PERF_SCHED_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the size of the copy: the requested one, three for known stacks, the small one, which takes the place of the
 * requested one while sched_probe_copy_small() says so; and the record that only wakes the recorder.
 */
#define SCHED_PROBE_CLASSES  6u
#define SCHED_PROBE_PIDS_MAX (UINT32_C(1) << 22) /* PID_MAX_LIMIT of the kernel */
#define SCHED_PROGRAM_STACKS 8192u               /* a power of two */
/* of the slots of a CPU in the map of events, one for each class */
#define SCHED_PROGRAM_CLASS_SHIFT 3

/*
 * The raw data of a sample: u16 id, u8 0, u8 class (where a tracepoint has its preempt count), u32 tid, u64 time;
 * then the kernel's stack from the program on, at most KNOWN_BLOCK_KERNEL bytes.
 */
#define SCHED_PROGRAM_CLASS_OFFSET 3u
#define SCHED_PROGRAM_TIME_OFFSET  8u
#define SCHED_PROGRAM_STACK_OFFSET 16u

/* Which event takes the record. */
enum probe_class {
	PROBE_REQUESTED,
	PROBE_SIZED_FIRST,
	PROBE_SIZED_LAST = 3,
	PROBE_SMALL,
	PROBE_WAKE, /* a part of the ring of switches is full */
};

/* Bytes of the copies of the sized classes. */
extern const uint32_t sched_program_class_bytes[PROBE_SIZED_LAST + 1];

struct known_stack {
	uint64_t tid; /* 0: none */
	uint64_t end;
};

/* What the program reads. */
struct probe_state {
	uint64_t class; /* of unknown stacks */
	uint64_t muted[SCHED_PROBE_PIDS_MAX / 64];
	struct known_stack stacks[SCHED_PROGRAM_STACKS];
};

/*
 * User registers in the kernel's struct pt_regs: offsets in bytes, first of the pc, then of the stack pointer, then of
 * all others on which a call chain may depend.
 */
struct sched_probe_registers {
	const uint16_t *offsets;
	uint32_t count;
};

struct sched_program {
	int state_fd;   /* struct probe_state */
	int events_fd;  /* the events by CPU and class */
	int known_fd;   /* struct known_block[KNOWN_BLOCKS]; -1: none are known */
	int scratch_fd; /* SCHED_PROGRAM_SCRATCH bytes for each CPU */
	int rings_fd;   /* switch_ring_bytes() */
	uint32_t cpu_count;
	uint32_t pid_offset; /* of pid in struct task_struct; tgid follows it */
	uint16_t id;         /* of the records */
	bool kernel;         /* chains have frames of the kernel */
	const struct sched_probe_registers *registers; /* NULL: all records are of class 0 */
};

/* the stack of the thread in user code, and the raw data */
#define SCHED_PROGRAM_SCRATCH 8192u

/* Its descriptor, or a negative errno if this kernel refuses it. */
int sched_program_load(const struct sched_program *program);

#endif
