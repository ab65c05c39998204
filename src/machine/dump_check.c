/* See dump_check.h. */
#include "machine/dump_check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "machine/kernel_file.h"
#include "machine/proc.h"
#include "machine/target_root.h"

#define TEXT_ROOM 4096u

static bool has_filter(uint32_t pid)
{
	char path[64];
	char text[TEXT_ROOM];

	text_set(path, "/proc/%u/status", pid);
	if (kernel_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	const char *line = strstr(text, "\nSeccomp:\t");

	return line && line[sizeof("\nSeccomp:\t") - 1] == '2';
}

static int open_below(const struct target_root *root, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	while (*path == '/')
		path++;
	return (int)syscall(SYS_openat2, root->fd, *path ? path : ".", &how, sizeof(how));
}

static int check_folder(const struct target_root *root, const char *folder,
	struct dump_facts *facts, struct diag *diag)
{
	struct statvfs space;
	cleanup(closep) int fd = -1;
	int result = target_root_open_folder(root, folder, &fd, NULL);

	if (result < 0) {
		diag_set(diag, result, "process %u has no folder '%s' for its dump: %m", root->pid,
			folder);
		diag_remedy(diag, "name another with -o, as the process sees it");
		return result;
	}
	if (fstatvfs(fd, &space) == 0)
		facts->free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
	return 0;
}

/* Whether `name` is missing beside `file`; *ret is its path. False if the folder is unreadable. */
static bool is_missing_beside(const struct target_root *root, const char *file, const char *name,
	char ret_path[TEXT_ROOM])
{
	const char *slash = strrchr(file, '/');

	if (!slash || (size_t)snprintf(ret_path, TEXT_ROOM, "%.*s/%s", (int)(slash - file), file,
			      name) >= TEXT_ROOM)
		return false;
	cleanup(closep) int fd = open_below(root, ret_path, O_PATH);

	return fd < 0 && errno == ENOENT;
}

/* The program that writes the dump is in the folder of libcoreclr.so. */
static int check_writer(const struct target_root *root, const char *runtime_path, struct diag *diag)
{
	char path[TEXT_ROOM];

	if (!is_missing_beside(root, target_path_in_root(root->pid, runtime_path), "createdump",
		    path))
		return 0;
	return diag_set(diag, -ENOENT,
		"process %u cannot be dumped: its runtime comes without '%s'", root->pid, path);
}

/*
 * A single-file program contains the dump writer, but not the library that knows the runtime's
 * structures. Without it .NET 8 and 9 report a written dump although they wrote none.
 */
static int check_dac_library(const struct target_root *root, struct diag *diag)
{
	char path[TEXT_ROOM];
	char program[TEXT_ROOM];

	text_set(path, "/proc/%u/exe", root->pid);
	ssize_t len = readlink(path, program, sizeof(program) - 1);

	program[len > 0 ? len : 0] = '\0';
	if (!is_missing_beside(root, target_path_in_root(root->pid, program), "libmscordaccore.so",
		    path))
		return 0;
	diag_set(diag, -ENOENT,
		"process %u is a single file: only --type full can be had of it without '%s'",
		root->pid, path);
	diag_remedy(diag,
		"take --type full, or put libmscordaccore.so of the same runtime version there");
	return diag->error;
}

int dump_check(const struct dump_question *question, struct dump_facts *ret_facts,
	struct diag *diag)
{
	struct target_root root;
	char text[TEXT_ROOM];

	*ret_facts = (struct dump_facts){ .seccomp = has_filter(question->pid) };
	if (kernel_file_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) >
			0 &&
		text[0] == '3') {
		diag_set(diag, -EPERM,
			"process %u cannot be dumped: this machine forbids ptrace altogether",
			question->pid);
		diag_remedy(diag,
			"kernel.yama.ptrace_scope is 3, which only a new start can change");
		return -EPERM;
	}
	int result = target_root_open(&root, question->pid, diag);

	if (result < 0)
		return result;
	ret_facts->other_mounts = !target_root_is_ours(&root);
	result = check_folder(&root, question->folder, ret_facts, diag);
	if (result == 0 && !question->single_file)
		result = check_writer(&root, question->runtime_path, diag);
	else if (result == 0 && !question->all_memory)
		result = check_dac_library(&root, diag);
	target_root_close(&root);
	return result;
}

/* It has one thread, named like the runtime's that forked it; the program's children do not. */
static bool is_copy(const struct proc_process *process, uint32_t pid, uint64_t since_ticks)
{
	return process->parent_pid == pid && process->thread_count == 1 &&
	       process->start_ticks >= since_ticks && !proc_state_has_ended(process->state) &&
	       strcmp(process->comm, ".NET EventPipe") == 0;
}

int dump_end_copy(uint32_t pid, uint64_t since_ticks, uint32_t *ret_copy_pid)
{
	struct proc_reader proc;
	struct id_list pids = { 0 };
	struct proc_process process;
	int ended = 0;

	if (proc_open(&proc, NULL) < 0)
		return 0;
	(void)proc_list(&proc, &pids, NULL); /* an invisible process cannot be ended */
	for (uint32_t i = 0; i < pids.ids.count && ended >= 0; i++) {
		/* Before the facts are read: otherwise the pid could be reused in between. */
		cleanup(closep) int fd = (int)syscall(SYS_pidfd_open, pids.ids.items[i], 0);
		if (fd < 0 || proc_read(&proc, pids.ids.items[i], &process) < 0 ||
			!is_copy(&process, pid, since_ticks))
			continue;
		*ret_copy_pid = process.pid;
		ended = syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0 ? ended + 1
										  : -errno;
	}
	vec_done(&pids.ids);
	proc_close(&proc);
	return ended;
}
