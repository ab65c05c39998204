/*
 * recorder.c with a simulated kernel (fake_events.h): the events that it opens with each set of
 * rights, and the reduced attributes that it tries after each refusal.
 */
#include "unit/test.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/poll_set.h"
#include "machine/box.h"
#include "machine/rights.h"
#include "perf/recorder.h"
#include "perf/ring.h"
#include "unit/fake_events.h"

#define PID_OF_NO_PROCESS 0x3fffffffu /* above the kernel's limit of process ids */

static struct cpu_list cpus;
static struct rights user;  /* no capabilities, perf_event_paranoid 2 */
static struct rights group; /* CAP_PERFMON */

static int set_up(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	fake_events_reset();
	vec_reset(&cpus.cpus);
	if (!cpus.cpus.count && box_read_online_cpus(&cpus, &diag) < 0)
		return -1;
	user = (struct rights){ .euid = 1000,
		.perf_event_paranoid = 2,
		.perf_event_mlock_kb = 516,
		.perf_event_max_stack = 127,
		.perf_event_max_sample_rate = 100000,
		.open_files_max = 1u << 20,
		.locked_bytes_max = UINT64_MAX };
	group = user;
	group.effective = RIGHT_PERFMON;
	return 0;
}

/* Every descriptor of the recorder is closed. */
static void close_and_check(struct recorder *recorder)
{
	recorder_close(recorder);
	for (unsigned i = 0; i < fake_events.count; i++)
		assert_int_equal(fcntl(fake_events.items[i].fd, F_GETFD), -1);
}

static struct recorder *open_or_fail(const struct recorder_options *options)
{
	struct recorder *recorder = NULL;
	struct diag diag = { 0 };
	int r = recorder_open(options, &recorder, &diag);

	if (r < 0)
		fail_msg("recorder_open: %s", diag.text);
	return recorder;
}

static void refused(const struct recorder_options *options, int error, const char *part)
{
	struct recorder *recorder = NULL;
	struct diag diag = { 0 };

	assert_int_equal(recorder_open(options, &recorder, &diag), error);
	assert_null(recorder);
	assert_int_equal(diag.error, error);
	if (!strstr(diag.text, part))
		fail_msg("'%s' lacks '%s'", diag.text, part);
	for (unsigned i = 0; i < fake_events.count; i++)
		assert_int_equal(fcntl(fake_events.items[i].fd, F_GETFD), -1);
}

static bool is_online(uint32_t cpu)
{
	for (uint32_t i = 0; i < cpus.cpus.count; i++)
		if (cpus.cpus.items[i] == cpu)
			return true;
	return false;
}

static uint32_t first_offline_cpu(void)
{
	uint32_t cpu = 0;

	while (is_online(cpu))
		cpu++;
	return cpu;
}

/* A process that sleeps, with one thread. */
struct waiting {
	uint32_t pid;
};

static struct waiting start_waiting(void)
{
	pid_t test = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		/* a failed test must not leave it running */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == test)
			for (;;)
				pause();
		_exit(1);
	}
	return (struct waiting){ .pid = (uint32_t)pid };
}

static void end_waiting(const struct waiting *process)
{
	assert_int_equal(kill((pid_t)process->pid, SIGKILL), 0);
	assert_int_equal(waitpid((pid_t)process->pid, NULL, 0), (pid_t)process->pid);
}

static void test_options(void **state)
{
	uint32_t many[RECORDER_TARGETS_MAX + 1] = { 0 };
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 0, .rights = &group
	};

	(void)state;
	refused(&options, -EINVAL, "0 times a second");
	options.frequency_hz = RECORDER_HZ_MAX + 1;
	refused(&options, -EINVAL, "100001 times a second: 1 to 100000 is possible");
	group.perf_event_max_sample_rate = 4000;
	options.frequency_hz = 4001;
	refused(&options, -EINVAL, "perf_event_max_sample_rate is 4000");
	options.frequency_hz = 4000;
	close_and_check(open_or_fail(&options));
	options.scope = RECORD_PIDS;
	refused(&options, -EINVAL, "no process");
	options.pids = many;
	options.pid_count = RECORDER_TARGETS_MAX + 1;
	refused(&options, -E2BIG, "4097 processes");
}

