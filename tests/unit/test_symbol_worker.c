/*
 * symbol_worker.c: a thread at idle priority answers the questions, at the end at the caller's
 * priority, with and without the right to raise it, and after a thread has stopped working.
 */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "code/codemap.h"
#include "machine/box.h"
#include "symbolize/symbol_worker.h"
#include "symbolize/name_tables.h"

#define SECOND_NS UINT64_C(1000000000)

static struct box box;
/* the mapping of this program's code */
static struct {
	uint64_t begin, end, offset, inode;
	char path[400];
} own;

__attribute__((noinline)) static void function_to_be_named(void)
{
	__asm__ volatile("");
}

static struct name_question *question(enum name_question_kind kind, uint32_t image, uint64_t place)
{
	struct name_question *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->kind = kind;
	q->image = image;
	q->place = place;
	q->pid = (uint32_t)getpid();
	q->begin = own.begin;
	q->end = own.end;
	q->inode = own.inode;
	q->wants_facts = true;
	q->path = strdup(own.path);
	q->build_id = strdup("");
	return q;
}

static uint64_t place(void)
{
	return (uint64_t)(uintptr_t)function_to_be_named - own.begin + own.offset;
}

/* Returns the other thread of this program, or 0. A sanitizer's thread has the default policy. */
static int other_thread(int policy)
{
	DIR *tasks = opendir("/proc/self/task");
	int found = 0;

	assert_non_null(tasks);
	for (struct dirent *entry; (entry = readdir(tasks));) {
		int tid = atoi(entry->d_name);
		if (tid > 0 && tid != getpid() && sched_getscheduler(tid) == policy)
			found = tid;
	}
	closedir(tasks);
	return found;
}

static void expect_name(struct symbol_worker *worker)
{
	struct name_answer *answer = symbol_worker_take(worker);

	assert_non_null(answer);
	assert_int_equal(answer->kind, ASK_SYMBOL);
	assert_int_equal(answer->error, 0);
	assert_true(answer->found);
	assert_string_equal(answer->name, "function_to_be_named");
	assert_true(answer->begin <= place() && place() < answer->begin + answer->size_bytes);
	assert_non_null(answer->facts);
	symbol_worker_give_back(worker, answer);
}

static void test_answers(void **state)
{
	struct symbol_worker *worker;
	struct name_answer *answer;

	(void)state;
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	assert_null(symbol_worker_take(worker));
	assert_true(symbol_worker_wait(worker, 0));
	symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place()));
	symbol_worker_ask(worker, question(ASK_SYMBOL, 1, 1)); /* the ELF header is no function */
	symbol_worker_ask(worker, question(ASK_METHOD, 2, place())); /* no managed image */
	symbol_worker_ask(worker, question(ASK_MAPS, 0, 77));        /* this process has none */
	symbol_worker_hurry(worker); /* at idle priority it could take any time */
	assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 60 * SECOND_NS));
	assert_int_equal(symbol_worker_open_count(worker), 0);
	assert_true(symbol_worker_size_bytes(worker) > 0);
	expect_name(worker);
	answer = symbol_worker_take(worker);
	assert_int_equal(answer->error, 0);
	assert_false(answer->found);
	assert_int_equal(answer->place, 1);
	symbol_worker_give_back(worker, answer);
	answer = symbol_worker_take(worker);
	assert_int_equal(answer->kind, ASK_METHOD);
	assert_true(answer->error < 0);
	symbol_worker_give_back(worker, answer);
	answer = symbol_worker_take(worker);
	assert_int_equal(answer->kind, ASK_MAPS);
	assert_int_equal(answer->place, 77);
	assert_false(answer->found);
	symbol_worker_give_back(worker, answer);
	assert_null(symbol_worker_take(worker));
	symbol_worker_free(worker);
}

/* More questions than can be sent at a time, and answers that are not fetched. */
static void test_many(void **state)
{
	struct symbol_worker *worker;

	(void)state;
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 1000; i++)
			symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place()));
	symbol_worker_hurry(worker);
	assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 60 * SECOND_NS));
	for (int i = 0; i < 2500; i++)
		expect_name(worker);
	for (int i = 0; i < 1000; i++)
		symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place()));
	symbol_worker_free(worker);
	symbol_worker_free(NULL);
}

/*
 * Waits until there is (or is not) a thread at idle priority; returns its id. A thread sets that
 * priority before anything else.
 */
static int await_idle_thread(bool there)
{
	uint64_t bound = clock_monotonic_ns() + 200 * SECOND_NS;
	int tid;

	while ((tid = other_thread(SCHED_IDLE), !tid == there) && clock_monotonic_ns() < bound)
		usleep(1000);
	assert_true(!tid != there);
	return tid;
}

