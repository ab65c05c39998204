/*
 * LTTng-UST's side of bench/run lib: the same event, the same loops. fire_lttng cost THREADS |
 * disabled. Prints "NAME VALUE" lines.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "fire_lttng_events.h"

#define FIRE(i, text) lttng_ust_tracepoint(spoor_bench, four, (i), (uint64_t)(i)*3, (i)*0.5, (text))
#define FIRE_REST()   nanosleep(&(struct timespec){ 0, 2000000 }, NULL)
#include "fire.h"

static void *cost_thread(void *result)
{
	*(double *)result = fire_cost();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned thread_count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	pthread_t threads[16];
	double results[16];
	double sum = 0;

	if (argc > 1 && strcmp(argv[1], "disabled") == 0) {
		printf("event_ns %.3f\n", fire_disabled());
		return 0;
	}
	(void)fire_ns_per_tick();
	for (unsigned i = 0; i < thread_count && i < 16; i++)
		pthread_create(&threads[i], NULL, cost_thread, &results[i]);
	for (unsigned i = 0; i < thread_count && i < 16; i++) {
		pthread_join(threads[i], NULL);
		sum += results[i];
	}
	printf("event_ns %.2f\n", sum / thread_count);
	return 0;
}
