/*
 * See sched_program.h. The program, at each context switch:
 *
 *   if this CPU's ring is closed: return
 *   OUT: the previous thread is not the idle task, and muted[its pid] is not set; IN: likewise for the next one
 *   if neither OUT nor IN: return
 *   if OUT:
 *           read its user registers, and the kernel's stack from here up to where these are saved
 *           for the rows of its set: if the owner, the registers, the words of the stack, and the return addresses
 *                   in the kernel are as in the row: KNOWN, with the row and its version
 *           if none is:
 *                   class = the current one of unknown stacks
 *                   if stacks[tid % STACKS] is of this thread: class = the smallest one that holds the rest of its stack
 *                   output { id, class, tid, time, kernel's stack } to the event of this CPU and class
 *   write { time, both threads, state, flags, row, version } to the ring of this CPU
 *   if another part of the ring is full now: output { id, PROBE_WAKE } to wake the recorder
 *
 * It is a raw tracepoint: one of a perf event costs half as much again, and hides where the stack is. The arguments
 * of the tracepoint are (preempt, previous, next, prev_state) since Linux 5.18; before that it cannot be attached.
 */
#include "perf/sched_program.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "machine/bpf_labels.h"
#include "perf/known_block.h"
#include "perf/switch_ring.h"

#define STACK_SHIFT 4 /* log2 of sizeof(struct known_stack) */

/* the arguments of the tracepoint */
#define ARGUMENT_PREEMPT 0
#define ARGUMENT_NEXT    16
#define ARGUMENT_STATE   24

/* The program's own stack. */
#define REGISTER_AT(i) (-8 * ((int)(i) + 1))
#define VERSION_AT     REGISTER_AT(KNOWN_BLOCK_REGISTERS)
#define SET_AT         (VERSION_AT - 8)
#define WAY_AT         (VERSION_AT - 16)
#define CPU_AT         (VERSION_AT - 24)
#define NEXT_AT        (VERSION_AT - 32)
#define TIME_AT        (VERSION_AT - 40)
#define FLAGS_AT       (VERSION_AT - 48)
#define BLOCK_AT       (VERSION_AT - 56) /* the row, and its version in the upper half */
#define BYTES_AT       (VERSION_AT - 64) /* of the kernel's stack in the raw data */

/* in the scratch memory of a CPU */
#define RAW_OFFSET    KNOWN_BLOCK_SPAN
#define KERNEL_OFFSET (RAW_OFFSET + SCHED_PROGRAM_STACK_OFFSET)

const uint32_t sched_program_class_bytes[PROBE_SIZED_LAST + 1] = { 0, 1024, 2048, 4096 };

_Static_assert(sizeof(struct known_stack) == 1u << STACK_SHIFT, "the program's arithmetic");
_Static_assert(SCHED_PROBE_CLASSES <= 1u << SCHED_PROGRAM_CLASS_SHIFT, "the program's arithmetic");
_Static_assert(SCHED_PROBE_CLASSES == PROBE_WAKE + 1, "one number for the classes");
_Static_assert(KERNEL_OFFSET + KNOWN_BLOCK_KERNEL <= SCHED_PROGRAM_SCRATCH, "the raw data fits");

enum sched_label {
	LABEL_LEAVE,
	LABEL_UNKNOWN,
	LABEL_OTHER,
	LABEL_EQUAL,
	LABEL_CLASS,
	LABEL_NOT,
	LABEL_WRITE,
	LABEL_FULL,
};

/* To and from the program's own stack. */
static void store(struct bpf_labels *p, int offset, unsigned from)
{
	bpf_write(p, BPF_DW, BPF_REG_10, offset, from);
}

static void fetch(struct bpf_labels *p, unsigned to, int offset)
{
	bpf_read(p, BPF_DW, to, BPF_REG_10, offset);
}

/* to = the number of this CPU */
static void fetch_cpu(struct bpf_labels *p, const struct sched_program *program, unsigned to)
{
	fetch(p, to, CPU_AT);
	bpf_jump_if(p, to, BPF_JGE, (int)program->cpu_count, LABEL_LEAVE);
}

