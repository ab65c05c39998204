/*
 * Chooses what to open: which attributes, whether for the machine or for processes (recorder_events.c
 * opens it). If the kernel refuses, the recorder tries with less, and reports it in info: without
 * kernel code, with smaller rings, or machine-wide if a process has too many threads.
 */
#include "perf/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/poll_set.h"
#include "machine/box.h"
#include "machine/rights.h"
#include "perf/attribute.h"
#include "perf/explain.h"
#include "perf/kernel_event.h"
#include "perf/perf_record.h"
#include "perf/recorder_events.h"
#include "perf/ring.h"
#include "perf/sched_probe.h"
#include "perf/switch_ring.h"
#include "perf/usdt_probe.h"

/* limit of samples a second on all CPUs, if only the samples of some processes are kept */
#define WIDE_HZ_MAX 20000u

void recorder_close(struct recorder *recorder)
{
	if (!recorder)
		return;
	recorder_events_close(recorder);
	usdt_probe_close(recorder->usdt);
	sched_probe_close(recorder->probe);
	for (uint32_t i = 0; i < recorder->targets.count; i++)
		if (recorder->targets.items[i].pidfd >= 0)
			(void)close(recorder->targets.items[i]
					    .pidfd); /* no data is lost if this fails */
	vec_done(&recorder->events);
	vec_done(&recorder->rings);
	vec_done(&recorder->targets);
	vec_done(&recorder->tracepoints);
	vec_done(&recorder->cpus.cpus);
	vec_done(&recorder->online.cpus);
	free(recorder->scratch);
	free(recorder);
}

static bool no_right(int error)
{
	return error == -EACCES || error == -EPERM;
}

/* Opens with kernel code if requested and allowed, else without. */
static int open_with_rights(struct recorder *recorder, struct diag *limit)
{
	recorder->attr.exclude_kernel = recorder->attr.exclude_hv = recorder->options.user_only;
	recorder->attr.exclude_user = recorder->attr.exclude_callchain_user =
		recorder->options.kernel_only;
	int r = recorder_events_open(recorder);
	/* With kernel_only nothing would remain without the kernel. */
	if (!no_right(r) || recorder->options.user_only || recorder->options.kernel_only ||
		recorder_rings_too_large(recorder, r))
		return r;
	recorder->attr.exclude_kernel = recorder->attr.exclude_hv = 1;
	int without = recorder_events_open(recorder);
	if (without < 0)
		return r;
	explain_rights(&recorder->rights, EXPLAIN_KERNEL, r, limit);
	return 0;
}

static int choose_attributes(struct recorder *recorder, bool cycles)
{
	int r = attribute_probe(&recorder->attr, cycles, recorder->options.frequency_hz);

	if (r < 0)
		return r;
	recorder->info.clock = cycles ? RECORD_CLOCK_CYCLES : RECORD_CLOCK_CPU;
	recorder->info.period_ns = cycles ? 1000000000ull / recorder->options.frequency_hz
					  : recorder->attr.sample_period;
	/* Of a probe without copies, the samples that a chain is learned from have some. */
	if (recorder->options.user_stack_bytes ||
		(recorder->probe && recorder->machine && recorder->options.user_registers))
		attribute_copy_stacks(&recorder->attr, recorder->options.user_registers,
			recorder->options.user_stack_bytes);
	if (recorder->options.switches) {
		/* With the stacks of wakers they say which threads are not recorded (recording/intake.c). */
		recorder->attr.context_switch = !recorder->probe || !recorder->machine ||
						(recorder->options.waking_stacks &&
							recorder->options.scope != RECORD_MACHINE);
		recorder->attr.sample_type |= PERF_SAMPLE_RAW;
	}
	if (recorder->options.usdt || recorder->options.tracepoints)
		recorder->attr.sample_type |= PERF_SAMPLE_RAW;
	if (!recorder->machine) {
		recorder->attr.inherit = recorder->options.scope != RECORD_THREADS;
		/* for the detection of inherited events (inherited_events.h) */
		recorder->attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
		recorder->attr.enable_on_exec =
			recorder->options.scope == RECORD_CHILD && !recorder->options.late_start;
	}
	return 0;
}

static int open_clock(struct recorder *recorder, bool cycles, struct diag *limit)
{
	int r = choose_attributes(recorder, cycles);

	return r < 0 ? r : open_with_rights(recorder, limit);
}

