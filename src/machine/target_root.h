/*
 * Files and memory as a target sees them.
 *
 * A path that a process in a container tells of means a file in its own root. target_root_open() takes hold of that root, and
 * target_root_open_file() resolves paths inside it, so that no link a target has planted leads out. Only regular files of bounded size
 * are opened, without blocking.
 */
#ifndef SPOOR_MACHINE_TARGET_ROOT_H
#define SPOOR_MACHINE_TARGET_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct diag;

struct target_root {
	uint32_t pid;
	int fd;                  /* -1: not open */
	bool ours;               /* the same root and mounts as the recorder's own */
};

/* -ESRCH: gone. -EACCES: the right to look into the process is missing. */
int target_root_open(struct target_root *root, uint32_t pid, struct diag *diag);
void target_root_close(struct target_root *root);

/*
 * Opens a regular file for reading; the caller closes *ret_fd. Larger than `size_max` is -EFBIG, not a regular file -EINVAL. Where the kernel
 * has no openat2 only a root that is ours can be read: -ENOSYS and a sentence for any other.
 */
int target_root_open_file(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/*
 * Opens the file behind a mapping itself, whatever has become of its name. Needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
 * Memory that only looks like a file (memfd) is refused: -EINVAL.
 */
int target_map_file_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/* The target's memory; the caller closes *ret_fd. -EACCES or -EPERM: the right to trace it is missing. */
int target_memory_open(uint32_t pid, int *ret_fd);

/* Up to `size` bytes at `address`: their number, 0 when the process has ended, -EIO when nothing is mapped there. */
ssize_t target_memory_read(int fd, uint64_t address, void *buffer, size_t size);

#endif
