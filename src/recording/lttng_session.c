/* See lttng_session.h. */
#include "recording/lttng_session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/text.h"

#define STEP_NS    2000000
#define OUTPUT_MAX 4096u
/* How long one call of the program may take: it may have to start a session daemon. */
#define START_MAX_NS UINT64_C(15000000000)
#define STOP_MAX_NS  UINT64_C(5000000000)
/* More than the keeper's limit for one attempt. */
#define KEEPER_MAX_NS UINT64_C(7000000000)

extern char **environ;

/* A child has no blocked and no ignored signals of this process. */
static int start_program(const char *const *words, int in, int out, short flags, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	error = posix_spawn_file_actions_adddup2(&actions, in, 0);
	error = error ? error : posix_spawn_file_actions_adddup2(&actions, out, 1);
	error = error ? error : posix_spawn_file_actions_adddup2(&actions, out, 2);
	error = error ? error : posix_spawnattr_setsigmask(&attributes, &none);
	error = error ? error : posix_spawnattr_setsigdefault(&attributes, &all);
	error = error ? error
		      : posix_spawnattr_setflags(&attributes,
				(short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
	/* The words are not changed. */
	error = error ? error
		      : posix_spawnp(ret_pid, words[0], &actions, &attributes,
				(char *const *)(uintptr_t)words, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return -error;
}

/* Waits for a child. -ETIMEDOUT: it still runs. */
static int wait_for_program(pid_t pid, uint64_t limit_ns, int *ret_status)
{
	uint64_t until_ns = clock_monotonic_ns() + limit_ns;

	for (;;) {
		pid_t ended = waitpid(pid, ret_status, WNOHANG);
		if (ended == pid)
			return 0;
		if (ended < 0 && errno != EINTR)
			return -errno;
		if (clock_monotonic_ns() > until_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&(struct timespec){ .tv_nsec = STEP_NS }, NULL); /* repeated */
	}
}

/* The last line that the program printed. */
static void last_line(int fd, char *line, size_t room)
{
	char text[OUTPUT_MAX];
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

	while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' '))
		size--;
	text[size > 0 ? size : 0] = '\0';
	const char *newline = strrchr(text, '\n');

	(void)text_make_safe(newline ? newline + 1 : text, strlen(newline ? newline + 1 : text),
		line, room); /* a cut end is fine */
}

/* Runs a program of which words[0] is the name, "lttng"; `words` ends with NULL. */
static int run_within(const char *const *words, uint64_t limit_ns, struct diag *diag)
{
	cleanup(closep) int out = memfd_create("lttng", MFD_CLOEXEC);
	cleanup(closep) int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char line[256];
	int status = 0;
	pid_t pid;

	if (out < 0 || in < 0)
		return diag_set(diag, -errno, "cannot run lttng: %m");
	int result = start_program(words, in, out, 0, &pid);
	if (result == -ENOENT) {
		diag_set(diag, result,
			"cannot record events of LTTng: there is no program 'lttng'");
		diag_remedy(diag, "install it (Debian: lttng-tools)");
		return result;
	}
	if (result == 0)
		result = wait_for_program(pid, limit_ns, &status);
	if (result == -ETIMEDOUT) {
		(void)kill(pid, SIGKILL);       /* it is this process's child, not reaped yet */
		(void)waitpid(pid, &status, 0); /* as above */
		return diag_set(diag, result,
			"'lttng %s' has not ended after %u s: the session daemon does not answer",
			words[1], (unsigned)(limit_ns / 1000000000));
	}
	if (result < 0)
		return diag_set(diag, result, "cannot run 'lttng %s': %m", words[1]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	last_line(out, line, sizeof(line));
	return diag_set(diag, -EIO, "cannot record events of LTTng: 'lttng %s' failed: %s",
		words[1], line);
}

static int run(const char *const *words, struct diag *diag)
{
	return run_within(words, START_MAX_NS, diag);
}

/*
 * The keeper waits until this process closes the pipe, or ends. In the second case `lttng create` may
 * still be at work: so the keeper tries for some seconds. Each attempt ends, so that the folder is
 * removed though the daemon does not answer.
 */
static int start_keeper(struct lttng_session *session, struct diag *diag)
{
	static const char script[] =
		"PATH=$PATH:/usr/bin:/bin; tries=20; [ -z \"$(cat)\" ] || tries=1\n"
		"while [ $tries -gt 0 ]; do\n"
		"timeout -k 1 5 lttng --no-sessiond destroy -- \"$0\" >/dev/null 2>&1\n"
		"case $? in 0) tries=0 ;; 124 | 137) tries=$((tries - 10)) ;; *) tries=$((tries - 1)) ;; esac\n"
		"rm -rf -- \"$1\"\n"
		"[ $tries -le 0 ] || sleep 0.5\n"
		"done";
	const char *words[] = { "/bin/sh", "-c", script, session->name, session->folder, NULL };
	cleanup(closep) int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int ends[2];

	if (out < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return diag_set(diag, -errno, "cannot record events of LTTng: %m");
	int result = start_program(words, ends[0], out, POSIX_SPAWN_SETSID, &session->keeper);
	(void)close(ends[0]); /* of a pipe */
	if (result < 0) {
		(void)close(ends[1]); /* of a pipe */
		return diag_set(diag, result, "cannot run /bin/sh: %m");
	}
	session->keep_fd = ends[1];
	return 0;
}

static int enable_events(const struct lttng_session *session, const char *events, struct diag *diag)
{
	if (events[0] == '-' || !events[0])
		return diag_set(diag, -EINVAL, "'%s' is no name of an event of LTTng", events);
	return run((const char *[]){ "lttng", "enable-event", "-s", session->name, "-u", "-c",
			   "spoor", events, NULL },
		diag);
}

static int track(const struct lttng_session *session, const struct lttng_options *options,
	struct diag *diag)
{
	cleanup(bytes_done) struct bytes list = { 0 };

	for (size_t i = 0; i < options->pid_count; i++)
		bytes_printf(&list, "%s%" PRIu32, i ? "," : "", options->pids[i]);
	return run((const char *[]){ "lttng", "track", "-s", session->name, "-u", "--vpid",
			   bytes_z(&list), NULL },
		diag);
}

static int set_up(struct lttng_session *session, const struct lttng_options *options,
	struct diag *diag)
{
	cleanup(bytes_done) struct bytes output = { 0 };
	struct diag unused = { 0 };

	bytes_printf(&output, "--output=%s", session->folder);
	int result =
		run((const char *[]){ "lttng", "create", session->name, bytes_z(&output), NULL },
			diag);
	/* The descriptions of events are written early too; otherwise they come with the end only. */
	if (result == 0)
		result = run((const char *[]){ "lttng", "enable-channel", "-s", session->name, "-u",
				     "metadata", "--switch-timer=100000", NULL },
			diag);
	/* Half-full buffers are written too, so that events come within about 100 ms. */
	if (result == 0)
		result = run((const char *[]){ "lttng", "enable-channel", "-s", session->name, "-u",
				     "spoor", "--subbuf-size=1M", "--num-subbuf=4",
				     "--switch-timer=100000", NULL },
			diag);
	if (result == 0)
		result = run((const char *[]){ "lttng", "add-context", "-s", session->name, "-u",
				     "-c", "spoor", "-t", "vpid", "-t", "vtid", "-t", "procname",
				     NULL },
			diag);
	/* LTTng before 2.12 has no such context: then ids are taken for those of this namespace. */
	if (result == 0)
		(void)run((const char *[]){ "lttng", "add-context", "-s", session->name, "-u", "-c",
				  "spoor", "-t", "pid_ns", NULL },
			&unused);
	if (result == 0 && options->pid_count)
		result = track(session, options, diag);
	for (size_t i = 0; result == 0 && options->events[i]; i++)
		result = enable_events(session, options->events[i], diag);
	if (result == 0)
		result = run((const char *[]){ "lttng", "start", session->name, NULL }, diag);
	return result;
}

static void say_left(const struct lttng_session *session, struct diag *diag)
{
	diag_remedy(diag, "the session may be left; once the daemon answers: lttng destroy %s",
		session->name);
}

int lttng_session_start(struct lttng_session *session, const struct lttng_options *options,
	struct diag *diag)
{
	const char *place = getenv("TMPDIR");

	*session = (struct lttng_session){ .keep_fd = -1 };
	if (!place || !place[0] || strlen(place) > sizeof(session->folder) - 32)
		place = "/tmp";
	text_set(session->folder, "%s/spoor-lttng.XXXXXX", place);
	if (!mkdtemp(session->folder)) {
		int result = diag_set(diag, -errno, "cannot make a folder in '%s': %m", place);
		session->folder[0] = '\0';
		return result;
	}
	text_set(session->name, "spoor-%" PRIu32 "-%s", (uint32_t)getpid(),
		session->folder + strlen(session->folder) - 6);
	int result = start_keeper(session, diag);
	if (result < 0)
		(void)rmdir(session->folder); /* empty */
	if (result == 0)
		result = set_up(session, options, diag);
	if (result == -ETIMEDOUT)
		say_left(session, diag);
	if (result < 0)
		lttng_session_done(session);
	return result;
}

int lttng_session_stop(struct lttng_session *session, struct diag *diag)
{
	int result = run_within((const char *[]){ "lttng", "--no-sessiond", "stop", session->name,
					NULL },
		STOP_MAX_NS, diag);

	session->stuck = result == -ETIMEDOUT;
	if (session->stuck)
		say_left(session, diag);
	return result;
}

void lttng_session_done(struct lttng_session *session)
{
	int status;

	if (!session->keeper)
		return;
	(void)!write(session->keep_fd, "done", 4); /* without, it only tries for longer */
	(void)close(session->keep_fd);             /* of a pipe */
	/* After a timeout it keeps running, and init reaps it later. */
	(void)wait_for_program(session->keeper, KEEPER_MAX_NS, &status);
	*session = (struct lttng_session){ .keep_fd = -1 };
}
