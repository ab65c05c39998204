/*
 * /proc/PID/root is a link only the kernel can make, so following it is safe; everything behind it belongs to the target. openat2() with
 * RESOLVE_IN_ROOT resolves links as the target would and never leaves; magic links (another /proc) are refused.
 */
#include "machine/target_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define PATH_ROOM 96u

/* Has the process our own root, in our own mounts? False when that is not to be known. */
static bool root_is_ours(uint32_t pid, int fd)
{
	struct stat theirs, ours;
	char path[PATH_ROOM];

	if (fstat(fd, &theirs) < 0 || stat("/", &ours) < 0 || theirs.st_dev != ours.st_dev ||
		theirs.st_ino != ours.st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/mnt", &ours) == 0 &&
		theirs.st_ino == ours.st_ino;
}

int target_root_open(struct target_root *root, uint32_t pid, struct diag *diag)
{
	char path[PATH_ROOM];

	*root = (struct target_root){ .pid = pid, .fd = -1 };
	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int error = errno == ENOENT ? -ESRCH : -errno;
		return diag_set(diag, error, "cannot look into the files of process %u: %m", pid);
	}
	root->fd = fd;
	root->ours = root_is_ours(pid, fd);
	return 0;
}

void target_root_close(struct target_root *root)
{
	closep(&root->fd);
	root->fd = -1;
}

/* Takes `fd` over only when it is a regular file of bounded size. */
static int take_regular(int fd, uint64_t size_max, int *ret_fd, uint64_t *ret_size_bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || (uint64_t)st.st_size > size_max)
		return -EFBIG;
	*ret_fd = fd;
	*ret_size_bytes = (uint64_t)st.st_size;
	return 0;
}

static int refuse(int error, const char *path, uint32_t pid, struct diag *diag)
{
	if (error == -EINVAL)
		return diag_set(diag, error, "'%s' of process %u is not a regular file", path, pid);
	if (error == -EFBIG)
		return diag_set(diag, error, "'%s' of process %u is too large", path, pid);
	return diag_set(diag, error, "cannot open '%s' of process %u: %m", path, pid);
}

/* Without O_NONBLOCK a pipe the target has put there would hold us up. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

int target_root_open_file(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag)
{
	struct open_how how = {
		.flags = OPEN_FLAGS,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	cleanup(closep) int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS) {
		if (!root->ours)
			return diag_set(diag, -ENOSYS,
				"cannot open '%s' of process %u safely: this kernel has no openat2 (Linux 5.6)",
				path, root->pid);
		fd = open(path, OPEN_FLAGS);
	}
	if (fd < 0)
		return refuse(-errno, path, root->pid, diag);
	int r = take_regular(fd, size_max, ret_fd, ret_size_bytes);
	if (r < 0)
		return refuse(r, path, root->pid, diag);
	(void)TAKE_FD(fd); /* *ret_fd is it */
	return 0;
}

int target_map_file_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag)
{
	char path[PATH_ROOM], link[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)begin,
		(unsigned long long)end);
	/* A device under the mapping must not be opened at all: opening is an act for some. */
	struct stat st;
	if (stat(path, &st) < 0)
		return refuse(-errno, path, pid, diag);
	ssize_t n = readlink(path, link, sizeof(link));
	if (!S_ISREG(st.st_mode) || (n >= 7 && !memcmp(link, "/memfd:", 7)))
		return refuse(-EINVAL, path, pid, diag);
	cleanup(closep) int fd = open(path, OPEN_FLAGS);
	if (fd < 0)
		return refuse(-errno, path, pid, diag);
	int r = take_regular(fd, size_max, ret_fd, ret_size_bytes);
	if (r < 0)
		return refuse(r, path, pid, diag);
	(void)TAKE_FD(fd); /* *ret_fd is it */
	return 0;
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
		return -EIO; /* the kernel's half: never the target's memory */
	ssize_t n = pread(fd, buffer, size, (off_t)address);
	return n < 0 ? -errno : n;
}