/* Hardware cycles if every CPU has them, else cpu-clock. */
static int open_scope(struct recorder *recorder, bool machine, struct diag *limit)
{
	int r = -ENOENT;

	recorder->machine = machine;
	if (!recorder->options.no_hardware)
		r = open_clock(recorder, true, limit);
	return attribute_missing(r) ? open_clock(recorder, false, limit) : r;
}

static int describe_failure(const struct recorder *recorder, int error, struct diag *diag)
{
	const struct recorder_options *options = &recorder->options;
	uint32_t threads = recorder->info.thread_count;

	if (error == -EMFILE && threads && recorder_has_too_many(recorder, threads)) {
		diag_set(diag, error,
			"cannot record %" PRIu32 " threads on %" PRIu32 " CPUs: that takes %" PRIu64
			" events, and a quarter of the %" PRIu64
			" files that may be open is the limit",
			threads, recorder->cpus.cpus.count,
			(uint64_t)threads * recorder->cpus.cpus.count,
			recorder->rights.open_files_max);
		diag_remedy(diag,
			"raise the limit (ulimit -n), or run it with sudo: then the whole "
			"machine's rings are used");
		return error;
	}
	if (error == -EMFILE || error == -ENFILE) {
		diag_set(diag, error, "cannot open so many perf events: %m");
		diag_remedy(diag, "raise the limit on open files (ulimit -n)");
		return error;
	}
	if (recorder_rings_too_large(recorder, error)) {
		diag_set(diag, error,
			"cannot map rings for %" PRIu32
			" CPUs: the limit on locked memory is used up (perf_event_mlock_kb is %" PRIu32
			")",
			recorder->cpus.cpus.count, recorder->rights.perf_event_mlock_kb);
		diag_remedy(diag,
			"end other recordings of this user, or raise kernel.perf_event_mlock_kb");
		return error;
	}
	if (no_right(error)) {
		if (options->scope == RECORD_MACHINE)
			return explain_rights(&recorder->rights, EXPLAIN_MACHINE, error, diag);
		return explain_target(&recorder->rights,
			options->kernel_only ? EXPLAIN_KERNEL : EXPLAIN_ANY, options->pids,
			options->pid_count, error, diag);
	}
	if (error == -ESRCH && options->pid_count == 1)
		return diag_set(diag, error, "process %" PRIu32 " has ended", options->pids[0]);
	if (error == -ESRCH)
		return diag_set(diag, error, "all %zu processes have ended", options->pid_count);
	if (error == -ENOSYS || recorder->rights.perf_event_paranoid == RIGHTS_PARANOID_UNKNOWN)
		return diag_set(diag, error, "cannot sample: this kernel has no perf events");
	if (error == -EINVAL)
		return diag_set(diag, error,
			"cannot sample: this kernel's perf events are too old (Linux 4.1 is needed)");
	return diag_set(diag, error, "cannot open perf events: %m");
}

static int check_options(const struct recorder_options *options, const struct rights *rights,
	struct diag *diag)
{
	if (options->frequency_hz < 1 || options->frequency_hz > RECORDER_HZ_MAX)
		return diag_set(diag, -EINVAL,
			"cannot sample %" PRIu32 " times a second: 1 to %u is possible",
			options->frequency_hz, RECORDER_HZ_MAX);
	if (!options->instead && options->frequency_hz > rights->perf_event_max_sample_rate) {
		diag_set(diag, -EINVAL,
			"cannot sample %" PRIu32
			" times a second: perf_event_max_sample_rate is %" PRIu32,
			options->frequency_hz, rights->perf_event_max_sample_rate);
		diag_remedy(diag, "sample less often, or raise kernel.perf_event_max_sample_rate");
		return -EINVAL;
	}
	if (options->scope != RECORD_MACHINE && !options->pid_count)
		return diag_set(diag, -EINVAL, "no process to record");
	if (options->pid_count > RECORDER_TARGETS_MAX)
		return diag_set(diag, -E2BIG,
			"cannot record %zu processes at once: %u is the limit", options->pid_count,
			RECORDER_TARGETS_MAX);
	return 0;
}

/*
 * A pidfd recognizes a target's end even if its pid is reused. Missing targets are marked as ended.
 */
