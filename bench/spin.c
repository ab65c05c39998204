/*
 * Keeps all CPUs busy with deep stacks. The benchmarks `record` and `flame` record it.
 *
 *   spin SECONDS [THREADS [DEPTH [PATHS]]]
 *
 * Starts a thread for each CPU, or THREADS. Each thread recurses through sixteen functions to a
 * depth between two thirds of DEPTH (16) and DEPTH. It computes in each function, and longest in the
 * last one. PATHS (16) limits the number of distinct call paths, which a thread takes in turn. Build it with -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256u
#define SECONDS_MAX 3600u
#define DEPTH_MAX   500u
#define PATHS_MAX   1000000u

struct walk {
	uint64_t seed;
};

#define STEP_COUNT 16u

typedef uint64_t step(struct walk *walk, unsigned depth);

static atomic_bool stopped;
static _Atomic uint64_t result; /* keeps the compiler from removing the work */
static unsigned wanted_depth = 16;
static unsigned wanted_paths = 16;
static step *const steps[STEP_COUNT];

static uint64_t next(struct walk *walk)
{
	walk->seed ^= walk->seed << 13;
	walk->seed ^= walk->seed >> 7;
	walk->seed ^= walk->seed << 17;
	return walk->seed;
}

static inline uint64_t compute(uint64_t rounds)
{
	uint64_t sum = 1;

	for (uint64_t i = 0; i < rounds; i++)
		sum = sum * 6364136223846793005u + i;
	return sum;
}

/* One frame: some work, then a call of the next one until the depth is reached. Leaves work longer. */
#define STEP(name)                                                                        \
	__attribute__((noinline)) static uint64_t name(struct walk *walk, unsigned depth) \
	{                                                                                 \
		uint64_t sum = compute(20);                                               \
		if (!depth)                                                               \
			return sum + compute(2000);                                       \
		return sum + steps[next(walk) % STEP_COUNT](walk, depth - 1);             \
	}

STEP(apple)
STEP(birch)
STEP(cedar)
STEP(dogwood)
STEP(elm)
STEP(fir)
STEP(ginkgo)
STEP(hazel)
STEP(ivy)
STEP(juniper)
STEP(kapok)
STEP(larch)
STEP(maple)
STEP(nutmeg)
STEP(oak)
STEP(pine)

static step *const steps[STEP_COUNT] = { apple, birch, cedar, dogwood, elm, fir, ginkgo, hazel, ivy,
	juniper, kapok, larch, maple, nutmeg, oak, pine };

_Static_assert(sizeof(steps) / sizeof(steps[0]) == STEP_COUNT, "all of them");

static void *run(void *argument)
{
	uint64_t sum = 0;
	uint64_t turn = (uint64_t)(uintptr_t)argument;

	while (!stopped) {
		struct walk walk = { .seed = (turn++ % wanted_paths + 1) * 0x9e3779b97f4a7c15u };
		unsigned depth = wanted_depth - (unsigned)(next(&walk) % (wanted_depth / 3 + 1));
		sum += steps[next(&walk) % STEP_COUNT](&walk, depth);
	}
	result += sum;
	return NULL;
}

static bool number(const char *text, unsigned min, unsigned max, unsigned *ret_value)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value < min || value > max)
		return false;
	*ret_value = (unsigned)value;
	return true;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned count = cpus > 0 && cpus < (long)THREADS_MAX ? (unsigned)cpus : 1;
	unsigned seconds = 0;
	unsigned started = 0;

	if (argc < 2 || argc > 5 || !number(argv[1], 1, SECONDS_MAX, &seconds) ||
		(argc > 2 && !number(argv[2], 1, THREADS_MAX, &count)) ||
		(argc > 3 && !number(argv[3], 1, DEPTH_MAX, &wanted_depth)) ||
		(argc > 4 && !number(argv[4], 1, PATHS_MAX, &wanted_paths))) {
		fprintf(stderr, "spin SECONDS [THREADS [DEPTH [PATHS]]]\n");
		return 2;
	}
	for (; started < count; started++) {
		int error = pthread_create(&threads[started], NULL, run,
			(void *)(uintptr_t)(started + 1));
		if (error) {
			fprintf(stderr, "cannot start a thread: %s.\n", strerror(error));
			break;
		}
	}
	/* a signal ends it early */
	(void)nanosleep(&(struct timespec){ .tv_sec = (time_t)seconds }, NULL);
	stopped = true;
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return started == count ? 0 : 1;
}
