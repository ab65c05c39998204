/*
 * Linked into a separate proxy (libgcburst.so). When a session enables GC events, a thread fires
 * bursts of a dynamic event of four fields and of a known event, and prints the CPU time of that
 * thread for each. A burst fits into the session's buffer; the reader empties it between two
 * bursts.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gc/events.h"

#define BURST  10000u
#define BURSTS 41

static double cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* it cannot fail */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 },
		NULL); /* a signal only shortens it */
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void *burst(void *argument)
{
	double dynamic[BURSTS], known[BURSTS];

	(void)argument;
	while (!gc_event_on_SpoorBenchFour())
		pause_ms(20);
	for (int i = 0; i < BURSTS; i++) {
		double begin = cpu_ns();
		for (unsigned n = 0; n < BURST; n++)
			gc_event_SpoorBenchFour(n, n, n, n);
		dynamic[i] = (cpu_ns() - begin) / BURST;
		begin = cpu_ns();
		for (unsigned n = 0; n < BURST; n++)
			gc_event_GCMarkWithType(0, 0, n);
		known[i] = (cpu_ns() - begin) / BURST;
		pause_ms(30);
	}
	qsort(dynamic, BURSTS, sizeof(*dynamic), by_value);
	qsort(known, BURSTS, sizeof(*known), by_value);
	const char *path = getenv("SPOOR_GC_BURST");
	FILE *out = path ? fopen(path, "w") : NULL;
	if (out) {
		fprintf(out, "session_dynamic %.1f\nsession_known %.1f\n", dynamic[BURSTS / 2],
			known[BURSTS / 2]);
		fclose(out);
	}
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, burst, NULL) == 0)
		(void)pthread_detach(thread); /* it only leaks if this fails */
}
