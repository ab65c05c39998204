/*
 * See recorder_events.h. Machine-wide: one event for each CPU, with its own ring. For processes: one
 * for each thread and CPU, inherited by the threads and processes that they start; all of a CPU
 * write into the ring of an event on our own thread, which produces no samples and does not end with
 * the targets.
 */
#include "perf/recorder_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "machine/proc.h"
#include "perf/attribute.h"
#include "perf/closing.h"
#include "perf/kernel_event.h"
#include "perf/ring.h"
#include "perf/sched_probe.h"
#include "perf/usdt_probe.h"

/* a process that still grows after so many rounds is followed by inheritance only */
#define SCAN_ROUNDS_MAX 64u
#define FILES_PART      4u /* events may use 1/FILES_PART of RLIMIT_NOFILE */
#define WATERMARK_PART  4u /* a ring becomes readable when 1/WATERMARK_PART of it is full */

/* Without memory it waits for the kernel. */
static void close_tracepoints(struct recorder *recorder)
{
	VEC(int) fds = { 0 };

	vec_each(event, &recorder->events)
		if (event->tracepoint && vec_add(&fds, event->fd))
			event->fd = -1;
	if (recorder->probe) {
		int fd = sched_probe_take_link(recorder->probe);
		if (fd >= 0 && !vec_add(&fds, fd))
			(void)close(fd); /* slowly */
	}
	closing_finish(fds.items, fds.count);
	vec_done(&fds);
}

void recorder_events_close(struct recorder *recorder)
{
	for (uint32_t i = 0; i < recorder->rings.count; i++) {
		ring_unmap(recorder->rings.items[i]);
		free(recorder->rings.items[i]);
	}
	vec_reset(&recorder->rings);
	if (recorder->started)
		close_tracepoints(recorder);
	for (uint32_t i = 0; i < recorder->events.count; i++)
		closep(&recorder->events.items[i].fd); /* no data is lost if this fails */
	vec_reset(&recorder->events);
	inherited_events_done(&recorder->inherited_events);
}

/* Takes ownership of the descriptor: it is closed if it cannot be stored. */
static int keep_event(struct recorder *recorder, int fd, int32_t cpu, uint32_t tid, bool anchor)
{
	struct recorder_event event = { .fd = fd, .cpu = cpu, .tid = tid, .anchor = anchor };

	if (vec_add(&recorder->events, event))
		return 0;
	(void)close(fd); /* the caller reports that memory ran out */
	return -ENOMEM;
}

static int add_ring(struct recorder *recorder, int fd, int32_t cpu)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	int r = ring_map(ring, fd, cpu, recorder->ring_bytes);
	if (r < 0 || !vec_add(&recorder->rings, ring)) {
		ring_unmap(ring);
		free(ring);
		return r < 0 ? r : -ENOMEM;
	}
	ring->scratch = recorder->scratch;
	ring->inherited_events = recorder->machine ? NULL : &recorder->inherited_events;
	return 0;
}

static struct ring *find_ring(const struct recorder *recorder, int32_t cpu)
{
	for (uint32_t i = 0; i < recorder->rings.count; i++)
		if (recorder->rings.items[i]->cpu == cpu)
			return recorder->rings.items[i];
	return NULL;
}

/* The CPU went offline after it was listed. */
static bool is_offline(int error)
{
	return error == -ENODEV || error == -ENXIO;
}

bool recorder_divides(const struct recorder *recorder)
{
	return recorder->machine && recorder->options.user_stack_small_bytes;
}

