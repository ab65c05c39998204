/*
 * A program with a known profile. The demo records it if the .NET SDK is not installed.
 *
 *   native [SECONDS]
 *
 * Three threads: `price_burn` computes all the time and has about 70 % of the CPU samples.
 * `tree_walk` recurses 40 levels deep, `text_sort` spends its time in libc's qsort; both sleep four
 * fifths of the time. Build it with -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_MAX 3600u
#define TREE_DEPTH  40u
#define WORDS       4096u
#define WORD_SIZE   16u

/* The compiler must neither inline nor clone this function, so that it is a frame of every stack. */
#if __has_attribute(noipa)
#define FRAME __attribute__((noipa))
#else
#define FRAME __attribute__((noinline))
#endif

static atomic_bool stopped;
static _Atomic double result; /* keeps the compiler from removing the work */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t); /* cannot fail with these clocks */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sleeps four times as long as the thread has computed since the last call. */
static void rest(uint64_t *since_ns)
{
	uint64_t rest_ns = 4 * (now_ns(CLOCK_THREAD_CPUTIME_ID) - *since_ns);
	struct timespec pause = { .tv_sec = (time_t)(rest_ns / 1000000000u),
		.tv_nsec = (long)(rest_ns % 1000000000u) };

	(void)nanosleep(&pause, NULL); /* a shorter sleep does no harm */
	*since_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
}

FRAME static double price_burn(unsigned rounds)
{
	double sum = 0;

	for (unsigned i = 1; i <= rounds; i++)
		sum += sqrt((double)i) / (double)(i + 1);
	return sum;
}

static void *price_run(void *unused)
{
	while (!stopped)
		result = result + price_burn(200000);
	return unused;
}

FRAME static double tree_walk(unsigned depth)
{
	double sum = 0;

	for (unsigned i = 1; i <= 400; i++)
		sum += (double)(i ^ depth) / (double)i;
	return depth ? sum + tree_walk(depth - 1) : sum;
}

static void *tree_run(void *unused)
{
	uint64_t since_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

	while (!stopped) {
		for (unsigned i = 0; i < 100; i++)
			result = result + tree_walk(TREE_DEPTH);
		rest(&since_ns);
	}
	return unused;
}

static int word_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

FRAME static void text_sort(char *words, uint32_t *seed)
{
	for (size_t i = 0; i < WORDS; i++) {
		*seed = *seed * 1664525u + 1013904223u;
		(void)snprintf(words + i * WORD_SIZE, WORD_SIZE, "%u", *seed);
	}
	qsort(words, WORDS, WORD_SIZE, word_compare);
}

static void *text_run(void *unused)
{
	static char words[WORDS * WORD_SIZE];
	uint32_t seed = 1;
	uint64_t since_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

	while (!stopped) {
		text_sort(words, &seed);
		rest(&since_ns);
	}
	return unused;
}

int main(int argc, char **argv)
{
	void *(*const runs[])(void *) = { price_run, tree_run, text_run };
	pthread_t threads[sizeof(runs) / sizeof(runs[0])];
	size_t started = 0;
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;

	if (argc > 2 || seconds < 1 || seconds > SECONDS_MAX) {
		fprintf(stderr, "native [SECONDS]\n");
		return 2;
	}
	for (; started < sizeof(runs) / sizeof(runs[0]); started++) {
		int error = pthread_create(&threads[started], NULL, runs[started], NULL);
		if (error) {
			fprintf(stderr, "cannot start a thread: %s.\n", strerror(error));
			break;
		}
	}
	struct timespec pause = { .tv_sec = (time_t)seconds };

	(void)nanosleep(&pause, NULL); /* a signal may end the sleep early */
	stopped = true;
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	printf("%.3f\n", (double)result);
	return started == sizeof(runs) / sizeof(runs[0]) ? 0 : 1;
}
