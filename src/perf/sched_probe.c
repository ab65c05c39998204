/*
 * See sched_probe.h. The program, at each context switch:
 *
 *   if the thread is the idle task, or muted[its pid]: return
 *   class = the current one of unknown stacks
 *   if stacks[tid % STACKS] is of this thread: class = the smallest one that holds the rest of its stack
 *   output { id, class, tid, prev_state } to the event of this CPU and class
 *
 * It returns 1, so that the events of others are kept: 0 would suppress theirs.
 */
#include "perf/sched_probe.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/bpf.h"
#include "machine/box.h"
#include "perf/kernel_event.h"
#include "perf/tracepoint.h"

#define STACKS_COUNT 8192u /* a power of two */
#define STACK_SHIFT  4     /* log2 of sizeof(struct known_stack) */
#define WORD_SHIFT   6     /* log2 of the bits of a word */
#define CLASS_SHIFT  3     /* log2 of the slots of a CPU */
#define CLASS_OFFSET 3u    /* in the raw data, where a tracepoint has its preempt count */
#define RAW_BYTES    16
/* the inode of /proc/self/ns/pid outside of all namespaces (PROC_PID_INIT_INO) */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

enum probe_class {
	CLASS_REQUESTED,
	CLASS_SIZED_FIRST,
	CLASS_SIZED_LAST = 3,
	CLASS_SMALL,
};

static const uint32_t class_bytes[CLASS_SIZED_LAST + 1] = { 0, 1024, 2048, 4096 };

struct known_stack {
	uint64_t tid; /* 0: none */
	uint64_t end;
};

/* What the program reads. */
struct probe_state {
	uint64_t class; /* of unknown stacks */
	uint64_t muted[SCHED_PROBE_PIDS_MAX >> WORD_SHIFT];
	struct known_stack stacks[STACKS_COUNT];
};

_Static_assert(sizeof(struct known_stack) == 1u << STACK_SHIFT, "the program's arithmetic");
_Static_assert(SCHED_PROBE_CLASSES <= 1u << CLASS_SHIFT, "the program's arithmetic");
_Static_assert(SCHED_PROBE_CLASSES == CLASS_SMALL + 1, "one number for the classes");

struct sched_probe {
	int state_fd;
	int events_fd; /* the events by CPU and class */
	int program_fd;
	int tracepoint_fd;
	bool sized; /* there are the classes of known stacks */
	uint32_t cpu_count;
	struct probe_state *state; /* mapped */
};

/* ---- the program ---- */

#define PROGRAM_MAX 128u
#define JUMPS_MAX   8u

