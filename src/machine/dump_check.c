/* See dump_check.h. */
#include "machine/dump_check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "machine/target_root.h"

#define TEXT_ROOM 4096u

/* A small file of /proc into `text`; "" when it is not to be had. */
static void read_text(const char *path, char text[TEXT_ROOM])
{
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, TEXT_ROOM - 1) : 0;

	text[n > 0 ? n : 0] = '\0';
}

static bool has_filter(uint32_t pid)
{
	char path[64];
	char text[TEXT_ROOM];

	(void)snprintf(path, sizeof(path), "/proc/%u/status", pid); /* fits */
	read_text(path, text);
	const char *line = strstr(text, "\nSeccomp:\t");

	return line && line[sizeof("\nSeccomp:\t") - 1] == '2';
}

static int open_below(const struct target_root *root, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	while (*path == '/')
		path++;
	return (int)syscall(SYS_openat2, root->fd, *path ? path : ".", &how, sizeof(how));
}

static int check_folder(const struct target_root *root, const char *folder, struct dump_facts *facts, struct diag *diag)
{
	struct statvfs space;
	cleanup(closep) int fd = open_below(root, folder, O_RDONLY | O_DIRECTORY);

	if (fd < 0) {
		diag_set(diag, -errno, "process %u has no folder '%s' for its dump: %m", root->pid, folder);
		diag_remedy(diag, "name another with -o, as the process sees it");
		return diag->error;
	}
	if (fstatvfs(fd, &space) == 0)
		facts->free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
	return 0;
}

/*
 * Beside libcoreclr.so stands the program that writes the dump; of a program that is a single file it is sought beside that. Where it is not, .NET 8 splits off a copy of
 * the process that runs on for ever, holding all its descriptors, and says that the dump is written: so it must not be asked.
 */
static int check_program(const struct target_root *root, const char *runtime_path, struct diag *diag)
{
	char path[TEXT_ROOM];
	char program[TEXT_ROOM];
	const char *slash = strrchr(runtime_path, '/');

	if (!slash) {
		(void)snprintf(path, sizeof(path), "/proc/%u/exe", root->pid); /* fits */
		ssize_t len = readlink(path, program, sizeof(program) - 1);
		program[len > 0 ? len : 0] = '\0';
		runtime_path = program;
		slash = strrchr(program, '/');
	}
	if (!slash || (size_t)snprintf(path, sizeof(path), "%.*s/createdump", (int)(slash - runtime_path), runtime_path) >= sizeof(path))
		return 0; /* who it is cannot be seen */
	cleanup(closep) int fd = open_below(root, path, O_PATH);

	if (fd >= 0 || errno != ENOENT)
		return 0;
	diag_set(diag, -ENOENT, "process %u cannot be dumped: its runtime comes without '%s'", root->pid, path);
	if (runtime_path == program)
		diag_remedy(diag, "for a program that is a single file, createdump and libmscordaccore.so of the same runtime have to be put there");
	return diag->error;
}

int dump_check(uint32_t pid, const char *folder, const char *runtime_path, struct dump_facts *ret_facts, struct diag *diag)
{
	struct target_root root;
	char text[TEXT_ROOM];

	*ret_facts = (struct dump_facts){ .seccomp = has_filter(pid) };
	read_text("/proc/sys/kernel/yama/ptrace_scope", text);
	if (text[0] == '3') {
		diag_set(diag, -EPERM, "process %u cannot be dumped: this machine forbids ptrace altogether", pid);
		diag_remedy(diag, "kernel.yama.ptrace_scope is 3, which only a new start can change");
		return -EPERM;
	}
	int result = target_root_open(&root, pid, diag);

	if (result < 0)
		return result;
	ret_facts->other_mounts = !target_root_is_ours(&root);
	result = check_folder(&root, folder, ret_facts, diag);
	if (result == 0)
		result = check_program(&root, runtime_path, diag);
	target_root_close(&root);
	return result;
}

bool dump_find(uint32_t pid, const char *path, uint64_t *ret_size_bytes)
{
	struct target_root root;
	struct stat status;
	bool found = false;

	if (target_root_open(&root, pid, NULL) < 0)
		return false;
	cleanup(closep) int fd = open_below(&root, path, O_PATH);

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		*ret_size_bytes = (uint64_t)status.st_size;
		found = true;
	}
	target_root_close(&root);
	return found;
}
