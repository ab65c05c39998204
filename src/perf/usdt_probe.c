/*
 * See usdt_probe.h. One program for all sites; the cookie of an attachment has the site's number and its operands:
 *
 *   slot = a free one of this CPU's SLOTS_PER_CPU; without one: lost += 1, return
 *   each operand: its value, from a register, a number, or user memory; an unreadable one is 0, with a bit in
 *   `unreadable`; the text at the value is appended to the slot, with a bit in `texts`
 *   output the slot to the event of this CPU, release the slot
 *
 * A thread that executes the program may be preempted by another that reaches a probe: hence the slots. Its
 * CPU stays the same.
 */
#include "perf/usdt_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "machine/box.h"
#include "machine/bpf.h"
#include "machine/bpf_program.h"
#include "machine/kernel_file.h"
#include "perf/attribute.h"
#include "perf/closing.h"
#include "perf/kernel_event.h"

#define PROGRAM_MAX   256u
#define SLOTS_PER_CPU 4u
#define SLOT_SHIFT    13     /* log2 of sizeof(struct probe_slot) */
#define ROOM          4096u  /* of values and texts, a power of two */
#define ADDRESS_MIN   65536  /* lower values are no addresses */
#define OPERANDS_MAX  16384u /* different ones */
/* No tracepoint has this number: the kernel gives them from below, and there are far fewer. */
#define MARK         0xffff
#define COUNT_SHIFT  16
#define NUMBER_SHIFT 32
#define HEAD_BYTES   32u
#define PMU_TYPE     "/sys/bus/event_source/devices/uprobe/type"

/* The bytes from `head` on are written to the ring. */
struct probe_slot {
	uint64_t taken; /* 1: the program uses it */
	uint64_t head;  /* MARK, count of values, number of the site */
	uint64_t unreadable;
	uint64_t texts;
	uint64_t used;              /* bytes of `room` */
	uint8_t room[8192 - 5 * 8]; /* the values, then the texts */
};

_Static_assert(sizeof(struct probe_slot) == 1u << SLOT_SHIFT, "the program's arithmetic");
_Static_assert(offsetof(struct probe_slot, room) - offsetof(struct probe_slot, head) == HEAD_BYTES,
	"the head");
_Static_assert(sizeof(((struct probe_slot *)NULL)->room) >= ROOM + USDT_TEXT_MAX + 1,
	"as the verifier sees it, the last text may begin at the end");

/* What the program reads of a site. */
struct probe_operands {
	uint64_t count;
	struct usdt_operand items[USDT_HIT_VALUES_MAX];
};

_Static_assert(sizeof(struct usdt_operand) == 24, "without padding, which would be compared");

struct usdt_probe {
	int slots_fd;
	int lost_fd;
	int operands_fd; /* struct probe_operands by number */
	int events_fd;   /* the events by CPU */
	int program_fd;
	bool by_events; /* attached by perf events, one for each site */
	uint32_t pmu_type;
	uint32_t cpu_count;
	uint32_t cpu_slots;  /* cpu_count, rounded up to a power of two */
	uint64_t *lost;      /* mapped */
	uint64_t lost_count; /* at the end */
	bool ended;
	VEC(int) attached; /* links, and perf events */
	VEC(struct probe_operands) operands;
	struct map operands_by_hash; /* number + 1 */
};

/* ---- the program ---- */

/* On its stack. */
enum {
	AT_KEY = -8,
	AT_COUNT = -16,
	AT_VALUE = -24,
	AT_ADDRESS = -32,
};

static void add_lost(struct bpf_program *p, const struct usdt_probe *probe)
{
	bpf_load_value(p, BPF_REG_1, probe->lost_fd, 0);
	bpf_set(p, BPF_REG_2, 1);
	bpf_add(p, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_2, 0, BPF_ADD);
}