static void test_machine(void **state)
{
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 99, .rights = &group
	};
	struct diag diag = { 0 };
	struct recorder *recorder = open_or_fail(&options);
	const struct recorder_info *info = recorder_info(recorder);

	(void)state;
	assert_int_equal(info->clock, RECORD_CLOCK_CYCLES);
	assert_int_equal(info->period_ns, 10101010);
	assert_int_equal(info->ring_count, cpus.cpus.count);
	assert_int_equal(info->event_count, cpus.cpus.count);
	assert_int_equal(info->cpu_max, *vec_last(&cpus.cpus));
	assert_int_equal(info->max_stack, 127);
	assert_true(info->lost_counts);
	assert_true(info->build_ids);
	assert_true(info->idle_excluded);
	assert_false(info->kernel_excluded);
	assert_false(info->filter_by_pid);
	assert_int_equal(info->limit.error, 0);
	for (unsigned i = 0; i < fake_events.count; i++) {
		assert_int_equal(fake_events.items[i].pid, -1);
		assert_int_equal(fake_events.items[i].cpu, cpus.cpus.items[i]);
		assert_false(fake_events.items[i].attr.inherit);
		assert_int_equal(fake_events.items[i].enabled, 0);
	}
	assert_int_equal(recorder_start(recorder, &diag), 0);
	recorder_stop(recorder);
	for (unsigned i = 0; i < fake_events.count; i++) {
		assert_int_equal(fake_events.items[i].enabled, 1);
		assert_int_equal(fake_events.items[i].disabled, 1);
	}
	assert_non_null(recorder_ring(recorder, info->ring_count - 1));
	assert_null(recorder_ring(recorder, info->ring_count));
	close_and_check(recorder);
}

static void test_chosen_cpus(void **state)
{
	uint32_t chosen[] = { cpus.cpus.items[0], cpus.cpus.items[0] };
	struct recorder_options options = { .scope = RECORD_MACHINE,
		.frequency_hz = 99,
		.cpus = chosen,
		.cpu_count = 2,
		.rights = &group };
	struct recorder *recorder = open_or_fail(&options);
	char message[64];

	(void)state;
	assert_int_equal(recorder_info(recorder)->ring_count, 1);
	assert_int_equal(recorder_info(recorder)->event_count, 1);
	assert_int_equal(recorder_info(recorder)->cpu_max, chosen[0]);
	close_and_check(recorder);
	chosen[1] = first_offline_cpu();
	snprintf(message, sizeof(message), "CPU %" PRIu32 ": it is not online", chosen[1]);
	refused(&options, -ENXIO, message);
}

static int refuse_hardware(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return attr->type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
}

static int refuse_last_cycles(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	return attr->type == PERF_TYPE_HARDWARE && cpu == (int)*vec_last(&cpus.cpus) ? -EBUSY : 0;
}

/* Cycles are used on all CPUs or on none. */
static void test_without_hardware(void **state)
{
	static fake_event_rule *const rules[] = { refuse_hardware, refuse_last_cycles };
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 1000, .rights = &group
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		fake_events_reset();
		fake_events.rule = rules[i];
		struct recorder *recorder = open_or_fail(&options);
		const struct recorder_info *info = recorder_info(recorder);
		assert_int_equal(info->clock, RECORD_CLOCK_CPU);
		assert_int_equal(info->period_ns, 1000000 + 1000000 / 101);
		assert_int_equal(info->ring_count, cpus.cpus.count);
		assert_int_equal(info->event_count, cpus.cpus.count);
		close_and_check(recorder);
	}
	fake_events_reset();
	options.no_hardware = true;
	struct recorder *recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->clock, RECORD_CLOCK_CPU);
	close_and_check(recorder);
}

static int refuse_kernel(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return !attr->exclude_kernel ? -EACCES : 0;
}

static void test_without_kernel(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = &pid,
		.pid_count = 1,
		.rights = &user };
	struct recorder *recorder;

	(void)state;
	user.euid = geteuid();
	fake_events.rule = refuse_kernel;
	recorder = open_or_fail(&options);
	assert_true(recorder_info(recorder)->kernel_excluded);
	assert_int_equal(recorder_info(recorder)->limit.error, -EACCES);
	assert_non_null(strstr(recorder_info(recorder)->limit.text, "perf_event_paranoid is 2"));
	assert_true(recorder_info(recorder)->limit.remedy[0]);
	close_and_check(recorder);

	/* It was not requested, so nothing is missing. */
	options.user_only = true;
	recorder = open_or_fail(&options);
	assert_true(recorder_info(recorder)->kernel_excluded);
	assert_int_equal(recorder_info(recorder)->limit.error, 0);
	close_and_check(recorder);

	/* Without the kernel no samples would remain. */
	options.user_only = false;
	options.kernel_only = true;
	refused(&options, -EACCES, "CAP_PERFMON is missing");
}

