/*
 * Runs a command and appends its cost to FILE: one line "CPU_S WALL_S RSS_KIB". CPU time is user and
 * system time of the command and of all children that it waited for (wait4). cputime returns the
 * command's exit code. Ctrl-C ends the command, whose cost is still written.
 *
 *   cputime FILE COMMAND [ARGUMENT]...
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage cost;
	double begin_s = now_s();
	int status;

	if (argc < 3) {
		fprintf(stderr, "cputime FILE COMMAND [ARGUMENT]...\n");
		return 2;
	}
	FILE *file = fopen(argv[1], "ae");

	if (!file) {
		fprintf(stderr, "cannot write '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	pid_t pid = fork();

	if (pid < 0) {
		fprintf(stderr, "cannot start '%s': %s\n", argv[2], strerror(errno));
		return 1;
	}
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "cannot start '%s': %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	(void)signal(SIGINT, SIG_IGN); /* the command ends first, then this process */
	(void)signal(SIGTERM, SIG_IGN);
	while (wait4(pid, &status, 0, &cost) < 0)
		if (errno != EINTR)
			return 1;
	fprintf(file, "%.6f %.6f %ld\n", seconds(&cost.ru_utime) + seconds(&cost.ru_stime),
		now_s() - begin_s, cost.ru_maxrss);
	if (fclose(file) != 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
