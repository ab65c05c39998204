/*
 * The cost of adding to a counter, in ns of the adding thread's CPU time: medians of ROUNDS, alone
 * and with a second thread that does the same simultaneously. The peer is one shared atomic number
 * to which both threads add.
 *
 *   counter_add        prints lines "NAME ONE-THREAD TWO-THREADS"
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <spoor/counter.h>

#define ROUNDS 9
#define ADDS   20000000

static struct spoor_counter *counter, *gauge, *histogram;
static int64_t shared_number;
static pthread_barrier_t together;

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Each thread has its own CPU; otherwise both may run in turns on one. */
static void pin(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* A loop for each, so that the compiler knows the called function. */
#define LOOP(name, statement)                              \
	static void name(void)                             \
	{                                                  \
		for (int i = 0; i < ADDS; i++) {           \
			statement;                         \
			__asm__ volatile("" ::: "memory"); \
		}                                          \
	}
LOOP(empty, (void)0)
LOOP(add, spoor_counter_add(counter, 1))
LOOP(set, spoor_gauge_set(gauge, i))
LOOP(record, spoor_histogram_record(histogram, (double)(i & 1023)))
LOOP(share, (void)__atomic_fetch_add(&shared_number, 1, __ATOMIC_RELAXED))

struct run {
	void (*loop)(void);
	double ns;
};

static void *second(void *argument)
{
	struct run *run = argument;

	pin(1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&together);
		run->loop();
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double measure(void (*loop)(void), int threads)
{
	struct run run = { .loop = loop };
	double times[ROUNDS];
	pthread_t other;

	loop();
	if (threads == 2 && pthread_create(&other, NULL, second, &run))
		exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		if (threads == 2)
			pthread_barrier_wait(&together);
		double begin = cpu_ns();
		loop();
		times[round] = (cpu_ns() - begin) / ADDS;
	}
	if (threads == 2)
		pthread_join(other, NULL);
	qsort(times, ROUNDS, sizeof(times[0]), by_value);
	return times[ROUNDS / 2];
}

static void report(const char *name, void (*loop)(void))
{
	double one = measure(loop, 1), two = measure(loop, 2);

	printf("%s %.3f %.3f\n", name, one, two);
}

int main(void)
{
	struct spoor_meter *meter = spoor_meter_open("Bench", NULL);

	pin(0);
	counter = spoor_counter_open(meter, SPOOR_COUNTER, "adds", NULL);
	gauge = spoor_counter_open(meter, SPOOR_GAUGE, "gauge", NULL);
	histogram = spoor_counter_open(meter, SPOOR_HISTOGRAM, "values", NULL);
	pthread_barrier_init(&together, NULL, 2);
	report("empty_loop", empty);
	report("counter_add", add);
	report("gauge_set", set);
	report("histogram_record", record);
	report("shared_atomic", share);
	return 0;
}