static void test_rings_are_halved_until_they_fit(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t count = cpus.cpus.count;
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 99, .rights = &group
	};
	struct recorder *recorder = open_or_fail(&options);
	size_t all = RECORDER_RING_BYTES;

	(void)state;
	while (all * count > RECORDER_RINGS_BYTES_MAX)
		all /= 2;
	assert_int_equal(recorder_info(recorder)->ring_bytes, all);
	close_and_check(recorder);

	/* The kernel refuses longer rings. */
	fake_events_reset();
	fake_events.ring_max = 4 * page;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, 4 * page);
	assert_int_equal(recorder_info(recorder)->ring_count, count);
	assert_false(recorder_info(recorder)->kernel_excluded);
	close_and_check(recorder);

	fake_events_reset();
	fake_events.ring_max = page / 2;
	refused(&options, -EPERM, "limit on locked memory");

	/* The user's limit is known, so longer rings are not tried. */
	fake_events_reset();
	options.no_hardware = true;
	group.perf_event_mlock_kb = 0;
	group.locked_bytes_max = (8 * page + page) * count;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, 8 * page);
	assert_int_equal(fake_events.count, count);
	close_and_check(recorder);
	group.locked_bytes_max--;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, 4 * page);
	close_and_check(recorder);
	group.locked_bytes_max = 0;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, page);
	close_and_check(recorder);
	group.effective |= RIGHT_IPC_LOCK;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, all);
	close_and_check(recorder);
	options.ring_bytes = 2 * (size_t)RECORDER_RINGS_BYTES_MAX;
	recorder = open_or_fail(&options);
	size_t longest = RECORDER_RINGS_BYTES_MAX;
	while (longest * count > RECORDER_RINGS_BYTES_MAX)
		longest /= 2;
	assert_int_equal(recorder_info(recorder)->ring_bytes, longest);
	close_and_check(recorder);
	options.ring_bytes = 2 * page;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, 2 * page);
	close_and_check(recorder);
}

static int no_cpu(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu >= 0 ? -ENODEV : 0;
}

static int no_last_cpu(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu == (int)*vec_last(&cpus.cpus) ? -ENXIO : 0;
}

/* A CPU may go offline after the list was read and before its event is opened. */
static void test_cpus_that_went_offline(void **state)
{
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 99, .rights = &group
	};

	(void)state;
	fake_events.rule = no_cpu;
	refused(&options, -ENODEV, "cannot open perf events");
	if (cpus.cpus.count < 2)
		return;
	fake_events.rule = no_last_cpu;
	struct recorder *recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_count, cpus.cpus.count - 1);
	close_and_check(recorder);
}

/* Without rights: an anchor and a ring for each CPU, and an event for each thread on each CPU. */
static void test_processes_one_by_one(void **state)
{
	struct waiting child = start_waiting();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = &child.pid,
		.pid_count = 1,
		.rights = &user };
	struct recorder *recorder = open_or_fail(&options);
	const struct recorder_info *info = recorder_info(recorder);
	struct diag diag = { 0 };
	unsigned own = 0, anchors = 0;

	(void)state;
	assert_false(info->filter_by_pid);
	assert_int_equal(info->ring_count, cpus.cpus.count);
	assert_int_equal(info->event_count, (1 + info->thread_count) * cpus.cpus.count);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	for (unsigned i = 0; i < fake_events.count; i++) {
		const struct fake_event *event = &fake_events.items[i];
		const uint64_t counts[2] = { 100, event->pid ? 7 : 1000 };
		assert_int_equal(pwrite(event->fd, counts, sizeof(counts), 0), sizeof(counts));
		if (event->pid) {
			own += event->pid == (pid_t)child.pid;
			assert_true(event->attr.inherit);
			assert_true(event->attr.sample_type & PERF_SAMPLE_IDENTIFIER);
			assert_int_equal(fake_event_of(event->owner)->cpu, event->cpu);
			assert_int_equal(fake_event_of(event->owner)->pid, 0);
			assert_int_equal(event->enabled, 1);
		} else {
			anchors++;
			assert_int_equal(event->attr.config, PERF_COUNT_SW_DUMMY);
			assert_int_equal(event->enabled, 0);
		}
	}
	assert_int_equal(own, cpus.cpus.count);
	assert_int_equal(anchors, cpus.cpus.count);
	close_and_check(recorder);
	end_waiting(&child);
}

static int refuse_lost(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	return attr->read_format ? -EINVAL : 0;
}