/*
 * Waits until the threads that were left behind at idle priority have ended. Beside other programs
 * they could take minutes, so they are raised here, where that is allowed.
 */
static void end_left_behind(void)
{
	const struct sched_param normal = { 0 };
	char path[64];

	for (int tid; (tid = other_thread(SCHED_IDLE)) != 0;) {
		if (sched_setscheduler(tid, SCHED_OTHER, &normal) < 0 && errno != ESRCH) {
			(void)await_idle_thread(false);
			return;
		}
		snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
		for (uint64_t bound = clock_monotonic_ns() + 60 * SECOND_NS;
			access(path, F_OK) == 0;) {
			assert_true(clock_monotonic_ns() < bound);
			usleep(1000);
		}
	}
}

static void test_priority(void **state)
{
	struct symbol_worker *worker;

	(void)state;
	for (int forbidden = 0; forbidden < 2; forbidden++) {
		assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
		if (forbidden)
			symbol_worker_forbid_raise(worker);
		for (int i = 0; i < 500; i++)
			symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place()));
		(void)await_idle_thread(true);
		symbol_worker_hurry(worker);
		assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 60 * SECOND_NS));
		if (forbidden)
			end_left_behind();
		else
			(void)await_idle_thread(false);
		unsigned answered = 0;
		for (struct name_answer *answer; (answer = symbol_worker_take(worker));
			answered++) {
			assert_true(answer->found);
			symbol_worker_give_back(worker, answer);
		}
		assert_int_equal(answered, 500);
		symbol_worker_free(worker);
	}
}

static void *keep_busy(void *argument)
{
	const atomic_bool *leave = argument;

	while (!atomic_load(leave))
		;
	return NULL;
}

/*
 * On a machine whose CPUs are all busy, a thread at idle priority hardly runs. A process without
 * the right to raise it gets all answers nevertheless.
 */
static void test_starved(void **state)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t *busy = calloc((size_t)cpus, sizeof(*busy));
	atomic_bool leave = false;
	struct symbol_worker *worker;

	(void)state;
	assert_non_null(busy);
	for (long i = 0; i < cpus; i++)
		assert_int_equal(pthread_create(&busy[i], NULL, keep_busy, &leave), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
		symbol_worker_forbid_raise(worker);
		/* Each image needs a table to be read. */
		for (uint32_t i = 0; i < 200; i++)
			symbol_worker_ask(worker, question(ASK_SYMBOL, 1 + i, place()));
		(void)symbol_worker_wait(worker, clock_monotonic_ns() + SECOND_NS / 20);
		symbol_worker_hurry(worker);
		assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 60 * SECOND_NS));
		unsigned answered = 0;
		for (struct name_answer *answer; (answer = symbol_worker_take(worker));
			answered++) {
			assert_true(answer->found);
			symbol_worker_give_back(worker, answer);
		}
		assert_int_equal(answered, 200);
		symbol_worker_free(worker);
	}
	atomic_store(&leave, true);
	for (long i = 0; i < cpus; i++)
		(void)pthread_join(busy[i], NULL);
	free(busy);
	end_left_behind();
}