/* r7: a slot, which is taken now. */
static void add_claim(struct bpf_program *p, const struct usdt_probe *probe)
{
	uint32_t claimed[SLOTS_PER_CPU];

	bpf_call_helper(p, BPF_FUNC_get_smp_processor_id);
	bpf_compute(p, BPF_AND, BPF_REG_0, (int)probe->cpu_slots - 1);
	bpf_compute(p, BPF_LSH, BPF_REG_0, SLOT_SHIFT + 2);
	bpf_load_value(p, BPF_REG_7, probe->slots_fd, 0);
	bpf_combine(p, BPF_ADD, BPF_REG_7, BPF_REG_0);
	for (uint32_t i = 0; i < SLOTS_PER_CPU; i++) {
		if (i)
			bpf_compute(p, BPF_ADD, BPF_REG_7, sizeof(struct probe_slot));
		bpf_set(p, BPF_REG_0, 0);
		bpf_set(p, BPF_REG_1, 1);
		bpf_add(p, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_1,
			offsetof(struct probe_slot, taken), BPF_CMPXCHG);
		claimed[i] = bpf_jump(p, BPF_JEQ, BPF_REG_0, 0);
	}
	add_lost(p, probe);
	bpf_exit(p, 0);
	for (uint32_t i = 0; i < SLOTS_PER_CPU; i++)
		bpf_land(p, claimed[i]);
}
_Static_assert(SLOTS_PER_CPU == 1u << 2, "the program's arithmetic");

/* Ends the program and releases the slot: by an exchange, which is ordered after the reads of the slot. */
static void add_release(struct bpf_program *p)
{
	bpf_set(p, BPF_REG_1, 0);
	bpf_add(p, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_1,
		offsetof(struct probe_slot, taken), BPF_XCHG);
	bpf_exit(p, 0);
}

/* The head of the slot. r8: the first operand; the stack has the count. */
static void add_begin(struct bpf_program *p, const struct usdt_probe *probe)
{
	bpf_move(p, BPF_REG_1, BPF_REG_6);
	bpf_call_helper(p, BPF_FUNC_get_attach_cookie);
	bpf_move(p, BPF_REG_9, BPF_REG_0);
	bpf_compute(p, BPF_RSH, BPF_REG_0, NUMBER_SHIFT);
	bpf_store_u64(p, BPF_REG_10, AT_KEY, BPF_REG_0);
	bpf_load_map(p, BPF_REG_1, probe->operands_fd);
	bpf_move(p, BPF_REG_2, BPF_REG_10);
	bpf_compute(p, BPF_ADD, BPF_REG_2, AT_KEY);
	bpf_call_helper(p, BPF_FUNC_map_lookup_elem);
	uint32_t known = bpf_jump(p, BPF_JNE, BPF_REG_0, 0);
	add_lost(p, probe);
	add_release(p);
	bpf_land(p, known);
	bpf_move(p, BPF_REG_8, BPF_REG_0);
	bpf_load_u64(p, BPF_REG_1, BPF_REG_8, offsetof(struct probe_operands, count));
	bpf_store_u64(p, BPF_REG_10, AT_COUNT, BPF_REG_1);
	bpf_compute(p, BPF_LSH, BPF_REG_9, NUMBER_SHIFT);
	bpf_compute(p, BPF_OR, BPF_REG_9, MARK);
	bpf_move(p, BPF_REG_2, BPF_REG_1);
	bpf_compute(p, BPF_LSH, BPF_REG_2, COUNT_SHIFT);
	bpf_combine(p, BPF_OR, BPF_REG_9, BPF_REG_2);
	bpf_store_u64(p, BPF_REG_7, offsetof(struct probe_slot, head), BPF_REG_9);
	bpf_compute(p, BPF_LSH, BPF_REG_1, 3);
	bpf_store_u64(p, BPF_REG_7, offsetof(struct probe_slot, used), BPF_REG_1);
	bpf_set(p, BPF_REG_1, 0);
	bpf_store_u64(p, BPF_REG_7, offsetof(struct probe_slot, unreadable), BPF_REG_1);
	bpf_store_u64(p, BPF_REG_7, offsetof(struct probe_slot, texts), BPF_REG_1);
	bpf_compute(p, BPF_ADD, BPF_REG_8, offsetof(struct probe_operands, items));
}

/* Sets bit r9 of a word of the slot. */
static void add_bit(struct bpf_program *p, size_t word)
{
	bpf_load_u64(p, BPF_REG_1, BPF_REG_7, (int)word);
	bpf_set(p, BPF_REG_2, 1);
	bpf_combine(p, BPF_LSH, BPF_REG_2, BPF_REG_9);
	bpf_combine(p, BPF_OR, BPF_REG_1, BPF_REG_2);
	bpf_store_u64(p, BPF_REG_7, (int)word, BPF_REG_1);
}