/* to = the head of this CPU's ring; uses r1 */
static void add_head(struct bpf_labels *p, const struct sched_program *program, unsigned to)
{
	fetch_cpu(p, program, BPF_REG_1);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_1, sizeof(struct switch_ring_head));
	bpf_load_value(&p->program, to, program->rings_fd, 0);
	bpf_combine(&p->program, BPF_ADD, to, BPF_REG_1);
}

/* r7: pid << 32 | tid of the thread that leaves the CPU. Sets the flags OUT and IN, or jumps to LABEL_LEAVE. */
static void add_filter(struct bpf_labels *p, const struct sched_program *program)
{
	size_t muted = offsetof(struct probe_state, muted);

	bpf_call_helper(&p->program, BPF_FUNC_get_smp_processor_id);
	store(p, CPU_AT, BPF_REG_0);
	add_head(p, program, BPF_REG_2);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_2, offsetof(struct switch_ring_head, open));
	bpf_jump_if(p, BPF_REG_1, BPF_JEQ, 0, LABEL_LEAVE);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_10);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_1, NEXT_AT);
	bpf_set(&p->program, BPF_REG_2, 8);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_6, ARGUMENT_NEXT);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_3, (int)program->pid_offset);
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_kernel);
	bpf_call_helper(&p->program, BPF_FUNC_get_current_pid_tgid);
	bpf_move(&p->program, BPF_REG_7, BPF_REG_0);
	bpf_set(&p->program, BPF_REG_8, 0);
	bpf_jump_if(p, BPF_REG_7, BPF_JEQ, 0, LABEL_NOT);
	bpf_jump_if_bit(p, BPF_REG_7, program->state_fd, muted, SCHED_PROBE_PIDS_MAX, LABEL_NOT);
	bpf_set(&p->program, BPF_REG_8, SWITCH_ENTRY_OUT);
	bpf_label(p, LABEL_NOT);
	fetch(p, BPF_REG_9, NEXT_AT);
	bpf_jump_if(p, BPF_REG_9, BPF_JEQ, 0, LABEL_NOT);
	bpf_jump_if_bit(p, BPF_REG_9, program->state_fd, muted, SCHED_PROBE_PIDS_MAX, LABEL_NOT);
	bpf_compute(&p->program, BPF_OR, BPF_REG_8, SWITCH_ENTRY_IN);
	bpf_label(p, LABEL_NOT);
	bpf_jump_if(p, BPF_REG_8, BPF_JEQ, 0, LABEL_LEAVE);
	store(p, FLAGS_AT, BPF_REG_8);
	bpf_call_helper(&p->program, BPF_FUNC_ktime_get_ns);
	store(p, TIME_AT, BPF_REG_0);
	bpf_set(&p->program, BPF_REG_1, 0);
	store(p, BLOCK_AT, BPF_REG_1);
	bpf_compute(&p->program, BPF_AND, BPF_REG_8, SWITCH_ENTRY_OUT);
	bpf_jump_if(p, BPF_REG_8, BPF_JEQ, 0, LABEL_WRITE);
}

/* r9: memory of this CPU; user registers, and how much there is of the kernel's stack, go to the program's stack. */
static void add_registers(struct bpf_labels *p, const struct sched_program *program)
{
	fetch_cpu(p, program, BPF_REG_1);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_1, (int)SCHED_PROGRAM_SCRATCH);
	bpf_load_value(&p->program, BPF_REG_9, program->scratch_fd, 0);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_9, BPF_REG_1);
	bpf_call_helper(&p->program, BPF_FUNC_get_current_task_btf);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_0);
	bpf_call_helper(&p->program, BPF_FUNC_task_pt_regs);
	for (uint32_t i = 0; program->registers && i < program->registers->count; i++) {
		bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_0, program->registers->offsets[i]);
		store(p, REGISTER_AT(i), BPF_REG_1);
	}
	/* The arguments are in the kernel's stack. If they are not, the distance is large. */
	if (program->kernel)
		bpf_combine(&p->program, BPF_SUB, BPF_REG_0, BPF_REG_6);
	else
		bpf_set(&p->program, BPF_REG_0, 0);
	bpf_jump_if(p, BPF_REG_0, BPF_JLE, (int)KNOWN_BLOCK_KERNEL, LABEL_NOT);
	bpf_set(&p->program, BPF_REG_0, (int)KNOWN_BLOCK_KERNEL);
	bpf_label(p, LABEL_NOT);
	store(p, BYTES_AT, BPF_REG_0);
}

