/*
 * The program that the scripts in this folder record.
 *
 *   target spin MS                     computes in spin_here()
 *   target rename NAME MS              sets its thread name to NAME, then computes in spin_here()
 *   target churn COUNT AT_ONCE FILE... starts the FILEs (copies of this program named p0 to p4)
 *   COUNT times in turn; each computes
 *                                      3 ms in spin_0() to spin_4(), selected by the last digit of its name
 *   target overlay FILE MS             computes in spin_0(), then executes FILE, which computes in the function of its name
 *   target threads COUNT MS            starts COUNT sleeping threads and two that compute
 *   target thread-churn MS             starts threads one after the other; each computes 2 ms
 *   target waits MS                    threads that sleep, read a pipe and take a mutex for MS ms, then compute as long; each prints its
 *   name, id, and its time on the wall and on the CPU, in ns
 *   target switches COUNT              two threads that wait for each other COUNT times, then prints "switched"
 *   target mappings COUNT FILE MS      maps a page of FILE, executable, COUNT times, and computes
 *
 * MS is CPU time of the thread that computes (thread-churn: of the process), in milliseconds. So
 * the number of samples of a program does not depend on the load of the machine.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_MS    "3"
#define STACK_BYTES (64u << 10)

#if __has_attribute(noipa)
#define FRAME __attribute__((noipa))
#else
#define FRAME __attribute__((noinline))
#endif

static uint64_t used_ms(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t); /* cannot fail for the clocks used here */
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

#define SPIN(name)                                                    \
	FRAME static void name(uint64_t ms)                           \
	{                                                             \
		uint64_t end = used_ms(CLOCK_THREAD_CPUTIME_ID) + ms; \
		while (used_ms(CLOCK_THREAD_CPUTIME_ID) < end)        \
			for (volatile unsigned i = 0; i < 50000; i++) \
				;                                     \
	}
/*
 * In programs linked at a fixed address, spin_0() of one order has the address of spin_3() of the
 * other.
 */
#ifdef REVERSED
SPIN(spin_4)
SPIN(spin_3)
SPIN(spin_2)
SPIN(spin_1)
SPIN(spin_0)
SPIN(spin_here)
#else
SPIN(spin_here)
SPIN(spin_0)
SPIN(spin_1)
SPIN(spin_2)
SPIN(spin_3)
SPIN(spin_4)
#endif

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void spin_by_name(const char *name, uint64_t ms)
{
	static void (*const spins[])(uint64_t) = { spin_0, spin_1, spin_2, spin_3, spin_4 };
	size_t len = strlen(name);
	char digit = len ? name[len - 1] : 0;

	if (digit >= '0' && digit <= '4')
		spins[digit - '0'](ms);
	else
		spin_here(ms);
}

static void churn(unsigned count, unsigned at_once, char **files, unsigned file_count)
{
	unsigned running = 0;

	for (unsigned i = 0; i < count; i++) {
		if (running == at_once && wait(NULL) > 0)
			running--;
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			char *file = files[i % file_count];
			execl(file, file, "spin", CHILD_MS, (char *)NULL);
			_exit(127);
		}
		running++;
	}
	while (wait(NULL) > 0)
		;
}

static void *sleep_long(void *unused)
{
	pause();
	return unused;
}

static void *spin_thread(void *ms)
{
	spin_here(*(const uint64_t *)ms);
	return NULL;
}

static pthread_t start_thread(void *(*run)(void *), void *argument)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (pthread_create(&thread, &attr, run, argument) != 0)
		fail("pthread_create");
	pthread_attr_destroy(&attr);
	return thread;
}

static void threads(unsigned count, uint64_t ms)
{
	pthread_t busy[2];

	for (unsigned i = 0; i < count; i++)
		(void)start_thread(sleep_long, NULL);
	printf("%u threads\n", count); /* the script waits for this line */
	fflush(stdout);
	for (unsigned i = 0; i < 2; i++)
		busy[i] = start_thread(spin_thread, &ms);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(busy[i], NULL);
}

static void thread_churn(uint64_t ms)
{
	uint64_t moment = 2;

	while (used_ms(CLOCK_PROCESS_CPUTIME_ID) < ms)
		pthread_join(start_thread(spin_thread, &moment), NULL);
}

/* ---- threads that wait ---- */

static struct {
	pthread_mutex_t mutex;
	int pipe[2];
	uint64_t ms;
} waits = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t); /* cannot fail for the clocks used here */
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void sleep_ms(uint64_t ms)
{
	const struct timespec time = { .tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&time, NULL); /* no signal handler ends it earlier */
}

FRAME static void sleep_here(void)
{
	sleep_ms(waits.ms);
}

FRAME static void read_here(void)
{
	char byte;

	if (read(waits.pipe[0], &byte, 1) != 1)
		fail("read");
}