static void load_member(struct bpf_program *p, unsigned size, unsigned to, size_t member)
{
	bpf_add(p, BPF_LDX | BPF_MEM | size, to, BPF_REG_8, (int)member, 0);
}

/* Adds a register of the thread, shifted by `scale`, to the address on the stack, unless the operand has none. */
static void add_register(struct bpf_program *p, size_t member, size_t scale)
{
	load_member(p, BPF_H, BPF_REG_3, member);
	uint32_t none = bpf_jump(p, BPF_JEQ, BPF_REG_3, UINT16_MAX);
	/* The context can be read at constant offsets only, so it is read as memory. */
	bpf_combine(p, BPF_ADD, BPF_REG_3, BPF_REG_6);
	bpf_move(p, BPF_REG_1, BPF_REG_10);
	bpf_compute(p, BPF_ADD, BPF_REG_1, AT_VALUE);
	bpf_set(p, BPF_REG_2, sizeof(uint64_t));
	bpf_call_helper(p, BPF_FUNC_probe_read_kernel);
	bpf_load_u64(p, BPF_REG_1, BPF_REG_10, AT_VALUE);
	load_member(p, BPF_B, BPF_REG_2, scale);
	bpf_combine(p, BPF_LSH, BPF_REG_1, BPF_REG_2);
	bpf_load_u64(p, BPF_REG_2, BPF_REG_10, AT_ADDRESS);
	bpf_combine(p, BPF_ADD, BPF_REG_1, BPF_REG_2);
	bpf_store_u64(p, BPF_REG_10, AT_ADDRESS, BPF_REG_1);
	bpf_land(p, none);
}

/* The value of operand r8, on the stack; 0, with a bit in `unreadable`, if it cannot be read. */
static void add_fetch(struct bpf_program *p)
{
	load_member(p, BPF_DW, BPF_REG_1, offsetof(struct usdt_operand, value));
	bpf_store_u64(p, BPF_REG_10, AT_VALUE, BPF_REG_1);
	load_member(p, BPF_B, BPF_REG_2, offsetof(struct usdt_operand, kind));
	uint32_t constant = bpf_jump(p, BPF_JEQ, BPF_REG_2, USDT_OPERAND_CONSTANT);
	uint32_t none = bpf_jump(p, BPF_JEQ, BPF_REG_2, USDT_OPERAND_NONE);
	bpf_store_u64(p, BPF_REG_10, AT_ADDRESS, BPF_REG_1);
	/* of a base the scale is 0: `unused` */
	add_register(p, offsetof(struct usdt_operand, base), offsetof(struct usdt_operand, unused));
	add_register(p, offsetof(struct usdt_operand, index), offsetof(struct usdt_operand, scale));
	bpf_load_u64(p, BPF_REG_3, BPF_REG_10, AT_ADDRESS);
	load_member(p, BPF_B, BPF_REG_1, offsetof(struct usdt_operand, kind));
	uint32_t memory = bpf_jump(p, BPF_JEQ, BPF_REG_1, USDT_OPERAND_MEMORY);
	load_member(p, BPF_B, BPF_REG_2, offsetof(struct usdt_operand, shift));
	bpf_combine(p, BPF_RSH, BPF_REG_3, BPF_REG_2);
	bpf_store_u64(p, BPF_REG_10, AT_VALUE, BPF_REG_3);
	uint32_t in_register = bpf_jump(p, BPF_JA, 0, 0);
	bpf_land(p, memory);
	bpf_set(p, BPF_REG_1, 0);
	bpf_store_u64(p, BPF_REG_10, AT_VALUE, BPF_REG_1);
	bpf_move(p, BPF_REG_1, BPF_REG_10);
	bpf_compute(p, BPF_ADD, BPF_REG_1, AT_VALUE);
	load_member(p, BPF_B, BPF_REG_2, offsetof(struct usdt_operand, size));
	uint32_t large = bpf_jump(p, BPF_JGT, BPF_REG_2, sizeof(uint64_t));
	bpf_call_helper(p, BPF_FUNC_probe_read_user);
	uint32_t read = bpf_jump(p, BPF_JEQ, BPF_REG_0, 0);
	bpf_land(p, none);
	bpf_land(p, large);
	add_bit(p, offsetof(struct probe_slot, unreadable));
	bpf_set(p, BPF_REG_1, 0);
	bpf_store_u64(p, BPF_REG_10, AT_VALUE, BPF_REG_1);
	bpf_land(p, read);
	bpf_land(p, constant);
	bpf_land(p, in_register);
}

