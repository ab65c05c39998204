/* See thread_state.h. */
#include "machine/thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "machine/cpu_clock.h"
#include "machine/kernel_file.h"
#include "machine/rights.h"

#define PATH_ROOM 96u
#define TEXT_ROOM 8192u

/* System calls in which threads wait. Those whose first argument is a descriptor are marked. */
static const struct {
	long number;
	const char *name;
	bool takes_descriptor;
} calls[] = {
	{ SYS_futex, "futex", false },
	{ SYS_read, "read", true },
	{ SYS_write, "write", true },
	{ SYS_readv, "readv", true },
	{ SYS_writev, "writev", true },
	{ SYS_pread64, "pread64", true },
	{ SYS_pwrite64, "pwrite64", true },
	{ SYS_ppoll, "ppoll", false },
	{ SYS_pselect6, "pselect6", false },
	{ SYS_epoll_pwait, "epoll_pwait", true },
	{ SYS_accept, "accept", true },
	{ SYS_accept4, "accept4", true },
	{ SYS_connect, "connect", true },
	{ SYS_recvfrom, "recvfrom", true },
	{ SYS_recvmsg, "recvmsg", true },
	{ SYS_recvmmsg, "recvmmsg", true },
	{ SYS_sendto, "sendto", true },
	{ SYS_sendmsg, "sendmsg", true },
	{ SYS_nanosleep, "nanosleep", false },
	{ SYS_clock_nanosleep, "clock_nanosleep", false },
	{ SYS_wait4, "wait4", false },
	{ SYS_waitid, "waitid", false },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait", false },
	{ SYS_rt_sigsuspend, "rt_sigsuspend", false },
	{ SYS_restart_syscall, "restart_syscall", false },
	{ SYS_flock, "flock", true },
	{ SYS_fcntl, "fcntl", true },
	{ SYS_fsync, "fsync", true },
	{ SYS_fdatasync, "fdatasync", true },
	{ SYS_ioctl, "ioctl", true },
	{ SYS_io_getevents, "io_getevents", false },
	{ SYS_io_uring_enter, "io_uring_enter", true },
	{ SYS_openat, "openat", false },
	{ SYS_membarrier, "membarrier", false },
	{ SYS_madvise, "madvise", false },
	{ SYS_mmap, "mmap", false },
	{ SYS_munmap, "munmap", false },
	{ SYS_mprotect, "mprotect", false },
	{ SYS_sched_yield, "sched_yield", false },
	{ SYS_copy_file_range, "copy_file_range", true },
	{ SYS_sendfile, "sendfile", true },
	{ SYS_semtimedop, "semtimedop", false },
	{ SYS_msgrcv, "msgrcv", false },
/* System calls that newer architectures have only in their later forms. */
#ifdef SYS_poll
	{ SYS_poll, "poll", false },
#endif
#ifdef SYS_select
	{ SYS_select, "select", false },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, "epoll_wait", true },
#endif
#ifdef SYS_pause
	{ SYS_pause, "pause", false },
#endif
#ifdef SYS_open
	{ SYS_open, "open", false },
#endif
};

static bool scan_number(const char **at, const char *end, unsigned base, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *begin;

	while (*at < end && **at == ' ')
		(*at)++;
	if (base == 16) {
		if (end - *at < 3 || memcmp(*at, "0x", 2) != 0)
			return false;
		*at += 2;
	}
	for (begin = *at; *at < end; (*at)++) {
		char c = **at;
		unsigned digit = c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
				 : base == 16 && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
								      : 16;
		if (digit >= base)
			break;
		if (*at - begin >= 16)
			return false;
		value = value * base + digit;
	}
	*ret_value = value;
	return *at > begin;
}

bool thread_state_parse_syscall(const char *text, size_t len, struct proc_thread_state *state)
{
	const char *at = text;
	const char *end = text + len;
	uint64_t number;

	state->syscall = -1;
	state->sp = state->pc = 0;
	if (len >= 7 && memcmp(text, "running", 7) == 0)
		return true;
	/* in the kernel, but not in a system call */
	bool blocked = len >= 2 && memcmp(text, "-1", 2) == 0;
	struct proc_thread_state read = { 0 };

	if (blocked)
		at += 2;
	else if (!scan_number(&at, end, 10, &number) || number > INT32_MAX)
		return false;
	for (unsigned i = 0; i < 6 && !blocked; i++)
		if (!scan_number(&at, end, 16, &read.arguments[i]))
			return false;
	if (!scan_number(&at, end, 16, &read.sp) || !scan_number(&at, end, 16, &read.pc))
		return false;
	if (!blocked)
		state->syscall = (int64_t)number;
	memcpy(state->arguments, read.arguments, sizeof(read.arguments));
	state->sp = read.sp;
	state->pc = read.pc;
	return true;
}

void thread_state_parse_stack(const char *text, size_t len, char *out, size_t room)
{
	const char *end = text + len;
	size_t used = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		const char *name = memchr(text, ']', (size_t)(stop - text));
		name = name && stop - name > 2 ? name + 2 : stop;
		const char *plus = memchr(name, '+', (size_t)(stop - name));
		size_t name_len = plus ? (size_t)(plus - name) : 0;
		if (name_len && used + name_len + 2 <= room) {
			for (size_t i = 0; i < name_len; i++)
				/* a zero byte would end the list */
				out[used++] = name[i] ? name[i] : '?';
			out[used++] = '\n';
		}
		text = newline ? newline + 1 : end;
	}
	out[used] = '\0';
}

