/*
 * LTTng-UST's side of bench/run lib: the same event, the same loops. fire_lttng cost THREADS |
 * disabled | rate THREADS MILLION SECONDS. Prints "NAME VALUE" lines.
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

/* As pace_thread() of fire.c, without the first slow pass over new memory. */
struct pace {
	double per_second;
	double seconds;
	uint64_t fired;
};

static void *pace_thread(void *context)
{
	struct pace *pace = context;
	uint64_t begin = fire_now_ns();
	uint32_t n = 0;

	for (;;) {
		uint64_t now = fire_now_ns();
		if ((double)(now - begin) > pace->seconds * 1e9)
			return NULL;
		double due = (double)(now - begin) * 1e-9 * pace->per_second;
		while ((double)pace->fired < due) {
			for (unsigned i = 0; i < 100; i++, n++)
				FIRE(n, fire_texts[n & 3]);
			pace->fired += 100;
		}
		nanosleep(&(struct timespec){ 0, 50000 }, NULL);
	}
}

static int rate(unsigned thread_count, double millions, double seconds)
{
	pthread_t threads[16];
	struct pace paces[16];
	uint64_t fired = 0;

	for (unsigned i = 0; i < thread_count && i < 16; i++) {
		paces[i] = (struct pace){ millions * 1e6 / thread_count, seconds, 0 };
		pthread_create(&threads[i], NULL, pace_thread, &paces[i]);
	}
	for (unsigned i = 0; i < thread_count && i < 16; i++) {
		pthread_join(threads[i], NULL);
		fired += paces[i].fired;
	}
	printf("fired %llu\nmillions_per_second %.2f\n", (unsigned long long)fired,
		(double)fired / seconds * 1e-6);
	return 0;
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
	if (argc > 4 && strcmp(argv[1], "rate") == 0)
		return rate(thread_count, atof(argv[3]), atof(argv[4]));
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
