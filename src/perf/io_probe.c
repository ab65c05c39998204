/*
 * See io_probe.h. The sums are in two maps, of which the programs write one: io_probe_take() lets them write the
 * other, waits until none of them can still have the first (a grace period of RCU, under which they run), and
 * empties that. So no call is counted twice or not at all.
 */
#include "perf/io_probe.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/bpf.h"
#include "perf/io_program.h"

#define SUMS_MAX    16384u
#define RUNNING_MAX 32768u
#define FILES_MAX   32768u
#define NAMES_MAX   8192u
#define BATCH       1024u
/* in place of a grace period, where the kernel grants none: no program takes nearly as long */
#define GRACE_NS 20000000

struct io_probe {
	struct io_maps maps;
	int program_fds[3];
	int attached_fds[3];
	struct io_state *state; /* mapped */
	void *keys;             /* BATCH keys and values of any map */
	void *values;
	uint64_t names_taken; /* all names with lower numbers have been passed */
	uint64_t
		names_settled; /* all with lower numbers are in the map: programs number them first */
	uint64_t names_held;   /* in the map, after the last look */
};

static const char *const tracepoints[] = { "sys_enter", "sys_exit", "sched_process_exit" };

static int new_map(int *ret_fd, enum bpf_map_type type, size_t key_bytes, size_t value_bytes,
	uint32_t count)
{
	*ret_fd = bpf_map_new_keyed(type, (uint32_t)key_bytes, (uint32_t)value_bytes, count, 0);
	return *ret_fd < 0 ? *ret_fd : 0;
}

static int open_maps(struct io_probe *probe)
{
	struct io_maps *maps = &probe->maps;
	int result = 0;

	probe->state = bpf_map_shared(sizeof(*probe->state), &maps->state_fd);
	if (!probe->state)
		return maps->state_fd;
	for (int i = 0; i < 2 && result == 0; i++)
		result = new_map(&maps->sums_fd[i], BPF_MAP_TYPE_HASH, IO_SUM_KEY_BYTES,
			sizeof(struct io_sum) - IO_SUM_KEY_BYTES, SUMS_MAX);
	if (result == 0)
		result = new_map(&maps->calls_fd, BPF_MAP_TYPE_HASH, IO_RUNNING_KEY_BYTES,
			IO_RUNNING_VALUE_BYTES, RUNNING_MAX);
	if (result == 0)
		result = new_map(&maps->files_fd, BPF_MAP_TYPE_LRU_HASH, sizeof(struct io_file_key),
			sizeof(uint64_t), FILES_MAX);
	if (result == 0)
		result = new_map(&maps->names_fd, BPF_MAP_TYPE_HASH, sizeof(struct io_name_key),
			sizeof(uint64_t), NAMES_MAX);
	if (result < 0)
		return result;
	probe->keys = malloc(BATCH * sizeof(struct io_name_key));
	probe->values = malloc(BATCH * sizeof(struct io_sum));
	return probe->keys && probe->values ? 0 : -ENOMEM;
}

static int open_probe(struct io_probe *probe, uint32_t waiting_pid)
{
	int result = open_maps(probe);

	if (result < 0)
		return result;
	result = io_program_fill_calls(probe->state);
	if (result < 0)
		return result;
	probe->state->waiting = waiting_pid;
	probe->state->next_name = IO_NAME_FIRST;
	probe->names_taken = probe->names_settled = IO_NAME_FIRST;
	probe->state->instances = 1;
	for (int i = 0; i < 3; i++) {
		int fd = i == 0   ? io_program_load_enter(&probe->maps)
			 : i == 1 ? io_program_load_exit(&probe->maps)
				  : io_program_load_end(&probe->maps);
		if (fd < 0)
			return fd;
		probe->program_fds[i] = fd;
	}
	return 0;
}

int io_probe_open(uint32_t waiting_pid, struct io_probe **ret_probe)
{
	if (!bpf_sees_our_pids())
		return -EXDEV;
	struct io_probe *probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->maps = (struct io_maps){ -1, { -1, -1 }, -1, -1, -1 };
	for (int i = 0; i < 3; i++)
		probe->program_fds[i] = probe->attached_fds[i] = -1;
	int result = open_probe(probe, waiting_pid);
	if (result < 0) {
		io_probe_close(probe);
		return result;
	}
	*ret_probe = probe;
	return 0;
}

/* Attaches the end of a thread first, and sys_exit before sys_enter, so that each call that begins is also ended. */
int io_probe_start(struct io_probe *probe)
{
	for (int i = 2; i >= 0; i--) {
		int fd = bpf_link_tracepoint(probe->program_fds[i], tracepoints[i]);
		if (fd < 0)
			return fd;
		probe->attached_fds[i] = fd;
	}
	return 0;
}

void io_probe_stop(struct io_probe *probe)
{
	for (int i = 0; i < 3; i++) {
		closep(&probe->attached_fds[i]);
		probe->attached_fds[i] = -1;
	}
}

uint64_t *io_probe_muted(struct io_probe *probe)
{
	return probe->state->muted;
}

/* ---- taking ---- */

static void wait_for_programs(void)
{
	const struct timespec grace = { .tv_nsec = GRACE_NS };

	/* not supported with CPUs that have no timer interrupts (nohz_full) */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		(void)nanosleep(&grace, NULL);
}

static bool is_empty(int map_fd)
{
	struct io_name_key key; /* of the largest key */
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.next_key = (uint64_t)(uintptr_t)&key;
	return bpf_call(BPF_MAP_GET_NEXT_KEY, &attr) == -ENOENT;
}