static int hold_targets(struct recorder *recorder, struct diag *diag)
{
	uint32_t alive = 0;

	for (size_t i = 0; i < recorder->options.pid_count; i++) {
		uint32_t pid = recorder->options.pids[i];
		struct recorder_target *target = vec_push(&recorder->targets);
		if (!target)
			return diag_set(diag, -ENOMEM, "no memory for the targets");
		target->pid = pid;
		target->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
		if (target->pidfd < 0)
			target->ended =
				errno == ESRCH ||
				(errno != ENOSYS && kill((pid_t)pid, 0) < 0 && errno == ESRCH);
		alive += !target->ended;
	}
	if (alive || recorder->options.scope == RECORD_MACHINE)
		return 0;
	if (recorder->options.pid_count == 1)
		return diag_set(diag, -ESRCH, "there is no process %" PRIu32,
			recorder->options.pids[0]);
	return diag_set(diag, -ESRCH, "none of the %zu processes exists",
		recorder->options.pid_count);
}

static uint32_t highest_cpu(const struct cpu_list *list)
{
	return list->cpus.count ? *vec_last(&list->cpus) : 0; /* ascending */
}

static void fill_info(struct recorder *recorder)
{
	struct recorder_info *info = &recorder->info;

	info->sample_type = recorder->attr.sample_type;
	info->frequency_hz = recorder->options.frequency_hz;
	info->max_stack = recorder->rights.perf_event_max_stack;
	info->ring_count = recorder->rings.count;
	info->cpu_max = highest_cpu(&recorder->cpus);
	info->event_count = recorder->events.count;
	info->ring_bytes = recorder->ring_bytes;
	info->user_stack_bytes = recorder->attr.sample_stack_user;
	info->copies_vary = recorder_divides(recorder);
	info->kernel_excluded = recorder->attr.exclude_kernel;
	/* A halted CPU counts no cycles. */
	info->idle_excluded = recorder->attr.exclude_idle || info->clock == RECORD_CLOCK_CYCLES;
	info->switches = recorder->options.switches;
	info->build_ids = recorder->attr.build_id;
	info->lost_counts = recorder->attr.read_format != 0;
	info->filter_by_pid = recorder->machine && recorder->options.scope != RECORD_MACHINE;
	if (!info->filter_by_pid && recorder->options.scope == RECORD_MACHINE)
		info->thread_count = 0;
}

static bool has_cpu(const struct cpu_list *list, uint32_t cpu)
{
	for (uint32_t i = 0; i < list->cpus.count; i++)
		if (list->cpus.items[i] == cpu)
			return true;
	return false;
}

/* The requested CPUs that are online. */
static int keep_chosen_cpus(struct recorder *recorder, struct diag *diag)
{
	struct cpu_list chosen = { 0 };

	if (!recorder->options.cpu_count)
		return 0;
	for (size_t i = 0; i < recorder->options.cpu_count; i++) {
		uint32_t cpu = recorder->options.cpus[i];
		if (!has_cpu(&recorder->cpus, cpu)) {
			vec_done(&chosen.cpus);
			diag_set(diag, -ENXIO, "cannot record CPU %" PRIu32 ": it is not online",
				cpu);
			diag_remedy(diag, "/sys/devices/system/cpu/online says which are");
			return -ENXIO;
		}
		if (!has_cpu(&chosen, cpu) && !vec_add(&chosen.cpus, cpu)) {
			vec_done(&chosen.cpus);
			return diag_set(diag, -ENOMEM, "no memory for the rings");
		}
	}
	vec_done(&recorder->cpus.cpus);
	recorder->cpus = chosen;
	return 0;
}

/*
 * The kernel restarts the timer of a task's event at each switch to that task: a server that
 * switches 100,000 times a second uses 7 % more CPU, and a task that lives for less than a period
 * is never sampled. The events of CPUs have neither fault, so they are used for single processes
 * too, as long as the samples of other processes are few enough.
 */
static bool prefers_cpus(const struct recorder *recorder)
{
	bool processes =
		recorder->options.scope == RECORD_PIDS || recorder->options.scope == RECORD_CHILD;

	if (!processes || !rights_allow_machine(&recorder->rights))
		return false;
	/* Only the rings of CPUs have the stacks of context switches, and the wakers. */
	return recorder->options.switches || recorder->options.usdt ||
	       recorder->options.tracepoints || recorder->options.prefer_cpus ||
	       (uint64_t)recorder->options.frequency_hz * recorder->cpus.cpus.count <= WIDE_HZ_MAX;
}