FRAME static void lock_here(void)
{
	pthread_mutex_lock(&waits.mutex);
	pthread_mutex_unlock(&waits.mutex);
}

struct waiting {
	const char *name;
	void (*wait)(void);
	_Atomic long tid; /* of the thread that is about to wait */
};

static void *wait_thread(void *argument)
{
	struct waiting *waiting = argument;
	uint64_t begin = now_ns(CLOCK_MONOTONIC);

	(void)prctl(PR_SET_NAME, waiting->name);
	waiting->tid = (long)syscall(SYS_gettid);
	waiting->wait();
	spin_here(waits.ms);
	printf("%s %ld %llu %llu\n", waiting->name, waiting->tid,
		(unsigned long long)(now_ns(CLOCK_MONOTONIC) - begin),
		(unsigned long long)now_ns(CLOCK_THREAD_CPUTIME_ID));
	return NULL;
}

FRAME static void wake_here(void)
{
	if (write(waits.pipe[1], "x", 1) != 1)
		fail("write");
	pthread_mutex_unlock(&waits.mutex);
}

/* Returns when the thread sleeps in the kernel. */
static void await_block(const struct waiting *waiting)
{
	char path[64], stat[512];
	char state = 0;

	while (state != 'S') {
		sleep_ms(1);
		snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", waiting->tid);
		FILE *file = waiting->tid ? fopen(path, "re") : NULL;
		const char *end =
			file && fgets(stat, sizeof(stat), file) ? strrchr(stat, ')') : NULL;
		if (end && end[1])
			state = end[2];
		if (file)
			fclose(file);
	}
}

static void wait_for_all(uint64_t ms)
{
	static struct waiting all[] = { { .name = "sleeper", .wait = sleep_here },
		{ .name = "reader", .wait = read_here }, { .name = "locker", .wait = lock_here } };
	pthread_t threads_of[3];

	waits.ms = ms;
	pthread_mutex_lock(&waits.mutex);
	if (pipe(waits.pipe) < 0)
		fail("pipe");
	for (size_t i = 0; i < 3; i++)
		threads_of[i] = start_thread(wait_thread, &all[i]);
	await_block(&all[1]);
	await_block(&all[2]);
	sleep_ms(ms);
	wake_here();
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads_of[i], NULL);
}

static int exchange[2][2];

static void pass_on(unsigned from, unsigned count)
{
	char byte = 'x';

	for (unsigned i = 0; i < count; i++)
		if (write(exchange[from][1], &byte, 1) != 1 ||
			read(exchange[1 - from][0], &byte, 1) != 1)
			fail("exchange");
}

static void *pass_back(void *count)
{
	pass_on(1, *(unsigned *)count);
	return NULL;
}

static void switches(unsigned count)
{
	if (pipe(exchange[0]) < 0 || pipe(exchange[1]) < 0)
		fail("pipe");
	pthread_t thread = start_thread(pass_back, &count);
	pass_on(0, count);
	pthread_join(thread, NULL);
	printf("switched\n");
}

static void mappings(unsigned count, const char *path, uint64_t ms)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail(path);
	/* the kernel does not merge neighbouring mappings of the same page */
	for (unsigned i = 0; i < count; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			fail("mmap");
	printf("%u mappings\n", count);
	fflush(stdout);
	spin_here(ms);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];
	uint64_t ms = argc > 2 ? strtoull(argv[argc - 1], NULL, 10) : 0;

	if (!strcmp(verb, "spin") && argc == 3) {
		spin_by_name(name, ms);
	} else if (!strcmp(verb, "rename") && argc == 4) {
		(void)prctl(PR_SET_NAME, argv[2]); /* the kernel takes the first 15 bytes */
		spin_here(ms);
	} else if (!strcmp(verb, "churn") && argc > 4) {
		churn((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4,
			(unsigned)argc - 4);
	} else if (!strcmp(verb, "overlay") && argc == 4) {
		spin_0(ms);
		execl(argv[2], argv[2], "spin", argv[3], (char *)NULL);
		fail(argv[2]);
	} else if (!strcmp(verb, "threads") && argc == 4) {
		threads((unsigned)atoi(argv[2]), ms);
	} else if (!strcmp(verb, "thread-churn") && argc == 3) {
		thread_churn(ms);
	} else if (!strcmp(verb, "waits") && argc == 3) {
		wait_for_all(ms);
	} else if (!strcmp(verb, "switches") && argc == 3) {
		switches((unsigned)atoi(argv[2]));
	} else if (!strcmp(verb, "mappings") && argc == 5) {
		mappings((unsigned)atoi(argv[2]), argv[3], ms);
	} else {
		fprintf(stderr, "target: see the head of target.c\n");
		return 2;
	}
	return 0;
}
