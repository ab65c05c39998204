/*
 * Two pipes. The parent writes one byte into the first to start the command, or closes it to
 * cancel. The second is closed by a successful exec (O_CLOEXEC), or carries the errno of a failed
 * one.
 */
#include "perf/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "machine/rights.h"

/* Runs in the child: only functions that are safe between fork and exec. */
static _Noreturn void wait_and_exec(int go_fd, int error_fd, char *const argv[])
{
	char go;
	sigset_t none;
	ssize_t n;

	for (int number = 1; number < NSIG; number++)
		/* SIGKILL and SIGSTOP cannot be set and need not be */
		(void)signal(number, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* a full set cannot fail */
	rights_return(); /* the user chooses the program, so it runs with the user's rights */
	do
		n = read(go_fd, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	execvp(argv[0], argv);
	int error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

int record_child_spawn(struct record_child *child, char *const argv[], struct diag *diag)
{
	int go[2], error[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return diag_set(diag, -errno, "cannot start '%s': %m", argv[0]);
	if (pipe2(error, O_CLOEXEC) < 0) {
		int code = -errno;
		closep(&go[0]);
		closep(&go[1]);
		return diag_set(diag, code, "cannot start '%s': %m", argv[0]);
	}
	pid_t pid = fork();
	if (pid == 0) {
		/* otherwise the child would never see the end of file when the parent has ended */
		closep(&go[1]);
		closep(&error[0]);
		wait_and_exec(go[0], error[1], argv);
	}
	int code = -errno;
	closep(&go[0]);
	closep(&error[1]);
	if (pid < 0) {
		closep(&go[1]);
		closep(&error[0]);
		return diag_set(diag, code, "cannot start '%s': %m", argv[0]);
	}
	*child = (struct record_child){
		.pid = (uint32_t)pid,
		.waits = true,
		.name = argv[0],
		.go_fd = go[1],
		.error_fd = error[0],
	};
	return 0;
}

char *record_child_path(const struct record_child *child)
{
	const char *folders = getenv("PATH");

	if (strchr(child->name, '/'))
		return realpath(child->name, NULL);
	/* execvp() has this default, too. */
	for (const char *at = folders ? folders : "/bin:/usr/bin"; *at;) {
		int len = (int)strcspn(at, ":");
		char *path;
		/* An empty name is the current folder. */
		if (asprintf(&path, "%.*s/%s", len ? len : 1, len ? at : ".", child->name) < 0)
			return NULL;
		char *found = access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
		free(path);
		if (found)
			return found;
		at += len + (at[len] == ':');
	}
	return NULL;
}

static void reap(struct record_child *child)
{
	while (waitpid((pid_t)child->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void close_pipes(struct record_child *child)
{
	closep(&child->go_fd);
	closep(&child->error_fd);
	child->go_fd = child->error_fd = -1;
}

int record_child_go(struct record_child *child, struct diag *diag)
{
	int error = 0;
	ssize_t n;

	if (!child->waits)
		return 0;
	child->waits = false;
	/* MSG_NOSIGNAL is for sockets only. SIGPIPE of a killed child must not end us. */
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	(void)sigaction(SIGPIPE, &ignore, &before); /* valid arguments: cannot fail */
	n = write(child->go_fd, "g", 1);
	(void)sigaction(SIGPIPE, &before, NULL); /* as above */
	if (n == 1) {
		do
			n = read(child->error_fd, &error, sizeof(error));
		while (n < 0 && errno == EINTR);
		if (n == 0) {
			close_pipes(child);
			return 0;
		}
	}
	if (n == (ssize_t)sizeof(error))
		child->exec_code = error == ENOENT ? 127 : 126;
	else
		error = EPIPE;
	close_pipes(child);
	reap(child);
	child->pid = 0;
	return diag_set(diag, -error, "cannot run '%s': %m", child->name);
}

void record_child_cancel(struct record_child *child)
{
	if (!child->waits)
		return;
	child->waits = false;
	close_pipes(child);
	reap(child);
}