struct program {
	struct bpf_insn insns[PROGRAM_MAX];
	uint32_t count;
	uint32_t jumps[JUMPS_MAX]; /* instructions whose target is set by land() */
	uint32_t jump_count;
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

static void compute(struct program *p, unsigned operation, unsigned to, int immediate)
{
	add(p, BPF_ALU64 | operation | BPF_K, to, 0, 0, immediate);
}

static void combine(struct program *p, unsigned operation, unsigned to, unsigned from)
{
	add(p, BPF_ALU64 | operation | BPF_X, to, from, 0, 0);
}

static void load(struct program *p, unsigned to, unsigned from, int offset)
{
	add(p, BPF_LDX | BPF_MEM | BPF_DW, to, from, offset, 0);
}

static void store(struct program *p, int offset, unsigned from)
{
	add(p, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, from, offset, 0);
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

/* Jumps to the next land() if the comparison holds. */
static void jump_if(struct program *p, unsigned a, unsigned comparison, unsigned b)
{
	p->jumps[p->jump_count++] = p->count;
	add(p, BPF_JMP | comparison | BPF_X, a, b, 0, 0);
}

static void jump_if_above(struct program *p, unsigned a, int immediate)
{
	p->jumps[p->jump_count++] = p->count;
	add(p, BPF_JMP | BPF_JGT | BPF_K, a, 0, 0, immediate);
}

static void land(struct program *p)
{
	for (uint32_t i = 0; i < p->jump_count; i++)
		p->insns[p->jumps[i]].off = (int16_t)(p->count - p->jumps[i] - 1);
	p->jump_count = 0;
}

static void leave(struct program *p)
{
	set(p, BPF_REG_0, 1);
	add(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Leaves if the register is (`comparison` BPF_JNE) or is not (BPF_JEQ) 0. */
static void leave_unless(struct program *p, unsigned comparison, unsigned a)
{
	add(p, BPF_JMP | comparison | BPF_K, a, 0, 2, 0);
	leave(p);
}

/* r7: pid << 32 | tid of the thread that leaves the CPU. Leaves if it is not recorded. */
static void add_filter(struct program *p, int state_fd)
{
	call(p, BPF_FUNC_get_current_pid_tgid);
	leave_unless(p, BPF_JNE, BPF_REG_0);
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
	leave_unless(p, BPF_JEQ, BPF_REG_3);
}

/* r8: the class. */
static void add_class(struct program *p, int state_fd, uint32_t stack_pointer_offset)
{
	load_value(p, BPF_REG_1, state_fd, offsetof(struct probe_state, class));
	load(p, BPF_REG_8, BPF_REG_1, 0);
	compute(p, BPF_AND, BPF_REG_8, (1 << CLASS_SHIFT) - 1);
	if (!stack_pointer_offset)
		return;
	load_value(p, BPF_REG_1, state_fd, offsetof(struct probe_state, stacks));
	add(p, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_7, 0, 0); /* the lower half: the tid */
	move(p, BPF_REG_3, BPF_REG_2);
	compute(p, BPF_AND, BPF_REG_2, STACKS_COUNT - 1);
	compute(p, BPF_LSH, BPF_REG_2, STACK_SHIFT);
	combine(p, BPF_ADD, BPF_REG_1, BPF_REG_2);
	load(p, BPF_REG_2, BPF_REG_1, offsetof(struct known_stack, tid));
	jump_if(p, BPF_REG_2, BPF_JNE, BPF_REG_3);
	load(p, BPF_REG_9, BPF_REG_1, offsetof(struct known_stack, end));
	call(p, BPF_FUNC_get_current_task_btf);
	move(p, BPF_REG_1, BPF_REG_0);
	call(p, BPF_FUNC_task_pt_regs);
	load(p, BPF_REG_1, BPF_REG_0, (int)stack_pointer_offset);
	combine(p, BPF_SUB, BPF_REG_9, BPF_REG_1);
	/* on another stack the difference is negative, which is above all */
	for (uint32_t class = CLASS_SIZED_LAST; class >= CLASS_SIZED_FIRST; class --) {
		jump_if_above(p, BPF_REG_9, (int)class_bytes[class]);
		set(p, BPF_REG_8, (int)class);
	}
	land(p);
}

/* r6: the context. The raw data: u16 id, u8 0, u8 class, u32 tid, u64 prev_state. */
static void add_output(struct program *p, const struct sched_probe *probe, uint16_t id,
	uint32_t state_offset)
{
	move(p, BPF_REG_1, BPF_REG_7);
	compute(p, BPF_LSH, BPF_REG_1, 32);
	move(p, BPF_REG_2, BPF_REG_8);
	compute(p, BPF_LSH, BPF_REG_2, 8 * CLASS_OFFSET);
	combine(p, BPF_OR, BPF_REG_1, BPF_REG_2);
	compute(p, BPF_OR, BPF_REG_1, id);
	store(p, -RAW_BYTES, BPF_REG_1);
	load(p, BPF_REG_1, BPF_REG_6, (int)state_offset);
	store(p, -RAW_BYTES + (int)SCHED_PROBE_STATE_OFFSET, BPF_REG_1);
	call(p, BPF_FUNC_get_smp_processor_id);
	compute(p, BPF_LSH, BPF_REG_0, CLASS_SHIFT);
	combine(p, BPF_OR, BPF_REG_8, BPF_REG_0);
	move(p, BPF_REG_1, BPF_REG_6);
	add(p, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, probe->events_fd);
	add(p, 0, 0, 0, 0, 0);
	move(p, BPF_REG_3, BPF_REG_8);
	move(p, BPF_REG_4, BPF_REG_10);
	compute(p, BPF_ADD, BPF_REG_4, -RAW_BYTES);
	set(p, BPF_REG_5, RAW_BYTES);
	call(p, BPF_FUNC_perf_event_output);
}

static int load_program(const struct sched_probe *probe, uint16_t id, uint32_t state_offset,
	uint32_t stack_pointer_offset)
{
	struct program program = { .count = 0 };

	move(&program, BPF_REG_6, BPF_REG_1);
	add_filter(&program, probe->state_fd);
	add_class(&program, probe->state_fd, stack_pointer_offset);
	add_output(&program, probe, id, state_offset);
	leave(&program);
	return bpf_load(BPF_PROG_TYPE_TRACEPOINT, 0, program.insns, program.count);
}

/* ---- opening ---- */

/*
 * An event of the tracepoint that stays disabled: the program runs on all CPUs while it is open. The event
 * itself needs a CPU that is online, which CPU 0 need not be.
 */
static int attach(uint16_t id, uint32_t cpu_count, int program_fd)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	attr.sample_period = 1;
	attr.disabled = 1;
	cleanup(closep) int fd = -ENODEV;
	for (uint32_t cpu = 0; cpu < cpu_count && (fd == -ENODEV || fd == -ENXIO); cpu++)
		fd = event_open(&attr, -1, (int)cpu);
	if (fd < 0)
		return fd;
	int result = event_run_program(fd, program_fd);
	return result < 0 ? result : TAKE_FD(fd);
}

static bool in_pid_namespace(void)
{
	struct stat own;

	return stat("/proc/self/ns/pid", &own) < 0 || own.st_ino != INITIAL_PID_NAMESPACE;
}

static int open_probe(struct sched_probe *probe, const struct tracepoint *tracepoint,
	const struct tracepoint_field *prev_state, uint32_t stack_pointer_offset)
{
	uint32_t slots = probe->cpu_count << CLASS_SHIFT;

	if (prev_state->size != sizeof(uint64_t))
		return -EBADMSG;
	probe->state = bpf_map_shared(sizeof(struct probe_state), &probe->state_fd);
	if (!probe->state)
		return probe->state_fd;
	probe->events_fd = bpf_map_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(uint32_t), slots, 0);
	if (probe->events_fd < 0)
		return probe->events_fd;
	probe->program_fd =
		load_program(probe, tracepoint->id, prev_state->offset, stack_pointer_offset);
	if (probe->program_fd < 0)
		return probe->program_fd;
	probe->tracepoint_fd = attach(tracepoint->id, probe->cpu_count, probe->program_fd);
	return probe->tracepoint_fd < 0 ? probe->tracepoint_fd : 0;
}

int sched_probe_open(const struct tracepoint *tracepoint, const struct tracepoint_field *prev_state,
	uint32_t stack_pointer_offset, struct sched_probe **ret_probe)
{
	if (in_pid_namespace())
		return -EXDEV;
	struct sched_probe *probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->state_fd = probe->events_fd = probe->program_fd = probe->tracepoint_fd = -1;
	probe->sized = stack_pointer_offset != 0;
	probe->cpu_count = box_cpu_numbers();
	int result = open_probe(probe, tracepoint, prev_state, stack_pointer_offset);
	if (result < 0) {
		sched_probe_close(probe);
		return result;
	}
	*ret_probe = probe;
	return 0;
}

bool sched_probe_attribute(const struct sched_probe *probe, uint32_t class, uint32_t small_bytes,
	struct perf_event_attr *attr)
{
	bool sized = class >= CLASS_SIZED_FIRST && class <= CLASS_SIZED_LAST;
	uint32_t bytes = sized ? class_bytes[class] : class == CLASS_SMALL ? small_bytes : 0;

	if (class != CLASS_REQUESTED &&
		(!bytes || bytes >= attr->sample_stack_user || (sized && !probe->sized)))
		return false;
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	if (bytes)
		attr->sample_stack_user = bytes;
	if (sized)
		attr->exclude_callchain_user = 1;
	return true;
}

int sched_probe_connect(struct sched_probe *probe, int32_t cpu, uint32_t class, int fd)
{
	union bpf_attr attr;
	uint32_t value = (uint32_t)fd;

	if (cpu < 0 || (uint32_t)cpu >= probe->cpu_count)
		return -ERANGE;
	uint32_t key = (uint32_t)cpu << CLASS_SHIFT | class;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)probe->events_fd;
	attr.key = (uint64_t)(uintptr_t)&key;
	attr.value = (uint64_t)(uintptr_t)&value;
	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
}

uint64_t *sched_probe_muted(struct sched_probe *probe)
{
	return probe->state->muted;
}

void sched_probe_learn_stack(struct sched_probe *probe, const uint8_t *raw, uint32_t raw_size,
	uint32_t tid, uint64_t stack_end)
{
	struct known_stack *stack = &probe->state->stacks[tid & (STACKS_COUNT - 1)];

	if (raw_size <= CLASS_OFFSET)
		return;
	if (stack_end) {
		/* The program must not see this end with another thread's id. */
		__atomic_store_n(&stack->tid, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&stack->end, stack_end, __ATOMIC_RELEASE);
		__atomic_store_n(&stack->tid, tid, __ATOMIC_RELEASE);
	} else if (sched_probe_is_sized(raw, raw_size) && stack->tid == tid) {
		__atomic_store_n(&stack->tid, 0, __ATOMIC_RELEASE);
	}
}

void sched_probe_copy_small(struct sched_probe *probe, bool small)
{
	__atomic_store_n(&probe->state->class, small ? CLASS_SMALL : CLASS_REQUESTED,
		__ATOMIC_RELAXED);
}

bool sched_probe_is_sized(const uint8_t *raw, uint32_t raw_size)
{
	return raw_size > CLASS_OFFSET && raw[CLASS_OFFSET] >= CLASS_SIZED_FIRST &&
	       raw[CLASS_OFFSET] <= CLASS_SIZED_LAST;
}

int sched_probe_take_event(struct sched_probe *probe)
{
	return TAKE_FD(probe->tracepoint_fd);
}

void sched_probe_close(struct sched_probe *probe)
{
	if (!probe)
		return;
	bpf_map_unshare(probe->state, sizeof(*probe->state));
	closep(&probe->tracepoint_fd);
	closep(&probe->program_fd);
	closep(&probe->events_fd);
	closep(&probe->state_fd);
	free(probe);
}