/* r3: the value, extended to 64 bits, which is stored as value r9 of the slot. */
static void add_store(struct bpf_program *p)
{
	bpf_load_u64(p, BPF_REG_3, BPF_REG_10, AT_VALUE);
	load_member(p, BPF_B, BPF_REG_1, offsetof(struct usdt_operand, size));
	bpf_compute(p, BPF_LSH, BPF_REG_1, 3);
	bpf_set(p, BPF_REG_2, 64);
	bpf_combine(p, BPF_SUB, BPF_REG_2, BPF_REG_1);
	bpf_compute(p, BPF_AND, BPF_REG_2, 63);
	bpf_combine(p, BPF_LSH, BPF_REG_3, BPF_REG_2);
	load_member(p, BPF_B, BPF_REG_1, offsetof(struct usdt_operand, is_signed));
	uint32_t is_signed = bpf_jump(p, BPF_JNE, BPF_REG_1, 0);
	bpf_combine(p, BPF_RSH, BPF_REG_3, BPF_REG_2);
	uint32_t extended = bpf_jump(p, BPF_JA, 0, 0);
	bpf_land(p, is_signed);
	bpf_combine(p, BPF_ARSH, BPF_REG_3, BPF_REG_2);
	bpf_land(p, extended);
	bpf_move(p, BPF_REG_1, BPF_REG_9);
	bpf_compute(p, BPF_LSH, BPF_REG_1, 3);
	bpf_combine(p, BPF_ADD, BPF_REG_1, BPF_REG_7);
	bpf_store_u64(p, BPF_REG_1, offsetof(struct probe_slot, room), BPF_REG_3);
}

/*
 * Appends the string at r3. The bytes in use are kept in the slot, not in a register: the verifier then knows no more
 * about them after a string than after none, so it need not follow both ways for each text.
 */
static void add_text(struct bpf_program *p)
{
	load_member(p, BPF_B, BPF_REG_1, offsetof(struct usdt_operand, is_text));
	uint32_t no_text = bpf_jump(p, BPF_JEQ, BPF_REG_1, 0);
	uint32_t low = bpf_jump(p, BPF_JLT, BPF_REG_3, ADDRESS_MIN);
	bpf_load_u64(p, BPF_REG_2, BPF_REG_7, offsetof(struct probe_slot, used));
	uint32_t full = bpf_jump(p, BPF_JGT, BPF_REG_2, (int)(ROOM - 1 - (USDT_TEXT_MAX + 1)));
	bpf_move(p, BPF_REG_1, BPF_REG_7);
	bpf_compute(p, BPF_ADD, BPF_REG_1, offsetof(struct probe_slot, room));
	bpf_combine(p, BPF_ADD, BPF_REG_1, BPF_REG_2);
	bpf_set(p, BPF_REG_2, USDT_TEXT_MAX + 1);
	bpf_call_helper(p, BPF_FUNC_probe_read_user_str);
	uint32_t none = bpf_jump(p, BPF_JSLE, BPF_REG_0, 0);
	bpf_load_u64(p, BPF_REG_2, BPF_REG_7, offsetof(struct probe_slot, used));
	bpf_combine(p, BPF_ADD, BPF_REG_2, BPF_REG_0);
	bpf_store_u64(p, BPF_REG_7, offsetof(struct probe_slot, used), BPF_REG_2);
	add_bit(p, offsetof(struct probe_slot, texts));
	bpf_land(p, none);
	bpf_land(p, full);
	bpf_land(p, low);
	bpf_land(p, no_text);
}

