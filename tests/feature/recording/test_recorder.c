/*
 * The recorder with the real kernel: it samples the CPU time of all threads, of a command from its
 * first instruction, with fewer rights, and within the limits of files and memory.
 *
 * Numbers of samples are compared with the CPU time of the thread or process. A virtual machine
 * that is stopped by its host loses samples, so lower bounds need one good try of several; upper
 * bounds hold always.
 */
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/map.h"
#include "base/poll_set.h"
#include "machine/rights.h"
#include "perf/capability.h"
#include "perf/child.h"
#include "perf/perf_record.h"
#include "perf/recorder.h"
#include "perf/ring.h"

/* No CPU comes or goes while this runs. */
static void on_cpu(void *context, uint32_t cpu, bool online)
{
	(void)context;
	fail_msg("CPU %u is said to have %s", cpu, online ? "come" : "gone");
}

#define SKIPPED      77
#define FRAMES_MAX   256u
#define KERNEL_BEGIN (1ull << 63) /* holds on x86-64 and arm64 */
#define TRIES        10u

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Uses CPU time of this thread in a function whose address the samples have. */
static _Thread_local volatile uint64_t sink;

static __attribute__((noinline)) void burn(uint64_t cpu_ns)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (unsigned i = 0; i < 100000; i++)
			sink += i;
}

/* The content of the rings. */
struct seen {
	uint32_t pid; /* only samples of this process are counted; 0: all */
	uint64_t samples;
	uint64_t with_stack;
	uint64_t with_kernel;
	uint64_t in_burn;
	uint64_t idle;
	uint64_t lost;
	uint64_t mappings;
	uint64_t build_ids;
	uint64_t forks;
	uint64_t exits;
	uint64_t execs;
	uint64_t first_ns;
	uint64_t last_ns;
	struct map tids; /* tid -> samples */
};

static void see(struct seen *seen, const struct recorder_info *info,
	const struct perf_record *record)
{
	uint64_t frames[FRAMES_MAX];

	if (record->type == PERF_TYPE_SAMPLE) {
		seen->idle += record->pid == 0;
		if (seen->pid && record->pid != seen->pid)
			return;
		struct perf_callchain chain = perf_callchain_flatten(record, KERNEL_BEGIN,
			info->max_stack, frames, FRAMES_MAX);
		seen->samples++;
		seen->with_stack += chain.count > 1;
		seen->with_kernel += chain.kernel_count > 0;
		for (uint32_t i = chain.kernel_count; i < chain.count; i++)
			if (frames[i] - (uint64_t)(uintptr_t)burn < 200) {
				seen->in_burn++;
				break;
			}
		(void)map_put(&seen->tids, record->tid, map_get(&seen->tids, record->tid) + 1);
		if (!seen->first_ns || record->time_ns < seen->first_ns)
			seen->first_ns = record->time_ns;
		if (record->time_ns > seen->last_ns)
			seen->last_ns = record->time_ns;
	} else if (record->type == PERF_TYPE_LOST || record->type == PERF_TYPE_LOST_SAMPLES) {
		seen->lost += record->lost;
	} else if (record->type == PERF_TYPE_MMAP2) {
		seen->mappings++;
		seen->build_ids += record->build_id_size > 0;
	} else if (!seen->pid || record->pid == seen->pid) {
		seen->forks += record->type == PERF_TYPE_FORK;
		seen->exits += record->type == PERF_TYPE_EXIT;
		seen->execs += record->type == PERF_TYPE_COMM && record->exec;
	}
}

static void drain(struct recorder *recorder, struct seen *seen)
{
	const struct recorder_info *info = recorder_info(recorder);
	struct perf_layout layout = { .sample_type = info->sample_type, .sample_id_all = true };

	for (uint32_t i = 0; i < info->ring_count; i++) {
		struct ring *ring = recorder_ring(recorder, i);
		const uint8_t *data;
		uint32_t size;
		uint64_t before = 0;
		ring_begin(ring);
		while (ring_next(ring, &data, &size)) {
			struct perf_record record;
			assert_int_equal(perf_record_decode(&layout, data, size, &record), 0);
			if (record.has_time && record.type == PERF_TYPE_SAMPLE) {
				assert_true(record.time_ns >= before);
				before = record.time_ns;
				assert_int_equal(record.cpu, ring->cpu);
			}
			see(seen, info, &record);
		}
		ring_end(ring);
		assert_int_equal(ring->torn_bytes, 0);
	}
}