uint64_t thread_state_parse_switches(const char *text, size_t len)
{
	static const char *const keys[] = { "voluntary_ctxt_switches:",
		"nonvoluntary_ctxt_switches:" };
	const char *end = text + len;
	uint64_t sum = 0;
	unsigned found = 0;

	for (const char *line = text; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end;
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			size_t key_len = strlen(keys[i]);
			if ((size_t)(stop - line) <= key_len || memcmp(line, keys[i], key_len) != 0)
				continue;
			const char *at = line + key_len;
			uint64_t number;
			while (at < stop && *at == '\t')
				at++;
			if (!scan_number(&at, stop, 10, &number))
				continue;
			sum += number;
			found |= 1u << i;
		}
		line = stop + 1;
	}
	return found == 3 ? sum : 0;
}

static ssize_t read_file(const struct proc_reader *proc, uint32_t pid, uint32_t tid,
	const char *file, char *out, size_t room)
{
	char path[PATH_ROOM];

	text_set(path, "%u/task/%u/%s", pid, tid, file);
	return kernel_file_read(proc->fd, path, out, room);
}

static void read_call(struct proc_reader *proc, uint32_t pid, uint32_t tid,
	struct proc_thread_state *state)
{
	char text[512];
	ssize_t n = read_file(proc, pid, tid, "syscall", text, sizeof(text));

	state->syscall = -1;
	state->name = "";
	state->denied = n == -EACCES || n == -EPERM;
	if (n <= 0 || !thread_state_parse_syscall(text, (size_t)n, state) || state->syscall < 0)
		return;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number != state->syscall)
			continue;
		state->name = calls[i].name;
		if (!calls[i].takes_descriptor || state->arguments[0] > INT32_MAX)
			return;
		text_set(text, "%u/fd/%u", pid, (unsigned)state->arguments[0]);
		uint64_t before = rights_lower();
		n = readlinkat(proc->fd, text, state->object, sizeof(state->object) - 1);
		rights_restore(before);
		state->object[n > 0 ? n : 0] = '\0';
		return;
	}
}

uint64_t thread_state_switches(const struct proc_reader *proc, uint32_t pid, uint32_t tid)
{
	char text[TEXT_ROOM];
	ssize_t n = read_file(proc, pid, tid, "status", text, sizeof(text));

	return n > 0 ? thread_state_parse_switches(text, (size_t)n) : 0;
}

bool thread_state_sleeps(const struct proc_reader *proc, uint32_t pid, uint32_t tid,
	uint64_t *ret_switches)
{
	static const char sleeps[] = "\nState:\tS";
	char text[TEXT_ROOM];
	ssize_t n = read_file(proc, pid, tid, "status", text, sizeof(text));

	if (n <= 0 || !strstr(text, sleeps))
		return false;
	*ret_switches = thread_state_parse_switches(text, (size_t)n);
	return *ret_switches != 0;
}

bool thread_state_can_run(const struct proc_reader *proc, uint32_t pid, uint32_t tid)
{
	char text[TEXT_ROOM];
	struct proc_process stat;
	ssize_t n = read_file(proc, pid, tid, "stat", text, sizeof(text));

	return n > 0 && proc_parse_stat(text, (size_t)n, &stat) && stat.state == 'R';
}

int thread_state_read(struct proc_reader *proc, uint32_t pid, uint32_t tid,
	struct proc_thread_state *ret_state)
{
	char text[TEXT_ROOM];
	struct proc_process stat;

	*ret_state = (struct proc_thread_state){ .syscall = -1, .name = "", .state = '?' };
	int result = proc_read_thread(proc, pid, tid, &ret_state->thread);

	if (result < 0)
		return result;
	ret_state->switches = thread_state_switches(proc, pid, tid);
	ssize_t n = read_file(proc, pid, tid, "stat", text, sizeof(text));
	if (n > 0 && proc_parse_stat(text, (size_t)n, &stat))
		ret_state->state = stat.state;
	n = read_file(proc, pid, tid, "schedstat", text, sizeof(text));
	if (n > 0)
		/* 0 if schedstat does not exist */
		(void)cpu_clock_parse_schedstat(text, (size_t)n, &ret_state->cpu_ns);
	read_call(proc, pid, tid, ret_state);
	n = read_file(proc, pid, tid, "wchan", ret_state->function, sizeof(ret_state->function));
	if (n <= 0 || strcmp(ret_state->function, "0") == 0)
		ret_state->function[0] = '\0';
	n = read_file(proc, pid, tid, "stack", text, sizeof(text));
	if (n > 0)
		thread_state_parse_stack(text, (size_t)n, ret_state->kernel,
			sizeof(ret_state->kernel));
	/* The thread ran while its files were read, so they may be inconsistent. */
	if (thread_state_switches(proc, pid, tid) != ret_state->switches)
		ret_state->switches = 0;
	return 0;
}

bool thread_state_runs(const struct proc_thread_state *state)
{
	return state->state == 'R' && !state->sp && !*state->function && !*state->kernel;
}

bool thread_state_stands(struct proc_reader *proc, uint32_t pid,
	const struct proc_thread_state *state)
{
	struct proc_thread_state now = { 0 };
	char text[512];
	ssize_t n = read_file(proc, pid, state->thread.tid, "syscall", text, sizeof(text));

	/* A loop may repeat the same call with the same stack: compare switches as well. */
	return n > 0 && thread_state_parse_syscall(text, (size_t)n, &now) &&
	       now.syscall == state->syscall && now.sp == state->sp && now.pc == state->pc &&
	       state->switches &&
	       thread_state_switches(proc, pid, state->thread.tid) == state->switches;
}
