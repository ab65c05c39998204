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
#include <stdbool.h>
#include <stddef.h>

#include "machine/bpf.h"
#include "perf/known_block.h"

#define WORD_SHIFT      6 /* log2 of the bits of a word */
#define STACK_SHIFT     4 /* log2 of sizeof(struct known_stack) */
#define RAW_BYTES       16
#define RAW_KNOWN_BYTES 24

/* Linux 5.12; older headers have another name for the first. */
#define ATOMIC    0xc0
#define FETCH_ADD (BPF_ADD | 0x01)

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

#define PROGRAM_MAX 512u
#define JUMPS_MAX   96u

struct program {
	struct bpf_insn insns[PROGRAM_MAX];
	uint32_t count;
};

/* Instructions that jump to the same place, whose distances bind() sets. */
struct label {
	uint32_t jumps[JUMPS_MAX];
	uint32_t count;
};

static void add(struct program *p, unsigned code, unsigned to, unsigned from, int offset,
	int immediate)
{
	assert(p->count < PROGRAM_MAX);
	p->insns[p->count++] = bpf_insn(code, to, from, offset, immediate);
}

static void move(struct program *p, unsigned to, unsigned from)
{
	add(p, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void set(struct program *p, unsigned to, int immediate)
{
	add(p, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, immediate);
}

static void set_64(struct program *p, unsigned to, uint64_t value)
{
	add(p, BPF_LD | BPF_DW | BPF_IMM, to, 0, 0, (int)(uint32_t)value);
	add(p, 0, 0, 0, 0, (int)(uint32_t)(value >> 32));
}

static void compute(struct program *p, unsigned operation, unsigned to, int immediate)
{
	add(p, BPF_ALU64 | operation | BPF_K, to, 0, 0, immediate);
}

static void combine(struct program *p, unsigned operation, unsigned to, unsigned from)
{
	add(p, BPF_ALU64 | operation | BPF_X, to, from, 0, 0);
}

static void load_sized(struct program *p, unsigned size, unsigned to, unsigned from, int offset)
{
	add(p, BPF_LDX | BPF_MEM | size, to, from, offset, 0);
}

static void load(struct program *p, unsigned to, unsigned from, int offset)
{
	load_sized(p, BPF_DW, to, from, offset);
}

/* To and from the program's own stack. */
static void store(struct program *p, int offset, unsigned from)
{
	add(p, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, from, offset, 0);
}

static void fetch(struct program *p, unsigned to, int offset)
{
	load(p, to, BPF_REG_10, offset);
}

static void call(struct program *p, int helper)
{
	add(p, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

/* The address of `offset` in the value of the map. */
static void load_value(struct program *p, unsigned to, int map_fd, size_t offset)
{
	add(p, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_VALUE, 0, map_fd);
	add(p, 0, 0, 0, 0, (int)offset);
}

static void note_jump(struct program *p, struct label *label)
{
	assert(label->count < JUMPS_MAX);
	label->jumps[label->count++] = p->count;
}

/* Jumps to the label if the comparison holds. */
static void jump_if(struct program *p, struct label *label, unsigned a, unsigned comparison,
	unsigned b)
{
	note_jump(p, label);
	add(p, BPF_JMP | comparison | BPF_X, a, b, 0, 0);
}

static void jump_if_is(struct program *p, struct label *label, unsigned a, unsigned comparison,
	int immediate)
{
	note_jump(p, label);
	add(p, BPF_JMP | comparison | BPF_K, a, 0, 0, immediate);
}

static void jump(struct program *p, struct label *label)
{
	note_jump(p, label);
	add(p, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

static void bind(struct program *p, struct label *label)
{
	for (uint32_t i = 0; i < label->count; i++)
		p->insns[label->jumps[i]].off = (int16_t)(p->count - label->jumps[i] - 1);
	label->count = 0;
}

/* r7: pid << 32 | tid of the thread that leaves the CPU. Jumps to `leave` if it is not recorded. */
static void add_filter(struct program *p, int state_fd, struct label *leave)
{
	call(p, BPF_FUNC_get_current_pid_tgid);
	jump_if_is(p, leave, BPF_REG_0, BPF_JEQ, 0);
	move(p, BPF_REG_7, BPF_REG_0);
	load_value(p, BPF_REG_1, state_fd, offsetof(struct probe_state, muted));
	move(p, BPF_REG_2, BPF_REG_7);
	compute(p, BPF_RSH, BPF_REG_2, 32 + WORD_SHIFT);
	compute(p, BPF_AND, BPF_REG_2, (SCHED_PROBE_PIDS_MAX >> WORD_SHIFT) - 1);
	compute(p, BPF_LSH, BPF_REG_2, 3);
	combine(p, BPF_ADD, BPF_REG_1, BPF_REG_2);
	load(p, BPF_REG_3, BPF_REG_1, 0);
	move(p, BPF_REG_4, BPF_REG_7);
	compute(p, BPF_RSH, BPF_REG_4, 32);
	compute(p, BPF_AND, BPF_REG_4, (1 << WORD_SHIFT) - 1);
	combine(p, BPF_RSH, BPF_REG_3, BPF_REG_4);
	compute(p, BPF_AND, BPF_REG_3, 1);
	jump_if_is(p, leave, BPF_REG_3, BPF_JNE, 0);
}

static void add_registers(struct program *p, const struct sched_probe_registers *registers)
{
	call(p, BPF_FUNC_get_current_task_btf);
	move(p, BPF_REG_1, BPF_REG_0);
	call(p, BPF_FUNC_task_pt_regs);
	for (uint32_t i = 0; i < registers->count; i++) {
		load(p, BPF_REG_1, BPF_REG_0, registers->offsets[i]);
		store(p, REGISTER_AT(i), BPF_REG_1);
	}
}

/* Reads the version of the row at r8 + `row`: before or after all other accesses to it. */
static void add_version(struct program *p, unsigned to, int row)
{
	set(p, to, 0);
	add(p, BPF_STX | ATOMIC | BPF_W, BPF_REG_8, to,
		row + (int)offsetof(struct known_block, version), FETCH_ADD);
}

/* r8 + `row`: the row; r9: memory of this CPU. Jumps to `other` if the block is not that of the row. */
static void add_comparison(struct program *p, const struct sched_probe_registers *registers,
	int row, struct label *other)
{
	struct label equal = { .count = 0 };

	load(p, BPF_REG_1, BPF_REG_8, row + (int)offsetof(struct known_block, owner));
	jump_if(p, other, BPF_REG_1, BPF_JNE, BPF_REG_7);
	add_version(p, BPF_REG_2, row);
	store(p, VERSION_AT, BPF_REG_2);
	for (uint32_t i = 0; i < registers->count; i++) {
		load(p, BPF_REG_1, BPF_REG_8,
			row + (int)offsetof(struct known_block, registers) + 8 * (int)i);
		fetch(p, BPF_REG_2, REGISTER_AT(i));
		combine(p, BPF_XOR, BPF_REG_1, BPF_REG_2);
		load(p, BPF_REG_2, BPF_REG_8,
			row + (int)offsetof(struct known_block, masks) + 8 * (int)i);
		combine(p, BPF_AND, BPF_REG_1, BPF_REG_2);
		jump_if_is(p, other, BPF_REG_1, BPF_JNE, 0);
	}
	/* the stack up to the last word */
	move(p, BPF_REG_1, BPF_REG_9);
	load(p, BPF_REG_2, BPF_REG_8, row + (int)offsetof(struct known_block, span_bytes));
	jump_if_is(p, other, BPF_REG_2, BPF_JGT, (int)KNOWN_BLOCK_SPAN);
	fetch(p, BPF_REG_3, REGISTER_AT(1));
	call(p, BPF_FUNC_probe_read_user);
	jump_if_is(p, other, BPF_REG_0, BPF_JNE, 0);
	set(p, BPF_REG_1, 0);
	load_sized(p, BPF_W, BPF_REG_2, BPF_REG_8,
		row + (int)offsetof(struct known_block, word_count));
	uint32_t loop = p->count;
	jump_if(p, &equal, BPF_REG_1, BPF_JGE, BPF_REG_2);
	jump_if_is(p, other, BPF_REG_1, BPF_JGE, (int)KNOWN_BLOCK_WORDS);
	move(p, BPF_REG_3, BPF_REG_1);
	compute(p, BPF_LSH, BPF_REG_3, 1);
	combine(p, BPF_ADD, BPF_REG_3, BPF_REG_8);
	load_sized(p, BPF_H, BPF_REG_3, BPF_REG_3,
		row + (int)offsetof(struct known_block, offsets));
	compute(p, BPF_AND, BPF_REG_3, (int)KNOWN_BLOCK_SPAN / 8 - 1);
	compute(p, BPF_LSH, BPF_REG_3, 3);
	combine(p, BPF_ADD, BPF_REG_3, BPF_REG_9);
	load(p, BPF_REG_3, BPF_REG_3, 0);
	move(p, BPF_REG_4, BPF_REG_1);
	compute(p, BPF_LSH, BPF_REG_4, 3);
	combine(p, BPF_ADD, BPF_REG_4, BPF_REG_8);
	load(p, BPF_REG_4, BPF_REG_4, row + (int)offsetof(struct known_block, values));
	jump_if(p, other, BPF_REG_3, BPF_JNE, BPF_REG_4);
	compute(p, BPF_ADD, BPF_REG_1, 1);
	add(p, BPF_JMP | BPF_JA, 0, 0, (int)loop - (int)p->count - 1, 0);
	bind(p, &equal);
	/* The recorder may have begun to write it, or has written another one meanwhile. */
	add_version(p, BPF_REG_2, row);
	fetch(p, BPF_REG_1, VERSION_AT);
	jump_if(p, other, BPF_REG_1, BPF_JNE, BPF_REG_2);
	jump_if_is(p, other, BPF_REG_1, BPF_JSET, 1);
}

/* If the block is known: jumps to `found` with r8, r9 and the end of the raw data set. */
static void add_known(struct program *p, const struct sched_program *program, struct label *found)
{
	struct label unknown = { .count = 0 };

	call(p, BPF_FUNC_get_smp_processor_id);
	jump_if_is(p, &unknown, BPF_REG_0, BPF_JGE, (int)program->cpu_count);
	compute(p, BPF_MUL, BPF_REG_0, (int)KNOWN_BLOCK_SPAN);
	load_value(p, BPF_REG_9, program->scratch_fd, 0);
	combine(p, BPF_ADD, BPF_REG_9, BPF_REG_0);
	/* known_block_set() */
	set_64(p, BPF_REG_2, KNOWN_BLOCK_HASH);
	move(p, BPF_REG_1, BPF_REG_7);
	for (unsigned i = 0; i < 2; i++) {
		combine(p, BPF_MUL, BPF_REG_1, BPF_REG_2);
		fetch(p, BPF_REG_3, REGISTER_AT(i));
		combine(p, BPF_XOR, BPF_REG_1, BPF_REG_3);
	}
	combine(p, BPF_MUL, BPF_REG_1, BPF_REG_2);
	compute(p, BPF_RSH, BPF_REG_1, 64 - KNOWN_BLOCK_SET_BITS);
	compute(p, BPF_MUL, BPF_REG_1, KNOWN_BLOCK_WAYS);
	store(p, SET_AT, BPF_REG_1);
	compute(p, BPF_MUL, BPF_REG_1, sizeof(struct known_block));
	load_value(p, BPF_REG_8, program->known_fd, 0);
	combine(p, BPF_ADD, BPF_REG_8, BPF_REG_1);
	for (unsigned way = 0; way < KNOWN_BLOCK_WAYS; way++) {
		struct label other = { .count = 0 };
		add_comparison(p, program->registers, (int)(way * sizeof(struct known_block)),
			&other);
		fetch(p, BPF_REG_1, SET_AT);
		compute(p, BPF_ADD, BPF_REG_1, (int)way);
		fetch(p, BPF_REG_2, VERSION_AT);
		compute(p, BPF_LSH, BPF_REG_2, 32);
		combine(p, BPF_OR, BPF_REG_1, BPF_REG_2);
		store(p, RAW_AT + RAW_BYTES, BPF_REG_1);
		set(p, BPF_REG_8, PROBE_KNOWN);
		set(p, BPF_REG_9, RAW_KNOWN_BYTES);
		jump(p, found);
		bind(p, &other);
	}
	bind(p, &unknown);
}

/* r8: the class. */
static void add_class(struct program *p, int state_fd, bool sized)
{
	struct label done = { .count = 0 };

	load_value(p, BPF_REG_1, state_fd, offsetof(struct probe_state, class));
	load(p, BPF_REG_8, BPF_REG_1, 0);
	compute(p, BPF_AND, BPF_REG_8, (1 << SCHED_PROGRAM_CLASS_SHIFT) - 1);
	if (!sized)
		return;
	load_value(p, BPF_REG_1, state_fd, offsetof(struct probe_state, stacks));
	add(p, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_7, 0, 0); /* the lower half: the tid */
	move(p, BPF_REG_3, BPF_REG_2);
	compute(p, BPF_AND, BPF_REG_2, SCHED_PROGRAM_STACKS - 1);
	compute(p, BPF_LSH, BPF_REG_2, STACK_SHIFT);
	combine(p, BPF_ADD, BPF_REG_1, BPF_REG_2);
	load(p, BPF_REG_2, BPF_REG_1, offsetof(struct known_stack, tid));
	jump_if(p, &done, BPF_REG_2, BPF_JNE, BPF_REG_3);
	load(p, BPF_REG_2, BPF_REG_1, offsetof(struct known_stack, end));
	fetch(p, BPF_REG_1, REGISTER_AT(1));
	combine(p, BPF_SUB, BPF_REG_2, BPF_REG_1);
	/* on another stack the difference is negative, which is above all */
	for (uint32_t class = PROBE_SIZED_LAST; class >= PROBE_SIZED_FIRST; class --) {
		jump_if_is(p, &done, BPF_REG_2, BPF_JGT, (int)sched_program_class_bytes[class]);
		set(p, BPF_REG_8, (int)class);
	}
	bind(p, &done);
}

/* r6: the context; r8: the class; r9: the size. The raw data: u16 id, u8 0, u8 class, u32 tid, u64 prev_state. */
static void add_output(struct program *p, const struct sched_program *program)
{
	move(p, BPF_REG_1, BPF_REG_7);
	compute(p, BPF_LSH, BPF_REG_1, 32);
	move(p, BPF_REG_2, BPF_REG_8);
	compute(p, BPF_LSH, BPF_REG_2, 8 * SCHED_PROGRAM_CLASS_OFFSET);
	combine(p, BPF_OR, BPF_REG_1, BPF_REG_2);
	compute(p, BPF_OR, BPF_REG_1, program->id);
	store(p, RAW_AT, BPF_REG_1);
	load(p, BPF_REG_1, BPF_REG_6, (int)program->state_offset);
	store(p, RAW_AT + (int)SCHED_PROBE_STATE_OFFSET, BPF_REG_1);
	call(p, BPF_FUNC_get_smp_processor_id);
	compute(p, BPF_LSH, BPF_REG_0, SCHED_PROGRAM_CLASS_SHIFT);
	combine(p, BPF_OR, BPF_REG_8, BPF_REG_0);
	move(p, BPF_REG_1, BPF_REG_6);
	add(p, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, program->events_fd);
	add(p, 0, 0, 0, 0, 0);
	move(p, BPF_REG_3, BPF_REG_8);
	move(p, BPF_REG_4, BPF_REG_10);
	compute(p, BPF_ADD, BPF_REG_4, RAW_AT);
	move(p, BPF_REG_5, BPF_REG_9);
	call(p, BPF_FUNC_perf_event_output);
}

int sched_program_load(const struct sched_program *program)
{
	struct program p = { .count = 0 };
	struct label found = { .count = 0 };
	struct label leave = { .count = 0 };

	assert(!program->registers || (program->registers->count > 1 &&
					      program->registers->count <= KNOWN_BLOCK_REGISTERS));
	move(&p, BPF_REG_6, BPF_REG_1);
	add_filter(&p, program->state_fd, &leave);
	if (program->registers)
		add_registers(&p, program->registers);
	if (program->registers && program->known_fd >= 0)
		add_known(&p, program, &found);
	add_class(&p, program->state_fd, program->registers != NULL);
	set(&p, BPF_REG_9, RAW_BYTES);
	bind(&p, &found);
	add_output(&p, program);
	bind(&p, &leave);
	set(&p, BPF_REG_0, 1);
	add(&p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return bpf_load(BPF_PROG_TYPE_TRACEPOINT, 0, p.insns, p.count);
}
