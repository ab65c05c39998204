/*
 * Files and memory as a target sees them.
 *
 * A path that a process in a container tells of means a file in its own root. target_root_open() takes hold of that root, and
 * target_root_open_file() resolves paths inside it, so that no link a target has planted leads out. Only regular files of bounded size
 * are opened, without blocking; a device or a pipe is never opened at all. What is opened may still be changed or cut by the target, so it
 * is read with pread(2), never mapped.
 *
 * Where the kernel has no openat2 (before Linux 5.6) no path of a target is opened: -ENOSYS, and the caller says so.
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
};

/* -ESRCH: gone. -EACCES: the right to look into the process is missing. */
int target_root_open(struct target_root *root, uint32_t pid, struct diag *diag);
void target_root_close(struct target_root *root);

/* The root we have ourselves (pid 0), by the same rules: for paths a target told of before it ended. */
int target_root_open_here(struct target_root *root, struct diag *diag);

/* Has it our own root and mounts? False when that is not to be known. */
bool target_root_is_ours(const struct target_root *root);

/* Opens a regular file for reading; the caller closes *ret_fd. Larger than `size_max` is -EFBIG, not a regular file -EINVAL. */
int target_root_open_file(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/* A folder as the target sees it: an O_PATH descriptor in *ret_fd, which the caller closes. */
int target_root_open_folder(const struct target_root *root, const char *path, int *ret_fd, struct diag *diag);

/*
 * As target_root_open_file() for what is believed as the target's own word (perf map, jitdump): the last part of the path must be no link (-EINVAL), and the file must
 * belong to the target's user or to root (-EPERM): whoever may write into its /tmp could make names up.
 */
int target_root_open_word(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/*
 * Opens the file behind a mapping itself, whatever has become of its name. Needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
 * Memory that only looks like a file (memfd) is refused: -EINVAL.
 */
int target_map_file_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/* The inode of its mount namespace; 0 when that is not to be known. */
uint64_t target_mount_namespace(uint32_t pid);

/* The target's memory; the caller closes *ret_fd. -EACCES or -EPERM: the right to trace it is missing. */
int target_memory_open(uint32_t pid, int *ret_fd);

/* Up to `size` bytes at `address`: their number, 0 when the process has ended, -EIO when nothing is mapped there. */
ssize_t target_memory_read(int fd, uint64_t address, void *buffer, size_t size);

#endif