/* Opens one of the scheduler's tracepoints. `kind`: `copies` and `small` of the event. */
static int open_sched_event(struct recorder *recorder, int ring_fd, enum sched_event which,
	uint32_t stack_bytes, const struct recorder_event *kind)
{
	struct sched_events *sched = &recorder->info.sched;
	struct perf_event_attr attr;

	sched_events_attribute(sched, which, &recorder->attr, stack_bytes,
		recorder->options.user_only, recorder->options.kernel_only, &attr);
	int fd = event_open(&attr, -1, kind->cpu);
	if (is_offline(fd))
		return 0;
	if (fd < 0) {
		sched_events_refuse(sched, fd);
		return 0;
	}
	int r = keep_event(recorder, fd, kind->cpu, 0, false);
	if (r < 0)
		return r;
	struct recorder_event *event = vec_last(&recorder->events);
	event->tracepoint = true;
	event->copies = kind->copies;
	event->small = kind->small;
	if (sched->of[which].filter)
		/* without it more is recorded than needed */
		(void)event_filter(fd, sched->of[which].filter);
	return event_redirect(fd, ring_fd);
}

/* Opens the events of one CPU into which the program for sched_switch writes. */
static int open_probe_events(struct recorder *recorder, int32_t cpu, int ring_fd)
{
	const struct recorder_options *options = &recorder->options;

	for (uint32_t class = 0; class < SCHED_PROBE_CLASSES; class ++) {
		struct perf_event_attr attr;
		sched_events_attribute(&recorder->info.sched, SCHED_EVENT_SWITCH, &recorder->attr,
			options->switch_stack_bytes, options->user_only, options->kernel_only,
			&attr);
		if (!sched_probe_attribute(recorder->probe, class, options->user_stack_small_bytes,
			    &attr))
			continue;
		int fd = event_open(&attr, -1, cpu);
		if (is_offline(fd))
			return 0;
		if (fd < 0)
			return fd;
		int r = keep_event(recorder, fd, cpu, 0, false);
		if (r == 0)
			r = event_redirect(fd, ring_fd);
		if (r < 0)
			return r;
		/* The right to use BPF may have been dropped when a CPU comes: its switches have no stacks. */
		(void)sched_probe_connect(recorder->probe, cpu, class, fd);
	}
	return 0;
}

/* Opens the event of one CPU into which the programs of USDT probes write. */
static int open_usdt_event(struct recorder *recorder, int32_t cpu, int ring_fd)
{
	const struct recorder_options *options = &recorder->options;
	struct perf_event_attr attr;

	if (!recorder->usdt)
		return 0;
	usdt_probe_attribute(&recorder->attr, options->hit_stack_bytes, options->user_only,
		options->kernel_only, &attr);
	int fd = event_open(&attr, -1, cpu);
	if (fd == -ENODEV || fd == -ENXIO)
		return 0; /* the CPU went offline */
	if (fd < 0)
		return fd;
	int r = keep_event(recorder, fd, cpu, 0, false);
	if (r == 0)
		r = event_redirect(fd, ring_fd);
	return r < 0 ? r : usdt_probe_connect(recorder->usdt, cpu, fd);
}