static void add_output(struct bpf_program *p, const struct usdt_probe *probe)
{
	bpf_load_u64(p, BPF_REG_5, BPF_REG_7, offsetof(struct probe_slot, used));
	bpf_compute(p, BPF_AND, BPF_REG_5, ROOM - 1);
	bpf_compute(p, BPF_ADD, BPF_REG_5, HEAD_BYTES);
	bpf_move(p, BPF_REG_1, BPF_REG_6);
	bpf_load_map(p, BPF_REG_2, probe->events_fd);
	bpf_set_u64(p, BPF_REG_3, BPF_F_CURRENT_CPU);
	bpf_move(p, BPF_REG_4, BPF_REG_7);
	bpf_compute(p, BPF_ADD, BPF_REG_4, offsetof(struct probe_slot, head));
	bpf_call_helper(p, BPF_FUNC_perf_event_output);
	/* Of a full ring the kernel counts the loss itself. */
	uint32_t written = bpf_jump(p, BPF_JEQ, BPF_REG_0, 0);
	uint32_t full = bpf_jump(p, BPF_JEQ, BPF_REG_0, -ENOSPC);
	add_lost(p, probe);
	bpf_land(p, written);
	bpf_land(p, full);
	add_release(p);
}

static int load_program(const struct usdt_probe *probe)
{
	struct bpf_insn insns[PROGRAM_MAX];
	struct bpf_program p = { .insns = insns, .room = PROGRAM_MAX };

	bpf_move(&p, BPF_REG_6, BPF_REG_1);
	add_claim(&p, probe);
	add_begin(&p, probe);
	bpf_set(&p, BPF_REG_9, 0);
	uint32_t loop = p.count;
	uint32_t last = bpf_jump(&p, BPF_JGE, BPF_REG_9, USDT_HIT_VALUES_MAX);
	bpf_load_u64(&p, BPF_REG_1, BPF_REG_10, AT_COUNT);
	uint32_t done = p.count;
	bpf_add(&p, BPF_JMP | BPF_JGE | BPF_X, BPF_REG_9, BPF_REG_1, 0, 0);
	add_fetch(&p);
	add_store(&p);
	add_text(&p);
	bpf_compute(&p, BPF_ADD, BPF_REG_8, sizeof(struct usdt_operand));
	bpf_compute(&p, BPF_ADD, BPF_REG_9, 1);
	bpf_repeat(&p, loop);
	bpf_land(&p, last);
	bpf_land(&p, done);
	add_output(&p, probe);
	if (p.overflow)
		return -E2BIG;
	return bpf_load_for(BPF_PROG_TYPE_KPROBE, probe->by_events ? 0 : BPF_ATTACH_UPROBE_MULTI,
		insns, p.count);
}

/* ---- opening ---- */

static int open_maps(struct usdt_probe *probe)
{
	probe->slots_fd = bpf_map_new(BPF_MAP_TYPE_ARRAY,
		(uint32_t)sizeof(struct probe_slot) * SLOTS_PER_CPU * probe->cpu_slots, 1, 0);
	if (probe->slots_fd < 0)
		return probe->slots_fd;
	probe->lost = bpf_map_shared(sizeof(*probe->lost), &probe->lost_fd);
	if (!probe->lost)
		return probe->lost_fd;
	probe->operands_fd = bpf_map_new(BPF_MAP_TYPE_HASH, sizeof(struct probe_operands),
		OPERANDS_MAX, BPF_F_NO_PREALLOC);
	if (probe->operands_fd < 0)
		return probe->operands_fd;
	probe->events_fd =
		bpf_map_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(uint32_t), probe->cpu_count, 0);
	if (probe->events_fd < 0)
		return probe->events_fd;
	return 0;
}

/* Whether the kernel attaches programs to many uprobes: of a file that does not exist it says so. */
static bool has_links(const struct usdt_probe *probe)
{
	uint64_t zero = 0;

	return bpf_link_uprobes(probe->program_fd, "/proc/self/fd/-1", &zero, &zero, &zero, 1) ==
	       -ENOENT;
}

static int open_program(struct usdt_probe *probe, bool events)
{
	int64_t type;

	probe->by_events = events;
	probe->program_fd = load_program(probe);
	if (!events &&
		(probe->program_fd == -EINVAL || (probe->program_fd >= 0 && !has_links(probe)))) {
		closep(&probe->program_fd);
		probe->by_events = true;
		probe->program_fd = load_program(probe);
	}
	if (!probe->by_events || probe->program_fd < 0)
		return probe->program_fd < 0 ? probe->program_fd : 0;
	if (!kernel_file_number(PMU_TYPE, &type))
		return -ENOSYS;
	probe->pmu_type = (uint32_t)type;
	return 0;
}