static struct recorder *must_open(const struct recorder_options *options)
{
	struct recorder *recorder = NULL;
	struct diag diag = { 0 };

	if (recorder_open(options, &recorder, &diag) < 0)
		fail_msg("%s", diag.text);
	return recorder;
}

/* Returns whether the number of samples of this process matches its CPU time. */
static bool machine_sees_own_burning(void)
{
	struct recorder_options options = { .scope = RECORD_MACHINE, .frequency_hz = 999 };
	struct seen seen = { .pid = (uint32_t)getpid() };

	struct recorder *recorder = must_open(&options);
	const struct recorder_info *info = recorder_info(recorder);
	assert_int_equal(info->ring_count, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true((uint64_t)info->ring_count * info->ring_bytes <= RECORDER_RINGS_BYTES_MAX);
	assert_false(info->kernel_excluded);
	assert_int_equal(info->limit.error, 0);
	uint64_t begin = now_ns(CLOCK_MONOTONIC);
	uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(recorder_start(recorder, NULL), 0);
	/* the rings also have the samples of all other programs */
	for (unsigned i = 0; i < 10; i++) {
		burn(30000000);
		drain(recorder, &seen);
	}
	recorder_stop(recorder);
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	uint64_t end = now_ns(CLOCK_MONOTONIC);
	drain(recorder, &seen);
	assert_true(seen.samples <= cpu_ns / info->period_ns * 115 / 100 + 5);
	assert_true(seen.with_stack * 10 >= seen.samples * 9);
	bool enough = seen.in_burn >= 300000000 / info->period_ns * 8 / 10;
	assert_true(seen.first_ns >= begin && seen.last_ns <= end);
	assert_int_equal(seen.lost, 0);
	if (info->idle_excluded)
		assert_int_equal(seen.idle, 0);
	assert_int_equal(recorder_follow_cpus(recorder, on_cpu, NULL, NULL), 0);
	recorder_close(recorder);
	map_done(&seen.tids);
	return enough;
}

static void test_machine_sees_own_burning(void **state)
{
	bool enough = false;

	(void)state;
	for (unsigned i = 0; i < TRIES && !enough; i++)
		enough = machine_sees_own_burning();
	assert_true(enough);
}

#define THREADS 300u

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_change = PTHREAD_COND_INITIALIZER;
static bool threads_end;
static atomic_uint threads_up;

static void *thread_of_many(void *unused)
{
	(void)unused;
	atomic_fetch_add(&threads_up, 1);
	pthread_mutex_lock(&threads_lock);
	while (!threads_end)
		pthread_cond_wait(&threads_change, &threads_lock);
	pthread_mutex_unlock(&threads_lock);
	burn(5000000);
	return NULL;
}

static void start_threads(pthread_t *threads, unsigned count)
{
	threads_end = false;
	atomic_store(&threads_up, 0);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_of_many, NULL), 0);
	while (atomic_load(&threads_up) < count)
		usleep(1000);
}

static void end_threads(pthread_t *threads, unsigned count)
{
	pthread_mutex_lock(&threads_lock);
	threads_end = true;
	pthread_cond_broadcast(&threads_change);
	pthread_mutex_unlock(&threads_lock);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/*
 * 300 threads, and one that is started while recording; each uses 5 ms. Returns whether the number
 * of samples is that of the CPU time.
 */
static bool pid_with_many_threads(void)
{
	static pthread_t threads[THREADS + 1];
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = {
		.scope = RECORD_PIDS, .frequency_hz = 4999, .pids = &pid, .pid_count = 1
	};
	struct seen seen = { .pid = pid };
	struct rlimit files, more;
	uint64_t outer_ns = 0, inner_ns = 0;
	bool enough = true;

	getrlimit(RLIMIT_NOFILE, &files);
	more = files;
	more.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &more);
	start_threads(threads, THREADS);
	struct recorder *recorder = must_open(&options);
	const struct recorder_info *info = recorder_info(recorder);
	if (info->filter_by_pid) {
		print_message("skipped: RLIMIT_NOFILE is too low for %u threads\n", THREADS);
	} else {
		assert_int_equal(info->thread_count, THREADS + 1);
		outer_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		assert_int_equal(recorder_start(recorder, NULL), 0);
		inner_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		assert_int_equal(pthread_create(&threads[THREADS], NULL, thread_of_many, NULL), 0);
	}
	end_threads(threads, THREADS);
	if (!info->filter_by_pid) {
		pthread_join(threads[THREADS], NULL);
		uint64_t end_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		recorder_stop(recorder);
		drain(recorder, &seen);
		/*
		 * 5 ms are 25 samples. The first sample of a thread may be late; no sample may be
		 * counted twice.
		 */
		assert_true(seen.samples <= (end_ns - outer_ns) / info->period_ns * 110 / 100 + 20);
		enough = seen.samples >= (end_ns - inner_ns) / info->period_ns * 85 / 100;
		assert_true(seen.tids.count >= THREADS + 1);
		assert_true(seen.exits >= THREADS + 1);
		assert_true(seen.forks >= 1);
		assert_int_equal(seen.lost, 0);
		assert_int_equal(recorder_targets_left(recorder), 1);
	}
	recorder_close(recorder);
	setrlimit(RLIMIT_NOFILE, &files);
	map_done(&seen.tids);
	return enough;
}

