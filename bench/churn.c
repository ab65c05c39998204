/*
 * churn RATE COMMAND [ARGUMENT]...: starts the command RATE times a second, until it is terminated. When
 * the machine is too slow for that, at most AT_ONCE_MAX of them run at the same time, and the starts that
 * were missed are not made up for.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define AT_ONCE_MAX 8u

extern char **environ;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t time_ns)
{
	const struct timespec t = { .tv_sec = (time_t)(time_ns / 1000000000u),
		.tv_nsec = (long)(time_ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

int main(int argc, char **argv)
{
	double rate = argc > 2 ? atof(argv[1]) : 0;
	unsigned running = 0;

	if (rate <= 0) {
		fprintf(stderr, "usage: churn RATE COMMAND [ARGUMENT]...\n");
		return 2;
	}
	uint64_t gap_ns = (uint64_t)(1e9 / rate);
	for (uint64_t next_ns = now_ns();; next_ns += gap_ns) {
		pid_t pid;
		while (running && waitpid(-1, NULL, running == AT_ONCE_MAX ? 0 : WNOHANG) > 0)
			running--;
		if (next_ns + gap_ns < now_ns())
			next_ns = now_ns();
		sleep_until(next_ns);
		if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0) {
			fprintf(stderr, "cannot start '%s'\n", argv[2]);
			return 1;
		}
		running++;
	}
}