int usdt_probe_open(bool events, struct usdt_probe **ret_probe, struct diag *diag)
{
	struct usdt_probe *probe = calloc(1, sizeof(*probe));

	if (!probe)
		return diag_set(diag, -ENOMEM, "cannot record USDT probes: %m");
	probe->slots_fd = probe->lost_fd = probe->operands_fd = probe->events_fd =
		probe->program_fd = -1;
	probe->cpu_count = box_cpu_numbers();
	for (probe->cpu_slots = 1; probe->cpu_slots < probe->cpu_count;)
		probe->cpu_slots *= 2;
	int result = open_maps(probe);
	if (result == 0)
		result = open_program(probe, events);
	if (result == -EPERM || result == -EACCES) {
		diag_set(diag, result,
			"cannot record USDT probes: the right to use BPF is missing");
		diag_remedy(diag, "record with sudo");
	} else if (result < 0) {
		diag_set(diag, result,
			"cannot record USDT probes: the kernel refuses the program that reads their arguments (Linux 5.15 or newer with CONFIG_UPROBE_EVENTS takes it): %m");
	}
	if (result < 0) {
		usdt_probe_close(probe);
		return result;
	}
	*ret_probe = probe;
	return 0;
}

bool usdt_probe_needs_admin(const struct usdt_probe *probe)
{
	return probe->by_events;
}

void usdt_probe_attribute(const struct perf_event_attr *sampling, uint32_t stack_bytes,
	bool user_only, bool kernel_only, struct perf_event_attr *ret_attr)
{
	attribute_each(sampling, stack_bytes, user_only, kernel_only, ret_attr);
	ret_attr->type = PERF_TYPE_SOFTWARE;
	ret_attr->config = PERF_COUNT_SW_BPF_OUTPUT;
}

int usdt_probe_connect(struct usdt_probe *probe, int32_t cpu, int fd)
{
	uint32_t key = (uint32_t)cpu;

	if (cpu < 0 || key >= probe->cpu_count)
		return -ERANGE;
	return bpf_map_set(probe->events_fd, &key, &fd);
}

int usdt_probe_describe(struct usdt_probe *probe, const struct usdt_operand *operands,
	unsigned count, uint32_t *ret_operands)
{
	struct probe_operands made;
	size_t size = count * sizeof(*operands);

	if (count > USDT_HIT_VALUES_MAX)
		return -E2BIG;
	memset(&made, 0, sizeof(made));
	made.count = count;
	if (count)
		memcpy(made.items, operands, size);
	uint64_t hash = hash_bytes(made.items, size) ^ count;
	for (struct map_walk w = map_find(&probe->operands_by_hash, hash); w.value; map_next(&w))
		if (memcmp(&probe->operands.items[w.value - 1], &made, sizeof(made)) == 0) {
			*ret_operands = w.value - 1;
			return 0;
		}
	if (probe->operands.count == OPERANDS_MAX)
		return -ENOSPC;
	uint32_t number = probe->operands.count;
	if (!vec_add(&probe->operands, made) ||
		!map_add(&probe->operands_by_hash, hash, number + 1))
		return -ENOMEM;
	*ret_operands = number;
	return bpf_map_set(probe->operands_fd, &number, &made);
}

static uint64_t cookie_of(const struct usdt_site *site)
{
	return (uint64_t)site->operands << NUMBER_SHIFT | site->number;
}

static int attach_link(struct usdt_probe *probe, const char *path, const struct usdt_site *sites,
	size_t count)
{
	cleanup(freep) uint64_t *words = malloc(3 * count * sizeof(*words));

	if (!words || count > UINT32_MAX)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		words[i] = sites[i].offset;
		words[count + i] = sites[i].semaphore;
		words[2 * count + i] = cookie_of(&sites[i]);
	}
	int fd = bpf_link_uprobes(probe->program_fd, path, words, words + count, words + 2 * count,
		(uint32_t)count);
	if (fd < 0 || vec_add(&probe->attached, fd))
		return fd < 0 ? fd : 0;
	(void)close(fd); /* the caller reports that memory ran out */
	return -ENOMEM;
}

