/*
 * See sched_program.h. The program, at each context switch:
 *
 *   if the thread is the idle task, or muted[its pid]: return
 *   read its user registers
 *   for the rows of its set: if the owner, the registers and the words of the stack are as in the row:
 *           output { id, PROBE_KNOWN, tid, prev_state, row, version } to the event of this CPU; return
 *   class = the current one of unknown stacks
 *   if stacks[tid % STACKS] is of this thread: class = the smallest one that holds the rest of its stack
 *   output { id, class, tid, prev_state } to the event of this CPU and class
 *
 * It returns 1, so that the events of others are kept: 0 would suppress theirs.
 */
#include "perf/sched_program.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "machine/bpf_labels.h"
#include "perf/known_block.h"

#define STACK_SHIFT     4 /* log2 of sizeof(struct known_stack) */
#define RAW_BYTES       16
#define RAW_KNOWN_BYTES 24

/* The program's own stack: the raw data, then the registers of the thread, and two numbers. */
#define RAW_AT         (-RAW_KNOWN_BYTES)
#define REGISTER_AT(i) (RAW_AT - 8 * ((int)(i) + 1))
#define VERSION_AT     REGISTER_AT(KNOWN_BLOCK_REGISTERS)
#define SET_AT         (VERSION_AT - 8)

const uint32_t sched_program_class_bytes[PROBE_SIZED_LAST + 1] = { 0, 1024, 2048, 4096 };

_Static_assert(sizeof(struct known_stack) == 1u << STACK_SHIFT, "the program's arithmetic");
_Static_assert(SCHED_PROBE_CLASSES <= 1u << SCHED_PROGRAM_CLASS_SHIFT, "the program's arithmetic");
_Static_assert(SCHED_PROBE_CLASSES == PROBE_KNOWN + 1, "one number for the classes");
_Static_assert(SCHED_PROGRAM_BLOCK_OFFSET == RAW_BYTES, "the program's arithmetic");

enum sched_label {
	LABEL_LEAVE,
	LABEL_FOUND,
	LABEL_UNKNOWN,
	LABEL_OTHER,
	LABEL_EQUAL,
	LABEL_CLASS,
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

/* r7: pid << 32 | tid of the thread that leaves the CPU. Jumps to LABEL_LEAVE if it is not recorded. */
static void add_filter(struct bpf_labels *p, int state_fd)
{
	bpf_call_helper(&p->program, BPF_FUNC_get_current_pid_tgid);
	bpf_jump_if(p, BPF_REG_0, BPF_JEQ, 0, LABEL_LEAVE);
	bpf_move(&p->program, BPF_REG_7, BPF_REG_0);
	bpf_jump_if_bit(p, BPF_REG_7, state_fd, offsetof(struct probe_state, muted),
		SCHED_PROBE_PIDS_MAX, LABEL_LEAVE);
}

static void add_registers(struct bpf_labels *p, const struct sched_probe_registers *registers)
{
	bpf_call_helper(&p->program, BPF_FUNC_get_current_task_btf);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_0);
	bpf_call_helper(&p->program, BPF_FUNC_task_pt_regs);
	for (uint32_t i = 0; i < registers->count; i++) {
		bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_0, registers->offsets[i]);
		store(p, REGISTER_AT(i), BPF_REG_1);
	}
}

/* Reads the version of the row at r8 + `row`: before or after all other accesses to it. */
static void add_version(struct bpf_labels *p, unsigned to, int row)
{
	bpf_set(&p->program, to, 0);
	bpf_add(&p->program, BPF_STX | BPF_ATOMIC | BPF_W, BPF_REG_8, to,
		row + (int)offsetof(struct known_block, version), BPF_ADD | BPF_FETCH);
}

/* r8 + `row`: the row; r9: memory of this CPU. Jumps to LABEL_OTHER if the block is not that of the row. */
static void add_comparison(struct bpf_labels *p, const struct sched_probe_registers *registers,
	int row)
{
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_8, row + (int)offsetof(struct known_block, owner));
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_7, LABEL_OTHER);
	add_version(p, BPF_REG_2, row);
	store(p, VERSION_AT, BPF_REG_2);
	for (uint32_t i = 0; i < registers->count; i++) {
		bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_8,
			row + (int)offsetof(struct known_block, registers) + 8 * (int)i);
		fetch(p, BPF_REG_2, REGISTER_AT(i));
		bpf_combine(&p->program, BPF_XOR, BPF_REG_1, BPF_REG_2);
		bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_8,
			row + (int)offsetof(struct known_block, masks) + 8 * (int)i);
		bpf_combine(&p->program, BPF_AND, BPF_REG_1, BPF_REG_2);
		bpf_jump_if(p, BPF_REG_1, BPF_JNE, 0, LABEL_OTHER);
	}
	/* the stack up to the last word */
	bpf_move(&p->program, BPF_REG_1, BPF_REG_9);
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_8,
		row + (int)offsetof(struct known_block, span_bytes));
	bpf_jump_if(p, BPF_REG_2, BPF_JGT, (int)KNOWN_BLOCK_SPAN, LABEL_OTHER);
	fetch(p, BPF_REG_3, REGISTER_AT(1));
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_user);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_OTHER);
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_read(p, BPF_W, BPF_REG_2, BPF_REG_8,
		row + (int)offsetof(struct known_block, word_count));
	uint32_t loop = p->program.count;
	bpf_jump_if_register(p, BPF_REG_1, BPF_JGE, BPF_REG_2, LABEL_EQUAL);
	bpf_jump_if(p, BPF_REG_1, BPF_JGE, (int)KNOWN_BLOCK_WORDS, LABEL_OTHER);
	bpf_move(&p->program, BPF_REG_3, BPF_REG_1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_3, 1);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_3, BPF_REG_8);
	bpf_read(p, BPF_H, BPF_REG_3, BPF_REG_3, row + (int)offsetof(struct known_block, offsets));
	bpf_compute(&p->program, BPF_AND, BPF_REG_3, (int)KNOWN_BLOCK_SPAN / 8 - 1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_3, 3);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_3, BPF_REG_9);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_3, 0);
	bpf_move(&p->program, BPF_REG_4, BPF_REG_1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_4, 3);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_4, BPF_REG_8);
	bpf_read(p, BPF_DW, BPF_REG_4, BPF_REG_4, row + (int)offsetof(struct known_block, values));
	bpf_jump_if_register(p, BPF_REG_3, BPF_JNE, BPF_REG_4, LABEL_OTHER);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_1, 1);
	bpf_repeat(&p->program, loop);
	bpf_label(p, LABEL_EQUAL);
	/* The recorder may have begun to write it, or has written another one meanwhile. */
	add_version(p, BPF_REG_2, row);
	fetch(p, BPF_REG_1, VERSION_AT);
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_2, LABEL_OTHER);
	bpf_jump_if(p, BPF_REG_1, BPF_JSET, 1, LABEL_OTHER);
}