/* Copies so many bytes of the kernel's stack, a number in r2; r0: 0 if it could be read. */
static void add_kernel_stack(struct bpf_labels *p)
{
	bpf_move(&p->program, BPF_REG_1, BPF_REG_9);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_1, (int)KERNEL_OFFSET);
	bpf_move(&p->program, BPF_REG_3, BPF_REG_6);
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_kernel);
}

/* Reads the version of the row at r8: before or after all other accesses to it. */
static void add_version(struct bpf_labels *p, unsigned to)
{
	bpf_set(&p->program, to, 0);
	bpf_add(&p->program, BPF_STX | BPF_ATOMIC | BPF_W, BPF_REG_8, to,
		(int)offsetof(struct known_block, version), BPF_ADD | BPF_FETCH);
}

/* Words of a stack that are compared: members of struct known_block. */
struct compared_words {
	size_t count;
	size_t offsets;
	size_t values;
	uint32_t most;
	uint32_t span;
	int stack; /* in the memory of this CPU */
};

/* Jumps to LABEL_OTHER if a word is not as in the row at r8. */
static void add_words(struct bpf_labels *p, const struct compared_words *words)
{
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_read(p, BPF_W, BPF_REG_2, BPF_REG_8, (int)words->count);
	uint32_t loop = p->program.count;
	bpf_jump_if_register(p, BPF_REG_1, BPF_JGE, BPF_REG_2, LABEL_EQUAL);
	bpf_jump_if(p, BPF_REG_1, BPF_JGE, (int)words->most, LABEL_OTHER);
	bpf_move(&p->program, BPF_REG_3, BPF_REG_1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_3, 1);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_3, BPF_REG_8);
	bpf_read(p, BPF_H, BPF_REG_3, BPF_REG_3, (int)words->offsets);
	bpf_compute(&p->program, BPF_AND, BPF_REG_3, (int)words->span / 8 - 1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_3, 3);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_3, BPF_REG_9);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_3, words->stack);
	bpf_move(&p->program, BPF_REG_4, BPF_REG_1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_4, 3);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_4, BPF_REG_8);
	bpf_read(p, BPF_DW, BPF_REG_4, BPF_REG_4, (int)words->values);
	bpf_jump_if_register(p, BPF_REG_3, BPF_JNE, BPF_REG_4, LABEL_OTHER);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_1, 1);
	bpf_repeat(&p->program, loop);
	bpf_label(p, LABEL_EQUAL);
}

/* r8: the row; r9: memory of this CPU. Jumps to LABEL_OTHER if the block is not that of the row. */
static void add_comparison(struct bpf_labels *p, const struct sched_probe_registers *registers)
{
	static const struct compared_words user = { offsetof(struct known_block, word_count),
		offsetof(struct known_block, offsets), offsetof(struct known_block, values),
		KNOWN_BLOCK_WORDS, KNOWN_BLOCK_SPAN, 0 };
	static const struct compared_words kernel = { offsetof(struct known_block, return_count),
		offsetof(struct known_block, return_offsets), offsetof(struct known_block, returns),
		KNOWN_BLOCK_RETURNS, KNOWN_BLOCK_KERNEL, (int)KERNEL_OFFSET };

	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_8, (int)offsetof(struct known_block, owner));
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_7, LABEL_OTHER);
	add_version(p, BPF_REG_2);
	store(p, VERSION_AT, BPF_REG_2);
	for (uint32_t i = 0; i < registers->count; i++) {
		bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_8,
			(int)offsetof(struct known_block, registers) + 8 * (int)i);
		fetch(p, BPF_REG_2, REGISTER_AT(i));
		bpf_combine(&p->program, BPF_XOR, BPF_REG_1, BPF_REG_2);
		bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_8,
			(int)offsetof(struct known_block, masks) + 8 * (int)i);
		bpf_combine(&p->program, BPF_AND, BPF_REG_1, BPF_REG_2);
		bpf_jump_if(p, BPF_REG_1, BPF_JNE, 0, LABEL_OTHER);
	}
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_8, (int)offsetof(struct known_block, kernel_bytes));
	bpf_jump_if(p, BPF_REG_2, BPF_JGT, (int)KNOWN_BLOCK_KERNEL, LABEL_OTHER);
	add_kernel_stack(p);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_OTHER);
	add_words(p, &kernel);
	/* the user's stack up to the last word */
	bpf_move(&p->program, BPF_REG_1, BPF_REG_9);
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_8, (int)offsetof(struct known_block, span_bytes));
	bpf_jump_if(p, BPF_REG_2, BPF_JGT, (int)KNOWN_BLOCK_SPAN, LABEL_OTHER);
	fetch(p, BPF_REG_3, REGISTER_AT(1));
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_user);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_OTHER);
	add_words(p, &user);
	/* The recorder may have begun to write it, or has written another one meanwhile. */
	add_version(p, BPF_REG_2);
	fetch(p, BPF_REG_1, VERSION_AT);
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_2, LABEL_OTHER);
	bpf_jump_if(p, BPF_REG_1, BPF_JSET, 1, LABEL_OTHER);
}

