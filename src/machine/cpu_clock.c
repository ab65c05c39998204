/* See cpu_clock.h. */
#include "machine/cpu_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define PATH_ROOM   64u /* "4194304/task/4194304/schedstat" */
#define TEXT_ROOM   1024u
#define DIGITS_MAX  20u
#define FIELD_UTIME 14u /* of stat, counted from 1; the third follows the name */

/* A decimal number after blanks. */
static bool scan_number(const char **at, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	while (*at < end && **at == ' ')
		(*at)++;
	const char *begin = *at;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		if ((size_t)(*at - begin) >= DIGITS_MAX - 1)
			return false;
		value = value * 10 + (uint64_t)(**at - '0');
	}
	*ret_value = value;
	return *at > begin;
}

bool cpu_clock_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns)
{
	const char *at = text;

	return scan_number(&at, text + len, ret_cpu_ns);
}

/* Two numbers of ticks: user and system time. */
static bool scan_ticks(const char **at, const char *end, uint64_t tick_ns, uint64_t *ret_ns)
{
	uint64_t user;
	uint64_t system;

	if (!scan_number(at, end, &user) || !scan_number(at, end, &system) ||
		user > UINT64_MAX / 2 - system)
		return false;
	if (tick_ns && user + system > UINT64_MAX / tick_ns)
		return false;
	*ret_ns = (user + system) * tick_ns;
	return true;
}

bool cpu_clock_parse_stat(const char *text, size_t len, uint64_t tick_ns, uint64_t *ret_cpu_ns,
	uint64_t *ret_children_ns)
{
	const char *end = text + len;
	const char *at = end;

	/* The name may contain any character, including a parenthesis. */
	while (at > text && at[-1] != ')')
		at--;
	if (at == text)
		return false;
	for (unsigned field = 2; field < FIELD_UTIME; field++) {
		at = memchr(at, ' ', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	return scan_ticks(&at, end, tick_ns, ret_cpu_ns) &&
	       scan_ticks(&at, end, tick_ns, ret_children_ns);
}

int process_clock_read(const struct proc_reader *proc, uint32_t pid,
	struct process_clock *ret_clock)
{
	char path[PATH_ROOM];
	char text[TEXT_ROOM];
	struct proc_process stat;

	text_set(path, "%u/stat", pid);
	cleanup(closep) int fd = openat(proc->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	ssize_t n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	if (!proc_parse_stat(text, (size_t)n, &stat) ||
		!cpu_clock_parse_stat(text, (size_t)n, proc->tick_ns, &ret_clock->cpu_ns,
			&ret_clock->children_ns))
		return -ESRCH;
	ret_clock->parent_pid = stat.parent_pid;
	ret_clock->start_ticks = stat.start_ticks;
	ret_clock->thread_count = stat.thread_count;
	ret_clock->state = stat.state;
	memcpy(ret_clock->comm, stat.comm, sizeof(ret_clock->comm));
	return 0;
}

int thread_clock_open(const struct proc_reader *proc, uint32_t pid, uint32_t tid, int *ret_fd)
{
	char path[PATH_ROOM];

	text_set(path, "%u/task/%u/schedstat", pid, tid);
	int fd = openat(proc->fd, path, O_RDONLY | O_CLOEXEC);
	/* a kernel without schedstat, or a thread that has ended */
	if (fd < 0 && errno == ENOENT) {
		text_set(path, "%u/task/%u/stat", pid, tid);
		fd = openat(proc->fd, path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	*ret_fd = fd;
	return 0;
}

int thread_clock_read(const struct proc_reader *proc, int fd, uint64_t *ret_cpu_ns)
{
	char text[TEXT_ROOM];
	uint64_t children_ns;
	ssize_t n = pread(fd, text, sizeof(text), 0);

	if (n < 0)
		return -errno;
	/* Only stat has a name in parentheses. */
	if (memchr(text, ')', (size_t)n))
		return cpu_clock_parse_stat(text, (size_t)n, proc->tick_ns, ret_cpu_ns,
			       &children_ns)
			       ? 0
			       : -ESRCH;
	return cpu_clock_parse_schedstat(text, (size_t)n, ret_cpu_ns) ? 0 : -ESRCH;
}
