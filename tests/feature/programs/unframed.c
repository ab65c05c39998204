/*
 * A program without frame pointers, for the tests of unwinding.
 *
 *   unframed sort MS      computes in qsort()'s comparison, in libc's snprintf()
 *   unframed deep MS      computes under frames of 40 KiB
 *   unframed signal MS    computes in a signal handler
 *   unframed switched MS  computes in a signal handler that has a stack of its own
 *   unframed steps        stops itself, calls each kind of code above one time, and ends
 *
 * MS is CPU time in milliseconds.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define NUMBERS  200

static uint64_t end_ms;
static volatile sig_atomic_t handled;

static uint64_t used_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static int compare_texts(const void *a, const void *b)
{
	char left[32];
	char right[32];

	(void)snprintf(left, sizeof(left), "%010d", *(const int *)a);
	(void)snprintf(right, sizeof(right), "%010d", *(const int *)b);
	return strcmp(left, right);
}

NOINLINE static void sort_numbers(int count)
{
	int numbers[NUMBERS];

	for (int i = 0; i < count; i++)
		numbers[i] = (i * 7919) % 1000;
	qsort(numbers, (size_t)count, sizeof(numbers[0]), compare_texts);
	if (numbers[0] > numbers[count - 1])
		abort();
}

NOINLINE static int dig(int depth, int count)
{
	volatile char room[4096];

	room[0] = (char)depth;
	if (depth)
		return dig(depth - 1, count) + room[0];
	sort_numbers(count);
	return room[0];
}

static void handle(int number)
{
	(void)number;
	do
		sort_numbers(end_ms ? NUMBERS : 4);
	while (used_ms() < end_ms);
	handled = 1;
}

NOINLINE static void raise_signal(bool other_stack)
{
	static char memory[64 << 10];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = handle,
		.sa_flags = other_stack ? SA_ONSTACK : 0 };

	if (other_stack && sigaltstack(&stack, NULL) < 0)
		abort();
	if (sigaction(SIGUSR1, &action, NULL) < 0 || raise(SIGUSR1) != 0 || !handled)
		abort();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	end_ms = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	if (strcmp(mode, "steps") == 0) {
		(void)raise(SIGSTOP);
		sort_numbers(6);
		(void)dig(1, 4);
		raise_signal(false);
		return 0;
	}
	if (strcmp(mode, "signal") == 0 || strcmp(mode, "switched") == 0) {
		raise_signal(strcmp(mode, "switched") == 0);
		return 0;
	}
	while (used_ms() < end_ms)
		if (strcmp(mode, "deep") == 0)
			(void)dig(10, NUMBERS);
		else
			sort_numbers(NUMBERS);
	return 0;
}