/* A stopped thread is handled like one that hangs in reading a file or gets no CPU time. */
static void test_left_behind(void **state)
{
	struct symbol_worker *worker;
	int results[2];
	int go[2];
	char byte;

	(void)state;
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	symbol_worker_forbid_raise(worker);
	symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place())); /* not sent yet */
	int tid = await_idle_thread(true);
	assert_int_equal(pipe(results), 0);
	assert_int_equal(pipe(go), 0);
	pid_t child = fork();
	if (child == 0) {
		close(results[0]);
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		bool stopped = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 &&
			       ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 &&
			       waitpid(tid, NULL, __WALL) == tid;
		(void)!write(results[1], stopped ? "y" : "n", 1);
		(void)!read(go[0], &byte, 1); /* until the other end is closed */
		if (stopped)
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
		_exit(0);
	}
	close(results[1]);
	close(go[0]);
	(void)prctl(PR_SET_PTRACER, child, 0, 0, 0);
	assert_int_equal(write(go[1], "g", 1), 1);
	bool stopped = read(results[0], &byte, 1) == 1 && byte == 'y';
	if (stopped) {
		for (int i = 1; i < 300; i++)
			symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place()));
		assert_false(symbol_worker_wait(worker, clock_monotonic_ns() + SECOND_NS / 20));
		assert_int_equal(symbol_worker_open_count(worker), 300);
		symbol_worker_hurry(worker);
		assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 60 * SECOND_NS));
		for (int i = 0; i < 300; i++)
			expect_name(worker);
	}
	symbol_worker_free(worker);
	close(go[1]);
	close(results[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	if (!stopped)
		print_message(
			"skipped: a thread may not be stopped here; one that is left behind was not tried\n");
	end_left_behind(); /* it frees its own data */
}

static bool has_open(const char *path)
{
	DIR *files = opendir("/proc/self/fd");
	char link[sizeof("/proc/self/fd/") + sizeof(((struct dirent *)0)->d_name)];
	char target[512];
	bool found = false;

	assert_non_null(files);
	for (struct dirent *entry; !found && (entry = readdir(files));) {
		snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
		ssize_t size = readlink(link, target, sizeof(target) - 1);
		target[size < 0 ? 0 : size] = '\0';
		found = strcmp(target, path) == 0;
	}
	closedir(files);
	return found;
}

/* A perf map that takes about one second of CPU time to read. */
static void write_perf_map(const char *path, unsigned line_count)
{
	FILE *map = fopen(path, "w");

	assert_non_null(map);
	for (unsigned i = 0; i < line_count; i++)
		fprintf(map,
			"%x 10 int32 [Example] Example.Type%u::Method%u(class System.String)[Optimized]\n",
			0x10000000 + 16 * i, i, i);
	assert_int_equal(fclose(map), 0);
}

/*
 * The thread loses its CPU while it reads a perf map, for a question without a path: the thread
 * that replaces it reads the map again. The pid in the map's name is above the greatest possible
 * pid.
 */
static void test_starved_in_perf_map(void **state)
{
	const uint32_t inner_pid = (UINT32_C(1) << 22) + (uint32_t)getpid();
	const unsigned line_count = 300000;
	atomic_bool leave = false;
	struct symbol_worker *worker;
	cpu_set_t first_cpu;
	cpu_set_t all;
	char path[64];
	pthread_t busy;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", inner_pid);
	write_perf_map(path, line_count);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&first_cpu);
	for (unsigned cpu = 0; !CPU_COUNT(&first_cpu); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &first_cpu);
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	symbol_worker_forbid_raise(worker);
	struct name_question *maps = calloc(1, sizeof(*maps));
	assert_non_null(maps);
	*maps = (struct name_question){
		.kind = ASK_MAPS, .place = 77, .pid = (uint32_t)getpid(), .inner_pid = inner_pid
	};
	symbol_worker_ask(worker, maps);
	int tid = await_idle_thread(true);
	assert_int_equal(sched_setaffinity(tid, sizeof(first_cpu), &first_cpu), 0);
	(void)symbol_worker_wait(worker, 0); /* sends the question */
	for (uint64_t bound = clock_monotonic_ns() + 60 * SECOND_NS;
		!has_open(path) && clock_monotonic_ns() < bound;)
		usleep(100);
	assert_true(has_open(path));
	assert_int_equal(pthread_create(&busy, NULL, keep_busy, &leave), 0);
	assert_int_equal(pthread_setaffinity_np(busy, sizeof(first_cpu), &first_cpu), 0);
	symbol_worker_hurry(worker);
	assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 120 * SECOND_NS));
	struct name_answer *answer = symbol_worker_take(worker);
	assert_non_null(answer);
	assert_int_equal(answer->kind, ASK_MAPS);
	assert_int_equal(answer->place, 77);
	assert_true(answer->found);
	assert_int_equal(answer->codemap->codes.count, line_count);
	symbol_worker_give_back(worker, answer);
	assert_null(symbol_worker_take(worker));
	symbol_worker_free(worker);
	atomic_store(&leave, true);
	(void)pthread_join(busy, NULL);
	end_left_behind();
	assert_int_equal(unlink(path), 0);
}

