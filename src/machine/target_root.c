/*
 * /proc/PID/root is a link of the kernel, so it is safe to follow. Everything below it belongs to
 * the target: RESOLVE_IN_ROOT keeps links inside that root, and magic links (another /proc) are
 * refused.
 *
 * A path is opened twice: first with O_PATH, without effect on a device or a pipe, to check the
 * kind of the file; then through that descriptor, so that no other file can have replaced it.
 */
#include "machine/target_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "machine/kernel_file.h"
#include "machine/proc.h"

#define PATH_ROOM   96u
#define STATUS_ROOM 8192u

/*
 * openat2() returns EAGAIN for ".." after any rename on the machine. A target that renames all the
 * time loses its own names only.
 */
#define TRIES 16

/* Without O_NONBLOCK, open() would wait for a lease that the target holds. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

int target_root_open(struct target_root *root, uint32_t pid, struct diag *diag)
{
	char path[PATH_ROOM];

	*root = (struct target_root){ .pid = pid, .fd = -1 };
	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int error = errno == ENOENT ? -ESRCH : -errno;
		diag_set(diag, error, "cannot look into the files of process %u: %m", pid);
		if (error == -EACCES)
			diag_remedy(diag, "run it as that user, or with sudo");
		return error;
	}
	root->fd = fd;
	return 0;
}

int target_root_open_here(struct target_root *root, struct diag *diag)
{
	*root = (struct target_root){ .fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	return root->fd < 0 ? diag_set(diag, -errno, "cannot open '/': %m") : 0;
}

void target_root_close(struct target_root *root)
{
	closep(&root->fd);
	root->fd = -1;
}

bool target_root_is_ours(const struct target_root *root)
{
	struct stat theirs, ours;
	uint64_t space = target_mount_namespace(root->pid);

	return fstat(root->fd, &theirs) == 0 && stat("/", &ours) == 0 &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino && space &&
	       space == target_mount_namespace((uint32_t)getpid());
}

/* Is it of /proc or /sys: no image, but a target's link may lead to one that only we may read. */
static bool is_made_up(int fd)
{
	static const unsigned long kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC,
		TRACEFS_MAGIC, SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		BPF_FS_MAGIC, EFIVARFS_MAGIC, PSTOREFS_MAGIC, SELINUX_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((unsigned long)fs.f_type == kinds[i])
			return true;
	return false;
}

/* Opens the file of an O_PATH descriptor, which it takes over, if regular and of bounded size. */
static int open_looked_at(int looked, uint64_t size_max, int *ret_fd, uint64_t *ret_size_bytes)
{
	cleanup(closep) int place = looked;
	char path[PATH_ROOM];
	struct stat st;

	if (fstat(place, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || is_made_up(place))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	cleanup(closep) int fd = open(path, OPEN_FLAGS);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > size_max)
		return -EFBIG;
	*ret_fd = TAKE_FD(fd);
	*ret_size_bytes = (uint64_t)st.st_size;
	return 0;
}

static int refuse(int error, const char *path, uint32_t pid, struct diag *diag)
{
	if (error == -EINVAL)
		return diag_set(diag, error, "'%s' of process %u is not a regular file", path, pid);
	if (error == -EFBIG)
		return diag_set(diag, error, "'%s' of process %u is too large", path, pid);
	if (error == -ENOSYS)
		return diag_set(diag, error,
			"cannot open '%s' of process %u safely: there is no openat2 here (Linux 5.6)",
			path, pid);
	return diag_set(diag, error, "cannot open '%s' of process %u: %m", path, pid);
}

/* An O_PATH descriptor of the file at a path below the root, or a negative errno. */
static int look(const struct target_root *root, const char *path, uint64_t more_flags)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | more_flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	for (int i = 0;; i++) {
		int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		/* Old container runtimes' seccomp filters return EPERM, file systems EACCES. */
		if (errno == EPERM)
			return -ENOSYS;
		if (errno != EAGAIN || i == TRIES)
			return -errno;
	}
}

int target_root_open_file(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag)
{
	int fd = look(root, path, 0);
	int r = fd < 0 ? fd : open_looked_at(fd, size_max, ret_fd, ret_size_bytes);

	return r < 0 ? refuse(r, path, root->pid, diag) : 0;
}

/* Reads a link of the process in /proc, terminated. False: it cannot be read, or is too long. */
static bool read_link(uint32_t pid, const char *name, char *ret_text, size_t room)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	ssize_t n = readlink(path, ret_text, room);
	if (n < 0 || (size_t)n >= room)
		return false;
	ret_text[n] = 0;
	return true;
}

const char *target_path_in_root(uint32_t pid, const char *path)
{
	char root[PATH_MAX];
	size_t len;

	if (!read_link(pid, "root", root, sizeof(root)))
		return path;
	len = strlen(root);
	return len > 1 && !strncmp(path, root, len) && path[len] == '/' ? path + len : path;
}