static void test_old_kernels_do_not_count_lost_records(void **state)
{
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 99, .rights = &group
	};

	(void)state;
	fake_events.rule = refuse_lost;
	struct recorder *recorder = open_or_fail(&options);
	assert_false(recorder_info(recorder)->lost_counts);
	assert_true(recorder_info(recorder)->build_ids);
	close_and_check(recorder);
}

static int refuse_machine(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)cpu;
	return pid == -1 ? -EACCES : 0;
}

/* Rings of CPUs for single processes: used if they are allowed, affordable and not refused. */
static void test_when_processes_use_the_rings_of_cpus(void **state)
{
	struct waiting child = start_waiting();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = &child.pid,
		.pid_count = 1,
		.rights = &group };
	struct recorder *recorder = open_or_fail(&options);

	(void)state;
	assert_true(recorder_info(recorder)->filter_by_pid);
	assert_int_equal(recorder_info(recorder)->event_count, cpus.cpus.count);
	assert_false(recorder_info(recorder)->sample_type & PERF_SAMPLE_IDENTIFIER);
	close_and_check(recorder);

	options.frequency_hz = 20000 / cpus.cpus.count;
	recorder = open_or_fail(&options);
	assert_true(recorder_info(recorder)->filter_by_pid);
	close_and_check(recorder);
	options.frequency_hz++;
	recorder = open_or_fail(&options);
	assert_false(recorder_info(recorder)->filter_by_pid);
	close_and_check(recorder);

	options.frequency_hz = 99;
	fake_events.rule = refuse_machine;
	recorder = open_or_fail(&options);
	assert_false(recorder_info(recorder)->filter_by_pid);
	assert_int_equal(recorder_info(recorder)->limit.error, 0);
	close_and_check(recorder);

	/* Threads are selected one by one, also by a user who may record the machine. */
	fake_events_reset();
	options.scope = RECORD_THREADS;
	recorder = open_or_fail(&options);
	assert_false(recorder_info(recorder)->filter_by_pid);
	assert_int_equal(recorder_info(recorder)->thread_count, 1);
	for (unsigned i = 0; i < fake_events.count; i++)
		assert_false(fake_events.items[i].attr.inherit);
	close_and_check(recorder);
	end_waiting(&child);
}

static void test_more_threads_than_files(void **state)
{
	struct waiting child = start_waiting();
	struct recorder_options options = { .scope = RECORD_THREADS,
		.frequency_hz = 99,
		.pids = &child.pid,
		.pid_count = 1,
		.rights = &user };

	(void)state;
	/* events may use a quarter */
	user.open_files_max = 4 * (uint64_t)cpus.cpus.count;
	close_and_check(open_or_fail(&options));
	user.open_files_max--;
	refused(&options, -EMFILE, "cannot record 1 threads on");

	/* A user who may record the machine uses the rings of CPUs. */
	group.open_files_max = user.open_files_max;
	options.scope = RECORD_PIDS;
	options.frequency_hz = 20000;
	options.rights = &group;
	if (cpus.cpus.count > 1) { /* otherwise the rings of CPUs are tried first */
		struct recorder *recorder = open_or_fail(&options);
		assert_true(recorder_info(recorder)->filter_by_pid);
		close_and_check(recorder);
	}
	end_waiting(&child);
}

static int no_files(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	return pid == 0 && cpu == -1 ? 0 : -EMFILE;
}

static int no_such_thread(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)cpu;
	return pid > 0 ? -ESRCH : 0;
}

static int no_events_at_all(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -ENOSYS;
}

static int too_old(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -EINVAL;
}

static int forbidden(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	return -EPERM;
}

static void test_each_failure_is_explained(void **state)
{
	struct waiting children[2] = { start_waiting(), start_waiting() };
	uint32_t pids[2] = { children[0].pid, children[1].pid };
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = pids,
		.pid_count = 1,
		.rights = &user };
	char message[64];

	(void)state;
	user.euid = geteuid();
	fake_events.rule = no_files;
	refused(&options, -EMFILE, "cannot open so many perf events");
	fake_events.rule = no_such_thread;
	snprintf(message, sizeof(message), "process %" PRIu32 " has ended", pids[0]);
	refused(&options, -ESRCH, message);
	options.pid_count = 2;
	refused(&options, -ESRCH, "all 2 processes have ended");
	fake_events.rule = no_events_at_all;
	refused(&options, -ENOSYS, "this kernel has no perf events");
	fake_events.rule = too_old;
	refused(&options, -EINVAL, "too old");
	fake_events.rule = forbidden;
	refused(&options, -EPERM, "perf_event_open is forbidden here");
	user.euid++;
	refused(&options, -EPERM, "it belongs to user");
	user.perf_event_paranoid = 3;
	options.scope = RECORD_MACHINE;
	options.pid_count = 0;
	refused(&options, -EPERM, "perf_event_paranoid is 3 and CAP_PERFMON is missing");
	end_waiting(&children[0]);
	end_waiting(&children[1]);
}