/* If the block is known: sets it and the flag, and jumps to LABEL_WRITE. */
static void add_known(struct bpf_labels *p, const struct sched_program *program)
{
	/* known_block_set() */
	bpf_set_u64(&p->program, BPF_REG_2, KNOWN_BLOCK_HASH);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_7);
	for (unsigned i = 0; i < 2; i++) {
		bpf_combine(&p->program, BPF_MUL, BPF_REG_1, BPF_REG_2);
		fetch(p, BPF_REG_3, REGISTER_AT(i));
		bpf_combine(&p->program, BPF_XOR, BPF_REG_1, BPF_REG_3);
	}
	bpf_combine(&p->program, BPF_MUL, BPF_REG_1, BPF_REG_2);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_1, 64 - KNOWN_BLOCK_SET_BITS);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_1, KNOWN_BLOCK_WAYS);
	store(p, SET_AT, BPF_REG_1);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_1, sizeof(struct known_block));
	bpf_load_value(&p->program, BPF_REG_8, program->known_fd, 0);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_8, BPF_REG_1);
	bpf_set(&p->program, BPF_REG_1, 0);
	store(p, WAY_AT, BPF_REG_1);
	uint32_t loop = p->program.count;
	add_comparison(p, program->registers);
	fetch(p, BPF_REG_1, SET_AT);
	fetch(p, BPF_REG_2, WAY_AT);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_1, BPF_REG_2);
	fetch(p, BPF_REG_2, VERSION_AT);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 32);
	bpf_combine(&p->program, BPF_OR, BPF_REG_1, BPF_REG_2);
	store(p, BLOCK_AT, BPF_REG_1);
	fetch(p, BPF_REG_1, FLAGS_AT);
	bpf_compute(&p->program, BPF_OR, BPF_REG_1, SWITCH_ENTRY_KNOWN);
	store(p, FLAGS_AT, BPF_REG_1);
	bpf_jump_to(p, LABEL_WRITE);
	bpf_label(p, LABEL_OTHER);
	fetch(p, BPF_REG_1, WAY_AT);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_1, 1);
	bpf_jump_if(p, BPF_REG_1, BPF_JGE, KNOWN_BLOCK_WAYS, LABEL_UNKNOWN);
	store(p, WAY_AT, BPF_REG_1);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_8, sizeof(struct known_block));
	bpf_repeat(&p->program, loop);
	bpf_label(p, LABEL_UNKNOWN);
}

/* r8: the class. */
static void add_class(struct bpf_labels *p, int state_fd, bool sized)
{
	bpf_load_value(&p->program, BPF_REG_1, state_fd, offsetof(struct probe_state, class));
	bpf_read(p, BPF_DW, BPF_REG_8, BPF_REG_1, 0);
	bpf_compute(&p->program, BPF_AND, BPF_REG_8, (1 << SCHED_PROGRAM_CLASS_SHIFT) - 1);
	if (!sized)
		return;
	bpf_load_value(&p->program, BPF_REG_1, state_fd, offsetof(struct probe_state, stacks));
	bpf_add(&p->program, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_7, 0,
		0); /* the lower half: the tid */
	bpf_move(&p->program, BPF_REG_3, BPF_REG_2);
	bpf_compute(&p->program, BPF_AND, BPF_REG_2, SCHED_PROGRAM_STACKS - 1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, STACK_SHIFT);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_1, BPF_REG_2);
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_1, offsetof(struct known_stack, tid));
	bpf_jump_if_register(p, BPF_REG_2, BPF_JNE, BPF_REG_3, LABEL_CLASS);
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_1, offsetof(struct known_stack, end));
	fetch(p, BPF_REG_1, REGISTER_AT(1));
	bpf_combine(&p->program, BPF_SUB, BPF_REG_2, BPF_REG_1);
	/* on another stack the difference is negative, which is above all */
	for (uint32_t class = PROBE_SIZED_LAST; class >= PROBE_SIZED_FIRST; class --) {
		bpf_jump_if(p, BPF_REG_2, BPF_JGT, (int)sched_program_class_bytes[class],
			LABEL_CLASS);
		bpf_set(&p->program, BPF_REG_8, (int)class);
	}
	bpf_label(p, LABEL_CLASS);
}