/* An event that stays disabled: the program runs on all CPUs while it is open. */
static int attach_event(struct usdt_probe *probe, const char *path, const struct usdt_site *site)
{
	struct perf_event_attr attr;

	if (site->semaphore > UINT32_MAX)
		return -ERANGE; /* the kernel takes 32 bits */
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = probe->pmu_type;
	attr.config = site->semaphore << 32;
	attr.config1 = (uint64_t)(uintptr_t)path;
	attr.config2 = site->offset;
	attr.sample_period = 1;
	attr.disabled = 1;
	cleanup(closep) int event = -ENODEV;
	for (uint32_t cpu = 0; cpu < probe->cpu_count && (event == -ENODEV || event == -ENXIO);
		cpu++)
		event = event_open(&attr, -1, (int)cpu);
	if (event < 0)
		return event;
	cleanup(closep) int link = bpf_link_event(probe->program_fd, event, cookie_of(site));
	if (link < 0)
		return link;
	if (!vec_reserve(&probe->attached, 2))
		return -ENOMEM;
	(void)vec_add(&probe->attached, TAKE_FD(link));  /* there is room */
	(void)vec_add(&probe->attached, TAKE_FD(event)); /* likewise */
	return 0;
}

size_t usdt_probe_attach(struct usdt_probe *probe, int fd, const struct usdt_site *sites,
	size_t count, int *ret_error)
{
	char path[32];
	size_t attached = 0;

	if (!count)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!probe->by_events && attach_link(probe, path, sites, count) == 0)
		return count;
	/* One of them is refused: the others are probed one by one. */
	for (size_t i = 0; i < count; i++) {
		int result = probe->by_events ? attach_event(probe, path, &sites[i])
					      : attach_link(probe, path, &sites[i], 1);
		if (result < 0)
			*ret_error = result;
		else
			attached++;
	}
	return attached;
}

void usdt_probe_end(struct usdt_probe *probe)
{
	probe->lost_count = usdt_probe_lost(probe);
	probe->ended = true;
}

uint64_t usdt_probe_lost(const struct usdt_probe *probe)
{
	return probe->ended ? probe->lost_count : __atomic_load_n(probe->lost, __ATOMIC_RELAXED);
}

/* ---- samples ---- */

bool usdt_hit_read(const uint8_t *raw, size_t size, struct usdt_hit *ret_hit)
{
	uint64_t words[4]; /* head, unreadable, texts, used */

	if (size < sizeof(words))
		return false;
	memcpy(words, raw, sizeof(words));
	unsigned count = (unsigned)(words[0] >> COUNT_SHIFT & 0xffff);
	size_t values_size = count * sizeof(uint64_t);
	if ((words[0] & 0xffff) != MARK || count > USDT_HIT_VALUES_MAX || words[3] < values_size ||
		words[3] > size - sizeof(words))
		return false;
	*ret_hit = (struct usdt_hit){ .number = (uint32_t)(words[0] >> NUMBER_SHIFT),
		.count = count,
		.unreadable = words[1],
		.texts = words[2],
		.values = raw + sizeof(words),
		.text = (const char *)raw + sizeof(words) + values_size,
		.text_size = (size_t)words[3] - values_size };
	return true;
}
_Static_assert(HEAD_BYTES == 4 * sizeof(uint64_t), "four words");

uint64_t usdt_hit_value(const struct usdt_hit *hit, unsigned i)
{
	uint64_t value;

	memcpy(&value, hit->values + i * sizeof(value), sizeof(value));
	return value;
}

void usdt_probe_close(struct usdt_probe *probe)
{
	if (!probe)
		return;
	closing_finish(probe->attached.items, probe->attached.count);
	vec_done(&probe->attached);
	vec_done(&probe->operands);
	map_done(&probe->operands_by_hash);
	bpf_map_unshare(probe->lost, sizeof(*probe->lost));
	closep(&probe->program_fd);
	closep(&probe->operands_fd);
	closep(&probe->events_fd);
	closep(&probe->lost_fd);
	closep(&probe->slots_fd);
	free(probe);
}
