/* See closing.h. */
#include "perf/closing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/poll_set.h"
#include "machine/descriptors.h"

/* `kept`: the events, and the pipe whose end tells the caller that they are closed. */
static _Noreturn void help(int *kept, size_t count, int done_fd)
{
	descriptors_close_but(kept, count);
	(void)setsid(); /* a key of the terminal means the program that runs by then */
	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_IGN);   /* those that cannot be ignored are not */
	(void)prctl(PR_SET_NAME, "spoor-close"); /* the name that ps and top show */
	(void)!chdir("/");                       /* a folder is held a little longer */
	for (size_t i = 0; i < count; i++)
		if (kept[i] != done_fd)
			(void)close(kept[i]); /* nothing is written to them */
	_exit(0);
}

/* As a child of init: the caller waits for its own children. False: there is no helper. */
static bool start_helper(int *kept, size_t count, int done_fd)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			help(kept, count, done_fd);
		_exit(pid < 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && status == 0;
}

void closing_finish(const int *fds, size_t count)
{
	cleanup(freep) int *kept = malloc((count + 1) * sizeof(*kept));
	int ends[2] = { -1, -1 };
	bool helped = false;

	if (kept && count && pipe2(ends, O_CLOEXEC) == 0) {
		memcpy(kept, fds, count * sizeof(*kept));
		kept[count] = ends[1];
		helped = start_helper(kept, count + 1, ends[1]);
	}
	closep(&ends[1]);
	for (size_t i = 0; i < count; i++)
		closep(&fds[i]);
	if (helped)
		/* the helper ends in any case */
		(void)poll_one(ends[0], POLLIN, CLOSING_WAIT_MS);
	closep(&ends[0]);
}