/* r8: the class, which is also added to the raw data; r5: bytes of that, from RAW_OFFSET of r9 on. */
static void add_output(struct bpf_labels *p, const struct sched_program *program)
{
	bpf_move(&p->program, BPF_REG_1, BPF_REG_7);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_1, 32);
	bpf_move(&p->program, BPF_REG_2, BPF_REG_8);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 8 * SCHED_PROGRAM_CLASS_OFFSET);
	bpf_combine(&p->program, BPF_OR, BPF_REG_1, BPF_REG_2);
	bpf_compute(&p->program, BPF_OR, BPF_REG_1, program->id);
	bpf_write(p, BPF_DW, BPF_REG_9, (int)RAW_OFFSET, BPF_REG_1);
	fetch_cpu(p, program, BPF_REG_3);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_3, SCHED_PROGRAM_CLASS_SHIFT);
	bpf_combine(&p->program, BPF_OR, BPF_REG_3, BPF_REG_8);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_6);
	bpf_load_map(&p->program, BPF_REG_2, program->events_fd);
	bpf_move(&p->program, BPF_REG_4, BPF_REG_9);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_4, (int)RAW_OFFSET);
	bpf_call_helper(&p->program, BPF_FUNC_perf_event_output);
}

/* An unknown block: its stack becomes a sample. */
static void add_sample(struct bpf_labels *p, const struct sched_program *program)
{
	add_class(p, program->state_fd, program->registers != NULL);
	fetch(p, BPF_REG_1, TIME_AT);
	bpf_write(p, BPF_DW, BPF_REG_9, (int)(RAW_OFFSET + SCHED_PROGRAM_TIME_OFFSET), BPF_REG_1);
	fetch(p, BPF_REG_2, BYTES_AT);
	bpf_jump_if(p, BPF_REG_2, BPF_JGT, (int)KNOWN_BLOCK_KERNEL, LABEL_LEAVE);
	add_kernel_stack(p);
	fetch(p, BPF_REG_5, BYTES_AT);
	bpf_jump_if(p, BPF_REG_0, BPF_JEQ, 0, LABEL_NOT);
	bpf_set(&p->program, BPF_REG_5, 0);
	bpf_label(p, LABEL_NOT);
	bpf_jump_if(p, BPF_REG_5, BPF_JGT, (int)KNOWN_BLOCK_KERNEL, LABEL_LEAVE);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_5, SCHED_PROGRAM_STACK_OFFSET);
	add_output(p, program);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_WRITE);
	fetch(p, BPF_REG_1, FLAGS_AT);
	bpf_compute(&p->program, BPF_OR, BPF_REG_1, SWITCH_ENTRY_SAMPLE);
	store(p, FLAGS_AT, BPF_REG_1);
}

/* *(r2 + offset) = what the program's stack has at `from` */
static void copy(struct bpf_labels *p, size_t offset, int from)
{
	fetch(p, BPF_REG_1, from);
	bpf_write(p, BPF_DW, BPF_REG_2, (int)offset, BPF_REG_1);
}