static void test_pid_with_many_threads(void **state)
{
	bool enough = false;

	(void)state;
	for (unsigned i = 0; i < TRIES && !enough; i++)
		enough = pid_with_many_threads();
	assert_true(enough);
}

static atomic_bool spawner_end;
static atomic_uint spawned;

static void *short_thread(void *unused)
{
	(void)unused;
	burn(2000000);
	return NULL;
}

/* Starts threads all the time, so that some appear while the recorder lists them. */
static void *spawner(void *unused)
{
	(void)unused;
	while (!atomic_load(&spawner_end)) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, short_thread, NULL) == 0) {
			atomic_fetch_add(&spawned, 1);
			pthread_join(thread, NULL);
		}
	}
	return NULL;
}

/*
 * The number of samples is that of the CPU time, with threads that start while the recorder
 * attaches: no sample is lost or counted twice.
 */
static void test_pid_while_threads_come(void **state)
{
	pthread_t threads[4];
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = {
		.scope = RECORD_PIDS, .frequency_hz = 1999, .pids = &pid, .pid_count = 1
	};

	(void)state;
	atomic_store(&spawner_end, false);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spawner, NULL), 0);
	unsigned good = 0;
	for (unsigned round = 0; round < 50 && good < 5; round++) {
		struct seen seen = { .pid = pid };
		struct recorder *recorder = must_open(&options);
		uint64_t begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		assert_int_equal(recorder_start(recorder, NULL), 0);
		while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < begin + 200000000)
			usleep(10000);
		uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
		recorder_stop(recorder);
		cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin > cpu_ns
				 ? now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin
				 : cpu_ns;
		drain(recorder, &seen);
		uint64_t expected = cpu_ns / recorder_info(recorder)->period_ns;
		/* Threads of 2 ms have 4 samples, and lose up to one of them. */
		assert_true(seen.samples <= expected * 11 / 10 + 20);
		good += seen.samples >= expected * 6 / 10;
		recorder_close(recorder);
		map_done(&seen.tids);
	}
	atomic_store(&spawner_end, true);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(good, 5);
	assert_true(atomic_load(&spawned) > 0);
}

/* Runs `test` in a child process, because it changes limits and rights. Returns its exit code. */
static int in_child(int (*test)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(300);
		_exit(test());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void give_up_root(void)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
		setresuid(65534, 65534, 65534) < 0)
		_exit(100);
}

/*
 * More threads than a quarter of the limit: with rights the recorder samples the CPUs, without
 * rights it fails with the number of threads.
 */
static int limit_with_rights(void)
{
	static pthread_t threads[50];
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = {
		.scope = RECORD_PIDS, .frequency_hz = 99, .pids = &pid, .pid_count = 1
	};
	struct rlimit files = { 100, 100 };
	struct recorder *recorder;
	struct diag diag = { 0 };

	setrlimit(RLIMIT_NOFILE, &files);
	start_threads(threads, 50);
	if (recorder_open(&options, &recorder, &diag) < 0)
		return 1;
	bool filter = recorder_info(recorder)->filter_by_pid;
	recorder_close(recorder);
	return filter ? 0 : 2;
}

static int limit_without_rights(void)
{
	static pthread_t threads[50];
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = {
		.scope = RECORD_PIDS, .frequency_hz = 99, .pids = &pid, .pid_count = 1
	};
	struct rlimit files = { 100, 100 };
	struct recorder *recorder;
	struct diag diag = { 0 };

	give_up_root();
	setrlimit(RLIMIT_NOFILE, &files);
	start_threads(threads, 50);
	if (recorder_open(&options, &recorder, &diag) != -EMFILE)
		return 1;
	return strstr(diag.text, "51 threads") && strstr(diag.text, "100 files") && diag.remedy[0]
		       ? 0
		       : 2;
}