static void test_no_such_process(void **state)
{
	uint32_t pids[] = { PID_OF_NO_PROCESS, PID_OF_NO_PROCESS - 1 };
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = pids,
		.pid_count = 1,
		.rights = &user };

	(void)state;
	refused(&options, -ESRCH, "there is no process 1073741823");
	options.pid_count = 2;
	refused(&options, -ESRCH, "none of the 2 processes exists");
	/* One existing process is enough. */
	pids[1] = (uint32_t)getpid();
	struct recorder *recorder = open_or_fail(&options);
	assert_int_equal(recorder_targets_left(recorder), 1);
	close_and_check(recorder);
}

/* The recorder's descriptors in a set that begins with those of another part. */
static uint32_t await(struct recorder *recorder, struct poll_set *set)
{
	poll_set_begin(set, UINT64_MAX);
	(void)poll_set_add(set, -1, POLLIN);
	recorder_await(recorder, set);
	return set->fds.count - 1;
}

static struct pollfd *entry_of(struct poll_set *set, int fd)
{
	for (uint32_t i = 0; i < set->fds.count; i++)
		if (set->fds.items[i].fd == fd)
			return &set->fds.items[i];
	return NULL;
}

/*
 * The ring of a CPU that goes offline hangs up, and so does a target that ends. Neither is polled
 * any more.
 */
static void test_polling(void **state)
{
	struct waiting child = start_waiting();
	uint32_t pids[2] = { (uint32_t)getpid(), child.pid };
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = pids,
		.pid_count = 2,
		.rights = &group };
	struct recorder *recorder = open_or_fail(&options);
	uint32_t rings = recorder_info(recorder)->ring_count;
	struct poll_set set = { 0 };
	uint32_t count = await(recorder, &set);
	uint32_t targets = count - rings; /* 0: the kernel has no pidfds */
	int ring_fd = recorder_ring(recorder, 0)->fd;

	(void)state;
	assert_true(targets == 0 || targets == 2);
	assert_int_equal(recorder_targets_left(recorder), 2);
	recorder_note_wait(recorder, &set); /* nothing is ready */
	assert_int_equal(await(recorder, &set), count);

	assert_int_equal(entry_of(&set, ring_fd)->events, POLLIN);
	entry_of(&set, ring_fd)->revents = POLLIN;
	recorder_note_wait(recorder, &set);
	assert_int_equal(await(recorder, &set), count);
	entry_of(&set, ring_fd)->revents = POLLIN | POLLHUP;
	recorder_note_wait(recorder, &set);
	assert_int_equal(await(recorder, &set), count - 1);
	assert_null(entry_of(&set, ring_fd));
	assert_int_equal(recorder_targets_left(recorder), 2);

	end_waiting(&child);
	(void)await(recorder, &set);
	if (targets)
		(void)poll_set_wait(&set);
	recorder_note_wait(recorder, &set);
	assert_int_equal(recorder_targets_left(recorder), 1);
	assert_int_equal(await(recorder, &set), rings - 1 + targets / 2);
	poll_set_done(&set);
	close_and_check(recorder);
}

static void test_without_perf_events(void **state)
{
	struct diag reason = { .error = -EPERM, .text = "perf events are forbidden" };
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 50000,
		.pids = &pid,
		.pid_count = 1,
		.instead = &reason,
		.rights = &user };
	struct diag diag = { 0 };

	(void)state;
	user.perf_event_max_sample_rate = 1; /* only of perf events */
	struct recorder *recorder = open_or_fail(&options);
	const struct recorder_info *info = recorder_info(recorder);
	assert_int_equal(info->clock, RECORD_CLOCK_NONE);
	assert_int_equal(info->ring_count, 0);
	assert_true(info->kernel_excluded);
	assert_int_equal(info->limit.error, -EPERM);
	assert_string_equal(info->limit.text, "perf events are forbidden");
	assert_int_equal(fake_events.count, 0);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	recorder_stop(recorder);
	assert_int_equal(recorder_targets_left(recorder), 1);
	close_and_check(recorder);
}