/* Opens the event of one CPU for a tracepoint of user_events. */
static int open_tracepoint(struct recorder *recorder, int32_t cpu, int ring_fd, uint16_t id)
{
	const struct recorder_options *options = &recorder->options;
	struct perf_event_attr attr;

	/* The frames of the kernel are those of writev(2), the same in each sample. */
	attribute_each(&recorder->attr, options->hit_stack_bytes, true, options->kernel_only,
		&attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	int fd = event_open(&attr, -1, cpu);
	if (is_offline(fd))
		return 0;
	if (fd < 0)
		return fd;
	int r = keep_event(recorder, fd, cpu, 0, false);
	if (r < 0)
		return r;
	vec_last(&recorder->events)->tracepoint = true;
	return event_redirect(fd, ring_fd);
}

static int open_tracepoints(struct recorder *recorder, int32_t cpu, int ring_fd)
{
	int r = 0;

	for (uint32_t i = 0; i < recorder->tracepoints.count && r == 0; i++)
		r = open_tracepoint(recorder, cpu, ring_fd, recorder->tracepoints.items[i]);
	return r;
}

int recorder_events_add_tracepoint(struct recorder *recorder, uint16_t id)
{
	uint32_t before = recorder->events.count;

	if (!vec_add(&recorder->tracepoints, id))
		return -ENOMEM;
	int r = 0;

	for (uint32_t i = 0; i < recorder->rings.count && r == 0; i++) {
		const struct ring *ring = recorder->rings.items[i];
		if (ring->fd >= 0) /* else the CPU is offline */
			r = open_tracepoint(recorder, ring->cpu, ring->fd, id);
	}
	if (r == 0)
		return 0;
	while (recorder->events.count > before)
		closep(&recorder->events.items[--recorder->events.count].fd); /* it never ran */
	recorder->tracepoints.count--;
	return r;
}

/*
 * Opens the scheduler's tracepoints of a CPU, beside its ring. If the kernel refuses them, context
 * switches are recorded without them. As of the samples, there are two of the switches if the copies
 * vary.
 */
static int open_sched_events(struct recorder *recorder, int32_t cpu, int ring_fd)
{
	const struct recorder_options *options = &recorder->options;
	const struct sched_tracepoint *of = recorder->info.sched.of;
	struct recorder_event kind = { .cpu = cpu, .copies = recorder_divides(recorder) };
	int r = 0;

	if (recorder->probe)
		r = open_probe_events(recorder, cpu, ring_fd);
	else if (of[SCHED_EVENT_SWITCH].wanted)
		r = open_sched_event(recorder, ring_fd, SCHED_EVENT_SWITCH,
			options->switch_stack_bytes, &kind);
	kind.small = true;
	if (r == 0 && kind.copies && !recorder->probe && of[SCHED_EVENT_SWITCH].wanted)
		r = open_sched_event(recorder, ring_fd, SCHED_EVENT_SWITCH,
			options->user_stack_small_bytes, &kind);
	kind.copies = kind.small = false;
	if (r == 0 && of[SCHED_EVENT_WAKING].wanted)
		r = open_sched_event(recorder, ring_fd, SCHED_EVENT_WAKING,
			options->waking_stack_bytes, &kind);
	if (r == 0)
		r = open_usdt_event(recorder, cpu, ring_fd);
	return r < 0 ? r : open_tracepoints(recorder, cpu, ring_fd);
}

/* Two sampling events, of which one runs at a time; both write into the ring of `owner`. */
static int open_copies(struct recorder *recorder, int32_t cpu, int owner)
{
	struct perf_event_attr sideband;
	struct perf_event_attr sampling = recorder->attr;

	attribute_divide(&sampling, &sideband);
	for (int small = 0; small < 2; small++) {
		if (small)
			sampling.sample_stack_user = recorder->options.user_stack_small_bytes;
		int fd = event_open(&sampling, -1, cpu);
		if (is_offline(fd))
			return 0;
		if (fd < 0)
			return fd;
		int r = keep_event(recorder, fd, cpu, 0, false);
		if (r < 0)
			return r;
		vec_last(&recorder->events)->copies = true;
		vec_last(&recorder->events)->small = small;
		r = event_redirect(fd, owner);
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_first(const struct recorder *recorder, int32_t cpu)
{
	struct perf_event_attr sideband;
	struct perf_event_attr sampling = recorder->attr;

	if (!recorder_divides(recorder))
		return event_open(&recorder->attr, -1, cpu);
	attribute_divide(&sampling, &sideband);
	return event_open(&sideband, -1, cpu);
}

/*
 * For a CPU that came back, with the new event `fd`, which is the last one. The oldest event owns the ring, which
 * may still hold records. The others ended with the CPU and are closed with the recorder.
 */
static int retire_events(struct recorder *recorder, int32_t cpu, int fd)
{
	int result = -ENODEV;

	for (uint32_t i = 0; i + 1 < recorder->events.count; i++) {
		struct recorder_event *old = &recorder->events.items[i];
		if (old->cpu != cpu)
			continue;
		if (result < 0)
			result = event_redirect(fd, old->fd);
		if (!old->retired)
			(void)event_disable(old->fd); /* an event of a CPU that was away fails */
		old->retired = true;
	}
	return result;
}

int recorder_events_open_cpu(struct recorder *recorder, int32_t cpu)
{
	int fd = open_first(recorder, cpu);

	if (is_offline(fd))
		return 0;
	if (fd < 0)
		return fd;
	int r = keep_event(recorder, fd, cpu, 0, false);
	if (r < 0)
		return r;
	struct ring *ring = find_ring(recorder, cpu);
	if (!ring) {
		r = add_ring(recorder, fd, cpu);
		if (r == 0 && recorder_divides(recorder))
			r = open_copies(recorder, cpu, fd);
		if (r == 0)
			r = open_sched_events(recorder, cpu, fd);
		return r < 0 ? r : 1;
	}
	r = retire_events(recorder, cpu, fd);
	if (r < 0)
		return r;
	ring->fd = fd;
	r = recorder_divides(recorder) ? open_copies(recorder, cpu, fd) : 0;
	if (r == 0)
		r = open_sched_events(recorder, cpu, fd);
	return r < 0 ? r : 1;
}

/* CPUs that went offline meanwhile are opened when they come back. */
static void keep_open_cpus(struct recorder *recorder)
{
	uint32_t count = 0;

	vec_each(cpu, &recorder->cpus.cpus)
		if (find_ring(recorder, (int32_t)*cpu))
			recorder->cpus.cpus.items[count++] = *cpu;
	recorder->cpus.cpus.count = count;
}

static int open_machine(struct recorder *recorder)
{
	for (uint32_t i = 0; i < recorder->cpus.cpus.count; i++) {
		int r = recorder_events_open_cpu(recorder, (int32_t)recorder->cpus.cpus.items[i]);
		if (r < 0)
			return r;
	}
	keep_open_cpus(recorder);
	return recorder->rings.count ? 0 : -ENODEV;
}

static int open_anchors(struct recorder *recorder)
{
	struct perf_event_attr attr;

	attribute_anchor(&attr, &recorder->attr);
	for (uint32_t i = 0; i < recorder->cpus.cpus.count; i++) {
		int32_t cpu = (int32_t)recorder->cpus.cpus.items[i];
		int fd = event_open(&attr, 0, cpu);
		if (is_offline(fd))
			continue;
		if (fd < 0)
			return fd;
		int r = keep_event(recorder, fd, cpu, 0, true);
		if (r < 0)
			return r;
		r = add_ring(recorder, fd, cpu);
		if (r < 0)
			return r;
	}
	return recorder->rings.count ? 0 : -ENODEV;
}

/* One event for each CPU. -ESRCH: it has ended. `doubtful`: it may have inherited some already. */
static int open_thread(struct recorder *recorder, uint32_t tid, bool doubtful)
{
	for (uint32_t i = 0; i < recorder->rings.count; i++) {
		const struct ring *ring = recorder->rings.items[i];
		uint64_t id;
		int fd = event_open(&recorder->attr, (pid_t)tid, ring->cpu);
		if (is_offline(fd))
			continue;
		if (fd < 0)
			return fd;
		int r = keep_event(recorder, fd, ring->cpu, tid, false);
		if (r < 0)
			return r;
		r = event_redirect(fd, ring->fd);
		if (r < 0)
			return r;
		if (doubtful && event_read_id(fd, &id) == 0 &&
			!inherited_events_add(&recorder->inherited_events, tid, ring->cpu, id, fd))
			return -ENOMEM;
	}
	return 0;
}

/* Attaches all threads that the targets have now. */
static int list_threads(const struct recorder *recorder, struct proc_reader *proc,
	struct id_list *list)
{
	vec_reset(&list->ids);
	for (size_t i = 0; i < recorder->options.pid_count; i++) {
		if (recorder->options.scope == RECORD_THREADS) {
			if (!vec_add(&list->ids, recorder->options.pids[i]))
				return -ENOMEM;
			continue;
		}
		int r = proc_list_threads(proc, recorder->options.pids[i], list);
		if (r < 0 && r != -ESRCH)
			return r;
	}
	return 0;
}

bool recorder_has_too_many(const struct recorder *recorder, uint32_t thread_count)
{
	uint64_t events = (uint64_t)thread_count * recorder->cpus.cpus.count;

	return events > recorder->rights.open_files_max / FILES_PART;
}

/* Attaches until a scan finds no new thread, *ret_count in all. -EMFILE: too many events. */
static int attach_threads(struct recorder *recorder, struct proc_reader *proc, struct id_list *list,
	struct map *attached, uint32_t *ret_count)
{
	*ret_count = 0;
	for (unsigned round = 0; round < SCAN_ROUNDS_MAX; round++) {
		bool found = false;
		int r = list_threads(recorder, proc, list);
		if (r < 0)
			return r;
		if (recorder->options.scope != RECORD_CHILD) {
			if (list->ids.count > *ret_count)
				*ret_count = list->ids.count;
			if (recorder_has_too_many(recorder, list->ids.count))
				return -EMFILE;
		}
		for (uint32_t i = 0; i < list->ids.count; i++) {
			uint32_t tid = list->ids.items[i];
			if (map_get(attached, tid))
				continue;
			if (!map_put(attached, tid, 1))
				return -ENOMEM;
			found = true;
			r = open_thread(recorder, tid, round > 0);
			if (r < 0 && r != -ESRCH)
				return r;
		}
		if (!found)
			break;
	}
	*ret_count = attached->count;
	/* The child waits and has one thread, so no thread can be missed. */
	for (uint32_t i = 0; i < recorder->events.count; i++)
		if (!recorder->events.items[i].anchor)
			return 0;
	return -ESRCH;
}

static int open_targets(struct recorder *recorder)
{
	struct proc_reader proc;
	struct id_list list = { 0 };
	struct map attached = { 0 };

	int r = proc_open(&proc, NULL);
	if (r < 0)
		return r;
	r = open_anchors(recorder);
	if (r >= 0)
		r = attach_threads(recorder, &proc, &list, &attached, &recorder->info.thread_count);
	vec_done(&list.ids);
	map_done(&attached);
	proc_close(&proc);
	return r;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* The requested size, within our own limit and the user's limit of locked memory. */
static size_t first_ring_bytes(const struct recorder *recorder)
{
	const struct rights *rights = &recorder->rights;
	size_t count = recorder->cpus.cpus.count;
	size_t page = page_bytes();
	size_t wanted =
		recorder->options.ring_bytes ? recorder->options.ring_bytes : RECORDER_RING_BYTES;
	size_t bytes = page;

	while (bytes < wanted)
		bytes *= 2;
	while (bytes > page && bytes * count > RECORDER_RINGS_BYTES_MAX)
		bytes /= 2;
	if (rights->perf_event_paranoid < 0 || (rights->effective & RIGHT_IPC_LOCK) ||
		rights->locked_bytes_max == UINT64_MAX)
		return bytes;
	uint64_t allowed =
		(uint64_t)rights->perf_event_mlock_kb * 1024 * count + rights->locked_bytes_max;
	while (bytes > page && (bytes + page) * count > allowed)
		bytes /= 2;
	return bytes;
}

static int open_once(struct recorder *recorder)
{
	recorder_events_close(recorder);
	recorder->attr.wakeup_watermark = (uint32_t)(recorder->ring_bytes / WATERMARK_PART);
	return recorder->machine ? open_machine(recorder) : open_targets(recorder);
}

bool recorder_rings_too_large(const struct recorder *recorder, int error)
{
	if ((error != -EPERM && error != -ENOMEM) || !recorder->events.count)
		return false;
	return !find_ring(recorder, vec_last(&recorder->events)->cpu);
}

int recorder_events_open(struct recorder *recorder)
{
	recorder->ring_bytes = first_ring_bytes(recorder);
	for (;;) {
		int r = open_once(recorder);
		if (!recorder_rings_too_large(recorder, r) || recorder->ring_bytes <= page_bytes())
			return r;
		recorder->ring_bytes /= 2;
	}
}