/*
 * Without the program switches cost more, and more is recorded than needed. It has something to choose if it knows the
 * registers, or that not all processes are recorded.
 */
static void open_probe(struct recorder *recorder)
{
	const struct recorder_options *options = &recorder->options;
	struct sched_tracepoint *tracepoint = &recorder->info.sched.of[SCHED_EVENT_SWITCH];
	const struct sched_probe_registers registers = { options->kernel_registers,
		options->kernel_register_count };
	bool sized = options->user_registers && registers.count;
	struct sched_probe_options wanted = { .tracepoint = &tracepoint->tracepoint,
		.registers = sized ? &registers : NULL,
		.recognize = true,
		.frame_pointers = !options->user_stack_bytes,
		.kernel = !options->user_only };

	if (!tracepoint->wanted || (options->scope == RECORD_MACHINE && !registers.count) ||
		sched_probe_open(&wanted, &recorder->probe) < 0)
		return;
	tracepoint->by_probe = true;
}

static int open_recorder(struct recorder *recorder, struct diag *diag)
{
	int r = hold_targets(recorder, diag);
	if (r < 0)
		return r;
	if (recorder->options.instead) {
		recorder->info.clock = RECORD_CLOCK_NONE;
		recorder->info.kernel_excluded = recorder->info.idle_excluded = true;
		recorder->info.limit = *recorder->options.instead;
		return 0;
	}
	recorder->scratch = malloc(RING_RECORD_MAX);
	if (!recorder->scratch)
		return diag_set(diag, -ENOMEM, "no memory for the rings");
	r = box_read_online_cpus(&recorder->cpus, diag);
	if (r == 0)
		r = keep_chosen_cpus(recorder, diag);
	if (r < 0)
		return r;
	if (recorder->options.switches && rights_allow_machine(&recorder->rights))
		sched_events_find(&recorder->info.sched, recorder->options.waking_stacks);
	else if (recorder->options.switches)
		sched_events_refuse(&recorder->info.sched, -EPERM);
	open_probe(recorder);
	r = recorder->options.usdt
		    ? usdt_probe_open(recorder->options.usdt_by_events, &recorder->usdt, diag)
		    : 0;
	if (r < 0)
		return r;
	bool preferred = prefers_cpus(recorder);
	bool machine = recorder->options.scope == RECORD_MACHINE;

	r = open_scope(recorder, machine || preferred, &recorder->info.limit);
	if (r < 0 && preferred) {
		recorder->info.limit = (struct diag){ 0 };
		r = open_scope(recorder, false, &recorder->info.limit);
	}
	if (r == -EMFILE && !machine && recorder->options.scope != RECORD_THREADS &&
		rights_allow_machine(&recorder->rights)) {
		recorder->info.limit = (struct diag){ 0 };
		r = open_scope(recorder, true, &recorder->info.limit);
	}
	if (r < 0)
		return describe_failure(recorder, r, diag);
	if (recorder->options.switches && !recorder->machine && !recorder->info.sched.limit.error)
		sched_events_refuse(&recorder->info.sched, -EPERM);
	if (!recorder->machine) {
		sched_probe_close(recorder->probe);
		recorder->probe = NULL;
	}
	if (!recorder->machine && (recorder->usdt || recorder->options.tracepoints)) {
		diag_set(diag, -EACCES,
			"cannot record %s: that takes the right to record the whole machine",
			recorder->usdt ? "USDT probes" : "user_events");
		diag_remedy(diag, "record with sudo");
		return -EACCES;
	}
	fill_info(recorder);
	return 0;
}

int recorder_open(const struct recorder_options *options, struct recorder **ret_recorder,
	struct diag *diag)
{
	struct rights rights;

	if (options->rights)
		rights = *options->rights;
	else
		rights_read(&rights);
	int r = check_options(options, &rights, diag);
	if (r < 0)
		return r;
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	if (!recorder)
		return diag_set(diag, -ENOMEM, "no memory for the recorder");
	recorder->options = *options;
	recorder->rights = rights;
	r = open_recorder(recorder, diag);
	/* they were borrowed for this call */
	recorder->options.pids = recorder->options.cpus = NULL;
	recorder->options.kernel_registers = NULL;
	recorder->options.instead = NULL;
	recorder->options.rights = NULL;
	if (r < 0) {
		recorder_close(recorder);
		return r;
	}
	*ret_recorder = recorder;
	return 0;
}