static void test_start(void **state)
{
	struct waiting child = start_waiting();
	struct recorder_options options = { .scope = RECORD_CHILD,
		.frequency_hz = 99,
		.pids = &child.pid,
		.pid_count = 1,
		.rights = &user };
	struct diag diag = { 0 };

	(void)state;
	/* The exec of the child starts its events. */
	struct recorder *recorder = open_or_fail(&options);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	for (unsigned i = 0; i < fake_events.count; i++) {
		assert_int_equal(fake_events.items[i].attr.enable_on_exec,
			fake_events.items[i].pid > 0);
		assert_int_equal(fake_events.items[i].enabled, 0);
	}
	close_and_check(recorder);

	fake_events_reset();
	options.late_start = true;
	recorder = open_or_fail(&options);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	for (unsigned i = 0; i < fake_events.count; i++) {
		assert_false(fake_events.items[i].attr.enable_on_exec);
		assert_int_equal(fake_events.items[i].enabled, fake_events.items[i].pid > 0);
	}
	close_and_check(recorder);

	/* A CPU that goes offline does not end the recording of the others. */
	fake_events_reset();
	recorder = open_or_fail(&options);
	fake_events.enable_error = -EACCES;
	fake_events.enable_error_cpu = (int)cpus.cpus.items[0];
	assert_int_equal(recorder_start(recorder, &diag), cpus.cpus.count > 1 ? 0 : -EACCES);
	fake_events.enable_error_cpu = -1;
	assert_int_equal(recorder_start(recorder, &diag), -EACCES);
	assert_string_equal(diag.text, "cannot start sampling: Permission denied");
	close_and_check(recorder);
	end_waiting(&child);
}

static pthread_t late_thread;
static uint32_t late_tid;
static int late_ends[2];