/*
 * Up to BATCH entries into probe->keys and values. 1: there are more, *at is where; 0: these were the last. `command`:
 * BPF_MAP_LOOKUP_BATCH or BPF_MAP_LOOKUP_AND_DELETE_BATCH.
 */
static int next_batch(const struct io_probe *probe, int map_fd, int command, bool first,
	uint32_t *at, uint32_t *ret_count)
{
	union bpf_attr attr;
	uint32_t from = *at;

	memset(&attr, 0, sizeof(attr));
	attr.batch.map_fd = (uint32_t)map_fd;
	attr.batch.in_batch = first ? 0 : (uint64_t)(uintptr_t)&from;
	attr.batch.out_batch = (uint64_t)(uintptr_t)at;
	attr.batch.keys = (uint64_t)(uintptr_t)probe->keys;
	attr.batch.values = (uint64_t)(uintptr_t)probe->values;
	attr.batch.count = BATCH;
	int result = bpf_call(command, &attr);

	*ret_count = result == 0 || result == -ENOENT ? attr.batch.count : 0;
	return result == 0 ? 1 : result == -ENOENT ? 0 : result;
}

static int take_sums(const struct io_probe *probe, int map_fd,
	void (*each)(void *context, const struct io_sum *sum), void *context)
{
	const size_t value_bytes = sizeof(struct io_sum) - IO_SUM_KEY_BYTES;
	uint32_t at = 0;
	uint32_t count;
	int result = 1;

	for (bool first = true; result == 1; first = false) {
		result = next_batch(probe, map_fd, BPF_MAP_LOOKUP_AND_DELETE_BATCH, first, &at,
			&count);
		for (uint32_t i = 0; i < count; i++) {
			struct io_sum sum;
			memcpy(&sum, (const char *)probe->keys + i * IO_SUM_KEY_BYTES,
				IO_SUM_KEY_BYTES);
			memcpy((char *)&sum + IO_SUM_KEY_BYTES,
				(const char *)probe->values + i * value_bytes, value_bytes);
			each(context, &sum);
		}
	}
	return result;
}

int io_probe_take(struct io_probe *probe, void (*each)(void *context, const struct io_sum *sum),
	void *context)
{
	uint64_t active = probe->state->active;

	if (is_empty(probe->maps.sums_fd[active]) && probe->attached_fds[0] >= 0)
		return 0;
	uint64_t next_name = __atomic_load_n(&probe->state->next_name, __ATOMIC_ACQUIRE);
	__atomic_store_n(&probe->state->active, !active, __ATOMIC_RELEASE);
	wait_for_programs();
	probe->names_settled = next_name;
	return take_sums(probe, probe->maps.sums_fd[active], each, context);
}

static void pass_name(const struct io_name_key *key, uint32_t number,
	void (*each)(void *context, uint32_t number, const struct io_name *name), void *context)
{
	bool is_address = key->kind & IO_KIND_ADDRESS;
	size_t len =
		is_address ? key->kind >> IO_KIND_LEN_SHIFT : strnlen(key->text, sizeof(key->text));

	each(context, number,
		&(struct io_name){ .is_address = is_address,
			.text = key->text,
			.len = len < sizeof(key->text) ? len : sizeof(key->text) });
}

int io_probe_take_names(struct io_probe *probe,
	void (*each)(void *context, uint32_t number, const struct io_name *name), void *context)
{
	uint64_t next = __atomic_load_n(&probe->state->next_name, __ATOMIC_ACQUIRE);
	bool clears = next - probe->names_taken + probe->names_held > NAMES_MAX / 2;
	uint64_t held = 0;
	uint32_t at = 0;
	uint32_t count;
	int result = next != probe->names_taken;

	if (!result)
		return 0;
	for (bool first = true; result == 1; first = false) {
		result = next_batch(probe, probe->maps.names_fd,
			clears ? BPF_MAP_LOOKUP_AND_DELETE_BATCH : BPF_MAP_LOOKUP_BATCH, first, &at,
			&count);
		held += clears ? 0 : count;
		for (uint32_t i = 0; i < count; i++) {
			uint64_t number = ((const uint64_t *)probe->values)[i];
			if (number >= probe->names_taken)
				pass_name((const struct io_name_key *)probe->keys + i,
					(uint32_t)number, each, context);
		}
	}
	if (result < 0)
		return result;
	probe->names_held = held;
	probe->names_taken = probe->names_settled;
	return 0;
}

bool io_probe_is_current(const struct io_probe *probe, const struct io_sum *sum)
{
	const struct io_file_key key = { .pid = sum->pid,
		.descriptor = (uint32_t)sum->descriptor,
		.epoch = (uint32_t)probe->state->epochs[sum->pid & (IO_EPOCHS - 1)] };
	uint64_t value;
	int result = bpf_map_get(probe->maps.files_fd, &key, &value);

	return result == 0 ? value >> 32 == sum->instance : result == -ENOENT && sum->instance == 0;
}

uint64_t io_probe_lost(const struct io_probe *probe)
{
	return __atomic_load_n(&probe->state->lost, __ATOMIC_RELAXED);
}

void io_probe_close(struct io_probe *probe)
{
	if (!probe)
		return;
	io_probe_stop(probe);
	for (int i = 0; i < 3; i++)
		closep(&probe->program_fds[i]);
	bpf_map_unshare(probe->state, sizeof(*probe->state));
	closep(&probe->maps.state_fd);
	closep(&probe->maps.sums_fd[0]);
	closep(&probe->maps.sums_fd[1]);
	closep(&probe->maps.calls_fd);
	closep(&probe->maps.files_fd);
	closep(&probe->maps.names_fd);
	free(probe->keys);
	free(probe->values);
	free(probe);
}
