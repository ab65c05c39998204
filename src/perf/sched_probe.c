/* See sched_probe.h; the program itself is in sched_program.c. */
#include "perf/sched_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/box.h"
#include "machine/bpf.h"
#include "machine/kernel_types.h"
#include "perf/attribute.h"
#include "perf/known_block.h"
#include "perf/switch_ring.h"
#include "perf/tracepoint.h"

#define KNOWN_BYTES (KNOWN_BLOCKS * sizeof(struct known_block))

struct sched_probe {
	int state_fd;
	int events_fd; /* the events by CPU and class */
	int known_fd;
	int scratch_fd;
	int rings_fd;
	int program_fd;
	int link_fd;
	bool sized; /* there are the classes of known stacks */
	bool frame_pointers;
	uint32_t cpu_count;
	struct probe_state *state; /* mapped, as are the next and the last */
	struct known_block *known; /* NULL: this kernel cannot recognize blocks */
	struct switch_ring *rings; /* one for each CPU number */
	void *rings_memory;
};

/* Without this memory blocks are not recognized. */
static void open_known(struct sched_probe *probe)
{
	probe->known = bpf_map_shared(KNOWN_BYTES, &probe->known_fd);
}

static void close_known(struct sched_probe *probe)
{
	bpf_map_unshare(probe->known, KNOWN_BYTES);
	probe->known = NULL;
	closep(&probe->known_fd);
	probe->known_fd = -1;
}

/* The program reads both ids of the next thread with one call. */
static int find_pid(uint32_t *ret_offset)
{
	static const char *const members[] = { "pid", "tgid" };
	uint32_t offsets[2];
	int result = kernel_types_read("task_struct", members, 2, offsets);

	if (result < 0)
		return result;
	*ret_offset = offsets[0];
	return offsets[1] == offsets[0] + sizeof(uint32_t) ? 0 : -ENOTSUP;
}

static int load_program(struct sched_probe *probe, const struct sched_probe_options *options)
{
	struct sched_program program = {
		.state_fd = probe->state_fd,
		.events_fd = probe->events_fd,
		.known_fd = -1,
		.scratch_fd = probe->scratch_fd,
		.rings_fd = probe->rings_fd,
		.cpu_count = probe->cpu_count,
		.id = options->tracepoint->id,
		.kernel = options->kernel,
		.registers = options->registers,
	};
	int fd = find_pid(&program.pid_offset);

	if (fd < 0)
		return fd;
	if (probe->sized && options->recognize)
		open_known(probe);
	fd = -ENOTSUP;
	if (probe->known) {
		program.known_fd = probe->known_fd;
		fd = sched_program_load(&program);
	}
	if (fd >= 0)
		return fd;
	close_known(probe);
	program.known_fd = -1;
	return sched_program_load(&program);
}

static int open_rings(struct sched_probe *probe)
{
	uint64_t bytes = switch_ring_bytes(probe->cpu_count);

	if (!switch_ring_entries(probe->cpu_count))
		return -E2BIG;
	probe->rings = calloc(probe->cpu_count, sizeof(*probe->rings));
	if (!probe->rings)
		return -ENOMEM;
	probe->rings_memory = bpf_map_shared((size_t)bytes, &probe->rings_fd);
	if (!probe->rings_memory)
		return probe->rings_fd;
	for (uint32_t cpu = 0; cpu < probe->cpu_count; cpu++)
		probe->rings[cpu] = switch_ring_at(probe->rings_memory, probe->cpu_count, cpu);
	return 0;
}

static int open_probe(struct sched_probe *probe, const struct sched_probe_options *options)
{
	uint32_t slots = probe->cpu_count << SCHED_PROGRAM_CLASS_SHIFT;
	uint64_t scratch = (uint64_t)probe->cpu_count * SCHED_PROGRAM_SCRATCH;
	int result = open_rings(probe);

	if (result < 0)
		return result;
	probe->state = bpf_map_shared(sizeof(struct probe_state), &probe->state_fd);
	if (!probe->state)
		return probe->state_fd;
	probe->events_fd = bpf_map_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(uint32_t), slots, 0);
	if (probe->events_fd < 0)
		return probe->events_fd;
	probe->scratch_fd = scratch > UINT32_MAX
				    ? -E2BIG
				    : bpf_map_new(BPF_MAP_TYPE_ARRAY, (uint32_t)scratch, 1, 0);
	if (probe->scratch_fd < 0)
		return probe->scratch_fd;
	probe->program_fd = load_program(probe, options);
	if (probe->program_fd < 0)
		return probe->program_fd;
	probe->link_fd = bpf_link_tracepoint(probe->program_fd, "sched_switch");
	return probe->link_fd < 0 ? probe->link_fd : 0;
}