/* The program of the process, if that is the path: its link leads to the file even if it was unlinked. */
static int open_program(uint32_t pid, const char *path, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes)
{
	char link[PATH_MAX + 16];
	bool deleted;

	if (!read_link(pid, "exe", link, sizeof(link)))
		return -ENOENT;
	size_t len = proc_strip_deleted(link, strlen(link), &deleted);
	link[len] = 0;
	if (strcmp(path, link) != 0 && strcmp(path, target_path_in_root(pid, link)) != 0)
		return -ENOENT;
	snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	int place = open(link, O_PATH | O_CLOEXEC);
	return place < 0 ? -errno : open_looked_at(place, size_max, ret_fd, ret_size_bytes);
}

int target_file_open(uint32_t pid, const char *path, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag)
{
	struct target_root root = { .fd = -1 };
	int result = pid ? target_root_open(&root, pid, diag) : target_root_open_here(&root, diag);

	if (result < 0)
		return result;
	result = target_root_open_file(&root, path, size_max, ret_fd, ret_size_bytes, diag);
	if (pid && (result == -ENOENT || result == -ENOTDIR)) {
		const char *inner = target_path_in_root(pid, path);
		if (inner != path)
			result = target_root_open_file(&root, inner, size_max, ret_fd,
				ret_size_bytes, diag);
		if (result < 0 && open_program(pid, path, size_max, ret_fd, ret_size_bytes) == 0)
			result = 0;
	}
	target_root_close(&root);
	return result;
}

int target_root_open_folder(const struct target_root *root, const char *path, int *ret_fd,
	struct diag *diag)
{
	int fd = look(root, path, O_DIRECTORY);

	if (fd == -ENOSYS)
		return refuse(fd, path, root->pid, diag);
	if (fd < 0)
		return diag_set(diag, fd, "process %u has no folder '%s': %m", root->pid, path);
	*ret_fd = fd;
	return 0;
}

/* The current user of the target, which may have changed since it started. */
static int read_user(uint32_t pid, uint32_t *ret_uid)
{
	char path[PATH_ROOM], text[STATUS_ROOM];
	struct proc_process process = { .uid = UINT32_MAX };

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	ssize_t n = kernel_file_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	proc_parse_status(text, (size_t)n, &process);
	*ret_uid = process.uid;
	return process.uid == UINT32_MAX ? -ESRCH : 0;
}

int target_root_open_word(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag)
{
	struct stat st;
	uint32_t uid;
	uint64_t size;
	int opened = -1;
	int place = look(root, path, O_NOFOLLOW);
	int r = place < 0 ? place : open_looked_at(place, size_max, &opened, &size);
	cleanup(closep) int fd = opened;

	if (r == 0)
		r = read_user(root->pid, &uid);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return refuse(r, path, root->pid, diag);
	if (st.st_uid != uid && st.st_uid != 0)
		return diag_set(diag, -EPERM,
			"'%s' of process %u belongs to user %u, not to its own", path, root->pid,
			st.st_uid);
	*ret_fd = TAKE_FD(fd);
	*ret_size_bytes = size;
	return 0;
}

/* A memfd looks like a file: the kernel shows "/memfd:NAME (deleted)". */
static bool is_memory(int fd)
{
	static const char mark[] = "/memfd:";
	char path[PATH_ROOM], link[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, link, sizeof(link));
	return n >= (ssize_t)sizeof(mark) - 1 && !memcmp(link, mark, sizeof(mark) - 1);
}

static int open_map_file(uint32_t pid, uint64_t begin, uint64_t end, bool memory, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)begin,
		(unsigned long long)end);
	cleanup(closep) int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return refuse(-errno, path, pid, diag);
	if (!memory && is_memory(fd))
		return refuse(-EINVAL, path, pid, diag);
	int r = open_looked_at(TAKE_FD(fd), size_max, ret_fd, ret_size_bytes);
	return r < 0 ? refuse(r, path, pid, diag) : 0;
}

int target_map_file_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag)
{
	return open_map_file(pid, begin, end, false, size_max, ret_fd, ret_size_bytes, diag);
}

int target_image_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag)
{
	return open_map_file(pid, begin, end, true, size_max, ret_fd, ret_size_bytes, diag);
}

uint64_t target_mount_namespace(uint32_t pid)
{
	char path[PATH_ROOM];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

int target_memory_open(uint32_t pid, int *ret_fd)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	*ret_fd = fd;
	return 0;
}

ssize_t target_memory_read(int fd, uint64_t address, void *buffer, size_t size)
{
	if (address > INT64_MAX)
		return -EIO; /* an address of the kernel, never of the target */
	ssize_t n = pread(fd, buffer, size, (off_t)address);
	return n < 0 ? -errno : n;
}
