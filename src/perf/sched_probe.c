/* See sched_probe.h; the program itself is in sched_program.c. */
#include "perf/sched_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/box.h"
#include "machine/bpf.h"
#include "perf/kernel_event.h"
#include "perf/known_block.h"
#include "perf/tracepoint.h"

#define KNOWN_BYTES (KNOWN_BLOCKS * sizeof(struct known_block))

struct sched_probe {
	int state_fd;
	int events_fd; /* the events by CPU and class */
	int known_fd;
	int scratch_fd;
	int program_fd;
	int tracepoint_fd;
	bool sized; /* there are the classes of known stacks */
	uint32_t cpu_count;
	struct probe_state *state; /* mapped, as is the next */
	struct known_block *known; /* NULL: this kernel cannot recognize blocks */
};

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

/* Without this memory, or a kernel that can compare, blocks are not recognized. */
static void open_known(struct sched_probe *probe)
{
	uint64_t bytes = (uint64_t)probe->cpu_count * KNOWN_BLOCK_SPAN;

	probe->known = bpf_map_shared(KNOWN_BYTES, &probe->known_fd);
	if (!probe->known || bytes > UINT32_MAX)
		return;
	probe->scratch_fd = bpf_map_new(BPF_MAP_TYPE_ARRAY, (uint32_t)bytes, 1, 0);
}

static void close_known(struct sched_probe *probe)
{
	bpf_map_unshare(probe->known, KNOWN_BYTES);
	probe->known = NULL;
	closep(&probe->known_fd);
	closep(&probe->scratch_fd);
	probe->known_fd = probe->scratch_fd = -1;
}

static int load_program(struct sched_probe *probe, const struct sched_probe_options *options)
{
	struct sched_program program = {
		.state_fd = probe->state_fd,
		.events_fd = probe->events_fd,
		.known_fd = -1,
		.cpu_count = probe->cpu_count,
		.id = options->tracepoint->id,
		.state_offset = options->prev_state->offset,
		.registers = options->registers,
	};
	int fd = -ENOTSUP;

	if (probe->sized && options->recognize)
		open_known(probe);
	if (probe->scratch_fd >= 0) {
		program.known_fd = probe->known_fd;
		program.scratch_fd = probe->scratch_fd;
		fd = sched_program_load(&program);
	}
	if (fd >= 0)
		return fd;
	close_known(probe);
	program.known_fd = -1;
	return sched_program_load(&program);
}

static int open_probe(struct sched_probe *probe, const struct sched_probe_options *options)
{
	uint32_t slots = probe->cpu_count << SCHED_PROGRAM_CLASS_SHIFT;

	if (options->prev_state->size != sizeof(uint64_t))
		return -EBADMSG;
	probe->state = bpf_map_shared(sizeof(struct probe_state), &probe->state_fd);
	if (!probe->state)
		return probe->state_fd;
	probe->events_fd = bpf_map_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(uint32_t), slots, 0);
	if (probe->events_fd < 0)
		return probe->events_fd;
	probe->program_fd = load_program(probe, options);
	if (probe->program_fd < 0)
		return probe->program_fd;
	probe->tracepoint_fd = attach(options->tracepoint->id, probe->cpu_count, probe->program_fd);
	return probe->tracepoint_fd < 0 ? probe->tracepoint_fd : 0;
}

int sched_probe_open(const struct sched_probe_options *options, struct sched_probe **ret_probe)
{
	if (!bpf_sees_our_pids())
		return -EXDEV;
	struct sched_probe *probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->state_fd = probe->events_fd = probe->program_fd = probe->tracepoint_fd = -1;
	probe->known_fd = probe->scratch_fd = -1;
	probe->sized = options->registers != NULL;
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

	if (class == PROBE_KNOWN && !probe->known)
		return false;
	if (class != PROBE_REQUESTED && class != PROBE_KNOWN &&
		(!bytes || bytes >= attr->sample_stack_user || (sized && !probe->sized)))
		return false;
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	if (bytes || class == PROBE_KNOWN)
		attr->sample_stack_user = bytes;
	if (sized || class == PROBE_KNOWN)
		attr->exclude_callchain_user = 1;
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

void sched_probe_learn_stack(struct sched_probe *probe, const uint8_t *raw, uint32_t raw_size,
	uint32_t tid, uint64_t stack_end)
{
	struct known_stack *stack = &probe->state->stacks[tid & (SCHED_PROGRAM_STACKS - 1)];

	if (raw_size <= SCHED_PROGRAM_CLASS_OFFSET)
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
	__atomic_store_n(&probe->state->class, small ? PROBE_SMALL : PROBE_REQUESTED,
		__ATOMIC_RELAXED);
}

bool sched_probe_is_sized(const uint8_t *raw, uint32_t raw_size)
{
	return raw_size > SCHED_PROGRAM_CLASS_OFFSET &&
	       raw[SCHED_PROGRAM_CLASS_OFFSET] >= PROBE_SIZED_FIRST &&
	       raw[SCHED_PROGRAM_CLASS_OFFSET] <= PROBE_SIZED_LAST;
}

struct known_block *sched_probe_known(struct sched_probe *probe)
{
	return probe->known;
}

bool sched_probe_block(const uint8_t *raw, uint32_t raw_size, uint32_t *ret_row,
	uint32_t *ret_version)
{
	uint32_t words[2];

	if (raw_size < SCHED_PROGRAM_BLOCK_OFFSET + sizeof(words) ||
		raw[SCHED_PROGRAM_CLASS_OFFSET] != PROBE_KNOWN)
		return false;
	memcpy(words, raw + SCHED_PROGRAM_BLOCK_OFFSET, sizeof(words));
	*ret_row = words[0];
	*ret_version = words[1];
	return true;
}

int sched_probe_take_event(struct sched_probe *probe)
{
	return TAKE_FD(probe->tracepoint_fd);
}

void sched_probe_close(struct sched_probe *probe)
{
	if (!probe)
		return;
	close_known(probe);
	bpf_map_unshare(probe->state, sizeof(*probe->state));
	closep(&probe->tracepoint_fd);
	closep(&probe->program_fd);
	closep(&probe->events_fd);
	closep(&probe->state_fd);
	free(probe);
}