int sched_probe_open(const struct sched_probe_options *options, struct sched_probe **ret_probe)
{
	if (!bpf_sees_our_pids())
		return -EXDEV;
	struct sched_probe *probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->state_fd = probe->events_fd = probe->program_fd = probe->link_fd = -1;
	probe->known_fd = probe->scratch_fd = probe->rings_fd = -1;
	probe->sized = options->registers != NULL;
	probe->frame_pointers = options->frame_pointers;
	probe->cpu_count = box_cpu_numbers();
	int result = open_probe(probe, options);
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
	bool sized = class >= PROBE_SIZED_FIRST && class <= PROBE_SIZED_LAST;
	uint32_t bytes = sized                  ? sched_program_class_bytes[class]
			 : class == PROBE_SMALL ? small_bytes
						: 0;

	if (sized && !probe->sized)
		return false;
	if (class != PROBE_REQUESTED && class != PROBE_WAKE && !(sized && probe->frame_pointers) &&
		(!bytes || bytes >= attr->sample_stack_user))
		return false;
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	if (bytes || class == PROBE_WAKE)
		attr->sample_stack_user = bytes;
	if ((sized && !probe->frame_pointers) || class == PROBE_WAKE)
		attr->exclude_callchain_user = 1;
	if (class != PROBE_WAKE)
		return true;
	attribute_drop_registers(attr);
	attr->exclude_callchain_kernel = 1;
	attr->watermark = 0;
	attr->wakeup_events = 1;
	return true;
}

int sched_probe_connect(struct sched_probe *probe, int32_t cpu, uint32_t class, int fd)
{
	union bpf_attr attr;
	uint32_t value = (uint32_t)fd;

	if (cpu < 0 || (uint32_t)cpu >= probe->cpu_count)
		return -ERANGE;
	uint32_t key = (uint32_t)cpu << SCHED_PROGRAM_CLASS_SHIFT | class;
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

struct switch_ring *sched_probe_ring(struct sched_probe *probe, int32_t cpu)
{
	return cpu >= 0 && (uint32_t)cpu < probe->cpu_count ? &probe->rings[cpu] : NULL;
}

bool sched_probe_sample(const uint8_t *raw, uint32_t raw_size,
	struct sched_probe_sample *ret_sample)
{
	if (raw_size < SCHED_PROGRAM_STACK_OFFSET || raw[SCHED_PROGRAM_CLASS_OFFSET] >= PROBE_WAKE)
		return false;
	*ret_sample = (struct sched_probe_sample){
		.sized = raw[SCHED_PROGRAM_CLASS_OFFSET] >= PROBE_SIZED_FIRST &&
			 raw[SCHED_PROGRAM_CLASS_OFFSET] <= PROBE_SIZED_LAST,
		.kernel_words = raw + SCHED_PROGRAM_STACK_OFFSET,
		.kernel_count = (raw_size - SCHED_PROGRAM_STACK_OFFSET) / 8
	};
	memcpy(&ret_sample->time_ns, raw + SCHED_PROGRAM_TIME_OFFSET, 8);
	return true;
}

void sched_probe_learn_stack(struct sched_probe *probe, bool sized, uint32_t tid,
	uint64_t stack_end)
{
	struct known_stack *stack = &probe->state->stacks[tid & (SCHED_PROGRAM_STACKS - 1)];

	if (stack_end) {
		/* The program must not see this end with another thread's id. */
		__atomic_store_n(&stack->tid, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&stack->end, stack_end, __ATOMIC_RELEASE);
		__atomic_store_n(&stack->tid, tid, __ATOMIC_RELEASE);
	} else if (sized && stack->tid == tid) {
		__atomic_store_n(&stack->tid, 0, __ATOMIC_RELEASE);
	}
}

void sched_probe_copy_small(struct sched_probe *probe, bool small)
{
	__atomic_store_n(&probe->state->class, small ? PROBE_SMALL : PROBE_REQUESTED,
		__ATOMIC_RELAXED);
}

struct known_block *sched_probe_known(struct sched_probe *probe)
{
	return probe->known;
}

int sched_probe_take_link(struct sched_probe *probe)
{
	return TAKE_FD(probe->link_fd);
}

void sched_probe_close(struct sched_probe *probe)
{
	if (!probe)
		return;
	close_known(probe);
	bpf_map_unshare(probe->state, sizeof(*probe->state));
	bpf_map_unshare(probe->rings_memory, (size_t)switch_ring_bytes(probe->cpu_count));
	closep(&probe->link_fd);
	closep(&probe->program_fd);
	closep(&probe->events_fd);
	closep(&probe->state_fd);
	closep(&probe->scratch_fd);
	closep(&probe->rings_fd);
	free(probe->rings);
	free(probe);
}