static void test_limit_on_files(void **state)
{
	struct rights rights;

	(void)state;
	assert_int_equal(in_child(limit_with_rights), 0);
	rights_read(&rights);
	if (rights.euid == 0 && rights.perf_event_paranoid > 0)
		assert_int_equal(in_child(limit_without_rights), 0);
	else
		print_message("skipped: needs root and perf_event_paranoid above 0\n");
}

/* Without rights: user stacks of this user's processes, and a message about missing rights. */
static int unprivileged_own(void)
{
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = {
		.scope = RECORD_PIDS, .frequency_hz = 999, .pids = &pid, .pid_count = 1
	};
	struct seen seen = { .pid = pid };
	struct recorder *recorder;
	struct diag diag = { 0 };
	struct rights rights;

	give_up_root();
	rights_read(&rights);
	if (recorder_open(&options, &recorder, &diag) < 0) {
		print_message("%s\n", diag.text);
		return 1;
	}
	const struct recorder_info *info = recorder_info(recorder);
	bool kernel = rights_allow_kernel(&rights);
	if (info->kernel_excluded == kernel)
		return 2;
	if (!kernel && (!strstr(info->limit.text, "perf_event_paranoid is") ||
			       !strstr(info->limit.remedy, "sudo")))
		return 3;
	if (recorder_start(recorder, &diag) < 0)
		return 4;
	uint64_t needed = 200000000 / info->period_ns * 3 / 4;
	for (unsigned i = 0; i < TRIES && seen.in_burn < needed; i++) {
		burn(200000000);
		drain(recorder, &seen);
	}
	recorder_stop(recorder);
	drain(recorder, &seen);
	if (seen.in_burn < needed || seen.in_burn * 10 < seen.samples * 8)
		return 5;
	if (!kernel && seen.with_kernel)
		return 6;
	recorder_close(recorder);

	options.scope = RECORD_MACHINE;
	if (!rights_allow_machine(&rights) &&
		(recorder_open(&options, &recorder, &diag) != -EACCES ||
			!strstr(diag.text, "CAP_PERFMON is missing")))
		return 7;
	uint32_t init = 1;
	options = (struct recorder_options){
		.scope = RECORD_PIDS, .frequency_hz = 99, .pids = &init, .pid_count = 1
	};
	diag = (struct diag){ 0 };
	int r = recorder_open(&options, &recorder, &diag);
	if ((r != -EACCES && r != -EPERM) || !strstr(diag.text, "belongs to user 0"))
		return 8;
	return 0;
}

static void test_unprivileged(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can become another user\n");
		return;
	}
	assert_int_equal(in_child(unprivileged_own), 0);
}