int recorder_refusal(struct diag *diag)
{
	struct perf_event_attr attr;
	struct rights rights;
	int result = attribute_probe(&attr, false, 1);

	if (!no_right(result) && result != -ENOSYS)
		return 0;
	rights_read(&rights);
	return explain_rights(&rights, EXPLAIN_ANY, -EACCES, diag);
}

const struct recorder_info *recorder_info(const struct recorder *recorder)
{
	return &recorder->info;
}

static void open_switches(struct recorder *recorder, int32_t cpu, bool open)
{
	struct switch_ring *ring = sched_probe_ring(recorder->probe, cpu);

	if (ring)
		switch_ring_open(ring, open);
}

/* Starts the events of a CPU (-1: of all) that are to run; returns how many. */
static uint32_t start_events(struct recorder *recorder, int32_t cpu, int *ret_error)
{
	uint32_t started = 0;

	vec_each(event, &recorder->events) {
		if ((cpu >= 0 && event->cpu != cpu) || event->anchor || event->retired ||
			(event->copies && event->small != recorder->small_copies))
			continue;
		int r = event_enable(event->fd);
		if (r < 0)
			*ret_error = r;
		else
			started++;
	}
	vec_each(ring, &recorder->rings)
		if (recorder->probe && (cpu < 0 || (*ring)->cpu == cpu))
			open_switches(recorder, (*ring)->cpu, true);
	return started;
}

int recorder_start(struct recorder *recorder, struct diag *diag)
{
	int error = 0;

	recorder->running = recorder->started = true;
	if (recorder->attr.enable_on_exec || recorder->info.clock == RECORD_CLOCK_NONE)
		return 0;
	uint32_t started = start_events(recorder, -1, &error);

	return started ? 0 : diag_set(diag, error ? error : -ENODEV, "cannot start sampling: %m");
}

void recorder_stop(struct recorder *recorder)
{
	recorder->running = false;
	if (recorder->usdt)
		usdt_probe_end(recorder->usdt);
	vec_each(ring, &recorder->rings)
		if (recorder->probe)
			open_switches(recorder, (*ring)->cpu, false);
	for (uint32_t i = 0; i < recorder->events.count; i++)
		/* an event that has ended is stopped already */
		(void)event_disable(recorder->events.items[i].fd);
}

bool recorder_copy_small(struct recorder *recorder, bool small)
{
	if (!recorder_divides(recorder) || !recorder->running)
		return false;
	recorder->small_copies = small;
	if (recorder->probe)
		sched_probe_copy_small(recorder->probe, small);
	/* The other one starts first: a sample twice is better than none. */
	for (int stops = 0; stops < 2; stops++)
		vec_each(event, &recorder->events)
			if (event->copies && !event->retired && (event->small != small) == stops)
				/* that of an offline CPU fails */
				(void)(stops ? event_disable(event->fd) : event_enable(event->fd));
	return true;
}

uint64_t *recorder_muted(struct recorder *recorder)
{
	return recorder->probe ? sched_probe_muted(recorder->probe) : NULL;
}

struct usdt_probe *recorder_usdt(struct recorder *recorder)
{
	return recorder->usdt;
}

int recorder_add_tracepoint(struct recorder *recorder, uint16_t id)
{
	uint32_t before = recorder->events.count;
	int result = recorder_events_add_tracepoint(recorder, id);

	for (uint32_t i = before; i < recorder->events.count && recorder->running; i++)
		/* that of a CPU that went offline fails */
		(void)event_enable(recorder->events.items[i].fd);
	recorder->info.event_count = recorder->events.count;
	return result;
}

struct switch_ring *recorder_switches(struct recorder *recorder, uint32_t index)
{
	return recorder->probe && index < recorder->rings.count
		       ? sched_probe_ring(recorder->probe, recorder->rings.items[index]->cpu)
		       : NULL;
}

void recorder_learn_stack(struct recorder *recorder, bool sized, uint32_t tid, uint64_t stack_end)
{
	if (recorder->probe)
		sched_probe_learn_stack(recorder->probe, sized, tid, stack_end);
}

struct known_block *recorder_known_blocks(struct recorder *recorder)
{
	return recorder->probe ? sched_probe_known(recorder->probe) : NULL;
}

struct ring *recorder_ring(struct recorder *recorder, uint32_t index)
{
	return index < recorder->rings.count ? recorder->rings.items[index] : NULL;
}

