/*
 * tall SECONDS: on each CPU a thread with stacks of about 48 frames without frame pointers, whose leaves are in libc; prints its pid first.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH   36
#define NUMBERS 256

static atomic_bool over;

static int compare(const void *a, const void *b)
{
	char left[32];
	char right[32];

	(void)snprintf(left, sizeof(left), "%08d", *(const int *)a);
	(void)snprintf(right, sizeof(right), "%08d", *(const int *)b);
	return strcmp(left, right);
}

__attribute__((noinline)) static int sort(unsigned seed)
{
	int numbers[NUMBERS];

	for (unsigned i = 0; i < NUMBERS; i++)
		numbers[i] = (int)((seed + i) * 7919u % 10007u);
	qsort(numbers, NUMBERS, sizeof(numbers[0]), compare);
	return numbers[0];
}

__attribute__((noinline)) static int climb(int depth, unsigned seed)
{
	volatile int room[8];

	room[depth % 8] = depth;
	return (depth ? climb(depth - 1, seed) : sort(seed)) + room[depth % 8];
}

static void *work(void *unused)
{
	for (unsigned i = 0; !over; i++)
		(void)climb(DEPTH + (int)(i % 5), i);
	return unused;
}

int main(int argc, char **argv)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (long i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, work, NULL) != 0)
			return 1;
	sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 10);
	over = 1;
	return 0;
}