static void test_child_from_exec(void **state)
{
	char *const argv[] = { "sh", "-c",
		"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 7", NULL };
	struct record_child child;
	struct diag diag = { 0 };
	int status = 0;

	(void)state;
	assert_int_equal(record_child_spawn(&child, argv, &diag), 0);
	struct recorder_options options = {
		.scope = RECORD_CHILD, .frequency_hz = 1999, .pids = &child.pid, .pid_count = 1
	};
	struct seen seen = { .pid = child.pid };
	struct recorder *recorder = must_open(&options);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	usleep(20000);
	drain(recorder, &seen);
	if (!recorder_info(recorder)->filter_by_pid) /* events of CPUs begin before the exec */
		assert_int_equal(seen.samples, 0);
	assert_int_equal(record_child_go(&child, &diag), 0);

	/* The wait ends when the command ends. */
	struct poll_set set = { 0 };
	while (recorder_targets_left(recorder)) {
		poll_set_begin(&set, clock_monotonic_ns() + UINT64_C(60000000000));
		recorder_await(recorder, &set);
		(void)poll_set_wait(&set);
		assert_true(set.ready > 0);
		recorder_note_wait(recorder, &set);
		drain(recorder, &seen);
	}
	poll_set_done(&set);
	assert_int_equal(waitpid((pid_t)child.pid, &status, 0), (pid_t)child.pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	drain(recorder, &seen);
	assert_true(seen.samples >= 20);
	assert_true(recorder_info(recorder)->filter_by_pid ? seen.execs >= 1 : seen.execs == 1);
	assert_true(seen.mappings >= 3);
	if (recorder_info(recorder)->build_ids)
		assert_true(seen.build_ids >= 2);
	recorder_close(recorder);
	map_done(&seen.tids);
}

static void test_child_that_cannot_run(void **state)
{
	char *const argv[] = { "/nonexistent/command", NULL };
	struct record_child child;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(record_child_spawn(&child, argv, &diag), 0);
	assert_int_equal(record_child_go(&child, &diag), -ENOENT);
	assert_string_equal(diag.text,
		"cannot run '/nonexistent/command': No such file or directory");
	assert_int_equal(record_child_spawn(&child, argv, &diag), 0);
	record_child_cancel(&child);
	assert_int_equal(waitpid((pid_t)child.pid, NULL, 0), -1);
}

static void test_refusals(void **state)
{
	uint32_t gone = 4194300;
	struct recorder_options options = {
		.scope = RECORD_PIDS, .frequency_hz = 99, .pids = &gone, .pid_count = 1
	};
	struct recorder *recorder = NULL;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(recorder_open(&options, &recorder, &diag), -ESRCH);
	assert_string_equal(diag.text, "there is no process 4194300");
	options.frequency_hz = 0;
	diag = (struct diag){ 0 };
	assert_int_equal(recorder_open(&options, &recorder, &diag), -EINVAL);
	assert_non_null(strstr(diag.text, "0 times a second"));
	assert_null(recorder);
}

/*
 * Rings of two pages: wrapped records are read whole, and lost records are reported and counted
 * with the same number.
 */
static void test_small_rings_wrap_and_lose(void **state)
{
	/*
	 * One thread, whose id is that of the process: rings of a process may be those of whole
	 * CPUs, which other programs fill while this one waits for a CPU.
	 */
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = { .scope = RECORD_THREADS,
		.frequency_hz = 9999,
		.pids = &pid,
		.pid_count = 1,
		.ring_bytes = 8192 };
	struct seen seen = { .pid = pid };
	cpu_set_t all, one;

	(void)state;
	/*
	 * The kernel reports a loss in the ring of the CPU where it happened, and only with a later
	 * record there. So this thread stays on one CPU.
	 */
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	struct recorder *recorder = must_open(&options);
	assert_int_equal(recorder_info(recorder)->ring_bytes, 8192);
	assert_int_equal(recorder_start(recorder, NULL), 0);
	/* Drained in time, the rings lose nothing. */
	for (unsigned i = 0; i < 200000 && seen.samples <= 1500; i++) {
		burn(200000);
		drain(recorder, &seen);
	}
	assert_true(seen.samples > 1500);
	assert_int_equal(seen.lost, 0);
	/*
	 * Without draining they lose records. The kernel reports a loss with the next record that
	 * fits. It may have lowered the rate, also while this runs: then it takes longer.
	 */
	for (uint64_t cpu_ns = 100000000; cpu_ns < 30000000000 && seen.lost <= 100; cpu_ns *= 2) {
		burn(cpu_ns);
		drain(recorder, &seen);
		burn(1000000);
		drain(recorder, &seen);
	}
	recorder_stop(recorder);
	drain(recorder, &seen);
	assert_true(seen.lost > 100);
	recorder_close(recorder);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	map_done(&seen.tids);
}

static void test_capabilities(void **state)
{
	struct capability table[CAPABILITY_COUNT];

	(void)state;
	capability_probe(table);
	for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
		assert_non_null(table[i].key);
		assert_true(table[i].answer == CAPABILITY_YES || table[i].reason[0]);
	}
	assert_string_equal(table[1].key, "samples_machine");
	assert_int_equal(table[1].answer, CAPABILITY_YES);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	puts("skipped: ThreadSanitizer has a thread of its own and its own frames, which the counts here do not know");
	return 77;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine_sees_own_burning),
		cmocka_unit_test(test_pid_with_many_threads),
		cmocka_unit_test(test_pid_while_threads_come),
		cmocka_unit_test(test_limit_on_files),
		cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_child_from_exec),
		cmocka_unit_test(test_child_that_cannot_run),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_small_rings_wrap_and_lose),
		cmocka_unit_test(test_capabilities),
	};
	struct recorder_options options = { .scope = RECORD_MACHINE, .frequency_hz = 99 };
	struct recorder *recorder;
	struct diag diag = { 0 };

	if (recorder_open(&options, &recorder, &diag) < 0) {
		print_message("skipped: %s\n", diag.text);
		return SKIPPED;
	}
	recorder_close(recorder);
	return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