static void note_fd(struct recorder *recorder, const struct pollfd *entry)
{
	for (uint32_t i = 0; i < recorder->rings.count; i++) {
		struct ring *ring = recorder->rings.items[i];
		/* Its CPU went offline: poll() would return immediately each time. */
		if (ring->fd == entry->fd) {
			if (entry->revents & (POLLHUP | POLLERR | POLLNVAL))
				ring->fd = -1;
			return;
		}
	}
	for (uint32_t i = 0; i < recorder->targets.count; i++)
		if (recorder->targets.items[i].pidfd == entry->fd)
			recorder->targets.items[i].ended = true;
}

void recorder_await(struct recorder *recorder, struct poll_set *set)
{
	recorder->wait_first = set->fds.count;
	for (uint32_t i = 0; i < recorder->rings.count; i++)
		if (recorder->rings.items[i]->fd >= 0)
			(void)poll_set_add(set, recorder->rings.items[i]->fd, POLLIN);
	for (uint32_t i = 0; i < recorder->targets.count; i++)
		if (!recorder->targets.items[i].ended && recorder->targets.items[i].pidfd >= 0)
			(void)poll_set_add(set, recorder->targets.items[i].pidfd, POLLIN);
	recorder->wait_count = set->fds.count - recorder->wait_first;
}

void recorder_note_wait(struct recorder *recorder, const struct poll_set *set)
{
	for (uint32_t i = 0; i < recorder->wait_count; i++)
		if (poll_set_revents(set, recorder->wait_first + i))
			note_fd(recorder, &set->fds.items[recorder->wait_first + i]);
	vec_each(target, &recorder->targets)
		if (target->pidfd < 0 && !target->ended)
			target->ended = kill((pid_t)target->pid, 0) < 0 && errno == ESRCH;
}

uint32_t recorder_targets_left(const struct recorder *recorder)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < recorder->targets.count; i++)
		left += !recorder->targets.items[i].ended;
	return left;
}

static bool same_cpus(const struct cpu_list *a, const struct cpu_list *b)
{
	return a->cpus.count == b->cpus.count &&
	       (!a->cpus.count || !memcmp(a->cpus.items, b->cpus.items,
					  a->cpus.count * sizeof(a->cpus.items[0])));
}

/*
 * Opens the events of a CPU that came online. *ret_error is the first failure. Returns whether it is online:
 * the next look finds again one that went offline meanwhile.
 */
static bool begin_cpu(struct recorder *recorder, uint32_t cpu, int *added, int *ret_error)
{
	int r = recorder_events_open_cpu(recorder, (int32_t)cpu);
	int error = 0; /* it went offline again */

	if (r < 0 && !*ret_error)
		*ret_error = r;
	if (r > 0 && recorder->running && start_events(recorder, (int32_t)cpu, &error))
		++*added;
	return r != 0;
}

int recorder_follow_cpus(struct recorder *recorder, recorder_cpu_fn *changed, void *context,
	struct diag *diag)
{
	struct cpu_list now = { 0 };
	uint32_t count = 0;
	int added = 0;
	int error = 0;

	if (!recorder->machine || recorder->options.cpu_count)
		return 0;
	int r = box_read_online_cpus(&now, diag);
	const struct cpu_list *before = recorder->followed ? &recorder->online : &recorder->cpus;
	if (r < 0 || same_cpus(&now, before)) {
		vec_done(&now.cpus);
		return r < 0 ? r : 0;
	}
	for (uint32_t i = 0; i < before->cpus.count; i++)
		if (!has_cpu(&now, before->cpus.items[i]))
			changed(context, before->cpus.items[i], false);
	vec_each(cpu, &now.cpus) {
		if (!has_cpu(before, *cpu)) {
			if (!begin_cpu(recorder, *cpu, &added, &error))
				continue;
			changed(context, *cpu, true);
		}
		now.cpus.items[count++] = *cpu;
	}
	now.cpus.count = count;
	recorder->info.ring_count = recorder->rings.count;
	recorder->info.event_count = recorder->events.count;
	if (highest_cpu(&now) > recorder->info.cpu_max)
		recorder->info.cpu_max = highest_cpu(&now);
	vec_done(&recorder->online.cpus);
	recorder->online = now;
	recorder->followed = true;
	return error ? diag_set(diag, error, "cannot record a CPU that came online: %m") : added;
}
