/* See process_use.h. */
#include "machine/process_use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "machine/kernel_file.h"

#define TEXT_ROOM 256u

/* The next decimal number and the blank after it. */
static bool take_number(const char **at, const char *end, uint64_t *ret_value)
{
	const char *begin = *at;

	*ret_value = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (__builtin_mul_overflow(*ret_value, 10u, ret_value) ||
			__builtin_add_overflow(*ret_value, (uint64_t)(**at - '0'), ret_value))
			return false;
	if (*at == begin)
		return false;
	*at += *at < end && **at == ' ';
	return true;
}

bool process_use_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns,
	uint64_t *ret_wait_ns)
{
	const char *at = text;

	return take_number(&at, text + len, ret_cpu_ns) &&
	       take_number(&at, text + len, ret_wait_ns);
}

bool process_use_parse_statm(const char *text, size_t len, uint64_t *ret_pages)
{
	const char *at = text;
	uint64_t size;
	uint64_t resident;
	uint64_t shared;

	if (!take_number(&at, text + len, &size) || !take_number(&at, text + len, &resident) ||
		!take_number(&at, text + len, &shared))
		return false;
	*ret_pages = resident > shared ? resident - shared : 0;
	return true;
}

/* The number behind `name` at the begin of a line. */
static bool find_number(const char *text, size_t len, const char *name, uint64_t *ret_value)
{
	const char *end = text + len;
	size_t name_len = strlen(name);

	for (const char *at = text; at < end; at++) {
		if ((size_t)(end - at) > name_len && memcmp(at, name, name_len) == 0) {
			at += name_len;
			return take_number(&at, end, ret_value);
		}
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			return false;
	}
	return false;
}

bool process_use_parse_io(const char *text, size_t len, uint64_t *ret_calls, uint64_t *ret_bytes)
{
	return find_number(text, len, "syscw: ", ret_calls) &&
	       find_number(text, len, "wchar: ", ret_bytes);
}

static void add_threads(struct proc_reader *proc, uint32_t pid, struct process_use *use)
{
	struct id_list threads = { 0 };
	char path[64];
	char text[TEXT_ROOM];

	if (proc_list_threads(proc, pid, &threads) < 0)
		return;
	for (uint32_t i = 0; i < threads.ids.count; i++) {
		uint64_t cpu_ns;
		uint64_t wait_ns;
		/* fits */
		(void)snprintf(path, sizeof(path), "%u/task/%u/schedstat", pid,
			threads.ids.items[i]);
		ssize_t n = kernel_file_read(proc->fd, path, text, sizeof(text));
		if (n <= 0 || !process_use_parse_schedstat(text, (size_t)n, &cpu_ns, &wait_ns))
			continue;
		use->cpu_ns += cpu_ns;
		use->wait_ns += wait_ns;
		use->has_wait = true;
	}
	vec_done(&threads.ids);
}

bool process_use_read_wait(struct proc_reader *proc, uint32_t pid, uint64_t *ret_wait_ns)
{
	struct process_use use = { .has_wait = false };

	add_threads(proc, pid, &use);
	*ret_wait_ns = use.wait_ns;
	return use.has_wait;
}

static void count_descriptors(const struct proc_reader *proc, uint32_t pid, struct process_use *use)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "%u/fd", pid); /* fits */
	int fd = openat(proc->fd, path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(folder));)
		use->descriptors += entry->d_name[0] != '.';
	use->has_descriptors = true;
	closedir(folder);
}

int process_use_read(struct proc_reader *proc, uint32_t pid, struct process_use *ret_use)
{
	char path[32];
	char text[TEXT_ROOM];
	uint64_t pages;

	*ret_use = (struct process_use){ .time_ns = clock_monotonic_ns() };
	(void)snprintf(path, sizeof(path), "%u/statm", pid); /* fits */
	ssize_t n = kernel_file_read(proc->fd, path, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	if (process_use_parse_statm(text, (size_t)n, &pages))
		ret_use->private_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	(void)snprintf(path, sizeof(path), "%u/io", pid); /* fits */
	n = kernel_file_read(proc->fd, path, text, sizeof(text));
	ret_use->has_writes = n > 0 && process_use_parse_io(text, (size_t)n, &ret_use->write_calls,
					       &ret_use->written_bytes);
	add_threads(proc, pid, ret_use);
	count_descriptors(proc, pid, ret_use);
	return 0;
}