/* If the block is known: jumps to LABEL_FOUND with r8, r9 and the end of the raw data set. */
static void add_known(struct bpf_labels *p, const struct sched_program *program)
{
	bpf_call_helper(&p->program, BPF_FUNC_get_smp_processor_id);
	bpf_jump_if(p, BPF_REG_0, BPF_JGE, (int)program->cpu_count, LABEL_UNKNOWN);
	bpf_compute(&p->program, BPF_MUL, BPF_REG_0, (int)KNOWN_BLOCK_SPAN);
	bpf_load_value(&p->program, BPF_REG_9, program->scratch_fd, 0);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_9, BPF_REG_0);
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
	for (unsigned way = 0; way < KNOWN_BLOCK_WAYS; way++) {
		add_comparison(p, program->registers, (int)(way * sizeof(struct known_block)));
		fetch(p, BPF_REG_1, SET_AT);
		bpf_compute(&p->program, BPF_ADD, BPF_REG_1, (int)way);
		fetch(p, BPF_REG_2, VERSION_AT);
		bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 32);
		bpf_combine(&p->program, BPF_OR, BPF_REG_1, BPF_REG_2);
		store(p, RAW_AT + RAW_BYTES, BPF_REG_1);
		bpf_set(&p->program, BPF_REG_8, PROBE_KNOWN);
		bpf_set(&p->program, BPF_REG_9, RAW_KNOWN_BYTES);
		bpf_jump_to(p, LABEL_FOUND);
		bpf_label(p, LABEL_OTHER);
	}
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

/* r6: the context; r8: the class; r9: the size. The raw data: u16 id, u8 0, u8 class, u32 tid, u64 prev_state. */
static void add_output(struct bpf_labels *p, const struct sched_program *program)
{
	bpf_move(&p->program, BPF_REG_1, BPF_REG_7);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_1, 32);
	bpf_move(&p->program, BPF_REG_2, BPF_REG_8);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 8 * SCHED_PROGRAM_CLASS_OFFSET);
	bpf_combine(&p->program, BPF_OR, BPF_REG_1, BPF_REG_2);
	bpf_compute(&p->program, BPF_OR, BPF_REG_1, program->id);
	store(p, RAW_AT, BPF_REG_1);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_6, (int)program->state_offset);
	store(p, RAW_AT + (int)SCHED_PROBE_STATE_OFFSET, BPF_REG_1);
	bpf_call_helper(&p->program, BPF_FUNC_get_smp_processor_id);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_0, SCHED_PROGRAM_CLASS_SHIFT);
	bpf_combine(&p->program, BPF_OR, BPF_REG_8, BPF_REG_0);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_6);
	bpf_load_map(&p->program, BPF_REG_2, program->events_fd);
	bpf_move(&p->program, BPF_REG_3, BPF_REG_8);
	bpf_move(&p->program, BPF_REG_4, BPF_REG_10);
	bpf_compute(&p->program, BPF_ADD, BPF_REG_4, RAW_AT);
	bpf_move(&p->program, BPF_REG_5, BPF_REG_9);
	bpf_call_helper(&p->program, BPF_FUNC_perf_event_output);
}

int sched_program_load(const struct sched_program *program)
{
	cleanup(freep) struct bpf_labels *p = bpf_labels_new();

	assert(!program->registers || (program->registers->count > 1 &&
					      program->registers->count <= KNOWN_BLOCK_REGISTERS));
	if (!p)
		return -ENOMEM;
	bpf_move(&p->program, BPF_REG_6, BPF_REG_1);
	add_filter(p, program->state_fd);
	if (program->registers)
		add_registers(p, program->registers);
	if (program->registers && program->known_fd >= 0)
		add_known(p, program);
	add_class(p, program->state_fd, program->registers != NULL);
	bpf_set(&p->program, BPF_REG_9, RAW_BYTES);
	bpf_label(p, LABEL_FOUND);
	add_output(p, program);
	bpf_label(p, LABEL_LEAVE);
	bpf_exit(&p->program, 1);
	return bpf_labels_load(p, BPF_PROG_TYPE_TRACEPOINT);
}