/* Whether this process may raise a thread from idle priority. */
static bool may_raise(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		const struct sched_param none = { 0 };
		_exit(sched_setscheduler(0, SCHED_IDLE, &none) == 0 &&
					sched_setscheduler(0, SCHED_OTHER, &none) == 0
				? 0
				: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

/*
 * During a recording the thread reads a perf map on a CPU that another thread keeps busy. The
 * answer arrives without symbol_worker_hurry(). Afterwards the thread has idle priority again, if the
 * process may raise it later.
 */
static void test_waits_too_long(void **state)
{
	const uint32_t inner_pid = (UINT32_C(1) << 22) + (uint32_t)getpid();
	const unsigned line_count = 100000;
	cpu_set_t first_cpu;
	cpu_set_t all;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", inner_pid);
	write_perf_map(path, line_count);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&first_cpu);
	for (unsigned cpu = 0; !CPU_COUNT(&first_cpu); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &first_cpu);
	for (int forbidden = 0; forbidden < 2; forbidden++) {
		atomic_bool leave = false;
		struct symbol_worker *worker;
		pthread_t busy[8];
		assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
		if (forbidden)
			symbol_worker_forbid_raise(worker);
		struct name_question *maps = calloc(1, sizeof(*maps));
		assert_non_null(maps);
		*maps = (struct name_question){ .kind = ASK_MAPS,
			.place = 77,
			.pid = (uint32_t)getpid(),
			.inner_pid = inner_pid };
		symbol_worker_ask(worker, maps);
		int tid = await_idle_thread(true);
		assert_int_equal(sched_setaffinity(tid, sizeof(first_cpu), &first_cpu), 0);
		/* One that has not begun would be replaced, not raised. */
		(void)symbol_worker_wait(worker, 0); /* sends the question */
		for (uint64_t bound = clock_monotonic_ns() + 60 * SECOND_NS;
			!has_open(path) && clock_monotonic_ns() < bound;)
			usleep(100);
		assert_true(has_open(path));
		for (int i = 0; i < 8; i++) {
			assert_int_equal(pthread_create(&busy[i], NULL, keep_busy, &leave), 0);
			assert_int_equal(
				pthread_setaffinity_np(busy[i], sizeof(first_cpu), &first_cpu), 0);
		}
		struct name_answer *answer = NULL;
		for (uint64_t bound = clock_monotonic_ns() + 60 * SECOND_NS;
			!answer && clock_monotonic_ns() < bound;
			answer = symbol_worker_take(worker))
			(void)symbol_worker_wait(worker, clock_monotonic_ns() + SECOND_NS / 5);
		atomic_store(&leave, true);
		for (int i = 0; i < 8; i++)
			(void)pthread_join(busy[i], NULL);
		assert_non_null(answer);
		assert_int_equal(answer->kind, ASK_MAPS);
		assert_true(answer->found);
		assert_int_equal(answer->codemap->codes.count, line_count);
		symbol_worker_give_back(worker, answer);
		(void)symbol_worker_wait(worker, 0);
		if (!forbidden && may_raise())
			assert_int_equal(await_idle_thread(true), tid);
		symbol_worker_ask(worker, question(ASK_SYMBOL, 1, place()));
		assert_true(symbol_worker_wait(worker, clock_monotonic_ns() + 60 * SECOND_NS));
		expect_name(worker);
		symbol_worker_free(worker);
		end_left_behind();
	}
	assert_int_equal(unlink(path), 0);
}

/* An image that was not found through one process is searched through another one. */
static void test_second_try(void **state)
{
	struct name_tables *tables = name_tables_new(&box, NULL);
	struct name_answer answer;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	struct name_question *gone = question(ASK_SYMBOL, 1, place());
	gone->pid = (uint32_t)child;
	gone->inode++; /* nor does the inode match the file at this path on this machine */
	name_tables_answer(tables, gone, &answer);
	assert_true(answer.error < 0);
	struct name_question *here = question(ASK_SYMBOL, 1, place());
	name_tables_answer(tables, here, &answer);
	assert_int_equal(answer.error, 0);
	assert_true(answer.found);
	free(answer.name);
	free(answer.facts);
	/* The process has ended, but the inode identifies the file. */
	gone->inode--;
	gone->image = 2;
	name_tables_answer(tables, gone, &answer);
	assert_int_equal(answer.error, 0);
	free(answer.name);
	free(answer.facts);
	name_question_free(gone);
	name_question_free(here);
	name_tables_free(tables);
}

static int set_up(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t address = (uint64_t)(uintptr_t)function_to_be_named;
	char line[512];

	(void)state;
	box_read(&box);
	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps)) {
		unsigned long begin;
		unsigned long end;
		unsigned long offset;
		unsigned long inode;
		char path[400];
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %lu %399s", &begin, &end, &offset, &inode,
			    path) != 5 ||
			address < begin || address >= end)
			continue;
		own.begin = begin;
		own.end = end;
		own.offset = offset;
		own.inode = inode;
		snprintf(own.path, sizeof(own.path), "%s", path);
	}
	fclose(maps);
	return own.end ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_starved_in_perf_map),
		cmocka_unit_test(test_waits_too_long),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_second_try),
	};

	function_to_be_named();
	return cmocka_run_group_tests_name("name_desk", tests, set_up, NULL);
}