static void *wait_for_end(void *unused)
{
	char byte;

	__atomic_store_n(&late_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	(void)!read(late_ends[0], &byte, 1);
	return unused;
}

static void start_thread_once(pid_t pid)
{
	if (pid != getpid() || late_tid)
		return;
	assert_int_equal(pthread_create(&late_thread, NULL, wait_for_end, NULL), 0);
	while (!__atomic_load_n(&late_tid, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* A thread that starts while its process is being attached may have inherited the event. */
static void test_thread_that_starts_meanwhile(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = &pid,
		.pid_count = 1,
		.rights = &user };
	unsigned late = 0, first = 0;

	(void)state;
	options.no_hardware = true;
	assert_int_equal(pipe(late_ends), 0);
	fake_events.on_open = start_thread_once;
	struct recorder *recorder = open_or_fail(&options);
	assert_true(late_tid != 0);
	for (unsigned i = 0; i < fake_events.count; i++) {
		const struct fake_event *event = &fake_events.items[i];
		if (event->pid == (pid_t)late_tid) {
			late++;
			assert_int_equal(event->asked_for_id, 1);
		} else if (event->pid == getpid()) {
			first++;
			assert_int_equal(event->asked_for_id, 0);
		}
	}
	assert_int_equal(first, cpus.cpus.count);
	assert_int_equal(late, cpus.cpus.count);
	close_and_check(recorder);
	close(late_ends[1]);
	assert_int_equal(pthread_join(late_thread, NULL), 0);
	close(late_ends[0]);
}

/* Switches have copies of two sizes, of which one is on, and no idle task; wakings have small ones. */
static void test_switches(void **state)
{
	struct recorder_options options = { .scope = RECORD_MACHINE,
		.frequency_hz = 99,
		.rights = &group,
		.user_stack_bytes = 16384,
		.user_stack_small_bytes = 512,
		.switch_stack_bytes = 8192,
		.waking_stack_bytes = 1024,
		.user_registers = 1,
		.switches = true,
		.waking_stacks = true };
	unsigned sizes[3] = { 0 };
	struct diag diag = { 0 };

	(void)state;
	options.no_hardware = true;
	struct recorder *recorder = open_or_fail(&options);
	if (recorder_info(recorder)->sched.limit.error) {
		close_and_check(recorder);
		print_message("skipped: this user cannot read the tracepoints\n");
		skip();
	}
	assert_int_equal(recorder_start(recorder, &diag), 0);
	for (unsigned i = 0; i < fake_events.count; i++) {
		const struct fake_event *event = &fake_events.items[i];
		if (event->attr.type != PERF_TYPE_TRACEPOINT)
			continue;
		uint32_t size = event->attr.sample_stack_user;
		sizes[0] += size == 8192;
		sizes[1] += size == 512;
		sizes[2] += size == 1024;
		assert_int_equal(event->enabled, size == 512 ? 0 : 1);
		assert_int_equal(event->filter != NULL, size != 1024);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sizes[i], cpus.cpus.count);
	assert_true(recorder_copy_small(recorder, true));
	for (unsigned i = 0; i < fake_events.count; i++) {
		const struct fake_event *event = &fake_events.items[i];
		if (event->attr.type == PERF_TYPE_TRACEPOINT &&
			event->attr.sample_stack_user != 1024)
			assert_int_equal(event->disabled,
				event->attr.sample_stack_user == 8192 ? 1 : 0);
	}
	close_and_check(recorder);
}

static int refused_cpu = -1;

/* Events with a copy of the stack are refused on one CPU, as if it went offline after its first event. */
static int no_copies_there(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	return cpu == refused_cpu && attr->sample_stack_user ? -ENODEV : 0;
}

/* No event of one CPU, as long as the rule is set. */
static int not_there(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu == refused_cpu ? -ENODEV : 0;
}

static int no_file_there(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)attr;
	(void)pid;
	return cpu == refused_cpu ? -EMFILE : 0;
}

static unsigned changes_seen;

static void see_change(void *context, uint32_t cpu, bool online)
{
	(void)context;
	assert_int_equal(cpu, refused_cpu);
	assert_true(online);
	changes_seen++;
}

/* With copies of two sizes and tracepoints, a CPU that goes offline between its events is left out. */
static void test_cpu_goes_while_it_is_opened(void **state)
{
	struct recorder_options options = { .scope = RECORD_MACHINE,
		.frequency_hz = 99,
		.rights = &group,
		.user_stack_bytes = 16384,
		.user_stack_small_bytes = 512,
		.switch_stack_bytes = 8192,
		.user_registers = 1,
		.switches = true,
		.no_hardware = true };
	struct diag diag = { 0 };

	(void)state;
	refused_cpu = (int)*vec_last(&cpus.cpus);
	fake_events.rule = no_copies_there;
	struct recorder *recorder = open_or_fail(&options);
	assert_int_equal(recorder_info(recorder)->ring_count, cpus.cpus.count);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	close_and_check(recorder);

	/* Threads one by one: the rings of the other CPUs are used. */
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options processes = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = &pid,
		.pid_count = 1,
		.rights = &user };
	fake_events_reset();
	fake_events.rule = not_there;
	if (cpus.cpus.count == 1) {
		refused(&processes, -ENODEV, "cannot open perf events");
		return;
	}
	recorder = open_or_fail(&processes);
	assert_int_equal(recorder_info(recorder)->ring_count, cpus.cpus.count - 1);
	close_and_check(recorder);
}

/* A CPU that was listed and could not be opened is found when it can be, and has its own ring then. */
static void test_following(void **state)
{
	struct recorder_options options = {
		.scope = RECORD_MACHINE, .frequency_hz = 99, .rights = &group, .no_hardware = true
	};
	uint32_t others = cpus.cpus.count - 1;
	struct diag diag = { 0 };

	(void)state;
	if (!others)
		skip();
	/* the first, so that the numbers of rings and CPUs differ */
	refused_cpu = (int)cpus.cpus.items[0];
	changes_seen = 0;
	fake_events.rule = not_there;
	struct recorder *recorder = open_or_fail(&options);
	const struct recorder_info *info = recorder_info(recorder);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	assert_int_equal(info->ring_count, others);
	assert_int_equal(recorder_ring(recorder, 0)->cpu, cpus.cpus.items[1]);
	assert_int_equal(recorder_follow_cpus(recorder, see_change, NULL, &diag), 0);
	assert_int_equal(changes_seen, 0);
	fake_events.rule = NULL;
	assert_int_equal(recorder_follow_cpus(recorder, see_change, NULL, &diag), 1);
	assert_int_equal(changes_seen, 1);
	assert_int_equal(info->ring_count, others + 1);
	assert_int_equal(info->cpu_max, *vec_last(&cpus.cpus));
	assert_int_equal(recorder_ring(recorder, others)->cpu, refused_cpu);
	assert_int_equal(fake_events.items[fake_events.count - 1].enabled, 1);
	assert_int_equal(recorder_follow_cpus(recorder, see_change, NULL, &diag), 0);
	close_and_check(recorder);

	/* One that is refused is reported once, not opened again and again. */
	fake_events_reset();
	fake_events.rule = not_there;
	recorder = open_or_fail(&options);
	fake_events.rule = no_file_there;
	assert_int_equal(recorder_follow_cpus(recorder, see_change, NULL, &diag), -EMFILE);
	assert_int_equal(changes_seen, 2);
	assert_int_equal(recorder_follow_cpus(recorder, see_change, NULL, &diag), 0);
	assert_int_equal(changes_seen, 2);
	assert_int_equal(recorder_info(recorder)->ring_count, others);
	close_and_check(recorder);
}

/* The event of a tracepoint that was opened last on a CPU; NULL: none. */
static const struct fake_event *tracepoint_of(uint32_t cpu, uint16_t id)
{
	for (unsigned i = fake_events.count; i-- > 0;)
		if (fake_events.items[i].attr.type == PERF_TYPE_TRACEPOINT &&
			fake_events.items[i].attr.config == id &&
			fake_events.items[i].cpu == (int)cpu)
			return &fake_events.items[i];
	return NULL;
}

/* Tracepoints that are added before the start, while the recorder runs, and on a CPU that comes later. */
static void test_tracepoints(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 99,
		.pids = &pid,
		.pid_count = 1,
		.rights = &group,
		.tracepoints = true,
		.no_hardware = true };
	uint32_t others = cpus.cpus.count - 1;
	struct diag diag = { 0 };

	(void)state;
	refused_cpu = others ? (int)cpus.cpus.items[0] : -1;
	fake_events.rule = others ? not_there : NULL;
	struct recorder *recorder = open_or_fail(&options);
	const struct recorder_info *info = recorder_info(recorder);
	assert_true(info->filter_by_pid);
	assert_true(info->sample_type & PERF_SAMPLE_RAW);
	assert_int_equal(recorder_add_tracepoint(recorder, 1874), 0);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	assert_int_equal(recorder_add_tracepoint(recorder, 1875), 0);
	for (uint32_t i = others ? 1 : 0; i < cpus.cpus.count; i++)
		for (uint16_t id = 1874; id <= 1875; id++) {
			const struct fake_event *event = tracepoint_of(cpus.cpus.items[i], id);
			assert_non_null(event);
			assert_int_equal(event->enabled, 1);
			assert_int_equal(event->pid, -1);
			assert_int_equal(event->attr.sample_period, 1);
			assert_int_equal(event->attr.sample_type, info->sample_type);
			assert_true(event->attr.exclude_callchain_kernel);
			assert_int_equal(event->owner,
				recorder_ring(recorder, others ? i - 1 : i)->fd);
		}
	fake_events.rule = NULL;
	if (others) {
		assert_int_equal(recorder_follow_cpus(recorder, see_change, NULL, &diag), 1);
		assert_int_equal(tracepoint_of(cpus.cpus.items[0], 1874)->enabled, 1);
		assert_int_equal(tracepoint_of(cpus.cpus.items[0], 1875)->enabled, 1);
	}
	/* One that cannot be opened on a CPU has no event at all, and none on a CPU that comes later. */
	uint32_t before = info->event_count;
	refused_cpu = (int)*vec_last(&cpus.cpus);
	fake_events.rule = no_file_there;
	assert_int_equal(recorder_add_tracepoint(recorder, 1876), -EMFILE);
	assert_int_equal(info->event_count, before);
	close_and_check(recorder);

	/* Events of single threads cannot have them. */
	fake_events_reset();
	options.rights = &user;
	refused(&options, -EACCES, "cannot record user_events");
}

static int tear_down_all(void **state)
{
	(void)state;
	vec_done(&cpus.cpus);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_options),
		TEST(test_machine),
		TEST(test_chosen_cpus),
		TEST(test_without_hardware),
		TEST(test_without_kernel),
		TEST(test_rings_are_halved_until_they_fit),
		TEST(test_cpus_that_went_offline),
		TEST(test_processes_one_by_one),
		TEST(test_old_kernels_do_not_count_lost_records),
		TEST(test_when_processes_use_the_rings_of_cpus),
		TEST(test_more_threads_than_files),
		TEST(test_each_failure_is_explained),
		TEST(test_no_such_process),
		TEST(test_polling),
		TEST(test_without_perf_events),
		TEST(test_start),
		TEST(test_thread_that_starts_meanwhile),
		TEST(test_switches),
		TEST(test_cpu_goes_while_it_is_opened),
		TEST(test_following),
		TEST(test_tracepoints),
	};
	return cmocka_run_group_tests(tests, NULL, tear_down_all);
}