/* Writes the entry. r8: the head of the ring. */
static void add_entry(struct bpf_labels *p, const struct sched_program *program)
{
	uint32_t entries = switch_ring_entries(program->cpu_count);

	add_head(p, program, BPF_REG_8);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_8, offsetof(struct switch_ring_head, written));
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_8, offsetof(struct switch_ring_head, taken));
	bpf_move(&p->program, BPF_REG_4, BPF_REG_3);
	bpf_combine(&p->program, BPF_SUB, BPF_REG_4, BPF_REG_2);
	bpf_jump_if(p, BPF_REG_4, BPF_JGE, (int)entries, LABEL_FULL);
	bpf_load_value(&p->program, BPF_REG_2, program->rings_fd,
		(size_t)switch_ring_heads_bytes(program->cpu_count));
	fetch_cpu(p, program, BPF_REG_1);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_1, (int)(entries * sizeof(struct switch_entry)));
	bpf_combine(&p->program, BPF_ADD, BPF_REG_2, BPF_REG_1);
	bpf_move(&p->program, BPF_REG_4, BPF_REG_3);
	bpf_compute(&p->program, BPF_AND, BPF_REG_4, (int)entries - 1);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_4, sizeof(struct switch_entry));
	bpf_combine(&p->program, BPF_ADD, BPF_REG_2, BPF_REG_4);
	copy(p, offsetof(struct switch_entry, time_ns), TIME_AT);
	bpf_write(p, BPF_DW, BPF_REG_2, offsetof(struct switch_entry, tid), BPF_REG_7);
	copy(p, offsetof(struct switch_entry, next_tid), NEXT_AT);
	copy(p, offsetof(struct switch_entry, row), BLOCK_AT);
	/* a thread that was preempted can run on, whatever state it was about to have */
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT_STATE);
	bpf_read(p, BPF_DW, BPF_REG_4, BPF_REG_6, ARGUMENT_PREEMPT);
	bpf_compute(&p->program, BPF_AND, BPF_REG_4, 1);
	bpf_jump_if(p, BPF_REG_4, BPF_JEQ, 0, LABEL_NOT);
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_label(p, LABEL_NOT);
	bpf_write(p, BPF_W, BPF_REG_2, offsetof(struct switch_entry, state), BPF_REG_1);
	fetch(p, BPF_REG_1, FLAGS_AT);
	bpf_write(p, BPF_W, BPF_REG_2, offsetof(struct switch_entry, flags), BPF_REG_1);
	/* after all of the entry, for the recorder too */
	bpf_compute(&p->program, BPF_ADD, BPF_REG_3, 1);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_3);
	bpf_atomic(p, BPF_XCHG, BPF_REG_8, offsetof(struct switch_ring_head, written), BPF_REG_1);
	bpf_compute(&p->program, BPF_AND, BPF_REG_3, (int)(entries / SWITCH_RING_PARTS) - 1);
	bpf_jump_if(p, BPF_REG_3, BPF_JNE, 0, LABEL_LEAVE);
}

/* Wakes the recorder. */
static void add_wake(struct bpf_labels *p, const struct sched_program *program)
{
	fetch_cpu(p, program, BPF_REG_1);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_1, (int)SCHED_PROGRAM_SCRATCH);
	bpf_load_value(&p->program, BPF_REG_9, program->scratch_fd, 0);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_9, BPF_REG_1);
	bpf_set(&p->program, BPF_REG_8, PROBE_WAKE);
	bpf_set(&p->program, BPF_REG_5, SCHED_PROGRAM_TIME_OFFSET);
	add_output(p, program);
	bpf_jump_to(p, LABEL_LEAVE);
	bpf_label(p, LABEL_FULL);
	bpf_set(&p->program, BPF_REG_1, 1);
	bpf_atomic(p, BPF_ADD, BPF_REG_8, offsetof(struct switch_ring_head, lost), BPF_REG_1);
}

int sched_program_load(const struct sched_program *program)
{
	cleanup(freep) struct bpf_labels *p = bpf_labels_new();

	assert(!program->registers || (program->registers->count > 1 &&
					      program->registers->count <= KNOWN_BLOCK_REGISTERS));
	if (!p)
		return -ENOMEM;
	bpf_move(&p->program, BPF_REG_6, BPF_REG_1);
	add_filter(p, program);
	add_registers(p, program);
	if (program->registers && program->known_fd >= 0)
		add_known(p, program);
	add_sample(p, program);
	bpf_label(p, LABEL_WRITE);
	add_entry(p, program);
	add_wake(p, program);
	bpf_label(p, LABEL_LEAVE);
	bpf_exit(&p->program, 0);
	return bpf_labels_load(p, BPF_PROG_TYPE_RAW_TRACEPOINT);
}
